"""Cells of the simulation in units of a network's inputs: made of templates, filled with events.

What they are for is in `gridless.likelihood.agreement`.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from gridless.curves import chebyshev
from gridless.density.network import Network
from gridless.likelihood.agreement import FAR_SHOWN, LEAST_SHARE, Cells, FarEvent, Filling
from gridless.likelihood.warnings import OUTSIDE_SHARE
from gridless.model.evaluation import MAX_DOUBLE_EVENTS, log_density
from gridless.templates.arrays import Array
from gridless.templates.copies import Keys, row_keys

CELLS = 40  # cells, if there are enough events
EVENTS_PER_CELL = 50  # at least, among those that make the centres
CENTRE_EVENTS = 20_000  # events that make the centres
FILL_EVENTS = 200_000  # simulated events that fill the cells
TEMPLATES_OF_SQUARE = 6  # with which corrections of shares may be quadratic in theta
NEWTON_STEPS = 12  # of the fit of a correction, which begins near its end
FARTHEST = 1e6  # standardised: distances are taken in float32, which holds the square of this
CHUNK = 8192  # events at a time when looking for the nearest centre


def far_events(network: Network, x: Array) -> NDArray[np.bool_]:
    """Which observables (events, observables) lie farther outside of the simulation than it is
    wide: see `Network.far`."""
    # The least and the largest tell at once that there is none, as usual.
    # Column by column, which for few columns is many times faster than along an axis.
    ends = np.array([[column.min(), column.max()] for column in x.T]).T
    if not bool(network.far(torch.as_tensor(ends)).any()):
        return np.zeros(x.shape, bool)
    return np.asarray(network.far(torch.as_tensor(x)).numpy())


def fill(
    cells: Cells,
    network: Network,
    x: Array,
    weights: Array,
    far: NDArray[np.bool_],
    names: Sequence[str],
) -> Filling:
    """How observed events fill the cells; of very many, every n-th, which tells as much.

    `far` (events, observables) are those that `far_events` found, which have weight 0.
    """
    rows = np.nonzero(far.any(axis=1))[0]
    named = [(int(row), int(far[row].argmax())) for row in rows[:FAR_SHOWN]]
    every = max(1, len(x) // MAX_DOUBLE_EVENTS)
    some, weights = x[::every], weights[::every]
    where, distance = nearest(network, some, cells.centres)
    return Filling(
        np.bincount(where, weights, len(cells.centres)).astype(float),
        float((weights**2).sum()),
        int((distance > cells.reach).sum()),
        len(some),
        len(x),
        Keys.of(row_keys(x)),
        len(rows),
        tuple(FarEvent(row, names[column], float(x[row, column])) for row, column in named),
    )


def make_cells(
    network: Network,
    x: Array,
    template: NDArray[np.int64],
    weights: Array,
    unit: Array,
    sizes: tuple[int, ...],
) -> Cells:
    """Cells of the templates' events, filled at Chebyshev points of theta.

    Parameters
    ----------
    network : Network
        Its p(theta | x) weights all events to any theta.
    x, template, weights : array (events, observables), array (events), array (events)
        The templates' events, the template of each, and their weights.
    unit : array (templates, parameters)
        Values of the templates in units of the range.
    sizes : tuple of int
        Chebyshev points of each parameter.
    """
    every = max(1, len(x) // FILL_EVENTS)
    x, template, weights = x[::every], template[::every], weights[::every]
    some = _inputs(network, x[:: max(1, len(x) // CENTRE_EVENTS)])
    # Observables of few values have no more centres than those.
    count = min(CELLS, max(2, len(some) // EVENTS_PER_CELL), len(np.unique(some, axis=0)))
    centres, _ = kmeans2(some, count, minit="++", rng=np.random.default_rng(0))
    where, distance = nearest(network, x, centres)
    # The template that reaches farthest decides: at its theta too no more may lie outside.
    distances = [distance[template == k] for k in np.unique(template)]
    reach = float(max(np.quantile(d, 1 - OUTSIDE_SHARE) for d in distances))
    t = np.concatenate([chebyshev.box_points(sizes), unit])
    content, squares = np.zeros((count, len(t))), np.zeros(len(t))
    for part, log_p in log_density(network, x, t):
        density = np.exp(log_p.double().numpy())
        member = np.zeros((len(density), count))
        member[np.arange(len(density)), where[part]] = weights[part]
        content += member.T @ density
        squares += weights[part] ** 2 @ density**2
    total = content.sum(axis=0)
    share = (content / total).clip(min=LEAST_SHARE)
    points = len(t) - len(unit)
    factor, variance = _corrected(share[:, points:], _template_cells(where, template, weights,
        (count, len(unit))), unit, t[:points])  # fmt: skip
    share = (share[:, :points] * factor).reshape(count, *sizes)
    effective = np.log(total**2 / squares)[:points]
    return Cells(
        centres,
        reach,
        np.array([chebyshev.coefficients(s) for s in share]),
        chebyshev.coefficients(effective.reshape(sizes)),
        np.array([chebyshev.coefficients(v) for v in variance.reshape(count, *sizes)]),
    )


def _template_cells(
    where: NDArray[np.int64],
    template: NDArray[np.int64],
    weights: Array,
    shape: tuple[int, int],
) -> tuple[Array, Array]:
    """The share of each cell in each template (cells, templates), and 1 / effective events of each
    template."""
    cells, templates = shape
    content = np.bincount(where * templates + template, weights, cells * templates)
    totals = np.bincount(template, weights, templates)
    squares = np.bincount(template, weights**2, templates)
    return content.reshape(cells, templates) / totals, squares / totals**2


def _corrected(
    foretold: Array, seen: tuple[Array, Array], unit: Array, t: Array
) -> tuple[Array, Array]:
    """What the templates themselves say of the shares that the network foretells.

    The factor exp(g(t) beta_c) of cell c, g a polynomial of low degree, is fitted to the events
    that each template has in it, whose number is Poisson distributed. Whatever the network learnt,
    the shares are then right at the templates, and the fit has their error.

    Returns
    -------
    tuple of array (cells, points), array (cells, points)
        The factor for each cell at each point t, and the relative variance of its share.
    """
    share, inverse_size = seen
    at_templates, at_points = _polynomial(unit, len(unit)), _polynomial(t, len(unit))
    # A prior of width 1, since factors are near 1: a cell may be empty in most templates.
    prior = np.eye(at_templates.shape[1])
    factor, variance = [], []
    for expected, found in zip(foretold / inverse_size, share / inverse_size, strict=True):
        beta = np.zeros(len(prior))
        for _ in range(NEWTON_STEPS):
            mean = expected * np.exp(at_templates @ beta)
            matrix = at_templates.T @ (mean[:, None] * at_templates) + prior
            step = np.linalg.solve(matrix, at_templates.T @ (found - mean) - beta)
            beta = beta + step.clip(-1, 1)
        factor.append(np.exp(at_points @ beta))
        inverse = np.linalg.inv(matrix)
        variance.append(np.einsum("pi,ij,pj->p", at_points, inverse, at_points))
    return np.array(factor), np.array(variance)


def _polynomial(t: Array, templates: int) -> Array:
    """1, the parameters and, for enough templates of one parameter, its square, at each t."""
    columns = [np.ones(len(t)), *(2 * t.T - 1)]
    if t.shape[1] == 1 and templates >= TEMPLATES_OF_SQUARE:
        columns.append((2 * t[:, 0] - 1) ** 2)
    return np.stack(columns, axis=1)


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
        y = network.unlimited(torch.as_tensor(x[start : start + CHUNK]))
        y = y.clamp(-FARTHEST, FARTHEST).float()
        distance, where = torch.addmm(squares, y, middles.T, alpha=-2).min(1)
        yield where.numpy(), (distance + (y**2).sum(1)).numpy()


def _inputs(network: Network, x: Array) -> Array:
    return network.standardise(torch.as_tensor(x)).numpy()
