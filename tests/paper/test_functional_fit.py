"""Table 1, exactly."""

import numpy as np
import pytest

from gridless.paper.functional_fit import (
    exact_density,
    fit_function,
    implied_prior,
    sampled_density,
)


def test_infinite_data():
    density = exact_density()
    np.testing.assert_allclose(
        fit_function(density, constrained=False), [0.1719, 0.4140, 1.6584], atol=6e-5
    )
    np.testing.assert_allclose(fit_function(density, constrained=True), [1, 0, 4], atol=5e-4)


def test_the_constraint_makes_the_implied_prior_flat():
    density, theta = exact_density(), np.linspace(0, 1, 11)
    free, held = (fit_function(density, constrained=c) for c in (False, True))
    assert np.abs(implied_prior(held, density, theta) - 1).max() < 1e-4
    assert np.ptp(implied_prior(free, density, theta)) > 0.01


def test_densities_are_normalised():
    for density in (exact_density(), sampled_density(1000, seed=1)):
        assert density.weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(density.weights.sum(axis=1), 0.1, atol=1e-9)


def test_finite_samples_scatter_about_the_exact_values():
    fits = np.array([fit_function(sampled_density(200_000, seed), False) for seed in range(6)])
    error = fits.std(axis=0, ddof=1) / np.sqrt(6)
    assert (np.abs(fits.mean(axis=0) - [0.1719, 0.4140, 1.6584]) < 5 * error).all()


def test_same_seed_same_sample():
    a, b = (sampled_density(100, seed=3) for _ in range(2))
    np.testing.assert_array_equal(a.x, b.x)
