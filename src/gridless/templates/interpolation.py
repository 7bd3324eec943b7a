"""The simulation between the templates: shares of events in bins as polynomials in theta."""

from itertools import combinations_with_replacement

import numpy as np

from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

MAX_DEGREE = 5  # of the polynomial in theta; beyond, it swings between templates
SMALLEST_SHARE = 1e-12  # of the events in a bin: keeps empty bins out of denominators


def interpolate(grid: Grid, shares: Array, theta: Array) -> tuple[Array, Array]:
    """Shares of events in bins at any theta, and their variances.

    Every bin is a polynomial in theta, fitted to all templates. Its degree, the same for all
    bins, is the one that best predicts each template from the others. The variance is that of
    the fit, as the templates scatter about it: it falls with the number of simulated events.

    Parameters
    ----------
    grid : Grid
        The values of the templates.
    shares : array (templates, bins)
        The share of each template's events in each bin.
    theta : array (parameters,)
        Where to interpolate.

    Returns
    -------
    shares, variances : tuple of array (bins,)

    Examples
    --------
    >>> grid = Grid(np.array([[0.0], [0.5], [1.0]]), np.array([[0.0, 1.0]]), ("theta",))
    >>> interpolate(grid, np.array([[0.2], [0.3], [0.4]]), np.array([0.25]))[0].round(6)
    array([0.25])
    """
    scale = shares.mean(axis=0).clip(min=SMALLEST_SHARE)
    best = None
    for degree in range(1, MAX_DEGREE + 1):
        terms = _terms(grid.unit, degree)
        spare = len(grid) - terms.shape[1]
        if spare < 0 or (spare == 0 and best is not None):
            break
        q, r = np.linalg.qr(terms)
        if _singular(r):
            break
        left = shares - q @ (q.T @ shares)
        # How far a template is from its prediction by the others alone.
        alone = np.maximum(1 - (q**2).sum(axis=1), 1e-9)
        error = float(((left / alone[:, None]) ** 2 / scale).sum()) if spare else np.inf
        if best is None or error < best[0]:
            scatter = float((left**2 / scale).mean(axis=1).sum()) / spare if spare else 0.0
            best = error, degree, q, r, scatter
    if best is None:  # templates on a line of a plane, or the like
        nearest = np.linalg.norm(grid.unit - grid.to_unit(theta), axis=1).argmin()
        return shares[nearest], np.zeros(shares.shape[1])
    _, degree, q, r, scatter = best
    row = np.linalg.solve(r.T, _terms(grid.to_unit(theta)[None], degree)[0])
    values = np.clip(row @ (q.T @ shares), 0, None)
    return values, scatter * scale * float(row @ row)


def _terms(unit: Array, degree: int) -> Array:
    """Products of Legendre polynomials of the parameters up to a degree in all (points, terms)."""
    count = unit.shape[1]
    one = np.polynomial.legendre.legvander(2 * unit - 1, degree)  # (points, parameters, degree + 1)
    columns = []
    for total in range(degree + 1):
        for chosen in combinations_with_replacement(range(count), total):
            powers = [chosen.count(axis) for axis in range(count)]
            columns.append(np.prod([one[:, a, p] for a, p in enumerate(powers)], axis=0))
    return np.stack(columns, axis=1)


def _singular(r: Array) -> bool:
    """Whether the templates do not determine all terms."""
    diagonal = np.abs(np.diag(r))
    return bool(diagonal.min() < 1e-9 * diagonal.max())
