"""Sums over events as smooth functions of theta, in one pass over the events in chunks."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from gridless import chebyshev
from gridless.arrays import Array
from gridless.network import Network, mixture_log_prob_at
from gridless.objective import log_prob_at

# Densities evaluated at once: large enough to be fast, small enough for the cache of a processor.
_BLOCK, _LEAST = 2**20, 256
Function = Callable[[Array], Array]


@torch.no_grad()
def outputs(network: Network, x: Array) -> tuple[Tensor, Tensor]:
    """log c and z of each event in float64: the ensemble, averaged as densities, is one mixture
    of all members' components. A network of templates is normalised over those here."""
    log_c, z = network(network.standardise(torch.as_tensor(x)))
    log_c = normalised(network, log_c, z) - np.log(network.members)
    return log_c.transpose(0, 1).flatten(1), z.transpose(0, 1).flatten(1, 2)


def normalised(network: Network, log_c: Tensor, z: Tensor) -> Tensor:
    """log c with the mean density over the templates, where they normalise it, taken off."""
    if network.templates is None:
        return log_c
    at_templates = log_prob_at(network, log_c, z, network.templates)
    mean = torch.logsumexp(at_templates, -1, keepdim=True) - math.log(len(network.templates))
    return log_c - mean


def log_density(network: Network, x: Array, t: Array) -> Iterator[tuple[slice, Array]]:
    """log p(t_j | x_i), chunk by chunk of the events: which events, and (events, values)."""
    network, values = network.double_copy(), torch.as_tensor(t)
    chunk = max(_LEAST, _BLOCK // (network.members * network.components * len(t)))
    for start in range(0, len(x), chunk):
        part = slice(start, start + chunk)
        log_c, z = outputs(network, x[part])
        log_p = mixture_log_prob_at(network.basis, log_c, z, values, network.normalised)
        yield part, log_p.numpy()


def sum_over_events(network: Network, x: Array, weights: Array, t: Array, of: Function) -> Array:
    """sum_i w_i of(log p(t_j | x_i)), one number for each value t_j, summed in float64."""
    total = np.zeros(len(t))
    for part, log_p in log_density(network, x, t):
        total += weights[part] @ of(log_p)
    return total


def approximate_curve(
    curve: Callable[[int], Function], every: int, parameters: int, tolerance: float
) -> Array:
    """Chebyshev coefficients of a curve over events, `curve(1)`, as a function of t.

    `curve(every)`, over some of the events only, tells how many points in t are needed, and the
    pass over all confirms it.
    """
    least = chebyshev.approximate(curve(max(1, every)), tolerance, parameters).shape
    return chebyshev.approximate(curve(1), tolerance, parameters, least)
