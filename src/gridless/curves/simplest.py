"""The simplest polynomial that describes values at the templates."""

import numpy as np
from scipy.special import chdtrc

from gridless.curves.polynomials import Powers, powers_up_to, terms
from gridless.errors import InputError
from gridless.templates.arrays import Array

GOOD_FIT = 0.01  # p-value of the chi2 at which no higher degree is needed
SINGULAR = 1e-9  # of the largest eigenvalue: directions of a covariance that do not vary


def simplest_polynomial(
    t: Array, values: Array, covariances: Array, max_degree: int
) -> tuple[Powers, Array]:
    """The terms of the lowest degree whose chi2 is good, and the matrix that gives coefficients.

    Higher degrees must lower the chi2 by more than the log of the number of values for each
    coefficient (the Bayesian information criterion): one template that fluctuates makes every chi2
    poor, and high degrees would follow noise.

    Parameters
    ----------
    t : array (templates, parameters)
        Where the templates are, in units of the range.
    values, covariances : array (templates, d), array (templates, d, d)
        What is described, and its covariances; those of a template without events are 0.
    max_degree : int
        The highest degree.

    Returns
    -------
    tuple of array (terms, parameters) and array (terms, templates)
        Powers; and the matrix, the same for every component, so that sums of components stay what
        they are.

    Examples
    --------
    >>> t = np.linspace(0, 1, 5)[:, None]
    >>> powers, matrix = simplest_polynomial(t, 3 * t, np.full((5, 1, 1), 0.01), 4)
    >>> powers.ravel().tolist(), (matrix @ (3 * t)).ravel().round(6).tolist()
    ([0, 1], [1.5, 1.5])
    """
    traces = np.trace(covariances, axis1=1, axis2=2)
    there = traces > 0
    weights = np.where(there, 1 / np.where(there, traces, 1.0), 0.0)
    root = np.sqrt(weights / weights.max())[:, None]
    inverses = np.linalg.pinv(covariances, rcond=SINGULAR, hermitian=True)
    found, best = None, np.inf
    for degree in range(1, max_degree + 1):
        powers = powers_up_to(degree, t.shape[1])
        if len(powers) > there.sum():
            break
        rows = terms(t, powers)
        matrix = np.linalg.pinv(rows * root) * root.T
        rest = (values - rows @ (matrix @ values))[there]
        chi2 = float(np.einsum("ki,kij,kj", rest, inverses[there], rest))
        cost = chi2 + len(powers) * values.shape[1] * np.log(rest.size)
        if cost < best:
            found, best = (powers, np.asarray(matrix)), cost
        dof = rest.size - len(powers) * values.shape[1]
        if dof > 0 and chdtrc(dof, chi2) > GOOD_FIT:
            break
    if found is None:
        raise InputError("too few templates for a straight line; simulate more of them")
    return found
