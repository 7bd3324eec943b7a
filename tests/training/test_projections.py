"""Coefficients beside the network's own: what they tell of systematics and parameters."""

import numpy as np
import pytest

import gridless as gl

EVENTS = 4_000


def test_the_coefficient_of_a_parameter_tells_what_the_network_missed():
    # Of a width a network without hidden units knows nothing; products of observables do.
    random = np.random.default_rng(5)
    theta = np.repeat(gl.grid((0, 1), 5), 4_000)
    x = random.normal(0, 1 + theta)[:, None]
    shift = gl.Systematic("shift", up=(x + 0.05, theta), down=(x - 0.05, theta), same_events=True)
    templates = gl.Templates(x, theta, bounds=(0, 1))
    model = gl.fit(templates, systematics=[shift], seed=1, hidden=(), epochs=1)
    assert model.measurement.projection.shape[2] == 2
    estimate = model.likelihood(random.normal(0, 1.4, (EVENTS, 1))).maximum()
    exact = 1.4 / np.sqrt(2 * EVENTS)
    assert abs(estimate.value - 0.4) < 4 * exact
    assert estimate.budget["theta"]["stat"] == pytest.approx(exact, rel=0.1)
