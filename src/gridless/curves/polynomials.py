"""Polynomials of several parameters, of a total degree, as products of Chebyshev polynomials."""

from functools import cache, lru_cache
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from gridless.templates.arrays import Array

Powers = NDArray[np.int64]  # (terms, parameters)


def powers_up_to(degree: int, parameters: int) -> Powers:
    """The exponents (terms, parameters) of every term of total degree 0 to `degree`.

    Examples
    --------
    >>> powers_up_to(1, 2).tolist()
    [[0, 0], [0, 1], [1, 0]]
    """
    every = product(range(degree + 1), repeat=parameters)
    return np.array(sorted((p for p in every if sum(p) <= degree), key=sum), np.int64)


def terms(t: Array, powers: Powers) -> Array:
    """T_k(2 t_1 - 1) T_l(2 t_2 - 1) ... at points t (points, parameters): (points, terms)."""
    return _products([_table(t[:, p], powers) for p in range(t.shape[1])], powers)


def slopes(t: Array, powers: Powers) -> Array:
    """The derivatives of `terms` by each parameter: (points, parameters, terms)."""
    tables = [_table(t[:, p], powers) for p in range(t.shape[1])]
    found = []
    for p in range(t.shape[1]):
        derived = _derived(tables[p].shape[1])
        of_axis = tables[p][:, : len(derived)] @ derived
        found.append(_products([*tables[:p], of_axis, *tables[p + 1 :]], powers))
    return np.stack(found, axis=1)


def as_tensor(c: Array, powers: Powers) -> Array:
    """Coefficients (terms, ...) with an axis for each parameter instead of the first."""
    shape = (*(powers.max(axis=0) + 1), *c.shape[1:])
    tensor = np.zeros(shape)
    tensor[tuple(powers.T)] = c
    return tensor


@cache
def _derived(size: int) -> Array:
    """d/dt T_k(2 t - 1), as a sum of Chebyshev polynomials again: (size - 1, size)."""
    return np.asarray(2 * chebyshev.chebder(np.eye(size)) if size > 1 else np.zeros((1, 1)))


def _table(t: Array, powers: Powers) -> Array:
    degree = int(powers.max())
    return _row(float(t[0]), degree) if len(t) == 1 else _rows(t, degree)


@lru_cache(maxsize=1024)
def _row(t: float, degree: int) -> Array:
    """Of one point, at which a fit asks for terms and slopes of several polynomials."""
    row = _rows(np.array([t]), degree)
    row.flags.writeable = False
    return row


def _rows(t: Array, degree: int) -> Array:
    return np.asarray(chebyshev.chebvander(2 * t - 1, degree), np.float64)


def _products(tables: list[Array], powers: Powers) -> Array:
    result = np.ones((len(tables[0]), len(powers)))
    for p, table in enumerate(tables):
        result = result * table[:, powers[:, p]]
    return result
