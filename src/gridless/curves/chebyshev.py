"""Smooth functions of theta as short vectors: values at Chebyshev points of the unit box.

A function of P parameters is an array of P axes of coefficients, c[k, l, ...] of
T_k(2 t_1 - 1) T_l(2 t_2 - 1) ...; points are rows of P coordinates.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import chebyshev
from scipy.fft import dct

from gridless.templates.arrays import Array

# Points per parameter to choose from, for 1, 2 and 3 parameters.
SIZES = {1: (17, 33, 65, 129, 257, 513, 1025), 2: (9, 17, 33, 65, 129), 3: (5, 9, 17, 33)}

FEW_POINTS = 64  # up to here cosines are faster than NumPy's recursion, which loops over the degree


def points(size: int) -> Array:
    """t_j = (1 - cos(pi j / (size - 1))) / 2, from 0 to 1, both included."""
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.arange(size) / (size - 1)))


def box_points(sizes: Sequence[int]) -> Array:
    """Every combination of `points` of each parameter, (product of sizes, parameters)."""
    axes = np.meshgrid(*(points(size) for size in sizes), indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=-1)


def coefficients(values: Array) -> Array:
    """Coefficients of the polynomial through `values`, one axis per parameter, at `points`."""
    c = np.asarray(values, float)
    for axis, size in enumerate(c.shape):
        c = dct(np.flip(c, axis), type=1, axis=axis) / (size - 1)
        ends = [slice(None)] * c.ndim
        ends[axis] = slice(0, size, size - 1)
        c[tuple(ends)] /= 2
    return np.asarray(c)


def evaluate(c: Array, t: Array) -> Array:
    """The polynomial at each of the points t (..., parameters)."""
    t = np.asarray(t, float)
    if c.ndim == 0:
        return np.full(t.shape[:-1], float(c))
    result: Array = c
    rows = t.reshape(-1, t.shape[-1])
    for p in range(rows.shape[1]):
        basis = _polynomials(rows[:, p], c.shape[p])
        # The first axis of coefficients is summed; later ones belong to each point on its own.
        sum_axis = "nk,k...->n..." if p == 0 else "nk,nk...->n..."
        result = np.asarray(np.einsum(sum_axis, basis, result), float)
    return result.reshape(t.shape[:-1])


def _polynomials(t: Array, size: int) -> Array:
    """T_k(2 t - 1) for k < size at points (points,): (points, size)."""
    x = 2 * t - 1
    if len(x) > FEW_POINTS or np.abs(x).max(initial=0) > 1:
        return np.asarray(chebyshev.chebvander(x, size - 1))
    return np.asarray(np.cos(np.arccos(x)[:, None] * np.arange(size)))


def restrict(c: Array, axis: int, t: float) -> Array:
    """Coefficients in the other parameters with the parameter of `axis` held at t."""
    terms = _polynomials(np.array([t]), c.shape[axis])[0]
    return np.asarray(np.tensordot(terms, c, axes=(0, axis)))


def part(c: Array, axis: int, low: float, high: float) -> Array:
    """Coefficients of the same polynomial on low <= t <= high of one parameter, as a new 0 to 1."""
    size = c.shape[axis]
    if size == 1:
        return c
    t = points(size)
    there = chebyshev.chebvander(2 * (low + (high - low) * t) - 1, size - 1)
    matrix = np.linalg.solve(chebyshev.chebvander(2 * t - 1, size - 1), there)
    return np.moveaxis(np.tensordot(matrix, c, (1, axis)), 0, axis)


def derivative(c: Array, axis: int = 0) -> Array:
    """Coefficients of the derivative with respect to the coordinate of `axis`."""
    return np.asarray(2 * chebyshev.chebder(c, axis=axis))


def tail(c: Array, axis: int = 0) -> float:
    """The largest of the last eighth of the coefficients: what more points would still change."""
    last = max(2, c.shape[axis] // 8)
    return float(np.abs(np.moveaxis(c, axis, 0)[-last:]).max())


def add(a: Array, b: Array) -> Array:
    """Coefficients of the sum of two polynomials."""
    shape = np.maximum(a.shape, b.shape)
    total = np.zeros(shape)
    for c in (a, b):
        total[tuple(slice(size) for size in c.shape)] += c
    return total


def approximate(
    function: Callable[[Array], Array],
    tolerance: float,
    parameters: int = 1,
    least: Sequence[int] | None = None,
) -> Array:
    """Coefficients of `function` of points (n, parameters) on as few points, `least` or more, as
    bring the tail in every parameter below `tolerance`; on the most we allow where none does."""
    allowed = SIZES[parameters]
    sizes = [allowed[0]] * parameters if least is None else list(least)
    while True:
        c = coefficients(function(box_points(sizes)).reshape(sizes))
        coarse = [
            p for p in range(parameters) if tail(c, p) >= tolerance and sizes[p] < allowed[-1]
        ]
        if not coarse:
            return c
        for p in coarse:
            sizes[p] = next(size for size in allowed if size > sizes[p])


def differentiation(size: int) -> Array:
    """The matrix that takes values at `points(size)` to the derivative at the same points."""
    columns = [derivative(coefficients(unit)) for unit in np.eye(size)]
    return np.stack([evaluate(c, points(size)[:, None]) for c in columns], axis=1)
