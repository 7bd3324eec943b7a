"""Minima, profiles and crossings of a function kept as Chebyshev coefficients on the unit box."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize

from gridless.likelihood import chebyshev
from gridless.templates.arrays import Array

# Points per parameter of the scan that finds the neighbourhood of the minimum.
_SCAN = {1: 2001, 2: 65, 3: 17}
_EDGE = 1e-9


def value(c: Array, t: Array) -> float:
    """The function at one point."""
    return float(chebyshev.evaluate(c, t))


def gradient(c: Array, t: Array) -> Array:
    """Its first derivatives at one point."""
    return np.array([value(chebyshev.derivative(c, a), t) for a in range(c.ndim)])


def hessian(c: Array, t: Array) -> Array:
    """Its matrix of second derivatives at one point."""
    slopes = [chebyshev.derivative(c, a) for a in range(c.ndim)]
    return np.array([gradient(slope, t) for slope in slopes])


def lowest(c: Array, start: Array | None = None) -> Array:
    """The point of the box where the function is least, or the minimum nearest to `start`."""
    if start is None:
        axis = np.linspace(0, 1, _SCAN[c.ndim])
        points = np.stack(np.meshgrid(*[axis] * c.ndim, indexing="ij"), axis=-1)
        scan = chebyshev.evaluate(c, points)
        start = points[np.unravel_index(scan.argmin(), scan.shape)]
        if c.ndim == 1:
            return _root_of_slope(c, float(start[0]), axis[1])
    slopes = [chebyshev.derivative(c, a) for a in range(c.ndim)]
    result = minimize(
        lambda t: value(c, t),
        start,
        jac=lambda t: np.array([value(slope, t) for slope in slopes]),
        bounds=[(0, 1)] * c.ndim,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    return _newton(c, np.asarray(result.x))


def _root_of_slope(c: Array, near: float, step: float) -> Array:
    """The minimum of one parameter: a bound, or a root of the slope."""
    slope = chebyshev.derivative(c)
    left, right = max(near - step, 0.0), min(near + step, 1.0)
    ends = chebyshev.evaluate(slope, np.array([[left], [right]]))
    if ends[0] >= 0:
        return np.array([left])
    if ends[1] <= 0:
        return np.array([right])
    return np.array([brentq(lambda t: value(slope, np.array([t])), left, right, xtol=1e-14)])


def _newton(c: Array, t: Array) -> Array:
    """A few Newton steps in the parameters that are not at a bound, while they help."""
    for _ in range(3):
        free = (t > _EDGE) & (t < 1 - _EDGE)
        if not free.any():
            break
        matrix = hessian(c, t)[np.ix_(free, free)]
        if np.linalg.eigvalsh(matrix).min() <= 0:
            break
        new = t.copy()
        new[free] -= np.linalg.solve(matrix, gradient(c, t)[free])
        if (new < 0).any() or (new > 1).any() or value(c, new) > value(c, t):
            break
        t = new
    return t


def at_bound(t: Array) -> NDArray[np.bool_]:
    """Which of the coordinates lie on a bound."""
    return np.asarray((t < _EDGE) | (t > 1 - _EDGE))


def covariance(c: Array, t: Array) -> Array:
    """The inverse of the second derivatives at the minimum; NaN where they are not positive."""
    matrix = hessian(c, t)
    if np.linalg.eigvalsh(matrix).min() <= 0:
        return np.full_like(matrix, np.nan)
    return np.asarray(np.linalg.inv(matrix))


def profile(c: Array, axis: int, best: Array) -> Callable[[float], float]:
    """The function with the other parameters at their best, for each value of one of them."""
    if c.ndim == 1:
        return lambda t: value(c, np.array([t]))
    last = np.delete(best, axis)

    def lowest_others(t: float) -> float:
        nonlocal last
        rest = chebyshev.restrict(c, axis, t)
        last = lowest(rest, last)
        return value(rest, last)

    return lowest_others


def crossing(
    function: Callable[[float], float], start: float, level: float, step: float
) -> tuple[float, bool]:
    """Where a function, going from `start` in steps of `step`, first exceeds `level`.

    Gives the bound, and True, if it does not before it.
    """
    inner, bound = start, 1.0 if step > 0 else 0.0
    while inner != bound:
        outer = min(max(inner + step, 0.0), 1.0)
        if function(outer) > level:
            root = brentq(lambda t: function(t) - level, inner, outer, xtol=1e-13)
            return float(root), False
        inner = outer
    return bound, True


def ray(c: Array, axes: list[int], best: Array, step: Array, level: float) -> Array:
    """Where, from the minimum along `step` in two parameters, the profile first exceeds `level`."""
    origin = best[axes]
    # How far until one of the two parameters meets its bound.
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(step > 0, (1 - origin) / step, np.where(step < 0, -origin / step, np.inf))
    reach = float(limits.min())
    start = [np.delete(best, axes)]

    def along(share: float) -> float:
        t = origin + share * reach * step
        if c.ndim == 2:
            return value(c, t[np.argsort(axes)])
        rest = c
        for a in sorted(axes, reverse=True):
            rest = chebyshev.restrict(rest, a, float(t[axes.index(a)]))
        start[0] = lowest(rest, start[0])
        return value(rest, start[0])

    if reach == 0:
        return np.asarray(origin)
    share, _ = crossing(along, 0.0, level, min(1.0, 0.5 / reach))
    return np.asarray((origin + share * reach * step).clip(0, 1))
