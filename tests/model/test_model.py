"""The model takes events in any form and refuses those it was not made for."""

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
        (X[:, :1], "1 column.s., but the model has 2 observable.s.; give x1, x2, in that order"),
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
    assert "2 network(s) of 8 tanh units, 2 gaussian component(s) each" in text
    assert "objective template, prior divide, max |log q| =" in text


def test_chunks_do_not_change_the_sum(model_2d, monkeypatch):
    whole = model_2d.likelihood(X)
    monkeypatch.setattr("gridless.model.evaluation._BLOCK", 1)
    monkeypatch.setattr("gridless.model.evaluation._LEAST", 37)
    pieces = model_2d.likelihood(X)
    np.testing.assert_allclose(pieces.coefficients, whole.coefficients, atol=1e-9)
