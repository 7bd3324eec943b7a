"""Intervals and contours by Wilks' theorem, in units of the range."""

import numpy as np
from scipy.special import gammaincinv

from gridless.curves import minimum
from gridless.curves.curve import Curve
from gridless.errors import InputError
from gridless.templates.arrays import Array, as_number

LEVEL = 0.682689492137086  # within one standard deviation of a normal distribution
_STEP = 0.35  # of the expected width: steps in which the end of an interval is looked for
_LARGEST_STEP = 0.05  # of the range


def check_level(level: float) -> float:
    """The level itself, if it is one."""
    number = as_number(level, "level")
    if not 0 < number < 1:
        raise InputError(f"level: {level}; give a number between 0 and 1, such as 0.95")
    return number


def chi2_quantile(level: float, dof: int) -> float:
    """What a chi-square with these degrees of freedom exceeds with probability 1 - level."""
    return float(2 * gammaincinv(dof / 2, level))


def interval(
    curve: Curve, best: Array, covariance: Array, p: int, level: float
) -> tuple[Array, Array]:
    """Ends of the interval of parameter p, and whether a bound cuts each.

    The profile has risen there by half the chi-square quantile, times the ratio of the variance in
    `covariance` to the inverse of the second derivatives, which is 1 for events without weights.
    """
    naive = np.diag(minimum.covariance(curve, best))
    stretch = 1.0
    if np.isfinite(naive).all():
        stretch = covariance[p, p] / naive[p]
    rise = 0.5 * chi2_quantile(level, 1) * stretch
    width = np.sqrt(2 * rise * naive[p]) if np.isfinite(naive[p]) else _LARGEST_STEP
    step = min(_STEP * width, _LARGEST_STEP)
    if not step > 0:  # a curve of which no number can tell the width
        step = _LARGEST_STEP
    profile = minimum.profile(curve, [p], best)
    top = curve.value(best) + rise
    found = [
        minimum.crossing(lambda t: profile(np.array([t])), float(best[p]), top, sign * step)
        for sign in (-1, 1)
    ]
    return np.array([end for end, _ in found]), np.array([cut for _, cut in found])


def widened(ends: Array, cut: Array, best: float, variance: float, level: float) -> Array:
    """Ends of an interval with the variance of further sources added in quadrature to each side.

    An end that a bound cuts stays there, and none goes beyond the bounds.
    """
    reach = np.sqrt(variance * chi2_quantile(level, 1))
    wider = best + np.hypot(ends - best, reach) * [-1, 1]
    return np.where(cut, ends, wider.clip(0, 1))


def contour(
    curve: Curve, best: Array, covariance: Array, axes: list[int], level: float, points: int
) -> Array:
    """Points (points, 2) where the profile of two parameters has risen by half the chi-square
    quantile of two degrees of freedom, found along rays from the minimum."""
    shape = covariance[np.ix_(axes, axes)]
    if not np.isfinite(shape).all():
        raise InputError("contour: the likelihood has no minimum inside the bounds")
    naive = minimum.covariance(curve, best)[np.ix_(axes, axes)]
    stretch = np.sqrt(np.linalg.det(shape) / np.linalg.det(naive))
    top = curve.value(best) + 0.5 * chi2_quantile(level, 2) * stretch
    directions = np.linalg.cholesky(shape)
    found = []
    for angle in np.linspace(0, 2 * np.pi, points, endpoint=False):
        step = directions @ [np.cos(angle), np.sin(angle)]
        found.append(minimum.ray(curve, axes, best, step, top))
    return np.array(found)
