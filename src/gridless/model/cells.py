"""Cells of the simulation in units of a network's inputs: made of templates, filled with events.

What they are for is in `gridless.likelihood.agreement`.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from gridless.density.network import Network
from gridless.likelihood import chebyshev
from gridless.likelihood.agreement import Cells, Filling
from gridless.likelihood.warnings import OUTSIDE_SHARE
from gridless.model.evaluation import MAX_DOUBLE_EVENTS, log_density
from gridless.templates.arrays import Array

CELLS = 40  # cells, if there are enough events
EVENTS_PER_CELL = 50  # at least, among those that make the centres
CENTRE_EVENTS = 20_000  # events that make the centres
FILL_EVENTS = 200_000  # simulated events that fill the cells
CHUNK = 8192  # events at a time when looking for the nearest centre


def fill(cells: Cells, network: Network, x: Array, weights: Array) -> Filling:
    """How observed events fill the cells; of very many, every n-th, which tells as much."""
    every = max(1, len(x) // MAX_DOUBLE_EVENTS)
    x, weights = x[::every], weights[::every]
    where, distance = nearest(network, x, cells.centres)
    return Filling(
        np.bincount(where, weights, len(cells.centres)).astype(float),
        float((weights**2).sum()),
        int((distance > cells.reach).sum()),
        len(x),
    )


def make_cells(
    network: Network,
    x: Array,
    template: NDArray[np.int64],
    weights: Array,
    sizes: tuple[int, ...],
) -> Cells:
    """Cells of the templates' events, filled at Chebyshev points of theta."""
    every = max(1, len(x) // FILL_EVENTS)
    x, template, weights = x[::every], template[::every], weights[::every]
    some = _inputs(network, x[:: max(1, len(x) // CENTRE_EVENTS)])
    count = min(CELLS, max(2, len(some) // EVENTS_PER_CELL))
    centres, _ = kmeans2(some, count, minit="++", rng=np.random.default_rng(0))
    where, distance = nearest(network, x, centres)
    # The template that reaches farthest decides: at its theta too no more may lie outside.
    distances = [distance[template == k] for k in np.unique(template)]
    reach = float(max(np.quantile(d, 1 - OUTSIDE_SHARE) for d in distances))
    t = chebyshev.box_points(sizes)
    content, squares = np.zeros((count, len(t))), np.zeros(len(t))
    for part, log_p in log_density(network, x, t):
        density = np.exp(log_p.double().numpy())
        member = np.zeros((len(density), count))
        member[np.arange(len(density)), where[part]] = weights[part]
        content += member.T @ density
        squares += weights[part] ** 2 @ density**2
    total = content.sum(axis=0)
    share = (content / total).reshape(count, *sizes)
    return Cells(
        centres,
        reach,
        np.array([chebyshev.coefficients(s) for s in share]),
        chebyshev.coefficients(np.log(total**2 / squares).reshape(sizes)),
    )


def nearest(network: Network, x: Array, centres: Array) -> tuple[NDArray[np.int64], Array]:
    """Of each event the nearest centre, and the squared distance from it."""
    parts = list(_nearest_parts(network, x, centres))
    return np.concatenate([w for w, _ in parts]), np.concatenate([d for _, d in parts])


def _nearest_parts(
    network: Network, x: Array, centres: Array
) -> Iterator[tuple[NDArray[np.int64], Array]]:
    # float32 is exact enough for distances of cells. Centres are last in memory, where torch
    # finds the least of each row fastest.
    middles = torch.as_tensor(centres).float()
    squares = (middles**2).sum(1)
    for start in range(0, len(x), CHUNK):
        y = network.standardise(torch.as_tensor(x[start : start + CHUNK])).float()
        distance, where = torch.addmm(squares, y, middles.T, alpha=-2).min(1)
        yield where.numpy(), (distance + (y**2).sum(1)).numpy()


def _inputs(network: Network, x: Array) -> Array:
    return network.standardise(torch.as_tensor(x)).numpy()
