"""An interrupted training goes on as if it had not been."""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.model.storage.archive import pack, unpack
from gridless.training.checkpoint import Checkpoint, Epoch, State, fingerprint

PENALTY = {"objective": "penalty", "prior": "flat"}


@pytest.mark.parametrize(("options", "after"), [({}, 2), ({}, 4), (PENALTY, 2), (PENALTY, 6)])
def test_it_goes_on_as_if_never_interrupted(templates, tmp_path, monkeypatch, options, after):
    options = {"hidden": (3,), "epochs": 4, "seed": 2, "replicas": 0, **options}
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
    assert path.exists()
    assert model.record.history == whole.record.history
    x = np.linspace(-1, 2, 50)
    assert model.likelihood(x).maximum().value == whole.likelihood(x).maximum().value


def test_another_training_starts_anew(templates, tmp_path):
    path = tmp_path / "fit.part"
    tensors = {"a": torch.ones(2)}
    Checkpoint(path, "another").save(State(1, 1, [Epoch(1, 1, 0, 0, 0, 0, True)], tensors))
    assert Checkpoint(path, "this").load() is None
    assert Checkpoint(path, "another").load().tensors["a"].tolist() == [1, 1]
    assert Checkpoint(tmp_path / "none", "another").load() is None


def test_a_damaged_file_is_told_of_and_the_training_starts_anew(templates, tmp_path):
    path = tmp_path / "fit.part"
    options = {"hidden": (3,), "epochs": 2, "replicas": 0}
    whole = gl.fit(templates, **options, checkpoint=path)
    content = bytearray(path.read_bytes())
    for place in (3, 40, len(content) // 2, len(content) - 1):
        changed = bytes([*content[:place], content[place] ^ 1, *content[place + 1 :]])
        path.write_bytes(changed)
        with pytest.warns(gl.GridlessWarning, match="the training starts anew"):
            model = gl.fit(templates, **options, checkpoint=path)
        assert model.record.history == whole.record.history


def test_a_state_that_does_not_fit_is_not_gone_on_from(templates, tmp_path):
    path = tmp_path / "fit.part"
    options = {"hidden": (3,), "epochs": 2, "replicas": 0}
    whole = gl.fit(templates, **options, checkpoint=path)
    header, tensors = unpack(path.read_bytes(), "gridless-checkpoint", "", "")
    changes = (
        {"kept.1": torch.zeros(2)},
        {"parameter.0": tensors["parameter.0"] * torch.nan},
        {"generator": torch.full_like(tensors["generator"], 255)},
    )
    for change in changes:
        path.write_bytes(pack(tensors | change, "gridless-checkpoint", header))
        with pytest.warns(gl.GridlessWarning, match="starts anew"):
            model = gl.fit(templates, **options, checkpoint=path)
        assert model.record.history == whole.record.history
    for change in ({"stage": 7}, {"epoch": "last"}, {"history": [{"stage": 1}]}):
        path.write_bytes(pack(tensors, "gridless-checkpoint", header | change))
        with pytest.warns(gl.GridlessWarning, match="starts anew"):
            gl.fit(templates, **options, checkpoint=path)


def test_after_the_fit_the_same_call_goes_on_from_the_last_epoch(templates, tmp_path, monkeypatch):
    path = tmp_path / "fit.part"
    options = {"hidden": (3,), "epochs": 2, "replicas": 0, "checkpoint": path}
    first = gl.fit(templates, **options)
    monkeypatch.setattr(Checkpoint, "save", lambda *_: pytest.fail("an epoch was trained again"))
    assert gl.fit(templates, **options).record.history == first.record.history


def test_corrected_labels_are_another_training(tmp_path):
    # The widest gap, of which the basis is made, is the same.
    x = np.random.default_rng(1).normal(size=1_000)
    path = tmp_path / "fit.part"
    saved = []
    for theta in ((0.1, 0.29, 0.3, 0.7, 0.9), (0.1, 0.2, 0.3, 0.7, 0.9)):
        templates = gl.Templates(x, np.repeat(theta, 200), (0, 1))
        gl.fit(templates, hidden=2, epochs=1, replicas=0, checkpoint=path)
        header, _ = unpack(path.read_bytes(), "gridless-checkpoint", "", "")
        saved.append(header["fingerprint"])
    assert saved[0] != saved[1]


def test_fingerprints_tell_data_and_options_apart():
    a, b = torch.ones(3), torch.zeros(3)
    same = fingerprint([a], {"seed": 1})
    assert same == fingerprint([a.clone()], {"seed": 1})
    assert len({same, fingerprint([b], {"seed": 1}), fingerprint([a], {"seed": 2})}) == 3
