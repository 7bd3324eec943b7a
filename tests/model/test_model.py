"""The model takes events in any form and refuses those it was not made for."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import gridless as gl
from gridless.examples import TwoObservables

X = TwoObservables().sample(0.5, 200, seed=1)


def test_every_form_of_events_gives_the_same(model_2d):
    frame = pd.DataFrame({"extra": 1.0, "x2": X[:, 1], "x1": X[:, 0]})
    value = model_2d.likelihood(X).maximum().value
    for form in (X.tolist(), torch.tensor(X), frame):
        assert model_2d.likelihood(form).maximum().value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:, :1], "1 column, but the model has 2 observables; give x1, x2, in that order"),
        (np.column_stack([X, X]), "4 column"),
        (pd.DataFrame({"x1": X[:, 0]}), "no column x2; the model needs x1, x2"),
        (np.where(np.arange(400).reshape(200, 2) == 34, np.nan, X), "'x_1' is nan in row 17"),
        (np.zeros((0, 2)), "no events"),
    ],
)
def test_wrong_events_are_refused(model_2d, x, message):
    with pytest.raises(gl.InputError, match=message):
        model_2d.likelihood(x)
    with pytest.raises(gl.InputError, match=message):
        model_2d.posterior(x)


def test_wrong_weights_are_refused(model_2d):
    with pytest.raises(gl.InputError, match="weights: 3 values for 200 events"):
        model_2d.likelihood(X, weights=[1, 1, 1])


def test_it_says_what_it_is(model_2d):
    text = repr(model_2d)
    assert "theta in [0, 1] from x1, x2" in text
    assert "2 networks of 8 tanh units, 2 gaussian components each" in text
    assert "objective template, prior divide, max |log q| =" in text


def test_a_suspect_template_is_named_by_its_value(model_2d):
    model, count = replace(model_2d), len(model_2d.grid)
    worst = np.where(np.arange(count) == 1, 1e-9, 1.0)
    vars(model)["check"] = replace(model_2d.check, p_values=worst)
    label = model.grid.label(1)
    assert f"\n  {label} is not like the others (p-value 1e-09)" in repr(model)
    assert f"{label} is not like the others" in model._repr_html_()


def test_chunks_do_not_change_the_sum(model_2d, monkeypatch):
    whole = model_2d.likelihood(X)
    monkeypatch.setattr("gridless.model.evaluation.BLOCK_NUMBERS", 1)
    monkeypatch.setattr("gridless.model.evaluation.MIN_BLOCK_EVENTS", 37)
    pieces = model_2d.likelihood(X)
    np.testing.assert_allclose(pieces.coefficients, whole.coefficients, atol=1e-9)


@pytest.fixture(scope="module")
def selected(tmp_path_factory):
    """A model of m = a / b for events with b below 2, and a file of observed events."""
    folder = tmp_path_factory.mktemp("selected")
    random = np.random.default_rng(4)
    for theta in gl.grid((0, 1), 5):
        b = random.choice([1.0, 3.0], 1500)
        # What the selection leaves out would pull the estimate far up.
        np.savez(folder / f"t_{theta:g}.npz", a=b * (random.normal(theta, 1, 1500)), b=b)
    b = np.repeat([1.0, 3.0], 1000)
    a = np.where(b < 2, random.normal(0.4, 1, 2000), 30.0)
    np.savez(folder / "data.npz", a=a, b=b)
    templates = gl.read_templates(
        str(folder / "t_{theta}.npz"), {"m": "a / b"}, (0, 1), selection="b < 2"
    )
    model = gl.fit(templates, hidden=(3,), epochs=2, seed=1)
    return model, folder / "data.npz", pd.DataFrame({"a": a, "b": b})


def test_a_model_selects_observed_events_as_its_templates_were(selected, tmp_path):
    model, data, frame = selected
    by_hand = model.likelihood_of(np.array(frame.a)[:1000, None], None).maximum()
    model.save(tmp_path / "m.safetensors")
    for trained in (model, gl.load(tmp_path / "m.safetensors")):
        estimate = gl.read_likelihood(trained, data).maximum()
        assert estimate.events == 1000
        assert estimate.value == pytest.approx(by_hand.value, abs=1e-9)


def test_a_data_frame_is_selected_and_its_weights_with_it(selected):
    model, _, frame = selected
    weights = np.where(frame.b < 2, 1.0, 5.0)
    assert model.likelihood(frame).events == 1000
    weighted = model.likelihood(frame, weights).maximum()
    assert weighted.value == pytest.approx(model.likelihood(frame).maximum().value, abs=1e-6)


def test_what_cannot_be_selected_is_told(selected):
    model, _, frame = selected
    with pytest.warns(gl.GridlessWarning, match="selection 'b < 2' is not applied, since an array"):
        model.likelihood(frame[["a"]].to_numpy()[:1000])
    with pytest.warns(gl.GridlessWarning, match=r"there is no column b; give a data frame with "):
        model.likelihood(pd.DataFrame({"m": frame.a[:1000]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.likelihood(frame)


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_observed_events_whose_weights_cancel_are_refused(model, weight):
    weights = np.concatenate([np.ones(50), np.full(50, weight)]) * (1 if weight else 0)
    with pytest.raises(gl.InputError, match=r"sum over the observed events is 0; it must be"):
        model.likelihood(np.linspace(0, 1, 100), weights)
