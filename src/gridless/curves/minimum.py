"""Minima, profiles and crossings of curves on the unit box."""

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev as series
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter
from scipy.optimize import brentq, minimize

from gridless.curves import chebyshev
from gridless.curves.curve import Curve
from gridless.templates.arrays import Array

# Points per parameter of the scan that finds the neighbourhood of the minimum.
_SCAN = {1: 2001, 2: 65, 3: 17}
# Of minus twice a log likelihood: a minimum that is so much less likely than another is none.
FAR_MINIMUM = 20.0
MOST_MINIMA = 16  # that are compared
BARRIER = 0.5  # units of log likelihood between two minima
_BARRIER_POINTS = 65  # on the way from one to the other
_EDGE = 1e-9  # of the range: closer to a bound than this is on it
_EQUAL_STEPS = 1000  # on the way to a crossing, before they grow: three are usual
_MOST_STEPS = 2000  # on that way, whatever the curve
# Of many curves at once:
_GRID_POINTS = 257  # points at which minima are looked for
_NEWTON_STEPS = 8  # steps of Newton's method from there
_HALVINGS = 45  # of the interval that holds a crossing: 257 points halved to 1e-16

# What tells minima apart: of points (points, parameters) minus twice a log likelihood.
Distances = Callable[[Array], Array]


def lowest(curve: Curve, start: Array | None = None, distance: Distances | None = None) -> Array:
    """The point of the box where the curve is least, or the minimum nearest to `start`.

    Of several minima, those are left out that have a `distance` (points,) by far larger than
    another's.
    """
    if start is not None:
        return _descend(curve, start)
    return minima(curve, distance)[0]


def minima(curve: Curve, distance: Distances | None = None) -> list[Array]:
    """The minima of the curve, the least first; without a `distance` the least alone.

    Those are left out whose distance is by far larger than another's.
    """
    if curve.parameters > max(_SCAN):
        return [min((_descend(curve, point) for point in _starts(curve)), key=curve.value)]
    axis = np.linspace(0, 1, _SCAN[curve.parameters])
    points = np.stack(np.meshgrid(*[axis] * curve.parameters, indexing="ij"), axis=-1)
    starts = _low_points(curve(points), points)
    found = [
        _root_of_slope(curve, float(one[0]), axis[1])
        if curve.parameters == 1
        else _descend(curve, one)
        for one in (starts if distance else starts[:1])
    ]
    if distance and len(found) > 1:
        far = distance(np.array(found))
        if np.isfinite(far).all():
            found = [one for one, d in zip(found, far, strict=True) if d <= far.min() + FAR_MINIMUM]
    return sorted(found, key=curve.value)


def rivals(
    curve: Curve, found: list[Array], distance: Distances, rise: float
) -> list[tuple[Array, float]]:
    """The minima that are at most `rise` less likely than the first one, with by how much.

    Between the two the curve must rise by a standard deviation: others are ripples. How likely they
    are is taken from their distances, which know the statistics of the simulation.
    """
    best, kept = found[0], []
    heights = 0.5 * distance(np.array(found))
    if not np.isfinite(heights).all():
        heights = curve(np.array(found))
    for one, height in zip(found[1:], heights[1:] - heights[0], strict=True):
        between = curve(best + np.linspace(0, 1, _BARRIER_POINTS)[:, None] * (one - best))
        if height <= rise and between.max() > curve.value(one) + BARRIER:
            kept.append((one, max(float(height), 0.0)))
    return kept


def _low_points(scan: Array, points: Array) -> Array:
    """The points (n, parameters) that are no higher than their neighbours, lowest first."""
    low = scan == minimum_filter(scan, size=3, mode="nearest")
    low[np.unravel_index(scan.argmin(), scan.shape)] = True
    order = np.argsort(scan[low], kind="stable")
    return np.asarray(points[low][order[:MOST_MINIMA]])


def _starts(curve: Curve) -> list[Array]:
    """Where to start with too many parameters for a scan: the centre of the box, the minimum of
    each series with the other parameters at the centre, and all of those minima together."""
    centre = np.full(curve.parameters, 0.5)
    starts, together, precision = [centre], np.zeros_like(centre), np.zeros_like(centre)
    for axes, c in curve.series:
        alone = Curve.of(c)
        best, places = lowest(alone), list(axes)
        point = centre.copy()
        point[places] = best
        starts.append(point)
        weight = np.diag(alone.hessian(best)).clip(min=1e-12)
        together[places] += weight * best
        precision[places] += weight
    known = precision > 0
    starts.append(np.where(known, together / np.where(known, precision, 1), centre))
    return starts


def _descend(curve: Curve, start: Array) -> Array:
    """The minimum nearest to `start`."""
    result = minimize(
        curve.value,
        start,
        jac=curve.gradient,
        bounds=[(0, 1)] * curve.parameters,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    return _newton(curve, np.asarray(result.x))


def _root_of_slope(curve: Curve, near: float, step: float) -> Array:
    """The minimum of one parameter: a bound, or a root of the slope."""
    (slope,) = curve.slopes
    left, right = max(near - step, 0.0), min(near + step, 1.0)
    ends = slope(np.array([[left], [right]]))
    if ends[0] >= 0:
        return np.array([left])
    if ends[1] <= 0:
        return np.array([right])
    return np.array([brentq(lambda t: slope.value(np.array([t])), left, right, xtol=1e-14)])


def _newton(curve: Curve, t: Array) -> Array:
    """A few Newton steps in the parameters that are not at a bound, while they help."""
    for _ in range(3):
        free = ~at_bound(t)
        if not free.any():
            break
        matrix = curve.hessian(t)[np.ix_(free, free)]
        if np.linalg.eigvalsh(matrix).min() <= 0:
            break
        new = t.copy()
        new[free] -= np.linalg.solve(matrix, curve.gradient(t)[free])
        if (new < 0).any() or (new > 1).any() or curve.value(new) > curve.value(t):
            break
        t = new
    return t


def at_bound(t: Array) -> NDArray[np.bool_]:
    """Which of the coordinates lie on a bound."""
    return np.asarray((t < _EDGE) | (t > 1 - _EDGE))


def covariance(curve: Curve, t: Array) -> Array:
    """The inverse of the second derivatives at the minimum; NaN where they are not positive."""
    matrix = curve.hessian(t)
    if np.linalg.eigvalsh(matrix).min() <= 0:
        return np.full_like(matrix, np.nan)
    return np.asarray(np.linalg.inv(matrix))


def response(curve: Curve, t: Array) -> Array | None:
    """How far the minimum moves per slope added to the curve: the inverse of the second derivatives
    in the parameters that are not at a bound, 0 for the others. None without a minimum in them."""
    free = ~at_bound(t)
    matrix = curve.hessian(t)[np.ix_(free, free)]
    if not free.any() or np.linalg.eigvalsh(matrix).min() <= 0:
        return None
    inverse = np.zeros((len(t), len(t)))
    inverse[np.ix_(free, free)] = np.linalg.inv(matrix)
    return inverse


def profile(curve: Curve, axes: list[int], best: Array) -> Callable[[Array], float]:
    """The curve with the other parameters at their best, as a function of those of `axes`.

    Each call starts where the second derivatives at the minimum say that the others are, so that
    its result does not depend on calls before.
    """
    others = [a for a in range(curve.parameters) if a not in axes]
    if not others:
        order = np.argsort(axes)
        return lambda t: curve.value(t[order])
    matrix = curve.hessian(best)
    follow: Array = np.zeros((len(others), len(axes)))
    inner = matrix[np.ix_(others, others)]
    if np.linalg.eigvalsh(inner).min() > 0:
        follow = -np.asarray(np.linalg.solve(inner, matrix[np.ix_(others, axes)]), float)

    def lowest_others(t: Array) -> float:
        rest = curve
        for a in sorted(axes, reverse=True):
            rest = rest.restrict(a, float(t[axes.index(a)]))
        start = (best[others] + follow @ (t - best[axes])).clip(0, 1)
        return rest.value(lowest(rest, start))

    return lowest_others


def profile_points(curve: Curve, axis: int, best: Array) -> Callable[[float], Array]:
    """Where the curve is least, as a function of the parameter of `axis`: points of the box."""

    def point(t: float) -> Array:
        if curve.parameters == 1:
            return np.array([t])
        found = lowest(curve.restrict(axis, t), np.delete(best, axis))
        return np.insert(found, axis, t)

    return point


def crossing(
    function: Callable[[float], float], start: float, level: float, step: float
) -> tuple[float, bool]:
    """Where a function, going from `start` in steps of `step`, first exceeds `level`.

    Gives the bound, and True, if it does not before it.
    """
    inner, bound = start, 1.0 if step > 0 else 0.0
    for count in range(_MOST_STEPS):
        # Steps that lead nowhere grow, until the last one goes to the bound.
        stride = step * 2.0 ** max(0, count - _EQUAL_STEPS)
        last = count == _MOST_STEPS - 1
        outer = bound if last else min(max(inner + stride, 0.0), 1.0)
        if function(outer) > level:
            if function(inner) >= level:
                return inner, False  # a curve so steep that the rise is lost in rounding
            root = brentq(lambda t: function(t) - level, inner, outer, xtol=1e-13)
            return float(root), False
        inner = outer
        if inner == bound:
            break
    return bound, True


def ray(curve: Curve, axes: list[int], best: Array, step: Array, level: float) -> Array:
    """Where, from the minimum along `step` in two parameters, the profile first exceeds `level`."""
    origin = best[axes]
    # How far until one of the two parameters meets its bound.
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(step > 0, (1 - origin) / step, np.where(step < 0, -origin / step, np.inf))
    reach = float(limits.min())
    if reach == 0:
        return np.asarray(origin)
    function = profile(curve, axes, best)

    def along(share: float) -> float:
        return function(origin + share * reach * step)

    share, _ = crossing(along, 0.0, level, min(1.0, 0.5 / reach))
    return np.asarray((origin + share * reach * step).clip(0, 1))


def second_slopes(curves: Array, t: Array) -> Array:
    """The second derivative of each of many curves of one parameter at its own t."""
    return _at(chebyshev.derivative(chebyshev.derivative(curves, axis=1), axis=1), t)


def minima_of_curves(curves: Array, rise: float | Array) -> tuple[Array, Array]:
    """Minima and intervals of many curves of one parameter at once, for pseudo-experiments.

    Parameters
    ----------
    curves : array (rows, size)
        Chebyshev coefficients, one row per curve.
    rise : float, or array (rows,)
        By how much a curve has risen at the ends of its interval.

    Returns
    -------
    tuple of arrays (rows,) and (rows, 2)
        The t of each minimum, and the ends of the interval around it, cut at 0 and 1.
    """
    size = curves.shape[1]
    points = np.linspace(0, 1, _GRID_POINTS)
    values = curves @ series.chebvander(2 * points - 1, size - 1).T
    lowest = values.argmin(axis=1)
    best = _refine_each(curves, points[lowest], 1 / (_GRID_POINTS - 1))
    level = _at(curves, best) + rise
    ends = [_crossing_of_each(curves, values, points, best, level, side) for side in (-1, 1)]
    return best, np.stack(ends, axis=1)


def _at(curves: Array, t: Array) -> Array:
    """Each curve at its own t."""
    terms = series.chebvander(2 * t - 1, curves.shape[1] - 1)
    return np.asarray(np.einsum("rk,rk->r", terms, curves))


def _refine_each(curves: Array, start: Array, step: float) -> Array:
    """Newton's method for the minimum within a step of `start`; at a bound, the bound."""
    slope = chebyshev.derivative(curves, axis=1)
    bend = chebyshev.derivative(slope, axis=1)
    low, high = (start - step).clip(0, 1), (start + step).clip(0, 1)
    t = start.clip(1e-12, 1 - 1e-12)
    for _ in range(_NEWTON_STEPS):
        curvature = _at(bend, t)
        move = _at(slope, t) / np.where(curvature > 0, curvature, np.inf)
        t = (t - move).clip(low, high)
    return t


def _crossing_of_each(
    curves: Array, values: Array, points: Array, best: Array, level: Array, side: int
) -> Array:
    """Where a curve first rises above its level on one side of its minimum; the bound, if nowhere.

    It is found on the points first, then by halving.
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
