"""What two systematics do together, from events that have both.

Variations of the same events can be put on top of each other: event x, which one systematic moves
by d_k and another by d_l, is at x + d_k + d_l with both; weights multiply. Summaries of such events
give the mixed second derivative of mu in both. Independent samples cannot tell it, nor can two sets
of weights: their product is one guess, which was worse than none for changes that move events.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridless.systematics.samples import Events, ProcessSamples, Varied
from gridless.templates.arrays import LEAST_WORTH, Array, worth

EVALUATIONS = 2_000_000  # events that are evaluated for all pairs together
MOST_EVENTS = 20_000  # that are evaluated for one pair
LEAST_EVENTS = 1_000
LARGEST_RATIO = 10.0  # of weights: rare events shall not decide

Summaries = Callable[[Array, NDArray[np.int64]], Array]


class _Moved(NamedTuple):
    """Where a systematic puts nominal events, the ratio of their weights, and which have it."""

    by: Array
    ratio: Array
    there: NDArray[np.bool_]


def crossed_shifts(sample: ProcessSamples, summaries: Summaries, size: int) -> Array:
    """X (systematics, systematics, d), what is added in alpha_k alpha_l.

    Parameters
    ----------
    sample : ProcessSamples
        A process with its variations.
    summaries : function of (x, key)
        The raw summaries (events, d) of events.
    size : int
        d.
    """
    count = len(sample.varied)
    found = np.zeros((count, count, size))
    pairs = [
        (first, second)
        for first in range(count)
        for second in range(first)
        if sample.varied[first].same
        and sample.varied[second].same
        and not (_weights_only(sample, first) and _weights_only(sample, second))
    ]
    if not pairs:
        return found
    nominal = sample.nominal
    events = int(np.clip(EVALUATIONS // (len(pairs) + count), LEAST_EVENTS, MOST_EVENTS))
    rows = np.unique(np.linspace(0, len(nominal.x) - 1, events).astype(np.int64))
    x, key, w = nominal.x[rows], nominal.key[rows], nominal.weights[rows]
    moved = {k: _moved(sample.varied[k], nominal, rows) for k in {k for p in pairs for k in p}}
    alone = {k: summaries(x + one.by, key) for k, one in moved.items()}
    before = summaries(x, key)
    for first, second in pairs:
        one, other = moved[first], moved[second]
        ok = one.there & other.there
        # Few events, or weights that cancel, know no means.
        if worth(w[ok].sum(), w[ok] @ w[ok]) < LEAST_WORTH:
            continue
        both = summaries(x[ok] + one.by[ok] + other.by[ok], key[ok])
        means = [
            _mean(both, w[ok] * one.ratio[ok] * other.ratio[ok]),
            _mean(alone[first][ok], w[ok] * one.ratio[ok]),
            _mean(alone[second][ok], w[ok] * other.ratio[ok]),
            _mean(before[ok], w[ok]),
        ]
        found[first, second] = found[second, first] = means[0] - means[1] - means[2] + means[3]
    return found


def _weights_only(sample: ProcessSamples, number: int) -> bool:
    """Whether a variation leaves the events where they are."""
    return all(side.x is sample.nominal.x for side in sample.varied[number].sides)


def _moved(varied: Varied, nominal: Events, rows: NDArray[np.int64]) -> _Moved:
    x, w = nominal.x[rows], nominal.weights[rows]
    there = np.ones(len(rows), bool)
    ends, ratios = [], []
    for side in varied.sides:
        row_of = np.full(len(nominal.key), -1)
        shared = np.flatnonzero(side.key < len(nominal.key))
        row_of[side.key[shared]] = shared
        place = row_of[rows]
        there &= place >= 0
        ends.append(side.x[place.clip(min=0)])
        ratios.append(side.weights[place.clip(min=0)] / np.where(w == 0, 1.0, w))
    if len(ends) == 1:
        ends.append(x)
        ratios.append(np.ones(len(rows)))
        half = 1.0
    else:
        half = 0.5
    ratio = (1 + half * (ratios[0] - ratios[1])).clip(1 / LARGEST_RATIO, LARGEST_RATIO)
    return _Moved(half * (ends[0] - ends[1]), ratio, there)


def _mean(y: Array, w: Array) -> Array:
    return np.asarray(w @ y / w.sum())
