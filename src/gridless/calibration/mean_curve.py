"""The mean of the summary as a smooth function of theta, learnt from the means of the templates.

mu(theta) = sum_m beta_m phi_m(theta) with polynomials phi_m, more of them than there are templates.
Constant and linear terms are free. Those of degree m have a normal prior of width s up to a degree
m_0, and of s r^(m - m_0) beyond: smooth functions have coefficients that fall off. The curves with
all s, r and m_0 of a table are averaged, weighted by how likely each makes the means of the
templates. The components of the summary share s, r and m_0, since one alone tells little of them.
The uncertainty of mu then has two parts: the statistics of the templates, and what they leave open
between them.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, factorial

from gridless.calibration.moments import Moments
from gridless.calibration.ridge import ridge
from gridless.curves.polynomials import Powers, powers_up_to, slopes, terms
from gridless.templates.arrays import Array

MAX_DEGREE = {1: 16, 2: 6, 3: 4}  # by the number of parameters
# Degrees m_0 from which the prior falls off: where one event resolves a gap, coefficients begin to
# fall only at about half as many as there are templates.
PLATEAUS = (2, 4)
MODERATE = 0.3  # width that is usual beforehand, in units of the spread of the means
# Sizes of coefficients, in units of the largest that the resolution of one event allows.
RESOLVED = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
LEAST_VARIANCE = 1e-13  # of a mean, relative to the largest: less is lost in rounding
LEAST_CHANGE = 1e-6  # of the means of templates, in units of their noise: less counts as none
# Widest prior, in errors of the mean of a template: it holds nothing back, and the square of a
# wider one would drown the other terms in rounding.
WIDEST = 1e6


class PriorTable(NamedTuple):
    """The priors that are averaged over: all their widths s, in units of how much the means of the
    templates differ, rates r, and degrees m_0."""

    widths: tuple[float, ...]
    rates: tuple[float, ...]
    plateaus: tuple[int, ...] = PLATEAUS

    def of(self, templates: int) -> "PriorTable":
        """Those for so many templates: with few, priors fall off from the lowest degree."""
        most = max(self.plateaus[0], templates // 2)
        return self._replace(plateaus=tuple(m for m in self.plateaus if m <= most))

    def coefficients(self, powers: Powers, span: float) -> Array:
        """The widths (priors, terms) of the coefficients of a component that changes by `span` over
        the templates; 0 stands for constant and linear terms, which are free."""
        degree = powers.sum(axis=1)
        table = np.array(list(product(*self)))
        width, rate, plateau = (column[:, None] for column in table.T)
        widths = width * span * rate ** np.maximum(degree - plateau, 0.0)
        return np.where(degree <= 1, 0.0, widths)


# Coefficients fall off by about 0.4 where one event resolves a gap between templates, by more where
# gaps are wider. No width is 0: means that noise does not tell from a straight line may still bend.
SHARED_PRIORS = PriorTable(tuple(np.geomspace(0.01, 1.0, 9)), (0.15, 0.3, 0.45, 0.6))
# Of a component with a prior of its own, which leaves open what one event resolves in any case.
OWN_PRIORS = PriorTable((0.0, *np.geomspace(1e-3, 1.0, 13)), (0.15, 0.3, 0.45))


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


def fit_mean_curve(moments: Moments, shared: bool = True) -> MeanCurve:
    """The curve through the means of the templates.

    Parameters
    ----------
    moments : Moments
        Those of the whitened summary.
    shared : bool
        Whether all components share one prior. Of long summaries, as measurements have them, few
        components bend, and each has a prior of its own: see `_own_priors`.

    Returns
    -------
    MeanCurve
    """
    count, parameters = moments.t.shape
    powers = curve_powers(count, parameters)
    matrix = terms(moments.t, powers)
    moments = _steadied(moments)
    if shared:
        means, variances = moments.mean, np.einsum("kii->ik", moments.mean_covariance)
        rotation = np.eye(len(variances))
        table = SHARED_PRIORS.of(count).coefficients(powers, _span(means, variances))
        before = log_prior(table, means)
        priors = _average_priors(matrix, powers, means, variances, table, before)
    else:
        rotation, priors = _own_priors(matrix, powers, moments)
    return _posterior(matrix, powers, priors, moments, rotation)


def _steadied(moments: Moments) -> Moments:
    """The moments, with variances of means that are at least `LEAST_VARIANCE` of the largest."""
    variances = np.einsum("kii->ki", moments.mean_covariance)
    missing = (LEAST_VARIANCE * variances.max() - variances).clip(min=0)
    if not missing.any():
        return moments
    added = missing[:, :, None] * np.eye(missing.shape[1])
    return replace(moments, mean_covariance=moments.mean_covariance + added)


def curve_powers(templates: int, parameters: int) -> Powers:
    """The terms of the curve through so many templates."""
    return powers_up_to(min(MAX_DEGREE[parameters], templates + 2), parameters)


def _span(means: Array, variances: Array) -> float:
    """The largest change of any component over the templates; a little above 0 where all means are
    equal, as they may be with few events."""
    least = LEAST_CHANGE * float(np.sqrt(variances.max()))
    return max(float(np.ptp(means, axis=0).max()), least)


def log_prior(table: Array, means: Array) -> Array:
    """The log prior probability of each row of a table of widths (priors, terms): it falls with
    widths beyond `MODERATE` times the spread of the means (templates, d). With few templates no
    curvature would be excluded otherwise."""
    usual = MODERATE * float(means.std(axis=0).max()) or 1.0
    return np.asarray(-2 * np.log1p((table.max(axis=1) / usual) ** 2))


class _Prior(NamedTuple):
    """The prior of one component's coefficients, in units of `widths` (terms,): the inverse
    `precision` (terms, terms) of its covariance, and how much the coefficients `scatter` (terms,
    terms) with the priors of the table."""

    widths: Array
    precision: Array
    scatter: Array


def _posterior(
    matrix: Array, powers: Powers, priors: list[_Prior], moments: Moments, rotation: Array
) -> MeanCurve:
    """The posterior of the coefficients of all components together."""
    count, size = moments.mean.shape
    terms_count = len(powers)
    covariance = rotation.T @ moments.mean_covariance @ rotation
    inverse = np.asarray(np.linalg.inv(covariance))
    means = moments.mean @ rotation
    widths = np.stack([one.widths for one in priors], axis=1).ravel()
    rows = np.einsum("ka,ij->kiaj", matrix, np.eye(size)).reshape(count * size, -1) * widths
    weights = _block_diagonal(inverse)
    precision, scatter = (
        _across([getattr(one, name) for one in priors]) for name in ("precision", "scatter")
    )
    posterior = np.linalg.inv(rows.T @ weights @ rows + precision)
    response = posterior @ rows.T @ weights
    values, vectors = np.linalg.eigh(posterior @ precision @ posterior + scatter)
    left_open = vectors * np.sqrt(values.clip(min=0))
    c = response @ means.ravel()
    residual = means.ravel() - rows @ c
    chi2 = float(residual @ weights @ residual)
    shadow = rows @ response
    rest = np.eye(count * size) - shadow
    not_seen = rows @ left_open
    of_residual = rest @ _block_diagonal(covariance) @ rest.T + not_seen @ not_seen.T
    blocks = of_residual.reshape(count, size, count, size)[np.arange(count), :, np.arange(count)]
    response, left_open = (widths[:, None] * one for one in (response, left_open))
    back = rotation.T  # from the rotated components to those of the moments
    return MeanCurve(
        powers,
        (widths * c).reshape(-1, size) @ back,
        np.einsum(
            "maki,aj,il->mjkl", response.reshape(-1, size, count, size), back, back, optimize=True
        ),
        np.einsum("max,aj->mjx", left_open.reshape(terms_count, size, -1), back),
        residual.reshape(count, size) @ back,
        rotation @ blocks @ back,
        chi2,
        count * size - float(np.trace(shadow)),
        _chi2_of_constant(means, inverse) - chi2,
    )


def _across(matrices: list[Array]) -> Array:
    """Matrices (terms, terms) of each component as one of all (terms * d, terms * d)."""
    count, size = len(matrices[0]), len(matrices)
    result = np.zeros((count, size, count, size))
    result[:, np.arange(size), :, np.arange(size)] = matrices
    return result.reshape(count * size, count * size)


def _own_priors(matrix: Array, powers: Powers, moments: Moments) -> tuple[Array, list[_Prior]]:
    """Components (d, d) of a long summary, and a prior for each.

    Components are turned towards curvature only where it exceeds the noise: else the one with the
    most curvature is the one with the most noise. If some components have the curvature that one
    event resolves, all may have it.
    """
    rotation = _rotation(matrix, powers, moments)
    means = moments.mean @ rotation
    variances = np.einsum("ji,kjl,li->ik", rotation, moments.mean_covariance, rotation)
    resolved = _resolved_widths(matrix, powers, means, variances)
    priors = []
    for i in range(len(variances)):
        own, its = means[:, i : i + 1], variances[i : i + 1]
        table = OWN_PRIORS.of(len(means)).coefficients(powers, _span(own, its))
        before, table = log_prior(table, means), np.hypot(table, resolved)
        priors += _average_priors(matrix, powers, own, its, table, before)
    return rotation, priors


def _rotation(matrix: Array, powers: Powers, moments: Moments) -> Array:
    """Components (d, d) in which the curvature of mu is spread over as few as possible."""
    linear = matrix[:, powers.sum(axis=1) <= 1]
    means = moments.mean
    straight = linear @ np.linalg.lstsq(linear, means, rcond=None)[0]
    count, size = means.shape
    noise = np.sqrt(np.trace(moments.mean_covariance, axis1=1, axis2=2) / size)
    _, values, vectors = np.linalg.svd((means - straight) / noise[:, None], full_matrices=True)
    # The largest singular value that noise alone gives a matrix of this shape.
    edge = np.sqrt(max(count - linear.shape[1], 0)) + np.sqrt(size)
    kept = vectors[: int((values > 1.2 * edge).sum())]
    # The other components keep their axes: turning them would follow noise.
    return np.asarray(np.linalg.qr(np.vstack([kept, np.eye(size)]).T)[0])


def _average_priors(
    matrix: Array,
    powers: Powers,
    means: Array,
    variances: Array,
    table: Array,
    before: Array,
) -> list[_Prior]:
    """The priors of a table, averaged by how likely each is before and makes the means (templates,
    d) of all components together; one for each component.

    Prior h has the posterior covariance C_h. The normal prior whose posterior has the average C of
    these is that with the precision C^-1 - X' V^-1 X, X being the terms at the templates and V the
    variances (d, templates) of the means: its most likely coefficients are the average of those of
    all priors.
    """
    free = powers.sum(axis=1) <= 1
    widths = np.where(free, 1.0, table)
    fits = ridge((matrix * widths[:, None])[:, None], means.T, variances, free)
    score = fits.log_evidence.sum(axis=1) + before
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    typical = np.sqrt(weight @ widths**2).clip(min=1e-300)
    ratio = widths / typical
    rows = matrix * typical
    priors = []
    for i, variance in enumerate(variances):
        covariances = ratio[:, :, None] * np.linalg.inv(fits.curvature[:, i]) * ratio[:, None]
        average = np.tensordot(weight, covariances, 1)
        precision = np.linalg.inv(average) - (rows.T / variance) @ rows
        off = ratio * fits.coefficients[:, i]
        off = off - weight @ off
        priors.append(_Prior(typical, precision, (off * weight[:, None]).T @ off))
    return priors


def _resolved_widths(matrix: Array, powers: Powers, means: Array, variances: Array) -> Array:
    """The widths (terms,) of a prior of all components by what one event resolves.

    l is the change of the mean summary over half of the range, in units of the spread of one event.
    For normal observables the m-th derivative of the mean of any summary of variance 1 is below
    sqrt(m!) l^m, so that a coefficient of degree m is at most l^m / (2^(m-1) sqrt(m!)). The prior
    has a share of that, the same for all components. Three templates tell the curvature of one
    combination of them only; if that has some, the others are to be expected to have it too.
    """
    degree = powers.sum(axis=1)
    free = degree <= 1
    straight = np.linalg.lstsq(matrix[:, free], means, rcond=None)[0]
    # Linear terms stand in another order than the parameters.
    change = powers[free][1:].T @ np.linalg.norm(straight[1:], axis=1)
    most = np.prod(change**powers / np.sqrt(factorial(powers)), axis=1) / 2.0 ** (degree - 1)
    most = np.where(free, 0.0, most.clip(max=WIDEST * np.sqrt(variances.min())))
    shares = np.array(RESOLVED)
    widths = np.where(free, 1.0, shares[:, None] * most)
    score = ridge((matrix * widths[:, None])[:, None], means.T, variances, free).log_evidence
    together = score.sum(axis=1)
    weight = np.exp(together - together.max())
    return np.asarray(most * np.sqrt(weight @ shares**2 / weight.sum()))


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
