"""Sums over events as smooth functions of theta, in one pass over the events in chunks."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from gridless.density.basis import Polynomial, as_polynomial
from gridless.density.network import Network, mixture_log_prob_at
from gridless.density.sums import sum_log_mixture
from gridless.likelihood import chebyshev
from gridless.templates.arrays import Array
from gridless.training.objectives import log_prob_at

# Densities evaluated at once: large enough to be fast, small enough for the cache of a processor.
_BLOCK, _LEAST, _MOST = 2**19, 256, 2**15
# Beyond as many events the rounding of float32 is far below their statistical error: networks are
# then evaluated in it, and only sums are taken in float64.
SINGLE = 2**16
Function = Callable[[Array], Array]


def at_precision(network: Network, events: int) -> Network:
    """The network in the precision that so many events ask for."""
    return network.double_copy() if events <= SINGLE else network


@torch.no_grad()
def outputs(network: Network, x: Array, factor: bool = True) -> tuple[Tensor, Tensor]:
    """log c and z of each event: the ensemble, averaged as densities, is one mixture of all
    members' components.

    A network of templates is normalised over those here; without `factor`, only where that changes
    more than a factor of the event alone.
    """
    dtype = network.weights[0].dtype
    log_c, z = network(network.standardise(torch.as_tensor(x)).to(dtype))
    if factor or network.members > 1:
        log_c = normalised(network, log_c, z) - math.log(network.members)
    log_c, z = merged(log_c, z, 1)
    return log_c[0], z[0]


def merged(log_c: Tensor, z: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """The components of all members of each group on one axis: (groups, events, components, ...);
    events stay last in memory."""
    events = log_c.shape[1]
    log_c = log_c.mT.reshape(groups, -1, events).mT
    rows = z.movedim(1, -1).reshape(groups, -1, z.shape[-1], events)
    return log_c, rows.movedim(-1, 1)


def normalised(network: Network, log_c: Tensor, z: Tensor) -> Tensor:
    """log c with the mean density over the templates, where they normalise it, taken off."""
    if network.templates is None or network.log_share is None:
        return log_c
    at_templates = log_prob_at(network, log_c, z, network.templates.to(z))
    return log_c - torch.logsumexp(at_templates + network.log_share.to(z), -1, keepdim=True)


def log_density(
    network: Network, x: Array, t: Array, factor: bool = True
) -> Iterator[tuple[slice, Tensor]]:
    """log p(t_j | x_i), chunk by chunk of the events: which events, and (events, values).

    Without `factor`, up to a factor of the event alone.
    """
    network = at_precision(network, len(x))
    values = torch.as_tensor(t, dtype=network.weights[0].dtype)
    for part in _chunks(len(x), network.members * network.components * len(t)):
        log_c, z = outputs(network, x[part], factor)
        yield part, mixture_log_prob_at(network.basis, log_c, z, values, network.normalised)


def _chunks(events: int, per_event: int) -> Iterator[slice]:
    size = min(max(_LEAST, _BLOCK // per_event), _MOST)
    return (slice(start, start + size) for start in range(0, events, size))


def sum_of_densities(network: Network, x: Array, weights: Array, t: Array) -> Array:
    """sum_i w_i p(t_j | x_i), one number for each value t_j."""
    total = np.zeros(len(t))
    for part, log_p in log_density(network, x, t):
        total += weights[part] @ torch.exp(log_p).double().numpy()
    return total


def log_likelihood(network: Network, x: Array, weights: Array | None) -> Array:
    """sum_i w_i log p(t | x_i) as Chebyshev coefficients in t, up to a constant.

    A thousand of the events tell how many points in t are needed for coefficients beyond to stay
    below 1e-9 per event; the pass over all confirms it. A single exponential of a polynomial needs
    no points: the coefficients of the polynomials add up.
    """
    basis = polynomial_basis(network)
    if basis is not None:
        total = torch.zeros(basis.outputs, dtype=torch.float64)
        for part, c in event_polynomials(network, basis, x):
            total += _weighted_sum(c, None if weights is None else weights[part])
        return basis.chebyshev(total.numpy())

    def curve(every: int) -> Function:
        w = None if weights is None else weights[::every]
        return lambda t: _curve(network, x[::every], w, t)

    events = len(x)
    every = max(1, events // 1000)
    # The points' rounding in float32 moves t by some 1e-7 of the range, for all events alike,
    # which is not to be mistaken for structure.
    confirm = min(1e-9 * events, 1e-5) if events <= SINGLE else 1e-6 * events
    probe = 1e-9 * (events / every)
    return approximate_curve(curve, every, network.basis.parameters, probe, confirm)


@torch.no_grad()
def _curve(network: Network, x: Array, weights: Array | None, t: Array) -> Array:
    network = at_precision(network, len(x))
    values = torch.as_tensor(t, dtype=network.weights[0].dtype)
    total = torch.zeros(len(t), dtype=torch.float64)
    smooth = as_polynomial(network.basis) is not None
    per_event = 1 if smooth else len(t) * network.members * network.components
    for part in _chunks(len(x), per_event):
        log_c, z = outputs(network, x[part], factor=False)
        given = None if weights is None else torch.as_tensor(weights[part])
        total += sum_of_logs(network, log_c, z, values, given)
    return total.numpy()


def sum_of_logs(
    network: Network, log_c: Tensor, z: Tensor, t: Tensor, weights: Tensor | None = None
) -> Tensor:
    """sum_i w_i log p(t_j | x_i) of a network's outputs, in float64."""
    if network.normalised:
        log_c = log_c - network.basis.log_integral(z)
    return sum_log_mixture(network.basis, log_c, z, t, weights)


def polynomial_basis(network: Network, members: int | None = None) -> Polynomial | None:
    """The basis, if log p(t | x) of that many members (or all) is a polynomial in t, up to a term
    without t."""
    terms = (members or network.members) * network.components
    return as_polynomial(network.basis) if terms == 1 else None


def event_polynomials(
    network: Network, basis: Polynomial, x: Array
) -> Iterator[tuple[slice, Tensor]]:
    """Of each event the coefficients, (events, outputs), of the basis' polynomials."""
    network = at_precision(network, len(x))
    for part in _chunks(len(x), 1):
        _, z = outputs(network, x[part], factor=False)
        yield part, basis.coefficients(z[:, 0])


def _weighted_sum(rows: Tensor, weights: Array | None) -> Tensor:
    """The sum of rows, one of each event, in float64."""
    if weights is None:
        return rows.sum(0, dtype=torch.float64)
    return torch.as_tensor(weights) @ rows.double()


def approximate_curve(
    curve: Callable[[int], Function], every: int, parameters: int, probe: float, confirm: float
) -> Array:
    """Chebyshev coefficients of a curve over events, `curve(1)`, as a function of t.

    `curve(every)`, over some of the events only, tells how many points in t bring the tail of the
    coefficients below `probe`; the pass over all must bring it below `confirm`.
    """
    least = chebyshev.approximate(curve(every), probe, parameters).shape
    return chebyshev.approximate(curve(1), confirm, parameters, least)
