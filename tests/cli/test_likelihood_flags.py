"""--constrain, --fix and --level mean the same in measure, closure, report and export, and the same
as in Python."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import downloads

import gridless as gl
from gridless.cli.main import main
from gridless.examples import TwoParameters

EXAMPLE = TwoParameters()
CONSTRAIN = ["--constrain", "t2", "0.5", "0.05"]


def run(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of two parameters, a sample of each of three values, and data."""
    path = tmp_path_factory.mktemp("two")
    model = gl.fit(EXAMPLE.templates(400, seed=1, templates=3), hidden=(3,), epochs=2, replicas=4)
    model.save(path / "m.safetensors")
    for i, (a, b) in enumerate([(0.3, 0.4), (0.5, 0.5), (0.7, 0.6)]):
        x = EXAMPLE.sample((a, b), 500, seed=i)
        np.savez(path / f"t_{a}_{b}.npz", x1=x[:, 0], x2=x[:, 1])
    x = EXAMPLE.sample((0.4, 0.5), 1_000, seed=9)
    np.savez(path / "data.npz", x1=x[:, 0], x2=x[:, 1])
    return path


@pytest.fixture(scope="module")
def likelihood(folder):
    model = gl.load(folder / "m.safetensors")
    return gl.read_likelihood(model, folder / "data.npz")


def test_measure(folder, likelihood):
    found = json.loads(
        run("measure", folder / "m.safetensors", folder / "data.npz", *CONSTRAIN, "--json")
    )
    expected = likelihood.constrain("t2", 0.5, 0.05).maximum().to_dict()
    assert found["parameters"] == expected["parameters"]


def test_export(folder, likelihood, tmp_path):
    command = ["export", folder / "m.safetensors", folder / "data.npz", "--curve"]
    run(*command, tmp_path / "c.json", "--fix", "t2", "0.5", "--level", "0.95")
    curve = json.loads((tmp_path / "c.json").read_text())
    held = likelihood.fix(t2=0.5)
    assert curve["parameters"] == ["t1"]
    assert curve["best"] == held.maximum().values.tolist()
    low, high = held.interval(0.95)
    assert curve["intervals"] == {"t1": {"level": 0.95, "low": low, "high": high}}


def test_report(folder, likelihood, tmp_path, no_pictures):
    page = tmp_path / "r.html"
    files = [folder / "m.safetensors", folder / "data.npz", "--closure", folder / "t_{t1}_{t2}.npz"]
    run("report", *files, *CONSTRAIN, "--level", "0.9", "-o", page)
    text = page.read_text()
    tight = likelihood.constrain("t2", 0.5, 0.05)
    found = downloads(text)
    assert found["result"] == json.loads(json.dumps(tight.maximum().to_dict()))
    low, high = tight.interval(0.9, "t1")
    first = found["estimate_with_intervals"][0]
    assert (first["low_90%"], first["high_90%"]) == (low, high)
    samples = folder / "t_{t1}_{t2}.npz"
    table = json.loads(run("closure", folder / "m.safetensors", samples, *CONSTRAIN, "--json"))
    assert [row["pull"] for row in found["closure_of_t2"]] == [p for _, p in table["pull"]]


def test_closure_with_a_parameter_held(folder):
    flags = ["--fix", "t2", "0.5", "--level", "0.95"]
    command = ["closure", folder / "m.safetensors", folder / "t_{t1}_{t2}.npz", *flags]
    found = json.loads(run(*command, "--json"))
    assert found["parameters"] == ["t1"]
    assert found["true"] == [[0.3], [0.5], [0.7]]
    assert np.shape(found["intervals"]) == (3, 1, 2)
    assert "of 3 intervals at 95% contain the truth" in run(*command)


def test_samples_are_read_as_the_verb_reads_them(folder):
    model = gl.load(folder / "m.safetensors")
    samples = gl.read_samples(model, folder / "t_{t1}_{t2}.npz")
    assert [value for value, _ in samples] == [(0.3, 0.4), (0.5, 0.5), (0.7, 0.6)]
    table = gl.closure(model, samples)
    printed = run("closure", folder / "m.safetensors", folder / "t_{t1}_{t2}.npz")
    assert f"{table}\n" == printed
