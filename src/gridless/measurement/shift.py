"""How a systematic moves the mean of a summary, as a smooth function of theta with its noise.

d(theta) = sum_m beta_m phi_m(theta) for each component of the summary on its own. The constant is
free, or has a prior too; terms of degree m have a normal prior of width s r^m, averaged over a
table of s and r with the likelihood of the differences as the weight (empirical Bayes). The part of
the prior that the differences do not determine is an uncertainty of the shift. A variation at a
single value of theta says nothing of other values: the width of its slope is given, and all of it
is an uncertainty.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from gridless.curves.polynomials import Powers, powers_up_to, slopes, terms
from gridless.templates.arrays import Array

# Degrees of the polynomial, by the number of parameters. What a systematic does to a sharp
# observable turns over as fast with theta as its mean: a cubic was off by ten times the noise.
DEGREE = {1: 10, 2: 5, 3: 3}
# Widths s of the prior in units of the spread of one event, and rates r at which it falls off.
WIDTHS = (0.0, *np.geomspace(1e-4, 3.0, 14))
RATES = (0.1, 0.3, 0.6)
FREE = 1e12  # variance of the prior of a free term
LEAST_VARIANCE = 1e-12  # of a difference, in squares of the spread of one event: rounding


@dataclass(frozen=True, eq=False)
class Shift:
    """d(t) with its noise.

    Attributes
    ----------
    coefficients : array (terms, d)
        Of the polynomial.
    response : array (d, terms, points)
        How much the coefficients of a component move with its differences.
    covariance : array (points, d, d)
        Of the measured differences, from the statistics of the simulation.
    open : array (d, terms, terms)
        The covariance of the coefficients of a component that the differences do not determine.
    """

    coefficients: Array
    response: Array
    covariance: Array
    open: Array

    def noise(self, phi: Array) -> Array:
        """The covariance (d, d) of d(t) from simulation, phi the terms (terms,) at t."""
        q = np.einsum("m,imj->ij", phi, self.response)
        return np.asarray(np.einsum("ij,kj,jik->ik", q, q, self.covariance, optimize=True))

    def left_open(self, phi: Array) -> Array:
        """The variance (d,) of d(t) that the differences do not determine."""
        return np.asarray(np.einsum("m,imn,n->i", phi, self.open, phi, optimize=True))

    def arrays(self) -> dict[str, Array]:
        """Everything as arrays, by name."""
        return {
            "coefficients": self.coefficients,
            "response": self.response,
            "covariance": self.covariance,
            "open": self.open,
        }


def shift_powers(parameters: int) -> Powers:
    """The terms of every shift of so many parameters."""
    return powers_up_to(DEGREE[parameters], parameters) if parameters else np.zeros((1, 0), int)


def shift_terms(t: Array, powers: Powers) -> Array:
    """phi (..., terms) at points t (..., parameters)."""
    *many, count = t.shape
    if not count:
        return np.ones((*many, 1))
    return terms(t.reshape(-1, count), powers).reshape(*many, len(powers))


def shift_slopes(t: Array, powers: Powers) -> Array:
    """d phi / dt (..., parameters, terms)."""
    *many, count = t.shape
    if not count:
        return np.zeros((*many, 0, 1))
    return slopes(t.reshape(-1, count), powers).reshape(*many, count, len(powers))


def fit_shift(
    t: Array,
    differences: Array,
    covariance: Array,
    free_constant: bool,
    slope: Array | None = None,
) -> Shift:
    """The smooth shift through differences at some points.

    Parameters
    ----------
    t : array (points, parameters)
        In units of the range.
    differences, covariance : array (points, d), array (points, d, d)
        What was measured there.
    free_constant : bool
        Whether the constant term is free.
    slope : array (parameters, d), optional
        How much it may change over the range of each parameter, for differences at one point.

    Returns
    -------
    Shift
    """
    points, parameters = t.shape
    powers = shift_powers(parameters)
    phi = terms(t, powers) if parameters else np.ones((points, 1))
    degree = powers.sum(axis=1)
    # Several points also say how large higher terms may be; a single point does not.
    used = degree <= (DEGREE.get(parameters, 0) if points > 1 else 0)
    free = (degree == 0) if free_constant else np.zeros(len(degree), bool)
    variances = np.maximum(covariance[:, range(len(differences.T)), range(len(differences.T))], 0)
    variances = (variances + LEAST_VARIANCE).T  # (d, points)
    squares, scores = [], []
    for width, rate in product(WIDTHS, RATES):
        prior = np.where(used & ~free, (width * rate**degree) ** 2, 0.0)
        scores.append(_likelihood(phi[:, free], phi * np.sqrt(prior), differences.T, variances))
        squares.append(prior)
    # One width for all components: a single one hardly determines it.
    together = np.sum(scores, axis=1)
    weight = np.exp(together - together.max())
    prior = np.tile(weight @ np.array(squares) / weight.sum(), (len(variances), 1))
    if slope is not None and points == 1:
        # The terms of degree 1 are -1 and 1 at the ends of the range.
        prior[:, degree == 1] = (0.5 * powers[degree == 1] @ slope).T ** 2
    held = np.where(free, 0.0, prior)
    prior[:, free] = FREE
    inverse = np.einsum("jm,dj,jn->dmn", phi, 1 / variances, phi)
    # (A + P^-1)^-1 = P^1/2 (1 + P^1/2 A P^1/2)^-1 P^1/2, which takes widths of 0.
    root = np.sqrt(prior)
    inner = np.eye(len(degree)) + root[:, :, None] * inverse * root[:, None, :]
    # No eigenvalue is below 1, but for the rounding of far larger ones.
    values, vectors = np.linalg.eigh(inner)
    within = vectors / values.clip(min=1.0)[:, None] @ np.swapaxes(vectors, 1, 2)
    posterior = root[:, :, None] * within * root[:, None, :]
    response = posterior @ (phi.T[None] / variances[:, None, :])
    coefficients = np.einsum("dmj,jd->md", response, differences)
    rest = np.eye(len(degree)) - response @ phi  # a free constant is found whatever it is
    left = np.einsum("dmn,dn,dkn->dmk", rest, held, rest)
    return Shift(np.asarray(coefficients), np.asarray(response), covariance, np.asarray(left))


def _likelihood(free: Array, rows: Array, values: Array, variances: Array) -> Array:
    """Log likelihood (d,) of values (d, points), free terms integrated over; up to a constant."""
    covariance = rows @ rows.T + np.einsum("dj,jk->djk", variances, np.eye(len(rows)))
    inverse = np.linalg.inv(covariance)
    log_det = np.linalg.slogdet(covariance)[1]
    quadratic = np.einsum("dj,djk,dk->d", values, inverse, values)
    if free.shape[1]:
        inner = free.T @ inverse @ free
        slope = np.einsum("jf,djk,dk->df", free, inverse, values)
        quadratic = quadratic - np.einsum(
            "df,df->d", slope, np.linalg.solve(inner, slope[..., None])[..., 0]
        )
        log_det = log_det + np.linalg.slogdet(inner)[1]
    return np.asarray(-0.5 * (quadratic + log_det))
