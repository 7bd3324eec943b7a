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

import numpy as np
from scipy.special import chdtrc, factorial

from gridless.calibration.moments import Moments
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
# Sizes of coefficients, in units of the largest that the resolution of one event allows.
RESOLVED = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)


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
        noise. Take a curvature far beyond the change of the means as unlikely beforehand. And let
        the prior fall off from a degree of half as many as there are templates at the latest; but
        count on as much curvature in all components as one event resolves, if some have it.
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
    if certain:
        plateaus = tuple(m for m in plateaus if m <= max(min(plateaus), count // 2))
    widths = np.stack(
        [
            _prior_widths(matrix, powers, means[:, i], covariance[:, i, i], scale, plateaus)
            for i in range(means.shape[1])
        ],
        axis=1,
    )
    if certain:
        resolved = _resolved_widths(matrix, powers, means, np.einsum("kii->ik", covariance))
        widths = np.hypot(widths, resolved[:, None])
    return _posterior(matrix, powers, widths, moments, rotation)


def _posterior(
    matrix: Array, powers: Powers, widths: Array, moments: Moments, rotation: Array
) -> MeanCurve:
    """The posterior of the coefficients, given the widths (terms, d) of their prior."""
    count, size = moments.mean.shape
    covariance = rotation.T @ moments.mean_covariance @ rotation
    inverse = np.asarray(np.linalg.inv(covariance))
    means = moments.mean @ rotation
    # A width of 0 is a term that is left out; np.inf one that is free.
    kept = (widths > 0).ravel()
    rows = np.einsum("ka,ij->kiaj", matrix, np.eye(size)).reshape(count * size, -1)[:, kept]
    weights = _block_diagonal(inverse)
    prior = 1 / widths.ravel()[kept] ** 2
    posterior = np.linalg.inv(rows.T @ weights @ rows + np.diag(prior))
    response = posterior @ rows.T @ weights
    left_open = posterior * np.sqrt(prior)  # its product with its transpose is the prior's part
    c = response @ means.ravel()
    residual = means.ravel() - rows @ c
    chi2 = float(residual @ weights @ residual)
    shadow = rows @ response
    dof = count * size - float(np.trace(shadow))
    rest = np.eye(count * size) - shadow
    of_residual = (
        rest @ _block_diagonal(covariance) @ rest.T + (rows @ left_open) @ (rows @ left_open).T
    )
    blocks = of_residual.reshape(count, size, count, size)[np.arange(count), :, np.arange(count)]
    every = np.zeros((len(powers) * size, count * size))
    every[kept] = response
    opened = np.zeros((len(powers) * size, len(powers) * size))
    opened[np.ix_(kept, kept)] = left_open
    whole = np.zeros(len(powers) * size)
    whole[kept] = c
    back = rotation.T  # from the rotated components to those of the moments
    return MeanCurve(
        powers,
        whole.reshape(-1, size) @ back,
        np.einsum(
            "maki,aj,il->mjkl", every.reshape(-1, size, count, size), back, back, optimize=True
        ),
        np.einsum("max,aj->mjx", opened.reshape(len(powers), size, -1), back),
        residual.reshape(count, size) @ back,
        rotation @ blocks @ back,
        chi2,
        dof,
        _chi2_of_constant(means, inverse) - chi2,
    )


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


def _prior_widths(
    matrix: Array,
    powers: Powers,
    means: Array,
    variances: Array,
    scale: float,
    plateaus: tuple[int, ...],
) -> Array:
    """The widths (terms,) of the prior of one component's coefficients: the root of the mean square
    of those in the table, each with the likelihood of the templates' means as its weight. Infinite
    for constant and linear terms."""
    degree = powers.sum(axis=1)
    free = degree <= 1
    squares, scores = [], []
    span = float(np.ptp(means))
    for width, rate, plateau in product(WIDTHS, RATES, plateaus):
        falling = rate ** np.maximum(degree - float(plateau), 0.0)
        widths = np.where(free, 0.0, width * span * falling)
        rows = matrix * widths
        covariance = rows @ rows.T + np.diag(variances)
        # Few templates leave any curvature open: much more than `scale` is unlikely beforehand.
        before = -2 * np.log1p((width * span / scale) ** 2)
        scores.append(_restricted_likelihood(matrix[:, free], means, covariance) + before)
        squares.append(widths**2)
    weight = np.exp(np.array(scores) - max(scores))
    return np.where(free, np.inf, np.sqrt(weight @ np.array(squares) / weight.sum()))


def _resolved_widths(matrix: Array, powers: Powers, means: Array, variances: Array) -> Array:
    """The widths (terms,) of a prior of all components by what one event resolves.

    l is the change of the mean summary over half of the range, in units of the spread of one event.
    With normal observables a coefficient of degree m is at most l^m / (2^(m-1) sqrt(m!)): the m-th
    derivative of the mean of any summary of variance 1 is below sqrt(m!) l^m. The prior has a share
    of that, the same for all components. Three templates tell the curvature of one combination of
    them only; if that has some, the others will have it too.
    """
    degree = powers.sum(axis=1)
    free = degree <= 1
    straight = np.linalg.lstsq(matrix[:, free], means, rcond=None)[0]
    change = np.linalg.norm(straight[1:], axis=1)  # of each parameter
    change = powers[free][1:].T @ change  # in their order
    most = np.prod(change**powers / np.sqrt(factorial(powers)), axis=1) / 2.0 ** (degree - 1)
    most = np.where(free, 0.0, most)
    scores = []
    for share in RESOLVED:
        rows = share * most * matrix
        scores.append(
            sum(
                _restricted_likelihood(matrix[:, free], y, rows @ rows.T + np.diag(v))
                for y, v in zip(means.T, variances, strict=True)
            )
        )
    weight = np.exp(np.array(scores) - max(scores))
    return np.asarray(most * np.sqrt(weight @ np.square(RESOLVED) / weight.sum()))


def _restricted_likelihood(free: Array, means: Array, covariance: Array) -> float:
    """The log likelihood of means with free linear terms integrated over, up to a constant."""
    root = np.linalg.cholesky(covariance)
    x, y = np.linalg.solve(root, free), np.linalg.solve(root, means)
    q, r = np.linalg.qr(x)
    rest = y - q @ (q.T @ y)
    log_det = np.log(np.diag(root)).sum() + np.log(np.abs(np.diag(r)) + 1e-300).sum()
    return float(-0.5 * rest @ rest - log_det)


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
