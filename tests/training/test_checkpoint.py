"""An interrupted training goes on as if it had not been."""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.training.checkpoint import Checkpoint, Epoch, State, fingerprint

PENALTY = {"objective": "penalty", "prior": "flat"}


@pytest.mark.parametrize(("options", "after"), [({}, 2), ({}, 4), (PENALTY, 2), (PENALTY, 6)])
def test_it_goes_on_as_if_never_interrupted(templates, tmp_path, monkeypatch, options, after):
    options = {"hidden": (3,), "epochs": 4, "seed": 2, "replicas": 4, **options}
    whole = gl.fit(templates, **options)
    path = tmp_path / "fit.part"
    saved, save = [], Checkpoint.save

    def interrupted(self, state):
        save(self, state)
        saved.append(state)
        if len(saved) == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gl.fit(templates, **options, checkpoint=path)
    assert path.exists()
    monkeypatch.setattr(Checkpoint, "save", save)
    model = gl.fit(templates, **options, checkpoint=path)
    assert not path.exists()
    assert model.record.history == whole.record.history
    x = np.linspace(-1, 2, 50)
    assert model.likelihood(x).maximum().value == whole.likelihood(x).maximum().value


def test_another_training_starts_anew(templates, tmp_path):
    path = tmp_path / "fit.part"
    tensors = {"a": torch.ones(2)}
    Checkpoint(path, "another").save(State(1, 1, [Epoch(1, 1, 0, 0, 0, 0, True)], tensors))
    assert Checkpoint(path, "this").load() is None
    assert Checkpoint(path, "another").load().tensors["a"].tolist() == [1, 1]
    path.write_bytes(b"damaged")
    assert Checkpoint(path, "another").load() is None
    assert Checkpoint(tmp_path / "none", "another").load() is None
    gl.fit(templates, hidden=(3,), epochs=1, checkpoint=path, replicas=0)
    assert not path.exists()


def test_fingerprints_tell_data_and_options_apart():
    a, b = torch.ones(3), torch.zeros(3)
    same = fingerprint([a], {"seed": 1})
    assert same == fingerprint([a.clone()], {"seed": 1})
    assert len({same, fingerprint([b], {"seed": 1}), fingerprint([a], {"seed": 2})}) == 3
