"""A saved model is the same model; any other file is refused with a reason."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import gridless as gl
from gridless.examples import OneObservable, TwoObservables


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
    assert loaded.history == model.history
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
        objective="penalty",
        penalty=gl.Penalty(at=[0, 0.5, 1], density="histogram"),
        epochs=1,
    )
    model.save(tmp_path / "m.safetensors")
    x = templates.x[:50]
    loaded = gl.load(str(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(
        loaded.posterior(x).log_prob(0.4), model.posterior(x).log_prob(0.4)
    )
    assert loaded.options["penalty"]["at"] == [0, 0.5, 1]


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
        ({"hidden": "many"}, "its header is damaged"),
        ({"hidden": [9]}, "its arrays do not fit its header"),
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
