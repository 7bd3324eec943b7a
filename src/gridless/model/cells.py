"""Cells of the simulation in units of a network's inputs: made of templates, filled with events.

What they are for is in `gridless.likelihood.agreement`.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from gridless.calibration.shares import smooth_shares
from gridless.curves import chebyshev
from gridless.density.network import Network
from gridless.likelihood.agreement import FAR_SHOWN, LEAST_SHARE, Cells, FarEvent, Filling
from gridless.likelihood.warnings import OUTSIDE_SHARE
from gridless.model.evaluation import MAX_DOUBLE_EVENTS
from gridless.templates.arrays import Array
from gridless.templates.event_findings import Keys
from gridless.templates.templates import Templates

CELLS = 40  # cells, if there are enough events
EVENTS_PER_CELL = 50  # at least, among those that make the centres
CENTRE_EVENTS = 20_000  # events that make the centres
FILL_EVENTS = 2_000_000  # simulated events that fill the cells
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
    """How observed events fill the cells. Of very many events, every n-th is looked at.

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
        Keys.of(x),
        len(rows),
        tuple(FarEvent(row, names[column], float(x[row, column])) for row, column in named),
    )


def make_cells(network: Network, templates: Templates, weights: Array) -> Cells:
    """Cells of the templates' events, and their shares at any theta.

    Parameters
    ----------
    network : Network
        Whose inputs distances are taken in.
    templates : Templates
        The simulated events.
    weights : array (events,)
        Those of the objective.
    """
    x, template, unit = templates.x, templates.template, templates.grid.unit
    some = x[:: max(1, len(x) // CENTRE_EVENTS)]
    some = network.standardise(torch.as_tensor(some)).numpy()
    # Observables of few values have no more centres than those.
    count = min(CELLS, max(2, len(some) // EVENTS_PER_CELL), len(np.unique(some, axis=0)))
    centres, _ = kmeans2(some, count, minit="++", rng=np.random.default_rng(0))
    every = max(1, len(x) // FILL_EVENTS)
    x, template, weights = x[::every], template[::every], weights[::every]
    where, distance = nearest(network, x, centres)
    reach = float(np.quantile(distance, 1 - OUTSIDE_SHARE))
    seen, events = _template_cells(where, template, weights, (count, len(unit)))
    inside = (distance <= reach).astype(np.int64)
    beside, _ = _template_cells(inside, template, weights, (2, len(unit)))
    # The share outside is as smooth as the others.
    shares = smooth_shares(np.vstack([seen, beside[:1]]), events, unit)
    # Variances are polynomials of twice the degree.
    sizes = (2 * int(shares.powers.max()) + 1,) * unit.shape[1]
    t = chebyshev.box_points(sizes)
    share, variance = shares(t), shares.variances(t)
    # Of n events a share s has the variance s / n.
    effective = np.log(share[:-1].clip(min=LEAST_SHARE).sum(axis=0) / variance[:-1].sum(axis=0))
    rows = np.concatenate([share, variance, effective[None]]).reshape(-1, *sizes)
    series = np.array([chebyshev.coefficients(row) for row in rows])
    of_share, of_variance, (of_effective,) = np.split(series, [count + 1, 2 * count + 2])
    outside = np.stack([of_share[-1], of_variance[-1]])
    return Cells(centres, reach, of_share[:-1], of_effective, of_variance[:-1], outside)


def _template_cells(
    where: NDArray[np.int64],
    template: NDArray[np.int64],
    weights: Array,
    shape: tuple[int, int],
) -> tuple[Array, Array]:
    """The share of each cell in each template (cells, templates), and the effective events of each
    template."""
    cells, templates = shape
    content = np.bincount(where * templates + template, weights, cells * templates)
    totals = np.bincount(template, weights, templates)
    squares = np.bincount(template, weights**2, templates)
    return content.reshape(cells, templates) / totals, totals**2 / squares


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
