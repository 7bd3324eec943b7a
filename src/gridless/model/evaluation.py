"""Sums over events as smooth functions of theta, in one pass over the events in chunks.

The summary of an event is the coefficients of log p(theta | x) as a polynomial in theta.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from gridless.curves import chebyshev
from gridless.density.basis import PolynomialBasis
from gridless.density.exp_polynomial import ExpPolynomial
from gridless.density.mixture import Mixture
from gridless.density.network import Network
from gridless.templates.arrays import Array, slices

# Densities evaluated at once: large enough to be fast, small enough for the cache of a CPU.
BLOCK_NUMBERS = 2**19
# Events evaluated at once are no fewer and no more.
MIN_BLOCK_EVENTS = 256
MAX_BLOCK_EVENTS = 2**15
# Beyond as many events the rounding of float32 is far below their statistical error: networks are
# then evaluated in it, and only sums are taken in float64.
MAX_DOUBLE_EVENTS = 2**16
LARGEST_LOG = 80.0  # of a density in units of the range: the exponential of more is infinite
# Events that tell how many points in t a likelihood needs.
PROBE_EVENTS = 1000
# Densities that are no exponentials of polynomials are described by the polynomial nearest to
# their logarithm: its total degree, by the number of parameters.
PROJECTED_DEGREE = {1: 6, 2: 3, 3: 2}
# Chebyshev points per parameter of that least-squares fit.
PROJECTED_POINTS = {1: 33, 2: 9, 3: 5}
Function = Callable[[Array], Array]


def at_precision(network: Network, events: int) -> Network:
    """The network in the precision that this number of events needs."""
    return network.double_copy() if events <= MAX_DOUBLE_EVENTS else network


@torch.no_grad()
def mixture_of(network: Network, x: Array, factor: bool = True) -> Mixture:
    """p(t | x) of each event: the ensemble, averaged as densities, is one mixture of all members'
    components.

    If `factor` is false, omit the per-event normalisation, which does not depend on theta.
    """
    mixture = network.of_observables(torch.as_tensor(x))
    return mixture.averaged() if factor or network.members > 1 else mixture[0]


def log_density(
    network: Network, x: Array, t: Array, factor: bool = True
) -> Iterator[tuple[slice, Tensor]]:
    """log p(t_j | x_i), chunk by chunk of the events: which events, and (events, values).

    If `factor` is false, omit the per-event normalisation, which does not depend on theta.
    """
    network = at_precision(network, len(x))
    values = torch.tensor(t, dtype=network.dtype)
    for part in event_blocks(len(x), network.members * network.components * len(t)):
        yield part, mixture_of(network, x[part], factor).log_prob_at(values)


def event_blocks(events: int, per_event: int) -> Iterator[slice]:
    """Pieces of the events, with so many densities for each event."""
    size = max(MIN_BLOCK_EVENTS, BLOCK_NUMBERS // per_event)
    return slices(events, min(size, MAX_BLOCK_EVENTS))


def sum_of_densities(network: Network, x: Array, weights: Array, t: Array) -> Array:
    """sum_i w_i p(t_j | x_i), one number for each value t_j."""
    total = np.zeros(len(t))
    for part, log_p in log_density(network, x, t):
        total += weights[part] @ torch.exp(log_p.clamp(max=LARGEST_LOG)).double().numpy()
    return total


def log_likelihood(network: Network, x: Array, weights: Array | None) -> Array:
    """sum_i w_i log p(t | x_i) as Chebyshev coefficients in t, up to a constant.

    A thousand of the events tell how many points in t are needed for coefficients beyond to stay
    below 1e-9 per event; the pass over all confirms it. A single exponential of a polynomial needs
    no points: the coefficients of the polynomials add up.
    """
    basis = network.polynomial()
    if basis is not None:
        total = torch.zeros(basis.outputs, dtype=torch.float64)
        for part, c in event_polynomials(network, x):
            total += _weighted_sum(c, None if weights is None else weights[part])
        return basis.chebyshev(total.numpy())

    events = len(x)
    stride = max(1, events // PROBE_EVENTS)
    some = None if weights is None else weights[::stride]
    # The points' rounding in float32 moves t by some 1e-7 of the range, for all events alike,
    # which is not to be mistaken for structure.
    confirm = min(1e-9 * events, 1e-5) if events <= MAX_DOUBLE_EVENTS else 1e-6 * events
    probe = 1e-9 * (events / stride)
    return approximate_curve(
        lambda t: _curve(network, x[::stride], some, t),
        lambda t: _curve(network, x, weights, t),
        network.basis.parameters,
        probe,
        confirm,
    )


@torch.no_grad()
def _curve(network: Network, x: Array, weights: Array | None, t: Array) -> Array:
    network = at_precision(network, len(x))
    values = torch.tensor(t, dtype=network.dtype)
    total = torch.zeros(len(t), dtype=torch.float64)
    polynomial = isinstance(network.basis, PolynomialBasis)
    per_event = 1 if polynomial else len(t) * network.members * network.components
    for part in event_blocks(len(x), per_event):
        w = None if weights is None else torch.as_tensor(weights[part])
        total += mixture_of(network, x[part], factor=False).sum_log_prob(values, w)
    return total.numpy()


def event_polynomials(network: Network, x: Array) -> Iterator[tuple[slice, Tensor]]:
    """Coefficients (events, outputs) of log p(t | x), a polynomial in t, chunk by chunk of the
    events."""
    network = at_precision(network, len(x))
    for part in event_blocks(len(x), 1):
        yield part, mixture_of(network, x[part], factor=False).coefficients()


def _weighted_sum(rows: Tensor, weights: Array | None) -> Tensor:
    """The sum of rows, one of each event, in float64."""
    if weights is None:
        return rows.sum(0, dtype=torch.float64)
    return torch.as_tensor(weights) @ rows.double()


def approximate_curve(
    of_some: Function, of_all: Function, parameters: int, probe: float, confirm: float
) -> Array:
    """Chebyshev coefficients of a function of t that is a sum over all events.

    The same sum over some events, `of_some`, tells how many points in t bring the tail of the
    coefficients below `probe`; with `of_all` it must be below `confirm`.
    """
    least = chebyshev.approximate(of_some, probe, parameters).shape
    return chebyshev.approximate(of_all, confirm, parameters, least)


def summary_basis(network: Network) -> PolynomialBasis:
    """The polynomial basis whose coefficients a summary holds."""
    own = network.polynomial(1)
    if own is not None:
        return own
    count = network.basis.parameters
    return ExpPolynomial(PROJECTED_DEGREE[count], parameters=count)


def event_summaries(network: Network, x: Array) -> Iterator[tuple[slice, Tensor]]:
    """c (members, events, d) of each member of the ensemble, in the precision of the network, chunk
    by chunk of the events."""
    own = network.polynomial(1)
    basis = summary_basis(network)
    points = chebyshev.box_points((PROJECTED_POINTS[basis.parameters],) * basis.parameters)
    t = torch.as_tensor(points, dtype=network.dtype)
    matrix = _projection(basis, points).to(network.dtype)
    for part in event_blocks(len(x), network.members * (1 if own else len(t))):
        with torch.no_grad():
            mixture = network.of_observables(torch.as_tensor(x[part]))
            yield part, mixture.coefficients() if own else mixture.projected(t, matrix)


def _projection(basis: PolynomialBasis, points: Array) -> Tensor:
    """The matrix (points, d) that takes values at points to coefficients by least squares."""
    terms = basis.terms(torch.as_tensor(points)).numpy()
    # The constant does not depend on theta.
    with_constant = np.hstack([np.ones((len(points), 1)), terms])
    return torch.as_tensor(np.linalg.pinv(with_constant)[1:].T)


def mean_summaries(network: Network, x: Array) -> Iterator[tuple[slice, Tensor]]:
    """c (events, d), the mean over the members in the precision that the events need, chunk by
    chunk of the events."""
    network = at_precision(network, len(x))
    return ((part, c[0] if len(c) == 1 else c.mean(0)) for part, c in event_summaries(network, x))


def event_features(network: Network, x: Array) -> Iterator[tuple[slice, Array, Array]]:
    """c (members, events, d) and the standardised inputs z (events, observables), chunk by chunk.

    Sums over simulated and over observed events are of numbers of one precision.
    """
    for part, c in event_summaries(network, x):
        z = network.standardise(torch.as_tensor(x[part]))
        yield part, c.double().numpy(), z.double().numpy()
