"""What a systematic does at other values of alpha than those that were simulated.

Up, nominal and down tell three values of the mean of a summary, through which there is one
parabola. An energy scale that moves a peak by its own width follows none. Of the same events it is
known where each is at any alpha: x(alpha) is the parabola through its three places, which for a
scale or a shift is exact. The mean of the summaries there, beyond the parabola of the three means,
is the course at alpha = -2, -1.5, -0.5, 0.5, 1.5 and 2, and a cubic spline in between.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from gridless.systematics.crossing import (
    LARGEST_RATIO,
    Summaries,
    differences,
    is_seen,
    of_sides,
    some_rows,
    weights_only,
)
from gridless.systematics.samples import ProcessSamples
from gridless.templates.arrays import MARK_SHARE, Array

NODES = (-2.0, -1.5, -0.5, 0.5, 1.5, 2.0)
SIMULATED = (-1.0, 0.0, 1.0)  # values of alpha at which nothing is beyond the parabola
LEAST = 1e-300  # of a total weight


class Course(NamedTuple):
    """What a systematic, by number, does beyond a parabola in alpha: at some points (numbers) the
    differences (nodes, points, d) and their variances (nodes, points, d)."""

    number: int
    points: NDArray[np.int64]
    differences: Array
    variances: Array

    @property
    def seen(self) -> bool:
        """Whether the differences are more than noise."""
        return is_seen(self.differences, self.variances)


def courses(sample: ProcessSamples, summaries: Summaries) -> list[Course]:
    """Every systematic that has two sides, made of the nominal events, and moves them.

    Parameters
    ----------
    sample : ProcessSamples
        A process with its variations.
    summaries : function of (x, key)
        The summaries (events, d) of events.

    Returns
    -------
    list of Course
    """
    which = [
        number
        for number in range(len(sample.varied))
        if knows_course(sample, number) and not weights_only(sample, number)
    ]
    if not which:
        return []
    nominal = sample.nominal
    rows = some_rows(nominal, len(which) * (len(NODES) + 3))
    x, key, w = nominal.x[rows], nominal.key[rows], nominal.weights[rows]
    common = [_common(column) for column in x.T]
    before = summaries(x, key)
    found = []
    for number in which:
        sides = of_sides(sample.varied[number], nominal, rows)
        (up, down), ratios = sides.x, sides.ratio
        # Of an event that jumps, as to the mark of a missing value, there is nothing in between.
        ok = sides.there & ~_jumps(common, x, up, down)
        linear, square = 0.5 * (up - down), 0.5 * (up + down) - x
        at_ends = [summaries(end, key) for end in (up, down)]
        known = []
        for alpha in NODES:
            there = np.zeros_like(before)
            there[ok] = summaries(x[ok] + alpha * linear[ok] + alpha**2 * square[ok], key[ok])
            of_up, of_down = 0.5 * alpha * (alpha + 1), 0.5 * alpha * (alpha - 1)
            weight = 1 + of_up * (ratios[0] - 1) + of_down * (ratios[1] - 1)
            terms = (
                (1.0, there, w * weight.clip(1 / LARGEST_RATIO, LARGEST_RATIO)),
                (-of_up, at_ends[0], w * ratios[0]),
                (-of_down, at_ends[1], w * ratios[1]),
                (of_up + of_down - 1, before, w),
            )
            known.append(differences(nominal.point[rows], ok, terms))
        points = known[0][0]
        if len(points):
            # Of the others the parabola is right.
            point = nominal.point[rows]
            share = (np.bincount(point, w * ok) / np.bincount(point, w).clip(min=LEAST))[points]
            by, squares = (np.array([one[part] for one in known]) for part in (1, 2))
            share = share[:, None]
            found.append(Course(number, points, share * by, share**2 * squares))
    return found


def knows_course(sample: ProcessSamples, number: int) -> bool:
    """Whether it is known what a systematic does between its variations: of weights, which are
    mixtures, and of the same events with two sides."""
    varied = sample.varied[number]
    return weights_only(sample, number) or (varied.same and len(varied.sides) > 1)


def splines(alpha: Array) -> tuple[Array, Array, Array]:
    """The functions of alpha (..., nodes) that are 1 at one of `NODES` and 0 at the others and at
    -1, 0 and 1, with their first and second derivatives; straight lines beyond the last nodes.

    Examples
    --------
    >>> splines(np.array([0.5, 1.0, 1.5]))[0].round(6).argmax(axis=-1)
    array([3, 0, 4])
    """
    held = np.clip(alpha, NODES[0], NODES[-1])
    value, slope = _SPLINE(held), _SLOPE(held)
    beyond = (alpha - held)[..., None]
    return value + beyond * slope, slope, np.where(beyond == 0, _CURVATURE(held), 0.0)


def _cardinal() -> CubicSpline:
    every = np.sort([*NODES, *SIMULATED])
    return CubicSpline(every, np.eye(len(every))[:, np.isin(every, NODES)])


_SPLINE: Callable[[Array], Array] = _cardinal()
_SLOPE: Callable[[Array], Array] = _cardinal().derivative(1)
_CURVATURE: Callable[[Array], Array] = _cardinal().derivative(2)


def _common(column: Array) -> Array:
    """The values that many events have in common: marks, edges and counts."""
    values, counts = np.unique(column, return_counts=True)
    return np.asarray(values[counts > MARK_SHARE * len(column)])


def _jumps(common: list[Array], x: Array, up: Array, down: Array) -> NDArray[np.bool_]:
    """Which events (events,) have a common value of an observable on one side and not on all."""
    jumps = np.zeros(len(x), bool)
    for j, values in enumerate(common):
        if len(values):
            places = np.stack([x[:, j], up[:, j], down[:, j]])
            moved = (places != places[0]).any(axis=0)
            jumps |= moved & np.isin(places, values).any(axis=0)
    return jumps
