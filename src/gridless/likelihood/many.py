"""Minima and intervals of many curves of one parameter at once, for pseudo-experiments."""

import numpy as np
from numpy.polynomial import chebyshev as series

from gridless.likelihood import chebyshev
from gridless.templates.arrays import Array

# Points at which minima are looked for; steps of Newton's method and halvings of an interval.
_POINTS, _NEWTON, _HALVINGS = 257, 8, 45


def estimates(curves: Array, rise: float) -> tuple[Array, Array]:
    """Of each row of Chebyshev coefficients the t of its minimum, and the ends (rows, 2) of the
    interval around it where the curve has risen by `rise`, cut at 0 and 1."""
    size = curves.shape[1]
    points = np.linspace(0, 1, _POINTS)
    values = curves @ series.chebvander(2 * points - 1, size - 1).T
    lowest = values.argmin(axis=1)
    best = _refine(curves, points[lowest], 1 / (_POINTS - 1))
    level = _at(curves, best) + rise
    ends = [_crossing(curves, values, points, best, level, side) for side in (-1, 1)]
    return best, np.stack(ends, axis=1)


def _at(curves: Array, t: Array) -> Array:
    """Each curve at its own t."""
    terms = series.chebvander(2 * t - 1, curves.shape[1] - 1)
    return np.asarray(np.einsum("rk,rk->r", terms, curves))


def _refine(curves: Array, start: Array, step: float) -> Array:
    """Newton's method for the minimum within a step of `start`; at a bound, the bound."""
    slope = chebyshev.derivative(curves, axis=1)
    bend = chebyshev.derivative(slope, axis=1)
    low, high = (start - step).clip(0, 1), (start + step).clip(0, 1)
    t = start.clip(1e-12, 1 - 1e-12)
    for _ in range(_NEWTON):
        curvature = _at(bend, t)
        move = _at(slope, t) / np.where(curvature > 0, curvature, np.inf)
        t = (t - move).clip(low, high)
    return t


def _crossing(
    curves: Array, values: Array, points: Array, best: Array, level: Array, side: int
) -> Array:
    """Where a curve first rises above its level on one side of its minimum; the bound, if nowhere.

    Found on the points first, then by halving.
    """
    beyond = (side * (points - best[:, None]) > 0) & (values > level[:, None])
    order = slice(None, None, side)
    first = beyond[:, order].argmax(axis=1)
    index = first if side > 0 else len(points) - 1 - first
    outer = np.where(beyond.any(axis=1), points[index], 0.5 + 0.5 * side)
    inner = np.clip(outer - side / (len(points) - 1), 0, 1)
    inner = np.where(side * (inner - best) > 0, inner, best)
    # Where the curve stays below to the bound, halving ends at the bound.
    for _ in range(_HALVINGS):
        middle = 0.5 * (inner + outer)
        above = _at(curves, middle) > level
        inner, outer = np.where(above, inner, middle), np.where(above, middle, outer)
    return outer
