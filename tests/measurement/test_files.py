"""Systematics and backgrounds of analysis.yaml: checked first, read with the templates' query."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.analysis.loading import load_analysis
from gridless.cli.main import main
from gridless.errors import InputError

ANALYSIS = """
templates: mc_{theta}.npz
parameters: {theta: [0, 1]}
observables: {x: x, twice: 2 * y}
weight: w
selection: twice > -6
labels:
  theta: $\\theta$ [GeV]
backgrounds:
  - {name: flat, files: flat.npz, share: 0.1, error: 0.03, weight: v,
     systematics: [{name: shift, up: flat_up.npz, down: flat_down.npz}]}
systematics:
  - {name: shift, up: "up_{theta}.npz", down: "down_{theta}.npz", event: number}
  - {name: tilt, weight_up: w * (1 + 0.1 * y), weight_down: w * (1 - 0.1 * y)}
fit: {hidden: 3, epochs: 2, seed: 1}
"""
EVENTS = 1_500
THETAS = (0.1, 0.3, 0.5, 0.7, 0.9)


def save(path, x, y, **more):
    np.savez(path, x=x, y=y, **more)


def draw(theta, events, random):
    return random.normal(theta, 1, events), random.normal(0, 1, events)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("measurement")
    random = np.random.default_rng(1)
    for theta in THETAS:
        x, y = draw(theta, EVENTS, random)
        w, number = random.uniform(0.5, 1.5, EVENTS), np.arange(EVENTS) + 7
        save(path / f"mc_{theta}.npz", x, y, w=w, number=number)
        for side, sign in (("up", 1), ("down", -1)):
            # Other rows, in another order, with the numbers of the same events.
            kept = random.permutation(EVENTS)[: EVENTS - 20]
            moved = (x[kept] + 0.1 * sign, y[kept] + 0.3 * sign)
            save(path / f"{side}_{theta}.npz", *moved, w=w[kept], number=number[kept])
    flat = random.uniform(-3, 3, (2, 3_000))
    v = random.uniform(0.5, 1.5, 3_000)
    save(path / "flat.npz", *flat, v=v)
    save(path / "flat_up.npz", flat[0], flat[1] + 0.3, v=v)
    save(path / "flat_down.npz", flat[0], flat[1] - 0.3, v=v)
    x, y = draw(0.4, 2_700, random)
    more = random.uniform(-3, 3, (2, 300))
    save(path / "data.npz", np.append(x, more[0]), np.append(y + 0.3, more[1] + 0.3))
    save(path / "shifted_0.4.npz", x + 0.1, y + 0.3, w=np.ones(2_700))
    (path / "analysis.yaml").write_text(ANALYSIS)
    return path


@pytest.fixture(scope="module")
def model(folder):
    path = folder / "model.safetensors"
    run("fit", folder / "analysis.yaml", "-o", path)
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_files_are_read_with_the_query_of_the_templates(folder):
    analysis = load_analysis(folder / "analysis.yaml")
    systematics, backgrounds, files = analysis.read_measurement("entry < 1400")
    templates = analysis.read_templates("entry < 1400")
    shift, tilt = systematics
    assert [one.name for one in systematics] == ["shift", "tilt"]
    assert shift.sides[0].x.shape[1] == 2
    assert set(np.unique(shift.sides[0].theta)) == set(THETAS)
    assert len(shift.numbers) == len(templates)
    assert tilt.sides[0].x is None
    y = templates.x[:, 1] / 2
    np.testing.assert_allclose(tilt.sides[0].weights, templates.weights * (1 + 0.1 * y))
    (flat,) = backgrounds
    assert (flat.share, flat.error) == (0.1, 0.03)
    assert flat.x[:, 1].min() > -6
    assert flat.weights.max() <= 1.5
    assert [one.name for one in flat.systematics] == ["shift"]
    assert {str(folder / name) for name in ("up_0.1.npz", "flat.npz", "flat_up.npz")} <= {
        record.source for record in files
    }


def test_shell_and_python_make_the_same_measurement(folder, model):
    python, shell = gl.fit_files(folder / "analysis.yaml"), gl.load(model)
    data = gl.read(folder / "data.npz", {"x": "x", "twice": "2 * y"}, selection="twice > -6")
    a, b = (one.likelihood(data).maximum() for one in (python, shell))
    assert a.value == b.value
    assert {"stat", "simulation", "shift", "tilt", "flat"} <= set(a.budget["theta"])
    assert shell.grid.labels == {"theta": r"$\theta$ [GeV]"}
    assert any("up_0.1" in file.source for file in shell.files)


def test_fit_files_finds_the_shift(folder, model):
    estimate = gl.read_likelihood(gl.load(model), folder / "data.npz").maximum()
    pull, error = estimate.pulls["shift"]
    assert abs(pull - 1) < 3 * error
    assert estimate.offered == 3_000


WRONG = [
    ("share: 0.1", "share: 1.2", r"line 10: backgrounds\.0\.share: 1.2; give a number below 1"),
    ("share: 0.1", "shar: 0.1", r"backgrounds\.0\.shar: there is no such setting; known are name"),
    ("name: tilt", "name: shift", "two are named 'shift'"),
    ("name: tilt", "name: flat", "'flat' is a systematic and a background"),
    ("name: tilt", "name: theta", "'theta' is a parameter and"),
    ("name: tilt", "name: stat", r"systematics\.1\.name: 'stat' is a part of every budget"),
    ("name: tilt", "name: total", r"systematics\.1\.name: 'total' is a part of every budget"),
    ("weight_up: w * (", "weight_up: w * ((", r"systematics\.1\.weight_up"),
    ("weight_up: w", "weight_upp: w", r"weight_upp: there is no such setting; known are name, up"),
    ("up: flat_up.npz", "up: 'flat_{theta}.npz'", "a background has no parameters"),
    ("error: 0.03", "error: -1", r"backgrounds\.0\.error: -1; give a number above 0"),
    ("event: number", "constraint: 0.5", "shift has two constraints"),
    (", error: 0.03", "", r"backgrounds\.0\.error: is missing"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_mistakes_are_found_before_anything_is_read(tmp_path, old, new, message):
    path = tmp_path / "a.yaml"
    assert old in ANALYSIS
    path.write_text(ANALYSIS.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        load_analysis(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("up_{theta}", "upp_{theta}", "upp_{theta}.npz: no file matches"),
        ("event: number", "event: y", "whole numbers"),
        ("event: number", "event: none", "systematic 'shift': .*no column 'none'"),
        ("weight: v", "weight: w", "flat.npz: no column 'w'"),
    ],
)
def test_mistakes_in_files_end_with_2(folder, old, new, message):
    path = folder / "wrong.yaml"
    path.write_text(ANALYSIS.replace(old, new, 1))
    output = run("fit", path, "-o", folder / "wrong.safetensors", code=2)
    assert re.search(message, " ".join(output.split())), output


def test_the_audit_has_systematics_and_backgrounds(folder):
    content = json.loads(run("audit", folder / "analysis.yaml", "--json"))
    found = {one["demand"]: one for one in content["findings"]}
    assert found["shift: independent"]["met"]
    assert found["tilt: vanishing"]["met"]
    assert "flat, shift: noise" in found
    assert "than those of the background" in found["flat, shift: independent"]["text"]
    assert "(p < 1e-10)" in found["shift: noise"]["text"]
    assert "2 systematics, 1 background" in content["title"]


def test_measure_prints_the_total_and_a_budget(folder, model):
    text = run("measure", model, folder / "data.npz")
    first, *_ = text.splitlines()
    assert re.match(r"theta = 0\.\d+ (\+- 0\.\d+|\+0\.\d+ -0\.\d+)$", first), text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[2:]}
    assert {"stat", "simulation", "shift", "tilt", "flat", "total"} <= set(rows)
    sides = re.findall(r"[-+] ?(0\.\d+)", first)
    half_a_digit = 0.5 * 10.0 ** -len(sides[0].partition(".")[2])
    mean = np.mean([float(side) for side in sides])
    assert float(rows["total"][0]) == pytest.approx(mean, abs=half_a_digit, rel=0.05)
    content = json.loads(run("measure", model, folder / "data.npz", "--json"))
    budget, impacts = content["budget"]["theta"], content["impacts"]["theta"]
    total = content["parameters"]["theta"]["error"]
    assert np.hypot.reduce(list(budget.values())) == pytest.approx(total)
    assert {name: abs(value) for name, value in impacts.items()} == pytest.approx(
        {name: budget[name] for name in ("shift", "tilt", "flat")}
    )
    assert set(content["pulls"]) == {"shift", "tilt", "flat"}


def test_nuisance_parameters_are_fixed_and_constrained_by_flags(folder, model):
    flags = ("--fix", "shift", "1", "--constrain", "tilt", "0", "0.1")
    content = json.loads(run("measure", model, folder / "data.npz", *flags, "--json"))
    assert "shift" not in content["nuisances"]
    assert content["nuisances"]["tilt"]["error"] < 0.11
    run("measure", model, folder / "data.npz", "--fix", "sift", "1", code=2)


def test_closure_on_varied_samples_pulls_the_nuisance_back(folder, model):
    samples = folder / "shifted_{theta}.npz"
    content = json.loads(run("closure", model, samples, "--signal", "--json"))
    (found,) = content["nuisances"]
    assert set(found) == {"shift", "tilt"}
    assert abs(found["shift"]["value"] - 1) < 3 * found["shift"]["error"]
    assert abs(content["pull"][0]) < 3
    assert re.search(
        r"shift = \+[01]\.\d\d \+- 0\.\d\d", run("closure", model, samples, "--signal")
    )


def test_a_notebook_shows_budget_and_nuisance_parameters(folder, model):
    estimate = gl.read_likelihood(gl.load(model), folder / "data.npz").maximum()
    text = estimate._repr_html_()
    assert text.count("<table>") == 2
    assert "impact on theta" in text
    assert estimate["theta"].label == r"$\theta$ [GeV]"


def test_the_report_has_a_section_on_nuisance_parameters(folder, model, no_pictures):
    page = folder / "report.html"
    samples = folder / "shifted_{theta}.npz"
    run("report", model, folder / "data.npz", "-o", page, "--closure", samples, "--signal")
    text = page.read_text()
    assert "flat = " not in text  # held in the closure, whose samples have no background
    assert re.search(r"shift = \+\d\.\d\d ± \d", text)
    assert 'id="nuisances"' in text
    assert "impact on" in text
