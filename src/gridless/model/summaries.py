"""The summary of an event: the coefficients of log p(theta | x) as a polynomial in theta."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from gridless.density.basis import PolynomialBasis
from gridless.density.exp_polynomial import ExpPolynomial
from gridless.density.network import Network
from gridless.likelihood import chebyshev
from gridless.model.evaluation import at_precision, event_blocks
from gridless.templates.arrays import Array

# Densities that are no exponentials of polynomials are described by the polynomial nearest to
# their logarithm: its total degree, by the number of parameters.
PROJECTED_DEGREE = {1: 6, 2: 3, 3: 2}
# Chebyshev points per parameter at which it is the nearest.
PROJECTED_POINTS = {1: 33, 2: 9, 3: 5}


def summary_basis(network: Network) -> PolynomialBasis:
    """The polynomial of which a summary has the coefficients."""
    own = network.polynomial(1)
    if own is not None:
        return own
    count = network.basis.parameters
    return ExpPolynomial(PROJECTED_DEGREE[count], parameters=count)


def event_summaries(network: Network, x: Array) -> Iterator[tuple[slice, Tensor]]:
    """c (members, events, d) of each member of the ensemble, chunk by chunk of the events."""
    network = at_precision(network, len(x))
    own = network.polynomial(1)
    basis = summary_basis(network)
    points = chebyshev.box_points((PROJECTED_POINTS[basis.parameters],) * basis.parameters)
    t = torch.as_tensor(points, dtype=network.dtype)
    for part in event_blocks(len(x), network.members * (1 if own else len(t))):
        with torch.no_grad():
            mixture = network(network.standardise(torch.as_tensor(x[part])).to(network.dtype))
            if own is not None:
                yield part, mixture.coefficients()
            else:
                yield part, mixture.log_prob_at(t) @ _projection(basis, points).to(network.dtype)


def _projection(basis: PolynomialBasis, points: Array) -> Tensor:
    """The matrix (points, d) that takes values at points to coefficients by least squares."""
    terms = basis.terms(torch.as_tensor(points)).numpy()
    # The constant says nothing of theta.
    with_constant = np.hstack([np.ones((len(points), 1)), terms])
    return torch.as_tensor(np.linalg.pinv(with_constant)[1:].T)


def mean_summaries(network: Network, x: Array) -> Iterator[tuple[slice, Tensor]]:
    """c (events, d), the mean over the members, chunk by chunk of the events."""
    return ((part, c[0] if len(c) == 1 else c.mean(0)) for part, c in event_summaries(network, x))


def event_features(network: Network, x: Array) -> Iterator[tuple[slice, Array, Array]]:
    """c (events, d) and the standardised inputs z (events, observables), chunk by chunk.

    Sums over simulated and over observed events are of numbers of one precision.
    """
    for part in event_blocks(len(x), network.members):
        rows = torch.as_tensor(x[part])
        with torch.no_grad():
            z = network.standardise(rows)
            own = network.polynomial(1)
            if own is not None:
                c = network(z.to(network.dtype)).coefficients().double().mean(0).numpy()
            else:
                c = next(mean_summaries(network, x[part]))[1].double().numpy()
        yield part, c, z.double().numpy()
