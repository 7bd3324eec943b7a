"""Warnings come when they should, and only then."""

import numpy as np
import pytest
from scipy.stats import kstest

import gridless as gl
from gridless.examples import OneObservable, TwoObservables

TOY = OneObservable()


def names(estimate):
    return [warning.name for warning in estimate.warnings]


@pytest.fixture(scope="module")
def good():
    """A model good enough for its p-values to mean something."""
    toy = TwoObservables()
    return gl.fit(toy.templates(20_000, seed=1), seed=1, replicas=0)


def test_p_values_are_uniform(good):
    toy, random = TwoObservables(), np.random.default_rng(3)
    estimates = [
        good.likelihood(toy.sample(random.uniform(0.2, 0.8), 2_000, seed)).maximum()
        for seed in range(150)
    ]
    p_values = np.array([estimate.p_value for estimate in estimates])
    assert kstest(p_values, "uniform").pvalue > 0.01
    assert sum("bad_fit" in names(estimate) for estimate in estimates) <= 2
    assert sum("outside_simulation" in names(estimate) for estimate in estimates) <= 2


def test_p_values_of_weighted_events(good):
    toy, random = TwoObservables(), np.random.default_rng(4)
    p_values = [
        good.likelihood(toy.sample(0.5, 2_000, seed), random.exponential(1, 2_000))
        .maximum()
        .p_value
        for seed in range(500, 600)
    ]
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_events_from_elsewhere(good):
    x = TwoObservables().sample(0.5, 2_000, seed=1)
    x[:100] += 20
    estimate = good.likelihood(x).maximum()
    assert "outside_simulation" in names(estimate)
    assert estimate.outside == pytest.approx(0.05, abs=0.005)
    assert "5." in next(w.text for w in estimate.warnings if w.name == "outside_simulation")


def test_a_shape_that_the_templates_do_not_have(good):
    x = TwoObservables().sample(0.5, 2_000, seed=2)
    x[:, 1] += 0.3
    estimate = good.likelihood(x).maximum()
    assert "bad_fit" in names(estimate)
    assert estimate.p_value < 1e-3


def test_adding_up(good):
    x = TwoObservables().sample(0.5, 2_000, seed=3)
    whole = good.likelihood(x).maximum()
    parts = (good.likelihood(x[:700]) + good.likelihood(x[700:])).maximum()
    assert parts.p_value == pytest.approx(whole.p_value, abs=1e-5)
    assert parts.outside == whole.outside


def test_an_implied_prior_that_is_not_flat(templates):
    model = gl.fit(
        templates, hidden=(4,), epochs=4, objective="posterior", prior="flat", replicas=0
    )
    assert "implied_prior" in names(model.likelihood(TOY.quantiles(0.2)).maximum())
    assert "implied_prior" not in names(model.likelihood(TOY.quantiles(0.2, 5)).maximum())


def test_a_network_that_learnt_nothing():
    theta = np.repeat(gl.grid((0, 1), 10), 500)
    x = np.random.default_rng(1).normal(size=len(theta))
    model = gl.fit(gl.Templates(x, theta, (0, 1)), hidden=(4,), replicas=0)
    assert "no_information" in [warning.name for warning in model.warnings]
    assert "no_information" in names(model.likelihood(x[:100]).maximum())


def test_components_that_collapsed():
    """Eight narrow Gaussians for four templates, and a cost that rewards it."""
    theta = np.repeat(gl.grid((0, 1), 4), 1_500)
    x = np.random.default_rng(1).normal(theta, 0.3)
    options = {"objective": "posterior", "prior": "divide", "hidden": (8,), "replicas": 0}
    model = gl.fit(
        gl.Templates(x, theta, (0, 1)), basis=gl.Gaussian(floor=0.0), components=8, **options
    )
    assert "collapsed" in [warning.name for warning in model.warnings]


def test_an_estimate_beyond_the_templates():
    theta = np.repeat([0.4, 0.5, 0.6], 4_000)
    x = np.random.default_rng(1).normal(theta, 0.3)
    model = gl.fit(gl.Templates(x, theta, (0, 1)), hidden=(), replicas=0)
    assert "extrapolated" in names(model.likelihood(0.85 + 0.3 * TOY.quantiles(0.0, 500)).maximum())
    assert "extrapolated" not in names(
        model.likelihood(0.5 + 0.3 * TOY.quantiles(0.0, 500)).maximum()
    )


def test_a_good_measurement_has_no_warnings(good):
    estimate = good.likelihood(TwoObservables().sample(0.5, 5_000, seed=9)).maximum()
    assert estimate.warnings == ()
    assert 0 < estimate.p_value < 1
