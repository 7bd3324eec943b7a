"""Channels of an analysis.yaml: checked first, fitted to one file, measured together."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.analysis.loading import load_analysis
from gridless.cli.main import main
from gridless.errors import InputError
from gridless.model.stream import read_observed

ANALYSIS = """
templates: mc_{theta}.npz
parameters: {theta: [0, 1]}
observables: {x: x, twice: 2 * y}
selection: y > -3
labels:
  theta: $\\theta$ [GeV]
  twice: $2y$
systematics:
  - {name: shift, up: "up_{theta}.npz", down: "down_{theta}.npz", event: number}
fit: {hidden: 3, epochs: 5, seed: 1}
channels:
  soft:
    selection: p < 0.5
    backgrounds:
      - {name: flat, files: flat.npz, share: 0.1, error: 0.03}
  hard:
    selection: p >= 0.5
    observables: [x]
    systematics:
      - {name: tilt, weight_up: 1 + 0.1 * x, weight_down: 1 - 0.1 * x}
"""
EVENTS = 1_500
THETAS = (0.1, 0.3, 0.5, 0.7, 0.9)


def draw(theta, events, random):
    return {
        "x": random.normal(theta, 1, events),
        "y": random.normal(0, 1, events),
        "p": random.uniform(0, 1, events),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("channels")
    random = np.random.default_rng(1)
    for theta in THETAS:
        events = draw(theta, EVENTS, random) | {"number": np.arange(EVENTS)}
        np.savez(path / f"mc_{theta}.npz", **events)
        for side, sign in (("up", 1), ("down", -1)):
            moved = {"x": events["x"] + 0.1 * sign, "y": events["y"] + 0.3 * sign}
            np.savez(path / f"{side}_{theta}.npz", **events | moved)
    flat = {name: random.uniform(low, high, 3_000) for name, (low, high) in RANGES.items()}
    np.savez(path / "flat.npz", **flat)
    data = draw(0.4, 2_850, random)
    other = {name: random.uniform(low, high, 150) for name, (low, high) in RANGES.items()}
    other["p"] /= 2  # in `soft`
    data = {name: np.append(data[name], other[name]) for name in data}
    data["y"] = np.maximum(data["y"], -2.9)
    data["p"][:10] = np.nan_to_num(np.inf)  # large: in `hard`
    data["y"][10:15] = -5  # in no channel
    np.savez(path / "data.npz", **data)
    soft = data["p"] < 0.5
    for name, own in (("soft", soft), ("hard", ~soft)):
        np.savez(path / f"data_{name}.npz", **{key: value[own] for key, value in data.items()})
    (path / "analysis.yaml").write_text(ANALYSIS)
    return path


RANGES = {"x": (-3, 3), "y": (-3, 3), "p": (0, 1)}


@pytest.fixture(scope="module")
def model(folder):
    path = folder / "model.safetensors"
    text = run("fit", folder / "analysis.yaml", "-o", path)
    assert text.startswith("Channels soft, hard of theta in [0, 1]")
    assert not list(folder.glob(".*checkpoint*"))
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_what_stands_at_the_top_holds_in_every_channel(folder):
    soft, hard = load_analysis(folder / "analysis.yaml").values()
    assert soft.selection == "(y > -3) & (p < 0.5)"
    assert soft.observables == {"x": "x", "twice": "2 * y"}
    assert hard.observables == {"x": "x"}
    assert [one.name for one in soft.systematics] == ["shift"]
    assert [one.name for one in hard.systematics] == ["shift", "tilt"]
    assert [one.name for one in hard.backgrounds] == []
    assert hard.labels == {"theta": r"$\theta$ [GeV]"}
    assert soft.fit == hard.fit
    assert soft.templates == str(folder / "mc_{theta}.npz")


@pytest.mark.parametrize("own", ["constraint: 0.5", "constraint: 1.0"])
def test_a_channel_replaces_a_systematic_of_the_same_name(tmp_path, own):
    text = ANALYSIS.replace("name: tilt,", f"name: shift, {own},")
    path = tmp_path / "a.yaml"
    path.write_text(text)
    if own == "constraint: 0.5":
        with pytest.raises(InputError, match=r"shift has constraint 1.0 in soft and 0.5 in hard"):
            load_analysis(path)
        return
    (one,) = load_analysis(path)["hard"].systematics
    assert one.weight_up is not None


WRONG = [
    ("selection: p < 0.5", "selekt: p < 0.5", r"line 14: channels\.soft\.selekt: there is no such"),
    ("share: 0.1", "share: 1.2", r"line 16: channels\.soft\.backgrounds\.0\.share"),
    ("weight_up: 1 +", "weight_up: (1 +", r"line 21: channels\.hard\.systematics\.0\.weight_up"),
    ('up: "up_', 'upp: "up_', r"line 10: systematics\.0\.upp: there is no such setting"),
    ("  hard:", "  soft:", r"line 17: 'soft' is there twice"),
    ("  hard:", "  'a=b':", "'a=b' is no name of a channel"),
    ("  hard:", "  7:", "7 is no name of a channel"),
    ("name: tilt", "name: flat", "'flat' is a background in soft and a systematic in hard"),
    ("name: tilt", "name: theta", "'theta' is a parameter and"),
    (
        "observables: [x]",
        "parameters: {theta: [0, 2]}",
        r"theta is in \[0, 1\] in soft and",
    ),
    (
        "observables: [x]",
        "templates: mc.npz\n    parameters: {eta: [0, 2]}",
        "shares no parameter",
    ),
    ("twice: $2y$", "thrice: $3y$", "labels: there is no 'thrice' in any channel"),
    ("observables: {", "observable: {", r"^\S+: line 4: observable: there is no such setting"),
    ("observables: {x: x, twice: 2 * y}", "observables: 3", "line 4: observables: 3; give names"),
    ("parameters: {theta: [0, 1]}", "parameters:\n theta [0, 1]", "line 3: parameters: 'theta"),
    (
        "parameters: {theta",
        "parameters: {thta",
        r"line 3: parameters: mc_\{theta\}.npz has theta in braces, and the parameters are thta",
    ),
    ("templates: mc", "tmplates: mc", r"channels\.soft\.templates: is missing"),
    ("channels:\n  soft:", "channels:\n  - soft:", "give two or more by name"),
    ("    observables: [x]\n", "    observables: [\n", "not YAML"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_mistakes_are_found_before_anything_is_read(tmp_path, old, new, message):
    path = tmp_path / "a.yaml"
    assert old in ANALYSIS
    text = ANALYSIS.replace(old, new, 1)
    if new.startswith("channels:\n  -"):
        text = text[: text.index("channels:")] + "channels: [soft, hard]\n"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_analysis(path)


def test_one_channel_alone_and_an_empty_one(tmp_path):
    path = tmp_path / "a.yaml"
    top = ANALYSIS[: ANALYSIS.index("channels:")]
    path.write_text(top + "channels: {soft: {selection: p < 1}}\n")
    with pytest.raises(InputError, match="two or more"):
        load_analysis(path)
    path.write_text(top + "channels:\n  soft: {selection: p < 1}\n  hard:\n")
    assert load_analysis(path)["hard"].selection == "y > -3"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("p >= 0.5", "p >= 7", r"channel hard: .*none of its 1,500 events passes"),
        ("observables: [x]", "observables: [z]", r"channel hard: .*no column 'z'"),
        ("flat.npz", "flt.npz", r"channel soft: .*flt.npz"),
    ],
)
def test_mistakes_in_the_files_of_any_channel_show_before_training(folder, old, new, message):
    path = folder / "wrong.yaml"
    path.write_text(ANALYSIS.replace(old, new, 1))
    for verb in (["fit", path, "-o", folder / "wrong.safetensors"], ["audit", path]):
        output = run(*verb, code=2)
        assert re.search(message, " ".join(output.split())), output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 * y", "2 * yy", r"channel soft: \S+mc_0.1.npz: no column 'yy' for '2 \* yy'"),
        ("2 * y", "f.g(y)", r"channel soft: \S+mc_0.1.npz: .* is not a function is not allowed"),
        ("p >= 0.5", "p = 0.5", r"channel hard: \S+mc_0.1.npz: expression .*instead of '='"),
        ("flat.npz", "flt.npz", r"channel soft: \S+flt.npz: no such file"),
        ("number}", "nr}", r"channel soft: systematic 'shift': \S+up_0.1.npz: no column 'nr'"),
        (
            "theta: [0, 1]",
            "theta: [0, 0.8]",
            r"channel soft: \S+mc_0.9.npz: theta = 0.9 is outside",
        ),
    ],
)
def test_all_files_and_expressions_are_checked_before_events_are_read(
    folder, monkeypatch, old, new, message
):
    path = folder / "wrong.yaml"
    assert old in ANALYSIS
    path.write_text(ANALYSIS.replace(old, new, 1))
    for module in ("files.template_files", "systematics.reading"):
        monkeypatch.setattr(f"gridless.{module}.read_query", None)
    for verb in (["fit", path, "-o", folder / "wrong.safetensors"], ["audit", path]):
        output = run(*verb, code=2)
        assert re.search(message, " ".join(output.split())), output


def test_the_audit_has_every_channel(folder):
    content = json.loads(run("audit", folder / "analysis.yaml", "--json"))["channels"]
    assert set(content) == {"soft", "hard"}
    found = {one["demand"] for one in content["hard"]["findings"]}
    assert {"shift: noise", "tilt: noise"} <= found
    text = run("audit", folder / "analysis.yaml")
    assert "channel soft: " in text
    assert "channel hard: " in text


def test_one_file_has_all_models(folder, model):
    channels = gl.load(model)
    assert list(channels) == ["soft", "hard"]
    assert channels["soft"].observables == ("x", "twice")
    assert channels.nuisances == ("shift", "flat", "tilt")
    hard = gl.load(f"{model}:hard")
    assert hard.identity == channels["hard"].identity
    assert channels["hard"].record.command.startswith("gridless")
    with pytest.raises(InputError, match="there is no channel 'herd' in it; there is soft, hard"):
        gl.load(f"{model}:herd")
    with pytest.raises(InputError, match="there is no channel 'herd'; there is soft, hard"):
        channels["herd"]


def test_data_are_divided_by_the_selections_or_given_by_channel(folder, model):
    divided = json.loads(run("measure", model, folder / "data.npz", "--json"))
    own = [f"{name}={folder / f'data_{name}.npz'}" for name in ("hard", "soft")]
    given = json.loads(run("measure", model, *own, "--json"))
    assert divided["parameters"] == given["parameters"]
    assert divided["events"] == 2_995
    assert set(divided["p_values"]) == {"soft", "hard"}
    assert {"shift", "tilt", "flat", "stat", "simulation"} <= set(divided["budget"]["theta"])
    groups = divided["channels"]["groups"]
    assert groups["soft"]["events"] + groups["hard"]["events"] == 2_995
    assert 0 <= divided["channels"]["p_value"] <= 1
    errors = [groups[name]["theta"]["error"] for name in ("soft", "hard")]
    assert divided["parameters"]["theta"]["error"] < min(errors)


def test_a_file_that_channels_divide_is_recorded_with_the_events_of_each(folder, model):
    likelihood, files = read_observed(gl.load(model), str(folder / "data.npz"))
    own = {channel.name: [channel.events] for channel in likelihood.channels}
    assert {name: [one.events for one in found] for name, found in files.items()} == own
    assert {one.of for found in files.values() for one in found} == {3_000}
    both = {name: str(folder / "data.npz") for name in gl.load(model)}
    assert read_observed(gl.load(model), both)[1] == files


def test_the_sum_is_that_of_the_channels(folder, model):
    channels = gl.load(model)
    parts = {
        name: gl.read_likelihood(one, folder / f"data_{name}.npz") for name, one in channels.items()
    }
    by_hand = (parts["soft"].named("soft") + parts["hard"].named("hard")).maximum()
    likelihood = gl.read_likelihood(channels, folder / "data.npz").fix(shift=0)
    told = "from 2,995 of 3,000 events in 2 channels, 3 nuisance parameters, shift = 0"
    assert repr(likelihood).endswith(told)
    together = gl.read_likelihood(channels, folder / "data.npz").maximum()
    assert together.value == by_hand.value
    assert together.error == by_hand.error
    queries = {name: one.query for name, one in channels.items()}
    x = {
        name: gl.read(folder / f"data_{name}.npz", query.observables, None, query.selection)
        for name, query in queries.items()
    }
    assert channels.likelihood(x).maximum().value == by_hand.value


def test_measure_prints_every_channel_and_names_it_in_warnings(folder, model):
    text = run("measure", model, folder / "data.npz")
    assert re.search(r"theta = 0\.\d+ \+.*\n  2,995 of 3,000 events, p-value", text)
    assert re.search(r"\nsoft  theta = \S+ \+.*, 1,\d{3} events, p-value", text)
    assert re.search(r"\nhard  theta = \S+ \+.*, 1,\d{3} events, p-value", text)
    assert "chi2/dof = " in text
    warnings = [line for line in text.splitlines() if "warning: audit" in line]
    assert all("soft: " in line or "hard: " in line for line in warnings)
    blind = run("measure", model, folder / "data.npz", "--blind", "the key")
    assert "each channel alone" not in blind


def test_one_channel_is_measured_alone(folder, model):
    alone = json.loads(run("measure", f"{model}:soft", folder / "data.npz", "--json"))
    both = json.loads(run("measure", model, folder / "data.npz", "--json"))
    assert (
        alone["parameters"]["theta"]["value"]
        == both["channels"]["groups"]["soft"]["theta"]["value"]
    )
    assert "channels" not in alone


def test_an_event_in_two_channels_would_count_twice(folder):
    path = folder / "overlap.yaml"
    path.write_text(ANALYSIS.replace("p >= 0.5", "p >= 0.4"))
    file = folder / "overlap.safetensors"
    run("fit", path, "-o", file)
    output = run("measure", file, folder / "data.npz", code=2)
    assert re.search(r"\d+ of its 3,000 events are in more than one of the channels", output)
    both = [f"{name}={folder / 'data.npz'}" for name in ("soft", "hard")]
    assert "would count twice" in run("measure", file, *both, code=2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["soft=data_soft.npz"], "DATA: nothing for channel hard"),
        (["soft=data_soft.npz", "data.npz"], "some with a channel and some without"),
        (
            ["soft=data_soft.npz", "hard=data_hard.npz", "tau=data.npz"],
            "DATA: there is no channel 'tau'; there is soft, hard",
        ),
        (["sotf=data.npz"], "DATA: there is no channel 'sotf'"),
        (
            ["data.npz", "--fix", "jes", "0"],
            "no parameter 'jes'; there is theta, shift, flat, tilt",
        ),
        (["soft=data_hard.npz", "hard=data_hard.npz"], "channel soft: .*none of its"),
    ],
)
def test_wrong_data_of_channels(folder, model, monkeypatch, data, message):
    monkeypatch.chdir(folder)
    output = run("measure", model, *data, code=2)
    assert re.search(message, " ".join(output.split())), output


def test_data_of_all_channels_are_found_before_any_are_read(folder, model, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("gridless.model.stream.stream", None)
    output = run("measure", model, "soft=data_soft.npz", "hard=nowhere.npz", code=2)
    assert "channel hard: nowhere.npz: no such file" in " ".join(output.split())


def test_verbs_for_one_model_say_so(folder, model):
    verbs = {
        "--onnx": ["export", model, "--onnx", folder / "a.onnx"],
        "--leave-one-out": ["closure", model, "--leave-one-out"],
        "--toys": ["closure", model, folder / "mc_{theta}.npz", "--toys", "10"],
    }
    for flag, verb in verbs.items():
        said = run(*verb, code=2)
        assert f"{model}:soft" in said.replace("\n", ""), verb
        assert f"{flag} takes one; give" in " ".join(said.split()), verb
    curve = [folder / "data.npz", "--curve", folder / "a.json"]
    said = run(*verbs["--onnx"], *curve, code=2)
    assert "or leave --onnx out for the likelihood of all" in " ".join(said.split())
    assert not (folder / "a.onnx").exists()


def test_closure_of_channels_finds_the_nuisance_parameter(folder, model):
    content = json.loads(run("closure", model, folder / "up_{theta}.npz", "--signal", "--json"))
    assert len(content["true"]) == len(THETAS)
    assert set(content["nuisances"][0]) == {"shift", "tilt"}
    text = run("closure", model, folder / "up_{theta}.npz", "--signal")
    assert re.search(r"shift = [+-]\d\.\d\d \+- \d", text)


def test_channels_are_exported_as_one_likelihood(folder, model):
    curve = folder / "curve.json"
    run("export", model, folder / "data.npz", "--curve", curve)
    assert json.loads(curve.read_text())["events"] == 2_995


def test_the_report_has_every_channel(folder, model, no_pictures):
    page = folder / "report.html"
    run("report", model, folder / "data.npz", "-o", page)
    text = page.read_text()
    for title in ("Data against simulation: soft", "Data against simulation: hard", "Channels"):
        assert f"<h2>{title}" in text, title
    assert "The channels agree" in text
    assert "2,995 of 3,000 events" in text


def test_python_and_shell_make_the_same_channels(folder, model):
    made = gl.fit_files(load_analysis(folder / "analysis.yaml"))
    assert {n: m.identity for n, m in made.items()} == {
        n: m.identity for n, m in gl.load(model).items()
    }


def test_channels_of_models_are_checked(model):
    channels = gl.load(model)
    soft = channels["soft"]
    with pytest.raises(InputError, match="two or more"):
        gl.Channels({"soft": soft})
    with pytest.raises(InputError, match="muon is int; give a model"):
        gl.Channels({"soft": soft, "muon": 3})
    with pytest.raises(InputError, match="nothing for channel hard"):
        channels.likelihood({"soft": np.zeros((3, 2))})
    with pytest.raises(InputError, match="by channel"):
        channels.likelihood(np.zeros((3, 2)))


def test_a_damaged_file_of_channels_is_told(model, tmp_path):
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="changed or damaged"):
        gl.load(path)
