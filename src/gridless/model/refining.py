"""Distributions of observables at any theta: weighted events, corrected by what all events of the
templates show in bins of every observable.

A model keeps a part of its simulated events, and of all of them the shares of bins in every
template. Weights are changed by factors of bins, observable after observable, until the shares are
those of `gridless.calibration.share_correction`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridless.calibration.share_correction import Corrected, Drawn, ShareCorrection
from gridless.templates.arrays import Array
from gridless.templates.summary import Distribution

if TYPE_CHECKING:
    from gridless.model.reweighting import Reweighting, SimulatedEvents

MAX_BINS = 20  # of an observable
MAX_SHARES = 400  # templates times bins: the time goes with the third power of this
LEAST_BINS = 4  # of an observable, however many templates there are


def share_corrections(source: "Reweighting") -> tuple[ShareCorrection, ...]:
    """What corrects the bins of each observable of a model's kept events.

    Parameters
    ----------
    source : Reweighting
        The kept events, and their weights at any theta.

    Returns
    -------
    tuple of ShareCorrection
        One for each observable.
    """
    model, unit = source.model, source.model.grid.unit
    effective = np.array(model.summary.effective)
    drawn = _drawn(source.kept, np.array([source.at(t) for t in unit]), effective)
    bins = int(np.clip(MAX_SHARES // len(unit), LEAST_BINS, MAX_BINS))
    found = []
    for column, one in zip(source.x.T, model.summary.distributions, strict=True):
        edges, seen = coarser(one, bins)
        found.append(ShareCorrection(bin_numbers(column, edges), seen, drawn, unit))
    return tuple(found)


def _drawn(kept: "SimulatedEvents", weights: Array, effective: Array) -> Drawn:
    """The kept events beside all events of the templates."""
    count, template = len(weights), kept.template
    number = np.bincount(template, minlength=count)
    squares = np.bincount(template, kept.weights**2, count)
    # Of n events with weights v of mean 1, n / mean v^2 are effective.
    mean_square = np.where(number > 0, squares / np.maximum(number, 1), 1.0)
    everything = np.maximum(effective * mean_square, number).clip(min=1)
    own = np.zeros_like(weights)
    own[template, np.arange(len(template))] = kept.weights / everything[template]
    return Drawn(weights, own, mean_square / everything * (1 - number / everything))


def coarser(distribution: Distribution, bins: int) -> tuple[Array, Array]:
    """Edges of at most some bins of about equal content, and the shares (templates, bins) in them.

    Examples
    --------
    >>> one = Distribution("x", [0, 1, 2, 3, 4], [[0.1, 0.2, 0.3, 0.4], [0.3, 0.3, 0.2, 0.2]])
    >>> edges, shares = coarser(one, 2)
    >>> edges.tolist(), shares.round(6).tolist()
    ([0.0, 3.0, 4.0], [[0.6, 0.4], [0.8, 0.2]])
    """
    shares, edges = np.array(distribution.shares), np.array(distribution.edges, float)
    upper = np.cumsum(shares.mean(axis=0))
    # The bin that reaches each share of the whole ends there.
    wanted = upper[-1] * np.arange(1, bins + 1) / bins
    ends = np.unique(np.searchsorted(upper, wanted * (1 - 1e-9)).clip(max=len(upper) - 1) + 1)
    ends[-1] = len(upper)
    starts = np.concatenate([[0], ends[:-1]])
    return edges[np.append(starts, ends[-1])], np.add.reduceat(shares, starts, axis=1)


def bin_numbers(x: Array, edges: Array) -> NDArray[np.int64]:
    """The bin of each value; of those outside of all bins, the number after the last.

    Examples
    --------
    >>> bin_numbers(np.array([-1.0, 0.0, 1.5, 2.0, 2.1]), np.array([0.0, 1.0, 2.0])).tolist()
    [2, 0, 1, 1, 2]
    """
    count = len(edges) - 1
    found = np.searchsorted(edges, x, side="right") - 1
    found[x == edges[-1]] = count - 1  # the last bin has its upper edge
    return np.where((found < 0) | (found >= count), count, found)


def raked(weights: Array, corrected: Sequence[Corrected]) -> Array:
    """The weights times a factor for each bin of each observable in turn, which gives the bins of
    the last their shares, and those of the others nearly.

    Examples
    --------
    >>> one = Corrected(np.array([0, 0, 1]), np.array([0.5, 0.5]), np.zeros((2, 0)))
    >>> raked(np.full(3, 1 / 3), [one]).tolist()
    [0.25, 0.25, 0.5]
    """
    for where, shares, _ in corrected:
        content = np.bincount(where, weights, len(shares))
        use = (content > 0) & (shares > 0)
        factor = np.where(use, shares / np.where(use, content, 1.0), 1.0)
        weights = weights * factor[where]
    return np.asarray(weights / weights.sum())
