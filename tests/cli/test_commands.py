"""The command line from files to a measurement, and every mistake a user can make on it."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import uproot
import yaml
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.torch import save_file

import gridless as gl
from gridless.cli.main import main
from gridless.examples import OneObservable

EXAMPLE = OneObservable()
FLAGS = ["--bounds", "mass", "0", "1", "-x", "x"]
QUICK = ["--hidden", "3", "--epochs", "2", "--replicas", "4"]
WEIGHTED = ["--bounds", "mass", "0", "1", "-x", "x * w", "--weight", "v", "--where", "entry < 300"]


def run(*arguments):
    """The command's result; the runner turns what is printed into text."""
    return CliRunner().invoke(main, [str(a) for a in arguments])


def write_tree(path, columns):
    """By its name, since which kind `file["events"] = columns` writes depends on the version."""
    with uproot.recreate(path) as file:
        tree = file.mktree("events", {name: column.dtype for name, column in columns.items()})
        tree.extend(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """ROOT templates at ten values, an observed file, and a model of the templates."""
    path = tmp_path_factory.mktemp("files")
    v = np.random.default_rng(1).uniform(0.5, 1.5, 400)
    for k, value in enumerate(gl.grid((0, 1), 10)):
        x = EXAMPLE.sample(value, 400, seed=k)[:, 0]
        write_tree(path / f"t_{value:.2f}.root", {"x": x, "w": np.full(400, 2.0), "v": v})
    observed = EXAMPLE.sample(0.4, 2_000, seed=50)[:, 0]
    write_tree(path / "data.root", {"x": observed, "w": np.ones(2_000)})
    for flags, name in ((FLAGS, "m.safetensors"), (WEIGHTED, "weighted.safetensors")):
        result = run("fit", path / "t_{mass}.root:events", *flags, "-o", path / name, *QUICK)
        assert result.exit_code == 0, result.output
    return path


def header(path):
    """What a model file says of itself."""
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["gridless"])


def test_a_model_file_knows_what_it_was_made_from(folder):
    known = header(folder / "weighted.safetensors")
    files = [folder / f"t_{value:.2f}.root" for value in gl.grid((0, 1), 10)]
    assert known["files"] == [
        {
            "source": f"{file}:events",
            "events": 300,
            "checksum": hashlib.sha256(file.read_bytes()).hexdigest(),
            "of": 400,
        }
        for file in files
    ]
    assert known["query"] == {
        "observables": {"x * w": "x * w"},
        "weight": "v",
        "selection": None,
        "labels": {},
    }
    assert {key: known["options"][key] for key in ("seed", "epochs")} == {"seed": 0, "epochs": 2}
    assert known["record"]["where"] == "entry < 300"
    assert known["record"]["command"].startswith("gridless")
    assert known["options"]["hidden"] == [3]
    assert known["versions"]["gridless"] == version("gridless")
    assert set(known["versions"]) >= {"torch", "numpy", "Python"}


def test_samples_are_weighted_as_the_templates_were(folder):
    model, samples = folder / "weighted.safetensors", folder / "t_{mass}.root:events"
    plain, same, other = (
        json.loads(run("closure", model, samples, "--json", *flags).output)["estimates"]
        for flags in ([], ["--weight", "v"], ["--weight", "w"])
    )
    assert plain == same != other


def test_audit(folder):
    result = run("audit", folder / "t_{mass}.root:events", *FLAGS)
    assert result.exit_code == 0
    assert "4,000 events at 10 values of mass in [0, 1]" in result.output
    found = json.loads(run("audit", folder / "t_{mass}.root:events", *FLAGS, "--json").output)
    assert {f["demand"] for f in found["findings"]} >= {"gap", "overlap"}


def test_measure_prints_and_speaks_json(folder):
    data = f"{folder}/data.root:events"
    result = run("measure", folder / "m.safetensors", data, "--level", "0.95")
    assert result.exit_code == 0
    assert re.search(
        r"mass = 0\.\d+ \+- 0\.\d+ \(0\.\d+ stat, 0\.\d+ simulation, 0\.\d+ model\)",
        result.output,
    )
    low, high = re.search(r"mass: (\S+) to (\S+) at 95%", result.output).groups()
    assert len(low.partition(".")[2]) == len(high.partition(".")[2]) >= 2
    found = json.loads(run("measure", folder / "m.safetensors", data, "--json").output)
    mass = found["parameters"]["mass"]
    assert set(mass) >= {"value", "low", "high", "error", "error_simulation"}
    assert mass["low"] < mass["value"] < mass["high"]
    assert found["events"] == 2_000
    assert isinstance(found["valid"], bool)
    assert isinstance(found["warnings"], list)


def test_a_constraint_and_a_scan(folder, tmp_path):
    data = f"{folder}/data.root:events"
    plain = json.loads(run("measure", folder / "m.safetensors", data, "--json").output)
    tight = json.loads(
        run(
            *("measure", folder / "m.safetensors", data, "--json"),
            *("--constrain", "mass", "0.4", "0.005", "--scan", tmp_path / "scan.csv"),
        ).output
    )
    assert tight["parameters"]["mass"]["error"] < plain["parameters"]["mass"]["error"]
    lines = (tmp_path / "scan.csv").read_text().splitlines()
    assert lines[0] == "parameter,value,delta_log_likelihood"
    assert len(lines) == 202


def test_closure_with_coverage(folder):
    result = run("closure", folder / "m.safetensors", folder / "t_{mass}.root:events")
    assert result.exit_code == 0
    assert "chi2/dof" in result.output
    found = json.loads(
        run(
            *("closure", folder / "m.safetensors", folder / "t_{mass}.root:events"),
            *("--toys", "20", "--events", "100", "--where", "entry % 2 == 0", "--json"),
        ).output
    )
    assert np.shape(found["coverage"]) == (10, 1)
    assert 0.4 < np.mean(found["coverage"]) < 0.95


def test_the_closure_is_printed_also_where_there_can_be_no_pseudo_experiments(folder):
    closure = ["closure", folder / "m.safetensors", folder / "t_{mass}.root:events"]
    flags = ["--weight", "v - 0.6", "--toys", "20"]
    result = run(*closure, *flags)
    assert result.exit_code == 2
    assert "chi2/dof" in result.output
    assert "negative weight, which cannot be drawn" in result.output
    assert json.loads(run(*closure, *flags, "--json").stdout)["dof"] > 0


def test_closure_of_one_sample(folder, tmp_path):
    shutil.copy(folder / "t_0.35.root", tmp_path / "test_0.35.root")
    samples = tmp_path / "test_{mass}.root:events"
    found = json.loads(run("closure", folder / "m.safetensors", samples, "--json").output)
    assert found["true"] == [[0.35]]


def test_report_is_one_page(folder, tmp_path):
    page = tmp_path / "r.html"
    result = run(
        *("report", folder / "m.safetensors", f"{folder}/data.root:events", "-o", page),
        *("--closure", folder / "t_{mass}.root:events", "--closure-where", "entry % 4 == 3"),
    )
    assert result.exit_code == 0, result.output
    text = page.read_text()
    for section in (
        "measurement",
        "closure",
        "check",
        "grid",
        "inputs",
        "training",
        "prior",
        "provenance",
    ):
        assert f'id="{section}"' in text
    assert not re.search(r'(src|href)="https?:', text)
    for file in (folder / "data.root", folder / "t_0.05.root"):
        assert hashlib.sha256(file.read_bytes()).hexdigest()[:16] in text
    samples = folder / "t_{mass}.root:events"
    where = "--where", "entry % 4 == 3"
    table = run("closure", folder / "m.safetensors", samples, *where).output.splitlines()
    assert re.match("[12] of 10 samples not counted", table[-1])
    assert table[-1] in text
    assert table[-2].replace("chi2", "χ²") in text


def test_export(folder, tmp_path):
    import onnx
    from onnx.reference import ReferenceEvaluator

    data = f"{folder}/data.root:events"
    result = run(
        *("export", folder / "m.safetensors", data, "--onnx", tmp_path / "m.onnx"),
        *("--curve", tmp_path / "c.json", "--hepdata", tmp_path / "h.yaml"),
    )
    assert result.exit_code == 0, result.output
    model = gl.load(folder / "m.safetensors")
    x = gl.read(data, "x").x
    (y,) = ReferenceEvaluator(onnx.load(tmp_path / "m.onnx")).run(None, {"x": x.astype(np.float32)})
    standard = model.network.standardise(torch.tensor(x)).float()
    ours = model.network.conditioner(standard).detach().mT.numpy()
    np.testing.assert_allclose(y, ours, atol=1e-5)
    curve = json.loads((tmp_path / "c.json").read_text())
    likelihood = model.likelihood(x)
    profile = curve["profiles"]["mass"]
    np.testing.assert_allclose(
        profile["delta_log_likelihood"], -likelihood.scan(profile["value"]), atol=1e-6
    )
    found, table = yaml.safe_load_all((tmp_path / "h.yaml").read_text())
    labels = [e["label"] for e in found["dependent_variables"][0]["values"][0]["errors"]]
    assert labels[0] == "stat"
    assert table["independent_variables"][0]["header"]["name"] == "mass"
    assert len(table["dependent_variables"][0]["values"]) == 201


def test_the_same_events_in_every_format_give_the_same_estimate(folder, tmp_path):
    import h5py

    x = gl.read(f"{folder}/data.root:events", "x").x[:, 0]
    pq.write_table(pa.table({"x": x}), tmp_path / "d.parquet")
    np.savez(tmp_path / "d.npz", x=x)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["events/x"] = x
    (tmp_path / "d.csv").write_text("x\n" + "\n".join(repr(float(v)) for v in x) + "\n")
    values = [
        json.loads(run("measure", folder / "m.safetensors", source, "--json").output)
        for source in (
            f"{folder}/data.root:events",
            *(tmp_path / f"d.{kind}" for kind in ("parquet", "npz", "csv")),
            f"{tmp_path}/d.h5:events",
        )
    ]
    first = values[0]["parameters"]["mass"]["value"]
    for other in values[1:]:
        assert other["parameters"]["mass"]["value"] == pytest.approx(first, abs=1e-12)


def test_from_init_to_a_model(folder, tmp_path):
    path = tmp_path / "analysis.yaml"
    assert run("init", path).exit_code == 0
    text = path.read_text()
    text = text.replace("mtop_{mtop}.root:events", str(folder / "t_{mass}.root:events"))
    text = text.replace("mtop: [165, 180]", "mass: [0, 1]")
    text = text.replace("m_jjb: m_jjb", "twice: 2 * x").replace("m_jj: m_jj", "x: x")
    text = text.replace("hidden: [16]", "hidden: [3]\n  epochs: 2\n  replicas: 4")
    path.write_text(text)
    result = run("fit", path, "-o", tmp_path / "m.safetensors", "--seed", "7")
    assert result.exit_code == 0, result.output
    model = gl.load(tmp_path / "m.safetensors")
    assert model.observables == ("twice", "x")
    assert model.options.seed == 7
    assert len(model.files) == 10
    assert len(model.files[0].checksum) == 64
    assert run("measure", tmp_path / "m.safetensors", f"{folder}/data.root:events").exit_code == 0


def test_a_list_of_files(folder, tmp_path):
    files = [
        {"source": str(folder / f"t_{v:.2f}.root:events"), "at": {"mass": float(v)}}
        for v in gl.grid((0, 1), 10)
    ]
    content = {"templates": files, "parameters": {"mass": [0, 1]}, "observables": ["x"]}
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump(content))
    assert "10 values" in run("audit", path).output


def test_every_command_has_an_example_and_json():
    for name in ("init", "audit", "fit", "measure", "closure", "report", "export"):
        text = run(name, "--help").output
        assert "Example: gridless" in text
        assert "--json" in text


@pytest.fixture
def bad(folder, tmp_path):
    """Files with something wrong with each."""
    good = (folder / "data.root").read_bytes()
    (tmp_path / "truncated.root").write_bytes(good[: len(good) // 2])
    (tmp_path / "empty.root").write_bytes(b"")
    (tmp_path / "text.csv").write_text("x,name\n1.0,a\n2.0,b\n")
    (tmp_path / "words.csv").write_text("x\n1.0\ntwo\n")
    (tmp_path / "foreign.csv").write_text("px,py\n1.0,2.0\n")
    (tmp_path / "only_x.csv").write_text("x\n1.0\n2.0\n")
    pq.write_table(pa.table({"x": ["a", "b"], "w": [1.0, 1.0]}), tmp_path / "text.parquet")
    np.savez(tmp_path / "wide.npz", x=np.ones((5, 2)))
    save_file({"a": torch.zeros(2)}, tmp_path / "foreign.safetensors")
    (tmp_path / "locked.safetensors").write_bytes(b"precious")
    (tmp_path / "locked.safetensors").chmod(0o444)
    rows = [str(v) for v in range(30)]
    rows[17] = "nan"
    (tmp_path / "nan.csv").write_text("x\n" + "\n".join(rows) + "\n")
    (tmp_path / "none.csv").write_text("x\n")
    (tmp_path / "other.safetensors").write_bytes(b"not a model")
    (tmp_path / "data.xyz").write_text("1")
    (tmp_path / "typo.yaml").write_text(
        "templates: t_{mass}.root:events\nparameters:\n  mass: [0, 1]\n"
        "observables: [x]\nfit:\n  ensembel: 3\n"
    )
    (tmp_path / "broken.yaml").write_text("templates: [1,\nparameters: }\n")
    (tmp_path / "reversed.yaml").write_text(
        "templates: t_{mass}.root\nparameters:\n  mass: [1, 0]\nobservables: [x]\n"
    )
    (tmp_path / "missing.yaml").write_text("templates: t_{mass}.root\n")
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "good.yaml").write_text(
        "templates: t_{mass}.root\nparameters:\n  mass: [0, 1]\nobservables: [x]\n"
    )
    return tmp_path


T, M, D = "{folder}/t_{{mass}}.root:events", "{folder}/m.safetensors", "{folder}/data.root:events"
W = "{folder}/weighted.safetensors"
BOUNDS, X = ["--bounds", "mass", "0", "1"], ["-x", "x"]
MISTAKES = {
    "no such file": (["measure", M, "{bad}/nowhere.root:events"], "nowhere.root"),
    "no such model": (["measure", "{bad}/nowhere.safetensors", D], "no such file"),
    "swapped model and data": (["measure", D, M], "events where the model belongs; did you mean"),
    "data for a model": (["export", D, "--onnx", "{bad}/m.onnx"], "give the model first"),
    "two models": (["measure", M, M], "a model where data belong"),
    "a parameter twice": (
        ["measure", M, D, "--fix", "mass", "0.5", "--constrain", "mass", "0.5", "0.1"],
        "mass twice",
    ),
    "no such tree": (["measure", M, "{folder}/data.root:evnts"], "events"),
    "no such branch": (["audit", T, *BOUNDS, "-x", "y"], "no column 'y'"),
    "data without the column": (
        ["measure", M, "{bad}/foreign.csv"],
        "no column 'x'.*there are px, py",
    ),
    "data without a column of an expression": (
        ["measure", W, "{bad}/only_x.csv"],
        r"no column 'w' for 'x \* w'.*there are x",
    ),
    "data with text for numbers": (
        ["measure", M, "{bad}/text.parquet"],
        "column 'x' holds .*(text|string)",
    ),
    "data with text in an expression": (["measure", W, "{bad}/text.parquet"], "column 'x' holds"),
    "data with two numbers for one": (["measure", M, "{bad}/wide.npz"], "column 'x' holds"),
    "no file matches": (
        ["audit", "{folder}/u_{{mass}}.root:events", *BOUNDS, *X],
        "no file matches",
    ),
    "no braces": (["audit", "{folder}/data.root:events", *BOUNDS, *X], "no column 'mass'"),
    "bounds reversed": (["audit", T, "--bounds", "mass", "1", "0", *X], "low bound comes first"),
    "value outside bounds": (["audit", T, "--bounds", "mass", "0", "0.5", *X], "outside"),
    "no bounds": (["audit", T, *X], "--bounds"),
    "no observables": (["audit", T, *BOUNDS], "-x"),
    "another parameter": (["audit", T, "--bounds", "mtop", "0", "1", *X], "mtop"),
    "empty file": (["measure", M, "{bad}/empty.root"], "empty.root"),
    "no events": (["measure", M, "{bad}/none.csv"], "no events"),
    "truncated file": (["measure", M, "{bad}/truncated.root:events"], "truncated.root"),
    "NaN in row 17": (["measure", M, "{bad}/nan.csv"], "row 17"),
    "text column": (["measure", M, "{bad}/text.csv", "--weight", "name"], "column 'name' holds"),
    "text in an expression": (["audit", T, *BOUNDS, "-x", "x", "--weight", "'a'"], "text"),
    "words among numbers": (["measure", M, "{bad}/words.csv"], "words.csv"),
    "unknown format": (["measure", M, "{bad}/data.xyz"], "xyz"),
    "YAML typo": (["fit", "{bad}/typo.yaml", "-o", "{bad}/m"], "line 6: fit.ensembel"),
    "YAML broken": (["fit", "{bad}/broken.yaml", "-o", "{bad}/m"], "line 2"),
    "YAML bounds reversed": (["audit", "{bad}/reversed.yaml"], "line 2: parameters"),
    "YAML incomplete": (["audit", "{bad}/missing.yaml"], "observables: is missing"),
    "YAML empty": (["audit", "{bad}/empty.yaml"], "gridless init"),
    "YAML not there": (["audit", "{bad}/nowhere.yaml"], "nowhere.yaml"),
    "flags beside a file": (
        ["audit", "{bad}/good.yaml", *BOUNDS],
        "says it already",
    ),
    "foreign model file": (["measure", "{bad}/other.safetensors", D], "other.safetensors"),
    "foreign arrays": (["measure", "{bad}/foreign.safetensors", D], "not a gridless model"),
    "bad expression": (["audit", T, *BOUNDS, "-x", "sqrt(x"], "sqrt"),
    "code in an expression": (
        ["audit", T, *BOUNDS, "-x", "__import__('os').system('true')"],
        "allowed",
    ),
    "nothing selected": (["measure", M, D, "--where", "x > 1e9"], "no event passes the selection"),
    "unknown basis": (["fit", T, *BOUNDS, *X, "-o", "{bad}/m", "--basis", "gausian"], "gausian"),
    "unknown objective": (["fit", T, *BOUNDS, *X, "-o", "{bad}/m", "--objective", "best"], "best"),
    "hidden is a word": (["fit", T, *BOUNDS, *X, "-o", "{bad}/m", "--hidden", "big"], "16,16"),
    "unknown device": (["fit", T, *BOUNDS, *X, "-o", "{bad}/m", "--device", "gpu"], "give cpu"),
    "output is a folder": (["fit", T, *BOUNDS, *X, "-o", "{bad}"], "is a folder"),
    "output below a file": (["fit", T, *BOUNDS, *X, "-o", "{bad}/data.xyz/m"], "cannot be written"),
    "output is read-only": (
        ["fit", T, *BOUNDS, *X, "-o", "{bad}/locked.safetensors"],
        "read-only; give another name",
    ),
    "level of 95": (["measure", M, D, "--level", "95"], "between 0 and 1"),
    "constraint on nothing": (["measure", M, D, "--constrain", "jes", "1", "0.1"], "'jes'"),
    "constraint without error": (["measure", M, D, "--constrain", "mass", "1", "0"], "positive"),
    "no toys": (["closure", M, T, "--toys", "1"], "from 2 to"),
    "a name without a number": (["closure", M, "{folder}/{{mass}}.root:events"], "number"),
    "export of nothing": (["export", M], "--onnx"),
    "curve without data": (["export", M, "--curve", "{bad}/c.json"], "needs observed events"),
    "init over a file": (["init", "{bad}/typo.yaml"], "already exists"),
    "no such option": (["measure", M, D, "--sacn", "x.csv"], "sacn"),
}


@pytest.fixture
def not_root(monkeypatch):
    """Nobody may write what its mode forbids; root, as whom tests may run, could."""
    access = os.access

    def honest(path, mode):
        forbidden = mode & os.W_OK and not os.stat(path).st_mode & 0o200
        return access(path, mode) and not forbidden

    monkeypatch.setattr("gridless.files.write.os.access", honest)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_with_code_2_and_a_cure(folder, bad, name, not_root):
    arguments, message = MISTAKES[name]
    before = {p: p.read_bytes() for root in (folder, bad) for p in root.iterdir() if p.is_file()}
    result = run(*(a.format(folder=folder, bad=bad) for a in arguments))
    assert result.exit_code == 2, result.output
    assert re.search(message, result.output), result.output
    assert "Traceback" not in result.output
    after = {p: p.read_bytes() for root in (folder, bad) for p in root.iterdir() if p.is_file()}
    assert after == before


def test_a_folder_that_cannot_be_written_to(folder, tmp_path, not_root):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    command = ["fit", folder / "t_{mass}.root:events", *FLAGS, "-o", locked / "m.safetensors"]
    result = run(*command)
    assert result.exit_code == 2
    assert f"{locked} cannot be written to; choose another place" in result.output
    assert not list(locked.iterdir())


def test_no_disk_space(folder, tmp_path, monkeypatch):
    old = tmp_path / "m.safetensors"
    old.write_bytes((folder / "m.safetensors").read_bytes())

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("fit", folder / "t_{mass}.root:events", *FLAGS, "-o", old, *QUICK)
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert old.read_bytes() == (folder / "m.safetensors").read_bytes()


def test_interrupted_it_goes_on(folder, tmp_path, monkeypatch):
    from gridless.training.checkpoint import Checkpoint

    save, count = Checkpoint.save, []

    def interrupt(self, state):
        save(self, state)
        count.append(state.epoch)
        if len(count) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", interrupt)
    command = ["fit", folder / "t_{mass}.root:events", *FLAGS, "-o", tmp_path / "m.st", *QUICK]
    result = run(*command)
    assert result.exit_code == 130
    assert "the same command goes on" in result.output
    assert run(*command).exit_code == 0
    assert count == [1, 2]
    data = f"{folder}/data.root:events"
    resumed, whole = (
        json.loads(run("measure", model, data, "--json").output)["parameters"]
        for model in (tmp_path / "m.st", folder / "m.safetensors")
    )
    assert resumed == whole


def test_killed_it_goes_on(folder, tmp_path, monkeypatch):
    from gridless.training.checkpoint import Checkpoint

    flags = ["--hidden", "3", "--epochs", "30", "--replicas", "4", "--seed", "3"]
    command = ["fit", str(folder / "t_{mass}.root:events"), *FLAGS, *flags, "-o"]
    killed, whole = tmp_path / "killed.safetensors", tmp_path / "whole.safetensors"
    part = tmp_path / ".killed.safetensors.checkpoint"
    program = Path(sys.executable).with_name("gridless")
    # One thread, as here: sums in another order would differ in the last digit.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([program, *command, killed], env=environment)
    deadline = time.monotonic() + 120
    while not part.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert part.exists()
    assert not killed.exists()

    save, epochs = Checkpoint.save, []

    def count(self, state):
        save(self, state)
        epochs.append(state.epoch)

    monkeypatch.setattr(Checkpoint, "save", count)
    assert run(*command, killed).exit_code == 0
    assert epochs[0] > 1
    assert epochs[-1] == 30
    assert not part.exists()
    epochs.clear()
    assert run(*command, whole).exit_code == 0
    assert epochs[0] == 1
    with safe_open(killed, framework="pt") as a, safe_open(whole, framework="pt") as b:
        assert set(a.keys()) == set(b.keys())
        for name in a.keys():  # noqa: SIM118
            assert torch.equal(a.get_tensor(name), b.get_tensor(name)), name
    assert header(killed)["record"]["history"] == header(whole)["record"]["history"]
