"""The posterior as a distribution object."""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.density.gaussian import CorrelatedGaussian, Gaussian
from gridless.density.mixture import Mixture
from gridless.examples import TwoObservables
from gridless.model.posterior import Posterior
from gridless.templates.grid import Grid

BOUNDS = (100.0, 120.0)


FLAT = np.zeros(1)


def make(log_q=FLAT):
    """Two events: a Gaussian at the middle, and one beyond the upper bound."""
    grid = Grid(np.zeros((0, 1)), np.array([BOUNDS]), ("mass",))
    z = torch.tensor([[[0.5, np.log(0.1)]], [[1.2, np.log(0.1)]]], dtype=torch.float64)
    return Posterior(Mixture(Gaussian(), torch.zeros(2, 1).double(), z), grid, log_q)


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
    assert "2 events" in repr(make())


def test_an_ensemble_is_the_average_density(model_2d):
    """Of densities normalised over the templates, as the objective asks; then divided by q."""
    x = TwoObservables().sample(0.4, 50, seed=1)
    values = torch.tensor([[0.3], [0.8]], dtype=torch.float64)
    densities = []
    for e in range(2):
        network = model_2d.network.member(e).double_copy()
        mixture = network(network.standardise(torch.tensor(x)))
        at_values = torch.exp(mixture.log_prob_at(values))
        at_templates = torch.exp(mixture.log_prob_at(network.templates))
        densities.append((at_values / at_templates.mean(-1, keepdim=True))[0].detach().numpy())
    ratio = np.mean(densities, axis=0) / model_2d.implied_prior([0.3, 0.8])
    posterior = model_2d.posterior(x)
    whole, other = np.exp(posterior.log_prob(0.3)), np.exp(posterior.log_prob(0.8))
    np.testing.assert_allclose(whole / other, ratio[:, 0] / ratio[:, 1], rtol=1e-9)


def test_two_parameters():
    """A correlated Gaussian well inside the box: moments, samples and normalisation."""
    grid = Grid(np.zeros((0, 2)), np.array([[0.0, 10.0], [-1.0, 1.0]]), ("a", "b"))
    # y_1 = d_1 / 0.1, y_2 = (d_2 - d_1) / 0.1: both widths 0.1 and 0.1 sqrt 2, correlated.
    z = torch.tensor([[[0.5, 0.5, np.log(0.1), np.log(0.1), -1.0]]], dtype=torch.float64)
    mixture = Mixture(CorrelatedGaussian(parameters=2), torch.zeros(1, 1).double(), z)
    posterior = Posterior(mixture, grid, np.zeros((1, 1)))
    np.testing.assert_allclose(posterior.mean, [[5, 0]], atol=0.02)
    np.testing.assert_allclose(posterior.mode, [[5, 0]], atol=0.05)
    draws = posterior.sample(40_000, seed=1)[:, 0]
    np.testing.assert_allclose(draws.std(axis=0), [1, 0.2 * np.sqrt(2)], rtol=0.03)
    assert np.corrcoef(draws.T)[0, 1] == pytest.approx(np.sqrt(0.5), abs=0.02)
    a, b = np.meshgrid(np.linspace(0, 10, 201), np.linspace(-1, 1, 201), indexing="ij")
    density = np.exp(posterior.log_prob(np.stack([a, b], -1)[..., None, :]))[..., 0]
    total = np.trapezoid(np.trapezoid(density, b[0], axis=1), a[:, 0])
    assert total == pytest.approx(1, abs=1e-3)
    with pytest.raises(gl.InputError, match="holds 2 parameters"):
        posterior.log_prob([0.5])
