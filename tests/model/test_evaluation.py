"""Curves in either precision."""

import numpy as np
import torch
from helpers import make_perceptrons

from gridless.curves import chebyshev
from gridless.density.gaussian import Gaussian
from gridless.model import evaluation
from gridless.model.evaluation import log_density, log_likelihood


def make(members=1, components=2):
    network = make_perceptrons(2, Gaussian(0.1), components, (5,), "tanh", members)
    network.initialise(torch.Generator().manual_seed(1))
    return network.eval()


def test_the_curve_is_the_sum_of_log_densities(monkeypatch):
    random = np.random.default_rng(1)
    x, weights = random.normal(size=(3_000, 2)), random.uniform(0.5, 1.5, 3_000)
    t = np.linspace(0, 1, 9)[:, None]
    for members, components in ((1, 1), (1, 2), (2, 3)):
        network = make(members, components)
        for single in (evaluation.MAX_DOUBLE_EVENTS, 1_000):
            monkeypatch.setattr(evaluation, "MAX_DOUBLE_EVENTS", single)
            for given in (None, weights):
                curve = chebyshev.evaluate(log_likelihood(network, x, given), t)
                rows = [log_p.double().numpy() for _, log_p in log_density(network, x, t)]
                total = (np.ones(3_000) if given is None else given) @ np.concatenate(rows)
                tolerance = 1e-6 if single > 3_000 else 2e-3
                np.testing.assert_allclose(
                    curve - curve[0], total - total[0], rtol=0, atol=tolerance
                )
