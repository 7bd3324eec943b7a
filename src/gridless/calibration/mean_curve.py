"""The mean of the summary as a smooth function of theta, learnt from the means of the templates.

mu(theta) = sum_m beta_m phi_m(theta) with polynomials phi_m, more of them than there are templates.
Constant and linear terms are free. Those of degree m have a normal prior of width s up to a degree
m_0, and of s r^(m - m_0) beyond: smooth functions have coefficients that fall off. s, r and m_0 of
each component are averaged over a table, weighted by how likely they make the means of the
templates (empirical Bayes). The uncertainty of mu then has two parts: the statistics of the
templates, and what they leave open between them.
"""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from gridless.calibration.moments import Moments
from gridless.calibration.ridge import ridge
from gridless.curves.polynomials import Powers, powers_up_to, slopes, terms
from gridless.templates.arrays import Array

MAX_DEGREE = {1: 16, 2: 6, 3: 4}  # by the number of parameters
# Widths s of the prior, in units of how much the means of the templates differ.
WIDTHS = (0.0, *np.geomspace(1e-3, 1.0, 13))
# Rates r at which it falls off: about 0.4 where one event resolves a gap between templates. Larger
# ones could follow a template that has a wrong label.
RATES = (0.15, 0.3, 0.45)
# Degrees m_0 from which it falls off: where one event resolves a gap, coefficients begin to fall
# only at about half as many as there are templates.
PLATEAUS = (2, 4)
# Width that is usual beforehand, in units of the spread of the means over the templates.
MODERATE = 0.3


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """mu(theta) with its uncertainty.

    Attributes
    ----------
    powers : array (terms, parameters)
        The terms of the polynomial.
    coefficients : array (terms, d)
        Their coefficients.
    response : array (terms, d, templates, d)
        How much the coefficients move with the means of the templates.
    open : array (terms, d, terms * d)
        Independent unit changes of the coefficients that the templates leave open.
    residual : array (templates, d)
        Means less curve.
    residual_covariance : array (templates, d, d)
        The covariance of each residual.
    chi2, dof : float
        How well the curve describes the means; degrees of freedom are effective ones.
    information : float
        How much the chi2 of a constant is larger: what the templates say of theta, twice in units
        of log likelihood.
    """

    powers: Powers
    coefficients: Array
    response: Array
    open: Array
    residual: Array
    residual_covariance: Array
    chi2: float
    dof: float
    information: float

    @property
    def p_value(self) -> float:
        """The probability of a chi2 at least as large; 1 where nothing is left to test."""
        return float(chdtrc(self.dof, self.chi2)) if self.dof > 0.5 else 1.0

    def __call__(self, t: Array) -> Array:
        """mu at points t (points, parameters): (points, d)."""
        return np.asarray(terms(t, self.powers) @ self.coefficients)

    def slopes(self, t: Array) -> Array:
        """d mu / dt: (points, parameters, d)."""
        return np.asarray(slopes(t, self.powers) @ self.coefficients)


def fit_mean_curve(
    moments: Moments, certain: bool = False, plateaus: tuple[int, ...] = PLATEAUS
) -> MeanCurve:
    """The curve through the means of the templates.

    Parameters
    ----------
    moments : Moments
        Those of the whitened summary.
    certain : bool
        For long summaries and few templates. Turn to components of curvature only where it is
        beyond the noise: the component with the most curvature is otherwise that of the most
        noise. And take a curvature far beyond the change of the means as unlikely beforehand.
    plateaus : tuple of int
        Degrees from which the prior may fall off.

    Returns
    -------
    MeanCurve
    """
    count, parameters = moments.t.shape
    powers = powers_up_to(min(MAX_DEGREE[parameters], count + 2), parameters)
    matrix = terms(moments.t, powers)
    rotation = _rotation(matrix, powers, moments, certain)
    means = moments.mean @ rotation
    covariance = rotation.T @ moments.mean_covariance @ rotation
    scale = MODERATE * float(means.std(axis=0).max()) if certain else np.inf
    averages = [
        _average(matrix, powers, means[:, i], covariance[:, i, i], scale, plateaus)
        for i in range(means.shape[1])
    ]
    return _assembled(matrix, powers, averages, moments, rotation)


class _Average(NamedTuple):
    """One component: how much its coefficients move with the means (terms, templates), and the
    root (terms, terms) of the covariance that is left open."""

    response: Array
    open: Array


def _assembled(
    matrix: Array, powers: Powers, averages: list[_Average], moments: Moments, rotation: Array
) -> MeanCurve:
    """The curve of all components, in those of the moments, and what it leaves."""
    count, size = moments.mean.shape
    each = np.arange(size)
    response = np.zeros((len(powers), size, count, size))
    response[:, each, :, each] = [one.response for one in averages]
    opened = np.zeros((len(powers), size, size, len(powers)))
    opened[:, each, each] = np.swapaxes([one.open for one in averages], 0, 1)
    back = rotation.T  # from the rotated components to those of the moments
    response = np.einsum("maki,aj,il->mjkl", response, back, back, optimize=True)
    left_open = np.einsum("max,aj->mjx", opened.reshape(len(powers), size, -1), back)
    coefficients = np.tensordot(response, moments.mean, 2)
    residual = moments.mean - matrix @ coefficients
    covariance = _block_diagonal(moments.mean_covariance)
    shadow = np.tensordot(matrix, response, 1).reshape(count * size, count * size)
    rest = np.eye(count * size) - shadow
    not_seen = np.tensordot(matrix, left_open, 1).reshape(count * size, -1)
    of_residual = rest @ covariance @ rest.T + not_seen @ not_seen.T
    inverse = np.asarray(np.linalg.inv(moments.mean_covariance))
    chi2 = float(np.einsum("ki,kij,kj", residual, inverse, residual))
    blocks = of_residual.reshape(count, size, count, size)[np.arange(count), :, np.arange(count)]
    return MeanCurve(
        powers, coefficients, response, left_open, residual, blocks, chi2,
        float(np.einsum("kij,kji", inverse, blocks)),
        _chi2_of_constant(moments.mean, inverse) - chi2,
    )  # fmt: skip


def _rotation(matrix: Array, powers: Powers, moments: Moments, certain: bool) -> Array:
    """Components (d, d) in which the curvature of mu is spread over as few as possible."""
    linear = matrix[:, powers.sum(axis=1) <= 1]
    means = moments.mean
    straight = linear @ np.linalg.lstsq(linear, means, rcond=None)[0]
    if not certain:
        return np.asarray(np.linalg.svd(means - straight, full_matrices=True)[2].T)
    count, size = means.shape
    noise = np.sqrt(np.trace(moments.mean_covariance, axis1=1, axis2=2) / size)
    _, values, vectors = np.linalg.svd((means - straight) / noise[:, None], full_matrices=True)
    # What noise alone reaches in so many rows and columns.
    edge = np.sqrt(max(count - linear.shape[1], 0)) + np.sqrt(size)
    kept = vectors[: int((values > 1.2 * edge).sum())]
    # The rest of the components do not know of each other's noise.
    return np.asarray(np.linalg.qr(np.vstack([kept, np.eye(size)]).T)[0])


def _average(
    matrix: Array,
    powers: Powers,
    means: Array,
    variances: Array,
    scale: float,
    plateaus: tuple[int, ...],
) -> _Average:
    """The posterior of one component's coefficients, averaged over the priors of the table.

    Each prior h gives coefficients R_h m with covariance R_h V R_h' + U_h, from the means m with
    variances V and from what is open. Weighted by how likely each makes the means, the response is
    that of the mean, R, and what is left open the mean of all about it less R V R'.
    """
    degree = powers.sum(axis=1)
    free = degree <= 1
    span = float(np.ptp(means))
    table = np.array(list(product(WIDTHS, RATES, plateaus)))
    width, rate, plateau = (column[:, None] for column in table.T)
    widths = np.where(free, 1.0, width * span * rate ** np.maximum(degree - plateau, 0.0))
    rows = matrix * widths[:, None]
    fits = ridge(rows, means, variances, free)
    # Few templates leave any curvature open: much more than `scale` is unlikely beforehand.
    score = fits.log_evidence - 2 * np.log1p((width[:, 0] * span / scale) ** 2)
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    covariances = widths[:, :, None] * np.linalg.inv(fits.curvature) * widths[:, None]
    covariance = np.tensordot(weight, covariances, 1)
    response = covariance @ matrix.T / variances
    off = widths * fits.coefficients - response @ means
    whole = covariance + (off * weight[:, None]).T @ off
    values, vectors = np.linalg.eigh(whole - (response * variances) @ response.T)
    return _Average(response, vectors * np.sqrt(values.clip(min=0)))


def _chi2_of_constant(means: Array, inverse: Array) -> float:
    total = inverse.sum(axis=0)
    centre = np.linalg.solve(total, np.einsum("kij,kj->i", inverse, means))
    rest = means - centre
    return float(np.einsum("ki,kij,kj", rest, inverse, rest))


def _block_diagonal(blocks: Array) -> Array:
    count, size, _ = blocks.shape
    result = np.zeros((count, size, count, size))
    result[np.arange(count), :, np.arange(count)] = blocks
    return result.reshape(count * size, count * size)
