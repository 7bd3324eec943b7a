"""What several tests call."""

import base64
import json
import re

import numpy as np
import torch

from gridless.density.conditioner import Perceptron
from gridless.density.network import Network, outputs_needed
from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.grid import Grid
from gridless.training.newton import gradient
from gridless.validation.closure import Closure


def make_perceptrons(
    inputs, basis, components=1, hidden=(16,), activation="tanh", members=1, **normalisation
) -> Network:
    """A network of our own perceptrons."""
    outputs = outputs_needed(basis, components)
    conditioner = Perceptron(inputs, outputs, hidden, activation, members)
    return Network(conditioner, basis, components, inputs, **normalisation)


def check_event_gradients(network) -> None:
    """Gradients of all events at once are those of each alone; the network has two inputs."""
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(2))

    def cost(y):
        mixture = network.mixture(y)
        return (mixture.log_c.exp() * mixture.z[..., 0] ** 2 + mixture.z[..., 1]).sum((-1, -2))

    together = network.conditioner.event_gradients(x, cost)
    for i in range(5):
        alone = gradient(cost(network.conditioner(x[i : i + 1])), network)
        torch.testing.assert_close(together[..., i].double(), alone, atol=1e-6, rtol=1e-5)


def parabola(best: float, width: float, bounds=(0.0, 1.0), events: int = 100) -> Likelihood:
    """The likelihood ((theta - best) / width)^2 / 2 on the given bounds."""
    grid = Grid(np.zeros((0, 1)), np.array([bounds], float), ("theta",))
    low, high = bounds
    unit = (high - low) / width
    middle = (best - low) / (high - low)
    # (t - m)^2 in Chebyshev polynomials of 2t - 1.
    u = np.polynomial.chebyshev.poly2cheb([(0.5 - middle) ** 2, 0.5 - middle, 0.25])
    return Likelihood([Channel(0.5 * unit**2 * u, grid, events)])


def closure_of(values, true, width=0.01) -> Closure:
    """The closure of samples whose likelihoods are parabolas about the values."""
    estimates = tuple(parabola(value, width).maximum() for value in values)
    intervals = [[estimate.interval] for estimate in estimates]
    return Closure(np.array(true)[:, None], estimates, np.array(intervals))


def downloads(page: str) -> dict[str, list]:
    """The JSON files that a report holds, by their names."""
    found = re.findall(r'href="data:application/json;base64,([^"]+)" download="(\w+)', page)
    return {name: json.loads(base64.b64decode(content)) for content, name in found}
