"""The posterior as a distribution object."""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.basis import Gaussian
from gridless.grid import Grid
from gridless.posterior import Posterior
from gridless.toys import TwoObservables

BOUNDS = (100.0, 120.0)


def make(log_q=None):
    """Two events: a Gaussian at the middle, and one beyond the upper bound."""
    grid = Grid(np.zeros((0, 1)), np.array([BOUNDS]), ("mass",))
    z = torch.tensor([[[0.5, np.log(0.1)]], [[1.2, np.log(0.1)]]], dtype=torch.float64)
    return Posterior(Gaussian(), torch.zeros(2, 1, dtype=torch.float64), z, grid, log_q)


def test_normalised_in_the_units_of_theta():
    theta = np.linspace(*BOUNDS, 20001)
    density = np.exp(make().log_prob(theta[:, None]))
    np.testing.assert_allclose(np.trapezoid(density, theta, axis=0), 1, atol=1e-6)


def test_dividing_by_q_keeps_it_normalised_and_changes_the_ratio():
    # log q = 0.3 T_1(2t - 1) rises by 0.6 over the range.
    theta = np.linspace(*BOUNDS, 20001)
    divided, plain = make(np.array([0.0, 0.3])), make()
    density = np.exp(divided.log_prob(theta[:, None]))
    np.testing.assert_allclose(np.trapezoid(density, theta, axis=0), 1, atol=1e-6)
    change = divided.log_prob(theta[[0, -1], None]) - plain.log_prob(theta[[0, -1], None])
    np.testing.assert_allclose(change[1] - change[0], -0.6, atol=1e-9)


def test_outside_the_bounds_is_impossible():
    assert make().log_prob(99.0).tolist() == [-np.inf, -np.inf]
    assert np.isfinite(make().log_prob([100.0, 120.0])).all()


def test_mean_and_mode():
    posterior = make()
    np.testing.assert_allclose(posterior.mode, [110, 120], atol=1e-6)
    assert posterior.mean[0] == pytest.approx(110, abs=1e-6)
    assert 118 < posterior.mean[1] < 120


def test_samples_follow_the_density():
    posterior = make()
    draws = posterior.sample(20_000, seed=2)
    assert draws.shape == (20_000, 2)
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean, atol=0.06)
    assert draws[:, 0].std() == pytest.approx(2, abs=0.05)
    assert (posterior.sample(5, seed=2) == posterior.sample(5, seed=2)).all()


def test_shapes_that_do_not_fit_say_the_cure():
    with pytest.raises(gl.InputError, match=r"theta\[:, None\]"):
        make().log_prob(np.linspace(100, 120, 5))
    assert make().log_prob([105.0, 110.0]).shape == (2,)
    assert make().log_prob(105.0).shape == (2,)
    assert "2 event(s)" in repr(make())


def test_an_ensemble_is_the_average_density(model_2d):
    x = TwoObservables().sample(0.4, 50, seed=1)
    network = model_2d.network.double_copy()
    with torch.no_grad():
        log_c, z = network(network.standardise(torch.tensor(x)))
    flat = [
        np.exp(Posterior(network.basis, log_c[e], z[e], model_2d.grid, None).log_prob(0.3))
        for e in range(2)
    ]
    q = model_2d.implied_prior
    ratio = np.mean(flat, axis=0) / q(0.3)
    whole = np.exp(model_2d.posterior(x).log_prob(0.3))
    other = np.exp(model_2d.posterior(x).log_prob(0.8))
    ratio_other = np.mean(
        [
            np.exp(Posterior(network.basis, log_c[e], z[e], model_2d.grid, None).log_prob(0.8))
            for e in range(2)
        ],
        axis=0,
    ) / q(0.8)
    np.testing.assert_allclose(whole / other, ratio / ratio_other, rtol=1e-9)
