"""The implied prior is the mean posterior over the training events."""

import numpy as np
import pytest

import gridless as gl
from gridless.curves import chebyshev
from gridless.model.prior import ImpliedPrior, implied_prior


def test_it_is_the_mean_of_the_posteriors(templates):
    """Normalised over the range where the range normalises."""
    model = gl.fit(templates, hidden=(4,), epochs=4, objective="posterior", prior="flat", seed=3)
    theta = np.array([0.0, 0.05, 0.33, 0.5, 1.0])
    mean = np.exp(model.posterior(templates.x).log_prob(theta[:, None])).mean(axis=1)
    np.testing.assert_allclose(model.implied_prior(theta), mean, rtol=1e-7)
    theta = np.linspace(0, 1, 2001)
    assert np.trapezoid(model.implied_prior(theta), theta) == pytest.approx(1, abs=1e-6)


def test_over_the_templates_its_mean_is_one(model):
    at_templates = model.implied_prior(model.grid.values[:, 0])
    assert at_templates.mean() == pytest.approx(1, abs=1e-7)


def test_members_use_events_they_have_not_seen(model_2d):
    """q of two members is the mean of each one's q over its own events."""
    random = np.random.default_rng(1)
    samples = [(random.normal(size=(50, 2)), random.uniform(size=50)) for _ in range(2)]
    both = implied_prior(model_2d.network, samples, model_2d.grid)
    single = [
        implied_prior(model_2d.network.member(e), [samples[e]], model_2d.grid) for e in range(2)
    ]
    theta = np.linspace(0, 1, 7)
    np.testing.assert_allclose(both(theta), np.mean([q(theta) for q in single], axis=0), rtol=1e-6)


def test_max_log():
    grid = gl.Templates([1.0, 2.0], [0.25, 0.75], (0, 1)).grid
    prior = ImpliedPrior(np.array([0.0, 0.2]), grid)
    assert prior.max_log == pytest.approx(0.2)
    assert "0.2" in repr(prior)


def test_collapse_shows_between_templates():
    grid = gl.Templates([1.0, 2.0, 3.0], [0.25, 0.5, 0.75], (0, 1)).grid
    # cos(2 pi (t - 1/4) / (1/4)) peaks at the templates and dips between them.
    t = chebyshev.points(65)
    log_q = chebyshev.coefficients(0.3 * np.cos(8 * np.pi * (t - 0.25)))
    assert ImpliedPrior(log_q, grid).between_templates() == pytest.approx(-0.6, abs=1e-3)
