"""What two systematics do together, from events that have both.

Variations of the same events can be put on top of each other: event x, which one systematic moves
by d_k and another by d_l, is at x + d_k + d_l with both; weights multiply. Summaries of such events
give the mixed second derivative of mu in both, in every template. It must change with theta as it
does: where a scale looks like theta, a resolution changes both slopes of mu alike, and the two
would be told apart otherwise. Independent samples cannot tell it, nor can two sets of weights:
their product is one guess, which was worse than none for changes that move events.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridless.systematics.samples import Events, ProcessSamples, Varied
from gridless.templates.arrays import LEAST_WORTH, Array, worth

EVALUATIONS = 2_000_000  # events that are evaluated for all pairs together
MOST_EVENTS = 20_000  # that are evaluated for one pair
LEAST_EVENTS = 1_000
LARGEST_RATIO = 10.0  # of weights: rare events shall not decide
SEEN = 3.0  # standard deviations of a chi2 above which what two do together is seen
LEAST_VARIANCE = 1e-18  # of a difference, in squares of the spread of one event: rounding

Summaries = Callable[[Array, NDArray[np.int64]], Array]


class _Moved(NamedTuple):
    """Where a systematic puts nominal events, the ratio of their weights, and which have it."""

    by: Array
    ratio: Array
    there: NDArray[np.bool_]


class OfSides(NamedTuple):
    """Some nominal events as each side has them, the ratios of their weights there, and which are
    on all sides."""

    x: list[Array]
    ratio: list[Array]
    there: NDArray[np.bool_]


class Crossing(NamedTuple):
    """What two systematics, by number, do together beyond the sum of both, in alpha_k alpha_l: at
    some points (numbers) the differences (points, d) and their variances (points, d)."""

    pair: tuple[int, int]
    points: NDArray[np.int64]
    differences: Array
    variances: Array

    @property
    def seen(self) -> bool:
        """Whether the differences are more than noise."""
        return is_seen(self.differences, self.variances)


def is_seen(differences: Array, variances: Array) -> bool:
    """Whether differences are more than noise."""
    dof = differences.size
    chi2 = float((differences**2 / variances.clip(min=LEAST_VARIANCE)).sum())
    return chi2 > dof + SEEN * math.sqrt(2 * dof)


def crossings(sample: ProcessSamples, summaries: Summaries) -> list[Crossing]:
    """Every pair of systematics of which events are known that have both.

    Parameters
    ----------
    sample : ProcessSamples
        A process with its variations.
    summaries : function of (x, key)
        The summaries (events, d) of events.

    Returns
    -------
    list of Crossing
    """
    count = len(sample.varied)
    pairs = [
        (first, second)
        for first in range(count)
        for second in range(first)
        if sample.varied[first].same
        and sample.varied[second].same
        and not (weights_only(sample, first) and weights_only(sample, second))
    ]
    if not pairs:
        return []
    nominal = sample.nominal
    rows = some_rows(nominal, len(pairs) + count)
    x, key, w = nominal.x[rows], nominal.key[rows], nominal.weights[rows]
    point = nominal.point[rows]
    moved = {k: _moved(sample.varied[k], nominal, rows) for k in {k for p in pairs for k in p}}
    alone = {k: summaries(x + one.by, key) for k, one in moved.items()}
    before = summaries(x, key)
    found = []
    for first, second in pairs:
        one, other = moved[first], moved[second]
        ok = one.there & other.there
        both = np.zeros_like(before)
        both[ok] = summaries(x[ok] + one.by[ok] + other.by[ok], key[ok])
        terms = (
            (1.0, both, w * one.ratio * other.ratio),
            (-1.0, alone[first], w * one.ratio),
            (-1.0, alone[second], w * other.ratio),
            (1.0, before, w),
        )
        known = differences(point, ok, terms)
        if len(known[0]):
            found.append(Crossing((first, second), *known))
    return found


def some_rows(nominal: Events, times: int) -> NDArray[np.int64]:
    """The rows of events that are evaluated so many times, spread over all of them."""
    events = int(np.clip(EVALUATIONS // times, LEAST_EVENTS, MOST_EVENTS))
    return np.unique(np.linspace(0, len(nominal.x) - 1, events).astype(np.int64))


def differences(
    point: NDArray[np.int64], ok: NDArray[np.bool_], terms: Sequence[tuple[float, Array, Array]]
) -> tuple[NDArray[np.int64], Array, Array]:
    """Signed sums of means (sign, summaries, weights) over the same events at every point that has
    enough, and the variances of these sums."""
    points, differences, variances = [], [], []
    for number in np.unique(point[ok]):
        here = ok & (point == number)
        total = np.zeros(terms[0][1].shape[1])
        each = np.zeros((int(here.sum()), len(total)))
        for sign, y, weights in terms:
            w = weights[here]
            # Few events, or weights that cancel, know no means.
            if worth(w.sum(), w @ w) < LEAST_WORTH:
                break
            share = w / w.sum()
            mean = share @ y[here]
            total, each = total + sign * mean, each + sign * share[:, None] * (y[here] - mean)
        else:
            points.append(number)
            differences.append(total)
            variances.append((each**2).sum(axis=0))
    return np.array(points, np.int64), np.array(differences), np.array(variances)


def weights_only(sample: ProcessSamples, number: int) -> bool:
    """Whether a variation leaves the events where they are."""
    return all(side.x is sample.nominal.x for side in sample.varied[number].sides)


def of_sides(varied: Varied, nominal: Events, rows: NDArray[np.int64]) -> OfSides:
    """Some nominal events (rows) as each side of a systematic has them."""
    w = nominal.weights[rows]
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
    return OfSides(ends, ratios, there)


def _moved(varied: Varied, nominal: Events, rows: NDArray[np.int64]) -> _Moved:
    ends, ratios, there = of_sides(varied, nominal, rows)
    if len(ends) == 1:
        ends.append(nominal.x[rows])
        ratios.append(np.ones(len(rows)))
        half = 1.0
    else:
        half = 0.5
    ratio = (1 + half * (ratios[0] - ratios[1])).clip(1 / LARGEST_RATIO, LARGEST_RATIO)
    return _Moved(half * (ends[0] - ends[1]), ratio, there)
