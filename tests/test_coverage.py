"""Coverage by pseudo-experiments, of a model whose answer is known."""

import numpy as np
import pytest

import gridless as gl
from gridless.toys import OneObservable

TOY = OneObservable()


@pytest.fixture(scope="module")
def good():
    return gl.fit(TOY.templates(10_000, seed=1), "gaussian", hidden=(), seed=1, replicas=0)


def test_it_covers(good):
    pools = {t: TOY.sample(t, 20_000, seed=i) for i, t in enumerate((0.3, 0.6))}
    found = gl.coverage(good, pools, toys=300, events=300, seed=2)
    assert found.covered.shape == (2, 1)
    assert found.total == pytest.approx(0.683, abs=0.07)
    np.testing.assert_allclose(found.pull_width, 1, atol=0.12)
    assert "300 pseudo-experiments of 300 events" in str(found)
    again = gl.coverage(good, pools, toys=300, events=300, seed=2)
    np.testing.assert_array_equal(again.covered, found.covered)


def test_weights_are_the_chance_to_be_drawn(good):
    x = np.concatenate([TOY.sample(0.2, 5_000, seed=1), TOY.sample(0.7, 5_000, seed=2)])
    weights = np.repeat([0.0, 1.0], 5_000)
    found = gl.coverage(good, [(0.7, (x, weights))], toys=50, events=200)
    assert abs(found.pull_mean[0, 0]) < 0.6
    with pytest.raises(gl.InputError, match="negative"):
        gl.coverage(good, [(0.7, (x, weights - 0.5))], toys=5)


def test_one_toy_is_too_few(good):
    with pytest.raises(gl.InputError, match="at least 2"):
        gl.coverage(good, {0.5: TOY.sample(0.5, 10, seed=1)}, toys=1)
