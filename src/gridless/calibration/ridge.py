"""Least squares of many polynomials at once, their coefficients with normal priors."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError
from gridless.templates.arrays import Array


class Ridge(NamedTuple):
    """Posteriors of coefficients, in units of the widths of their priors.

    Attributes
    ----------
    coefficients : array (..., terms)
        The most likely ones.
    curvature : array (..., terms, terms)
        The inverse of their covariance.
    log_evidence : array (...)
        How likely the prior makes what was seen, up to a constant: terms without a prior are
        integrated over.
    """

    coefficients: Array
    curvature: Array
    log_evidence: Array


def ridge(rows: Array, y: Array, variance: Array, free: NDArray[np.bool_] | None = None) -> Ridge:
    """The posteriors of the coefficients beta of y = rows @ beta + noise.

    Parameters
    ----------
    rows : array (..., points, terms)
        The terms at the points, in units of the widths of their priors.
    y, variance : array (..., points)
        What was seen, and its variance.
    free : array (terms,) of bool, optional
        Terms that have no prior.

    Returns
    -------
    Ridge

    Examples
    --------
    >>> rows = np.ones((4, 1))
    >>> found = ridge(rows, np.array([1.0, 2.0, 3.0, 2.0]), np.ones(4), np.array([True]))
    >>> found.coefficients.tolist(), found.curvature.tolist()
    ([2.0], [[4.0]])
    """
    terms = rows.shape[-1]
    across = np.swapaxes(rows, -1, -2)
    prior = np.ones(terms) if free is None else np.where(free, 0.0, 1.0)
    curvature = across @ (rows / variance[..., None]) + np.diag(prior)
    try:
        beta = np.linalg.solve(curvature, across @ (y / variance)[..., None])[..., 0]
    except np.linalg.LinAlgError as error:
        raise InputError(
            "fit: the templates differ by so much beside their statistics that rounding loses the "
            "curve through them; look for absurd values, weights that cancel, and samples of few "
            "events"
        ) from error
    left = y - (rows @ beta[..., None])[..., 0]
    log_evidence = -0.5 * (
        (left**2 / variance).sum(axis=-1)
        + (prior * beta**2).sum(axis=-1)
        + np.linalg.slogdet(curvature)[1]
    )
    return Ridge(beta, curvature, log_evidence)
