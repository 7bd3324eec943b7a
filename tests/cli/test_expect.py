"""`gridless expect`, and what measure shows of groups, of blind values and by construction."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.cli.main import main
from gridless.examples import Nuisances, OneObservable
from gridless.likelihood.derived import Derived

EXAMPLE = OneObservable()


@pytest.fixture(scope="module")
def files(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("expect")
    model.save(folder / "m.safetensors")
    x = EXAMPLE.sample(0.4, 1_000, seed=2)[:, 0]
    np.savez(folder / "data.npz", x=x, run=np.arange(1_000))
    return str(folder / "m.safetensors"), str(folder / "data.npz")


@pytest.fixture
def few_points(monkeypatch):
    """Belts of 11 values of theta: what they are worth is no question here."""
    monkeypatch.setitem(Derived.belt.__kwdefaults__, "points", 11)


def run(*arguments):
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.output


def test_expect(files):
    model, _ = files
    code, text = run("expect", model, "--events", "1000", "--at", "theta", "0.3", "--level", "0.95")
    assert code == 0
    assert "expected of 1,000 events:\ntheta = 0.30" in text
    code, text = run("expect", model, "--events", "1000", "--json")
    assert json.loads(text)["parameters"]["theta"]["value"] == pytest.approx(0.5, abs=1e-3)
    code, text = run("expect", model, "--events", "1000", "--at", "mass", "1")
    assert (code, "no parameter 'mass'" in text) == (2, True)


def test_expect_of_channels_is_the_combination(files, model, tmp_path):
    path = str(tmp_path / "both.safetensors")
    gl.Channels({"soft": model, "hard": gl.load(files[0])}).save(path)
    flags = ("--events", "soft=1000", "--events", "hard=3000", "--at", "theta", "0.3", "--json")
    both = json.loads(run("expect", path, *flags)[1])
    one = model.expected(0.3, 4_000).maximum()
    assert both["parameters"]["theta"]["value"] == pytest.approx(0.3, abs=1e-3)
    assert both["parameters"]["theta"]["stat"] == pytest.approx(one.stat, rel=1e-2)
    for wrong in (["--events", "1000"], ["--events", "soft=1000"], ["--events", "soft=x"]):
        code, text = run("expect", path, *wrong)
        assert code == 2, text
        assert "events" in text


def test_blind_and_unblind(files):
    model, data = files
    plain = json.loads(run("measure", model, data, "--json")[1])["parameters"]["theta"]["value"]
    blind = json.loads(run("measure", model, data, "--blind", "my key", "--json")[1])
    value = blind["parameters"]["theta"]["value"]
    assert value != pytest.approx(plain, abs=1e-4)
    code, text = run("measure", model, data, "--unblind", "my key")
    assert f"with this key theta was shown as {value:.6g}" in text
    assert "blind" in run("measure", model, data, "--blind", "my key", "--level", "0.95")[1]
    for flag in ("--blind", "--unblind"):  # before anything is read
        code, text = run("measure", model, "nowhere.csv", flag, "")
        assert (code, "a key of 0 letters" in text) == (2, True)
    code, text = run("measure", model, data, "--blind", "my key", "--by", "run - run % 500")
    assert (code, "would be seen" in text) == (2, True)


def test_groups_and_intervals_by_construction(files, few_points):
    model, data = files
    code, text = run("measure", model, data, "--by", "run - run % 500")
    assert code == 0
    assert "chi2/dof" in text
    flags = ("--method", "feldman-cousins", "--toys", "100", "--json")
    content = json.loads(run("measure", model, data, *flags)[1])
    ends = content["parameters"]["theta"]["interval"]
    assert ends["method"] == "feldman-cousins"
    assert ends["low"] < content["parameters"]["theta"]["value"] < ends["high"]
    code, text = run("measure", model, data, "--method", "upper", "--toys", "100")
    assert "at 95% (upper limit, CLs)" in text
    assert "  theta < 0." in text
    code, text = run("measure", model, data, "--toys", "100")
    assert (code, "Wilks need none" in text) == (2, True)


def test_intervals_by_construction_with_systematics(varied, few_points, tmp_path):
    example = Nuisances()
    varied.save(tmp_path / "m.safetensors")
    x = example.sample(0.02, 300, seed=2)
    np.savez(tmp_path / "data.npz", **dict(zip(example.observables, x.T, strict=True)))
    files = str(tmp_path / "m.safetensors"), str(tmp_path / "data.npz")
    flags = ("--method", "feldman-cousins", "--level", "0.68", "--toys", "50", "--json")
    code, text = run("measure", *files, *flags)
    assert code == 0, text
    content = json.loads(text)["parameters"]["theta"]
    assert content["interval"]["method"] == "feldman-cousins"
    assert 0 <= content["interval"]["low"] <= content["value"] <= content["interval"]["high"]
    code, text = run("measure", *files, "--method", "upper", "--toys", "50")
    assert code == 0, text
    assert "theta < " in text
    assert "(upper limit, CLs)" in text
