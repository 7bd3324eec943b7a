"""The implied prior is the mean posterior over the training events."""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.posterior import Posterior
from gridless.prior import ImpliedPrior


def test_it_is_the_mean_of_the_posteriors(model, templates):
    network = model.network.double_copy()
    with torch.no_grad():
        log_c, z = network(network.standardise(torch.tensor(templates.x)))
    theta = np.array([0.0, 0.05, 0.33, 0.5, 1.0])
    posterior = Posterior(network.basis, log_c[0], z[0], model.grid, None)
    mean = np.exp(posterior.log_prob(theta[:, None])).mean(axis=1)
    np.testing.assert_allclose(model.implied_prior(theta), mean, rtol=1e-7)


def test_it_integrates_to_one(model):
    theta = np.linspace(0, 1, 2001)
    assert np.trapezoid(model.implied_prior(theta), theta) == pytest.approx(1, abs=1e-6)


def test_max_log():
    grid = gl.Templates([1.0, 2.0], [0.25, 0.75], (0, 1)).grid
    prior = ImpliedPrior(np.array([0.0, 0.2]), grid)
    assert prior.max_log == pytest.approx(0.2)
    assert "0.2" in repr(prior)
