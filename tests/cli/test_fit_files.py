"""`gridless fit` and `fit_files` make the same model of the same files."""

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.cli.main import main
from gridless.examples import TwoObservables

ANALYSIS = """
templates: mc_{theta}.npz
parameters: {theta: [0, 1]}
observables: {x1: x1, twice: 2 * x2}
selection: twice > 0
fit: {hidden: 3, epochs: 2, replicas: 4, seed: 1}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for i, theta in enumerate(gl.grid((0, 1), 5)):
        x = TwoObservables().sample(theta, 400, seed=i)
        np.savez(path / f"mc_{theta:.1f}.npz", x1=x[:, 0], x2=x[:, 1])
    (path / "analysis.yaml").write_text(ANALYSIS)
    return path


def run(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_shell_and_python_make_the_same_model(folder):
    path = folder / "shell.safetensors"
    run("fit", folder / "analysis.yaml", "-o", path, "--where", "entry < 300", "--seed", "3")
    shell = gl.load(path)
    python = gl.fit_files(folder / "analysis.yaml", where="entry < 300", seed=3)
    x = TwoObservables().sample(0.4, 500, seed=9)
    with pytest.warns(gl.GridlessWarning, match="selection"):
        a, b = (model.likelihood(x).coefficients for model in (shell, python))
    np.testing.assert_array_equal(a, b)
    assert shell.query == python.query
    assert shell.files == python.files
    assert shell.summary == python.summary
    assert shell.record.where == python.record.where == "entry < 300"


def test_observables_as_repeated_and_named_flags(folder):
    path = folder / "flags.safetensors"
    flags = ["--bounds", "theta", "0", "1", "-x", "x1", "-x", "twice=2 * x2"]
    quick = ["--hidden", "3", "--epochs", "2", "--replicas", "4", "--selection", "twice > 0"]
    run("fit", folder / "mc_{theta}.npz", *flags, *quick, "--seed", "1", "-o", path)
    file = gl.fit_files(folder / "analysis.yaml")
    assert gl.load(path).query == file.query
    assert gl.load(path).query.observables == {"x1": "x1", "twice": "2 * x2"}
    np.testing.assert_array_equal(gl.load(path).implied_prior.log_q, file.implied_prior.log_q)


def test_options_are_checked_before_a_file_is_read(folder):
    with pytest.raises(gl.InputError, match=r"ridge: -1"):
        gl.fit_files(folder / "analysis.yaml", ridge=-1)
    with pytest.raises(gl.InputError, match="ensembles: there is no such option"):
        gl.fit_files(folder / "analysis.yaml", ensembles=2)


def test_settings_of_the_penalty_as_flags(folder):
    path = folder / "penalty.safetensors"
    settings = {"strength": 2.0, "at": (0.1, 0.5, 0.9), "density": "histogram", "bins": 20}
    flags = ["--penalty-strength", 2, "--penalty-density", "histogram", "--penalty-bins", 20]
    for value in settings["at"]:
        flags += ["--penalty-at", value]
    run("fit", folder / "analysis.yaml", "-o", path, "--basis", "gaussian", *flags)
    objective = gl.Penalty(**settings)
    python = gl.fit_files(folder / "analysis.yaml", basis="gaussian", objective=objective)
    shell = gl.load(path)
    assert gl.Penalty(**shell.options.to_dict()["objective"]["penalty"]) == objective
    np.testing.assert_array_equal(shell.implied_prior.log_q, python.implied_prior.log_q)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--penalty-at", "0.5"], "give at least two"),
        (["--penalty-at", "a", "--penalty-at", "b"], "give a number"),
        (["--objective", "posterior", "--penalty-bins", "20"], "give --objective penalty"),
    ],
)
def test_wrong_settings_of_the_penalty(folder, flags, message):
    command = ["fit", folder / "analysis.yaml", "-o", folder / "no.safetensors", *flags]
    result = CliRunner().invoke(main, [str(a) for a in command])
    assert result.exit_code == 2
    assert message in result.stderr
