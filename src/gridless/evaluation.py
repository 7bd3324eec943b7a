"""Sums over events as smooth functions of theta, in one pass over the events in chunks."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gridless import chebyshev
from gridless.arrays import Array
from gridless.network import Network
from gridless.objective import log_prob_at

_CHUNK = 16_384
Function = Callable[[Array], Array]


def outputs(network: Network, x: Array) -> tuple[Tensor, Tensor]:
    """log c and z of each event in float64: the ensemble, averaged as densities, is one mixture
    of all members' components."""
    with torch.no_grad():
        log_c, z = network(network.standardise(torch.as_tensor(x)))
    log_c = log_c - np.log(network.members)
    return log_c.transpose(0, 1).flatten(1), z.transpose(0, 1).flatten(1, 2)


def sum_over_events(network: Network, x: Array, weights: Array, t: Array, of: Function) -> Array:
    """sum_i w_i of(log p(t_j | x_i)), one number for each value t_j, summed in float64."""
    network, values = network.double_copy(), torch.as_tensor(t)
    total = np.zeros(len(t))
    for start in range(0, len(x), _CHUNK):
        part = slice(start, start + _CHUNK)
        log_p = log_prob_at(network, *outputs(network, x[part]), values)
        total += weights[part] @ of(log_p.numpy())
    return total


def approximate_sum(
    network: Network, x: Array, weights: Array, of: Function, then: Function, tolerance: float
) -> Array:
    """Chebyshev coefficients of then(sum_i w_i of(log p(t | x_i))) as a function of t.

    A thousand events tell how many points in t are needed, and the pass over all confirms it.
    """

    def curve(every: int) -> Function:
        return lambda t: then(sum_over_events(network, x[::every], weights[::every], t, of))

    least = len(chebyshev.approximate(curve(max(1, len(x) // 1000)), tolerance))
    return chebyshev.approximate(curve(1), tolerance, least)
