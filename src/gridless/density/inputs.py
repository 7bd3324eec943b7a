"""How observables are standardised, so that a network sees edges, tails and counts."""

from typing import NamedTuple

import numpy as np

from gridless.templates.arrays import MARK_SHARE, Array

# Events that decide.
STANDARDISED_EVENTS = 100_000
# Quantiles of an observable: the middle 68 percent around the median, and the tails.
CORE = (0.1587, 0.5, 0.8413)
TAILS = (0.001, 0.999)
# An observable is bent in if 0.1 percent of its events lie farther from the median than so many
# times half the width of the middle 68 percent.
HEAVY_TAIL = 10
# Share of the events next to an end of the distribution where its logarithm becomes a straight
# line: it would be lost in rounding and in chance.
NEAR_END = 0.01
# Events that show which values are marks.
MARK_EVENTS = 10_000


class Standardisation(NamedTuple):
    """y = arc((x - centre) / scale) - shift of one observable, or of each in an array.

    arc(u) = asinh(b u) / b with the bend b > 0, and u itself for b = 0.
    """

    centre: Array | float
    scale: Array | float
    bend: Array | float
    shift: Array | float


def standardisation(x: Array) -> Standardisation:
    """How to standardise each observable.

    Usually by the mean and the standard deviation, without bend. Heavy tails (one event in a
    thousand is farther from the median than ten times half the width of the middle 68 percent) are
    bent in: around the median, or as a logarithm from 0 or from one end of the distribution,
    whichever leaves the shortest tails. A single value that many events have in common, such as the
    mark of a missing one, does not count.

    Parameters
    ----------
    x : array (events, observables)
        The templates' events.

    Returns
    -------
    Standardisation
        Arrays with a number for each observable.
    """
    sample = x[:: max(1, len(x) // STANDARDISED_EVENTS)]
    found = []
    for column, mean, spread in zip(sample.T, x.mean(axis=0), x.std(axis=0), strict=True):
        plain = Standardisation(mean, spread if spread > 0 else 1.0, 0.0, 0.0)
        found.append(_bent(column) or plain)
    return Standardisation(*np.array(found, float).T)


def _bent(column: Array) -> Standardisation | None:
    """The bend that leaves the shortest tails; None where they are not heavy."""
    values = _without_mark(column)
    low, median, high = np.quantile(values, CORE)
    half = 0.5 * (high - low)
    if not np.quantile(np.abs(column - median), TAILS[1]) > HEAVY_TAIL * half > 0:
        return None
    least, most = values.min(), values.max()
    ends = [least, most] if least <= 0 <= most else [0.0, least, most]
    bends = [Standardisation(median, half, 1.0, 0.0)]
    bends += [one for end in ends if (one := _logarithm(values, end))]
    return min(bends, key=lambda one: _tail(values, one))


def _logarithm(values: Array, end: float) -> Standardisation | None:
    """asinh((x - end) / unit), a logarithm beyond the unit, in units of its own middle."""
    away = np.abs(values - end)
    unit = np.quantile(away[away > 0], NEAR_END)
    low, median, high = np.quantile(np.arcsinh((values - end) / unit), CORE)
    width = 0.5 * (high - low)
    return Standardisation(end, unit * width, width, median / width) if width > 0 else None


def _tail(values: Array, by: Standardisation) -> float:
    """How far the tails reach, in units of the width of the middle."""
    y = np.arcsinh(by.bend * (values - by.centre) / by.scale)
    first, low, median, high, last = np.quantile(y, [TAILS[0], *CORE, TAILS[1]])
    return float(max(last - median, median - first) / (high - low)) if high > low else np.inf


def _without_mark(column: Array) -> Array:
    """The values but for the most frequent one, where many events have it and others do not."""
    some = column[:: max(1, len(column) // MARK_EVENTS)]
    values, counts = np.unique(some, return_counts=True)
    if counts.max() <= MARK_SHARE * len(some) or len(values) == 1:
        return column
    return np.asarray(column[column != values[counts.argmax()]])
