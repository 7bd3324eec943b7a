"""The minimum of a smooth function of many parameters, some of which have bounds."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gridless.templates.arrays import Array

Slopes = Callable[[Array], tuple[float, Array, Array]]
MOST_STEPS = 100
SMALL_GAIN = 1e-8  # units of log likelihood that a step promises: nothing is left to gain
LARGEST_DAMPING = 1e8  # relative to the second derivatives


def minimise(
    function: Slopes, start: Array, low: Array, high: Array, free: NDArray[np.bool_]
) -> Array:
    """The minimum near `start`, by damped Newton steps in the free parameters.

    Parameters
    ----------
    function : function of a point
        Its value, gradient and second derivatives, which may be approximate.
    start, low, high : array
        Where to begin, and the bounds.
    free : array of bool
        Which parameters may move.

    Returns
    -------
    array
    """
    p = start.clip(low, high)
    value, gradient, hessian = function(p)
    damping = 0.0
    for _ in range(MOST_STEPS):
        moves = free & ~((p <= low) & (gradient > 0)) & ~((p >= high) & (gradient < 0))
        if not moves.any():
            break
        step, promised = _step(gradient, hessian, moves, damping)
        if promised < SMALL_GAIN:
            break
        new = (p + step).clip(low, high)
        found = function(new)
        if found[0] <= value:
            p, (value, gradient, hessian) = new, found
            damping = damping / 10 if damping > 1e-6 else 0.0
        else:
            damping = max(10 * damping, 1e-3)
            if damping > LARGEST_DAMPING:
                break
    return p


def _step(
    gradient: Array, hessian: Array, moves: NDArray[np.bool_], damping: float
) -> tuple[Array, float]:
    """A step in the moving parameters, and what it should gain."""
    own, slope = hessian[np.ix_(moves, moves)], gradient[moves]
    size = np.sqrt(np.abs(np.diag(own)).clip(min=1e-300))
    scaled = own / np.outer(size, size)
    values, vectors = np.linalg.eigh(scaled)
    # Where the function is not convex, go along as if it were.
    values = np.maximum(np.abs(values), 1e-10) + damping
    along = vectors.T @ (slope / size)
    step = np.zeros(len(gradient))
    step[moves] = -(vectors @ (along / values)) / size
    return step, float(0.5 * along @ (along / values))


def inverse_on(hessian: Array, moves: NDArray[np.bool_]) -> Array | None:
    """The inverse in the moving parameters, 0 elsewhere; None where it is not positive."""
    own = hessian[np.ix_(moves, moves)]
    size = np.sqrt(np.diag(own).clip(min=0))
    if not moves.any() or (size <= 0).any():
        return None
    scaled = own / np.outer(size, size)
    values, vectors = np.linalg.eigh(scaled)
    if values.min() <= 1e-12:
        return None
    result = np.zeros_like(hessian)
    # Of these values, so that no rounding makes a variance negative.
    result[np.ix_(moves, moves)] = (vectors / values) @ vectors.T / np.outer(size, size)
    return result
