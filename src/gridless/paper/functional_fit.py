"""Table 1: the edge bias in a functional fit with three parameters (section 5.1).

The posterior of theta is a Gaussian of mean mu_m x + mu_b and width sigma, truncated to [0, 1].
(The paper writes the function the other way round, as a Gaussian in x; its numbers are those of
this one.) Truth is (1, 0, 4). The plain cost prefers a narrower function that implies too much of
theta near 0.5, by 6e-5 per event: the fits here are exact to far better than that.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.stats import norm
from torch import Tensor
from torch.autograd.functional import jacobian

from gridless.density.truncated import log_gaussian
from gridless.templates.arrays import Array
from gridless.templates.grid import grid

WIDTH = 4.0  # true width of x in units of the range of theta, as in the paper
CONSTRAINED_AT = (0.0, 0.5, 1.0)  # values of theta at which the implied prior is held to 1
THETA = grid((0, 1), 10)  # the paper's templates


@dataclass(frozen=True)
class Density:
    """p(x | theta_k) of each template on points of x: `weights` (templates, points) sum to 1."""

    x: Array
    weights: Array


def exact_density(width: float = WIDTH) -> Density:
    """Infinite data: Gauss-Legendre points over nine widths on either side."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    half = 0.5 + 9 * width
    x = 0.5 + half * nodes
    density = norm.pdf(x, THETA[:, None], width) * half * weights
    return Density(x, density / density.sum())


def sampled_density(events: int, seed: int) -> Density:
    """Finite data: `events` per template, in bins of 1/200 of the width, at the bins' own means."""
    random = np.random.default_rng(seed)
    edges = np.linspace(-6 * WIDTH, 6 * WIDTH + 1, 2400)
    samples = random.normal(THETA[:, None], WIDTH, (len(THETA), events))
    index = np.searchsorted(edges, samples)
    size = len(edges) + 1
    counts = np.stack([np.bincount(row, minlength=size) for row in index])
    sums = np.bincount(index.ravel(), samples.ravel(), minlength=size)
    filled = counts.sum(axis=0) > 0
    return Density(sums[filled] / counts.sum(axis=0)[filled], counts[:, filled] / counts.sum())


def log_posterior(parameters: Tensor, x: Tensor, theta: Tensor) -> Tensor:
    """log p(theta | x) of the function; `parameters` are mu_m, mu_b and log sigma."""
    mean = parameters[0] * x + parameters[1]
    return log_gaussian(theta, mean, torch.exp(parameters[2]).expand_as(mean))


def implied_prior(fitted: Array, density: Density, theta: Array) -> Array:
    """q(theta) = integral of p(theta | x) p(x) dx for mu_m, mu_b and sigma."""
    raw = torch.tensor([fitted[0], fitted[1], np.log(fitted[2])])
    values = log_posterior(raw, torch.tensor(density.x), torch.tensor(theta)[:, None])
    return np.asarray(values.exp().numpy() @ density.weights.sum(axis=0))


def fit_function(density: Density, constrained: bool, width: float = WIDTH) -> Array:
    """(mu_m, mu_b, sigma) of least cost, from the true `width`; constrained to equal q(theta) at
    0, 0.5 and 1."""
    x, weights = torch.tensor(density.x), torch.tensor(density.weights)
    theta = torch.tensor(THETA)[:, None]
    total, ends = weights.sum(0), torch.tensor(CONSTRAINED_AT, dtype=torch.float64)[:, None]

    def cost(raw: Array) -> tuple[float, Array]:
        parameters = torch.tensor(raw, requires_grad=True)
        # In units of 1e-6, in which the gain to be found is some tens.
        value = -1e6 * (weights * log_posterior(parameters, x, theta)).sum()
        (slope,) = torch.autograd.grad(value, parameters)
        return value.item(), slope.numpy()

    def unevenness(parameters: Tensor) -> Tensor:
        """q(0) - q(0.5) and q(1) - q(0.5), in units of 1e-3."""
        q = (log_posterior(parameters, x, ends).exp() * total).sum(-1)
        return torch.stack([q[0] - q[1], q[2] - q[1]]) * 1e3

    start = np.array([1.0, 0.0, np.log(width)])
    even = {
        "type": "eq",
        "fun": lambda raw: unevenness(torch.tensor(raw)).numpy(),
        "jac": lambda raw: jacobian(  # type: ignore[no-untyped-call]
            unevenness, torch.tensor(raw)
        ).numpy(),
    }
    if constrained:
        result = minimize(
            cost,
            start,
            jac=True,
            method="SLSQP",
            constraints=[even],
            options={"ftol": 1e-12, "maxiter": 500},
        )
    else:
        result = minimize(cost, start, jac=True, method="BFGS", options={"gtol": 1e-6})
    return np.array([result.x[0], result.x[1], np.exp(result.x[2])])
