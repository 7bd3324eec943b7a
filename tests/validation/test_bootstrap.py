"""The bootstrap of observed events against errors that are known."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gridless as gl
from gridless.examples import OneObservable, TwoParameters

TOY = OneObservable()


@pytest.fixture(scope="module")
def good(linear_model):
    return linear_model


def test_its_error_is_that_of_the_likelihood(good):
    x = TOY.sample(0.4, 5_000, seed=2)
    found = gl.bootstrap(good, x, toys=2_000, seed=1)
    estimate = good.likelihood(x).maximum()
    assert found.values.shape == (2_000, 1)
    assert found.error[0] == pytest.approx(estimate.stat, rel=0.06)
    assert found.values.mean() == pytest.approx(estimate.value, abs=0.1 * estimate.stat)
    low, high = found.interval()[0]
    assert (high - low) / 2 == pytest.approx(estimate.stat, rel=0.1)
    assert found.covariance.shape == (1, 1)
    assert "2,000 bootstraps of the observed events" in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.to_dict()["error"] == found.error.tolist()
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 0


def test_weights_of_either_sign(good):
    """Against the sandwich error of the weighted likelihood."""
    x = TOY.sample(0.4, 8_000, seed=3)
    weights = np.where(np.random.default_rng(1).random(8_000) < 0.2, -1.0, 1.5)
    found = gl.bootstrap(good, x, weights, toys=1_500)
    estimate = good.likelihood(x, weights).maximum()
    assert found.error[0] == pytest.approx(estimate.stat, rel=0.08)
    # sqrt(mean w^2) / mean w = sqrt(2) of them.
    assert found.error[0] == pytest.approx(2**0.5 * good.likelihood(x).maximum().stat, rel=0.1)


def test_results_add_up_and_go_on_anywhere(good):
    x = TOY.sample(0.4, 500, seed=2)
    whole = gl.bootstrap(good, x, toys=2_000, seed=5)
    parts = gl.bootstrap(good, x, toys=300, seed=5) + gl.bootstrap(good, x, None, 1_700, 5, 300)
    np.testing.assert_allclose(parts.values, whole.values, atol=1e-12)
    with ThreadPoolExecutor(2) as pool:
        shared = gl.bootstrap(good, x, toys=2_000, seed=5, executor=pool)
    np.testing.assert_allclose(shared.values, whole.values, atol=1e-9)


def test_two_analyses_of_the_same_events_are_correlated(good):
    x = TOY.sample(0.4, 2_000, seed=2)
    other = gl.fit(TOY.templates(3_000, seed=9), seed=9, replicas=0)
    a, b = (gl.bootstrap(model, x, toys=300, seed=4).values[:, 0] for model in (good, other))
    assert np.corrcoef(a, b)[0, 1] > 0.97


def test_two_parameters():
    toy = TwoParameters()
    model = gl.fit(toy.templates(2_000, seed=1, templates=4), hidden=4, seed=1, replicas=0)
    x = toy.sample((0.5, 0.5), 2_000, 1)
    found = gl.bootstrap(model, x, toys=100)
    expected = model.likelihood(x).maximum().covariances["stat"]
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), found.error)
    np.testing.assert_allclose(found.error, np.sqrt(np.diag(expected)), rtol=0.3)


def test_mistakes(good):
    x = TOY.sample(0.4, 50, seed=2)
    with pytest.raises(gl.InputError, match="toys: 1; give a whole number from 2"):
        gl.bootstrap(good, x, toys=1)
    with pytest.raises(gl.InputError, match="3 values for 50 events"):
        gl.bootstrap(good, x, [1.0, 2.0, 3.0])
    with pytest.raises(gl.InputError, match="between 0 and 1"):
        gl.bootstrap(good, x, toys=5).interval(95)
    other = gl.Bootstrap(np.zeros((2, 1)), ("mass",))
    with pytest.raises(gl.InputError, match="does not add"):
        gl.bootstrap(good, x, toys=5) + other
