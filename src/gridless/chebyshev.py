"""Smooth functions of theta as short vectors: values at Chebyshev points of the unit interval."""

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev
from scipy.fft import dct

from gridless.arrays import Array

SIZES = (17, 33, 65, 129, 257, 513, 1025)


def points(size: int) -> Array:
    """t_j = (1 - cos(pi j / (size - 1))) / 2, from 0 to 1, both included."""
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.arange(size) / (size - 1)))


def coefficients(values: Array) -> Array:
    """Coefficients of T_k(2t - 1) of the polynomial through `values` at `points(len(values))`."""
    size = len(values) - 1
    c = dct(values[::-1], type=1) / size
    c[0] /= 2
    c[-1] /= 2
    return np.asarray(c)


def evaluate(c: Array, t: Array | float) -> Array:
    """sum_k c_k T_k(2t - 1)."""
    return np.asarray(chebyshev.chebval(2 * np.asarray(t) - 1, c))


def derivative(c: Array) -> Array:
    """Coefficients of the derivative with respect to t."""
    return np.asarray(2 * chebyshev.chebder(c))


def tail(c: Array) -> float:
    """The largest of the last eighth of the coefficients: what more points would still change."""
    return float(np.abs(c[-max(2, len(c) // 8) :]).max())


def add(a: Array, b: Array) -> Array:
    """Coefficients of the sum of two polynomials."""
    return np.asarray(chebyshev.chebadd(a, b))


def approximate(
    function: Callable[[Array], Array], tolerance: float, least: int = SIZES[0]
) -> Array:
    """Coefficients of `function` on as few points, `least` or more, as bring the tail below
    `tolerance`; on the largest number of points where none does."""
    for size in SIZES:
        if size >= least:
            c = coefficients(function(points(size)))
            if tail(c) < tolerance:
                break
    return c


def differentiation(size: int) -> Array:
    """The matrix that takes values at `points(size)` to the derivative at the same points."""
    columns = [derivative(coefficients(unit)) for unit in np.eye(size)]
    return np.stack([evaluate(c, points(size)) for c in columns], axis=1)
