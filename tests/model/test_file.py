"""A saved model is the same model; any other file is refused with a reason."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import gridless as gl
from gridless.examples import OneObservable, TwoObservables
from gridless.templates.query import Query


@pytest.fixture
def path(model, tmp_path):
    path = tmp_path / "deep" / "model.safetensors"
    model.save(path)
    return path


def read(path):
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def test_round_trip(model, path):
    loaded = gl.load(path)
    x = OneObservable().sample(0.3, 500, seed=1)
    before, after = model.likelihood(x), loaded.likelihood(x)
    np.testing.assert_array_equal(before.coefficients, after.coefficients)
    assert repr(loaded) == repr(model)
    assert loaded.record == model.record
    assert loaded.options == model.options
    assert loaded.grid.parameters == model.grid.parameters
    np.testing.assert_array_equal(loaded.grid.values, model.grid.values)


def test_ensembles_and_other_bases_survive(tmp_path):
    templates = TwoObservables().templates(500, seed=1)
    model = gl.fit(
        templates,
        basis=gl.ExpPolynomial(3, floor=0.04),
        components=2,
        hidden=(),
        ensemble=2,
        objective=gl.Penalty(at=[0, 0.5, 1], density="histogram"),
        epochs=1,
    )
    model.save(tmp_path / "m.safetensors")
    x = templates.x[:50]
    loaded = gl.load(str(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(
        loaded.posterior(x).log_prob(0.4), model.posterior(x).log_prob(0.4)
    )
    assert loaded.options.objective["penalty"]["at"] == [0, 0.5, 1]


def test_no_such_file(tmp_path):
    with pytest.raises(gl.InputError, match="no such file"):
        gl.load(tmp_path / "nothing.safetensors")


@pytest.mark.parametrize("keep", [0, 5, 300, -10])
def test_truncated_files(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(gl.InputError, match="damaged, or not a safetensors file"):
        gl.load(path)


def test_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"a": 1}, path)
    with pytest.raises(gl.InputError, match="damaged, or not a safetensors file"):
        gl.load(path)


def test_a_foreign_safetensors_file(tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(gl.InputError, match="not a gridless model"):
        gl.load(path)


def change_header(path, **changes):
    arrays, metadata = read(path)
    header = json.loads(metadata["gridless"]) | changes
    header = {key: value for key, value in header.items() if value is not None}
    save_file(arrays, path, {"gridless": json.dumps(header)})


def test_a_newer_file(path):
    change_header(path, format=99, something_new=True)
    with pytest.raises(gl.InputError, match=r"written by a newer gridless .* upgrade gridless"):
        gl.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": None}, "(?s)its header is damaged .*members"),
        ({"network_options": "many"}, "its header is damaged"),
        ({"network_options": {"hidden": [9]}}, "its arrays do not fit its header"),
        ({"basis": "of_my_own"}, "there is no 'of_my_own'.*import the module"),
    ],
)
def test_inconsistent_headers(path, changes, message):
    change_header(path, **changes)
    with pytest.raises(gl.InputError, match=message):
        gl.load(path)


def test_missing_arrays(path):
    arrays, metadata = read(path)
    arrays.pop("prior.log_q")
    save_file(arrays, path, metadata)
    with pytest.raises(gl.InputError, match="arrays do not fit its header"):
        gl.load(path)


def test_a_file_of_the_version_before_loads():
    # Written by version 0.1.0: two Gaussians on the observable 2 * x, selected and weighted.
    model = gl.load(Path(__file__).parent / "format_2.safetensors")
    assert model.query == Query({"2 * x": "2 * x"}, "w", "x > -1")
    assert (model.options.seed, model.options.components, model.options.prior) == (3, 2, "divide")
    assert model.record.epochs == 2
    assert len(model.record.history) == 3
    assert model.record.where == "entry < 300"
    assert [record.events for record in model.files] == [288, 294, 297]
    x = np.linspace(-1, 3, 200)
    with pytest.warns(gl.GridlessWarning, match="is not applied"):
        estimate = model.likelihood(x).maximum()
    assert estimate.value == pytest.approx(0.636532797, abs=1e-6)
