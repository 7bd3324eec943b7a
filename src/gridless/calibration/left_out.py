"""Whether the mean of a template is where the other templates predict it.

The prediction is an average over priors of the curve, each weighted by the likelihood of the other
templates' means. Where these do not say how smooth the curve is, the prediction has long tails. Let
P be the inverse of the covariance of all means, with the free terms projected out. Then a subset S
of the means y differs from its prediction by e = P_SS^-1 (P y)_S, with the covariance P_SS^-1.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from gridless.calibration.mean_curve import (
    OWN_PRIORS,
    PLATEAUS,
    PriorTable,
    curve_powers,
    log_prior,
)
from gridless.curves.polynomials import Powers, terms
from gridless.templates.arrays import Array

SAME = 1e-9  # 1 - correlation^2 of two templates, below which each predicts the other exactly
# Rates at which the prior of a curve may fall off. Observables that change much between templates
# need the large ones. A wrong template cannot choose a large rate for itself: it is left out.
CHECK_PRIORS = PriorTable(OWN_PRIORS.widths, (*OWN_PRIORS.rates, 0.6, 0.8))
# Widths and rates for surfaces. A surface may bend along one parameter and be straight along
# another: every combination of a rate for each parameter is tried.
SURFACE_WIDTHS = (0.0, *np.geomspace(1e-3, 1.0, 8))
SURFACE_RATES = (0.15, 0.35, 0.8)
# The likelihood of the other templates is raised to this power over the number of parameters:
# inner templates say little of how smooth a surface is in its steep corners, and the components of
# the summary are not independent. With power 1, corners of good surfaces looked wrong.
SURFACE_POWER = 0.3


def curve_p_values(t: Array, means: Array, of_means: Array, score: Array, masked: bool) -> Array:
    """The p-value of each template given the others, with one parameter.

    The mean summary is tested along single directions: that of the score at the template, along
    which a wrong mean moves theta, and every component of the summary. Half of the chance of a
    false alarm is given to the score, the other half to all other tests.

    Parameters
    ----------
    t, means, of_means : array (templates, parameters), (templates, d), (templates, d, d)
        Values of the templates in units of the range, their mean summaries, and the covariances of
        these means.
    score : array (templates, parameters, d)
        Directions of the scores.
    masked : bool
        Also leave out each second template in turn: a second wrong template can hide the first, as
        the two end templates do where their labels were exchanged.
    """
    count, parameters = t.shape
    powers = curve_powers(count, parameters)
    matrix = terms(t, powers)
    free = matrix[:, powers.sum(axis=1) <= 1]
    axes = np.eye(means.shape[1])  # fixed: directions chosen by the means would follow a wrong one

    def p_values(direction: Array, rows: slice) -> tuple[Array, Array]:
        y = means @ direction
        table = CHECK_PRIORS.coefficients(powers, float(np.ptp(y)))
        noise = np.einsum("i,kij,j->k", direction, of_means, direction)
        found = _left_out(free, y, _covariances(matrix, table, noise), masked, rows)
        return found.p_values(log_prior(table, y[:, None]), 1, 1.0)

    of_scores = np.ones((2, parameters, count))
    for k in range(count):
        for p in range(parameters):
            # Only of the template itself: of all, 60 templates took a minute.
            of_scores[:, p, k] = np.ravel(p_values(score[k, p], slice(k, k + 1)))
    of_axes = np.swapaxes([p_values(axis, slice(None)) for axis in axes], 0, 1)
    rest = np.concatenate([of_scores[1], *of_axes])
    tests = parameters + 2 * len(axes) if masked else len(axes)
    least = np.minimum(parameters * of_scores[0].min(axis=0), tests * rest.min(axis=0))
    return np.asarray(np.minimum(1.0, 2 * least))


def surface_p_values(t: Array, means: Array, of_means: Array, masked: bool) -> Array:
    """The p-value of each template given the others, with several parameters.

    There are few templates along each parameter, and a single direction of the summary says little
    of how smooth the surface is. So all components share a prior, which falls off at its own rate
    along each parameter, and the chi2 of a template sums over all components. Most templates are at
    an edge of some parameter: see `SURFACE_POWER`. Arguments as for `curve_p_values`.
    """
    count, parameters = t.shape
    powers = curve_powers(count, parameters)
    matrix = terms(t, powers)
    free = matrix[:, powers.sum(axis=1) <= 1]
    table = _surface_priors(powers, float(np.ptp(means, axis=0).max()))
    found = None
    for y, noise in zip(means.T, np.einsum("kii->ik", of_means), strict=True):
        own = _left_out(free, y, _covariances(matrix, table, noise), masked)
        found = own if found is None else found.plus(own)
    assert found is not None
    single, pairs = found.p_values(
        log_prior(table, means), means.shape[1], SURFACE_POWER / parameters
    )
    return np.minimum(1.0, 2 * np.minimum(single, pairs)) if masked else single


def _surface_priors(powers: Powers, span: float) -> Array:
    """The widths (priors, terms) of the coefficients of a surface: s up to a degree m_0, and beyond
    s prod_p r_p^(m_p (1 - m_0 / m)) of powers m_p with the sum m; in units of `span`."""
    degree = powers.sum(axis=1)
    table = []
    for width, plateau, *rates in product(
        SURFACE_WIDTHS, PLATEAUS, *[SURFACE_RATES] * powers.shape[1]
    ):
        beyond = powers * (1 - plateau / degree.clip(min=plateau))[:, None]
        widths = width * span * np.prod(np.array(rates) ** beyond, axis=1)
        table.append(np.where(degree <= 1, 0.0, widths))
    return np.unique(table, axis=0)


class _LeftOut(NamedTuple):
    """For every prior: the chi2 of each left-out mean given the others, and the log likelihood of
    the others; then both with a second mean left out (the last axis). `alike` marks pairs of which
    each mean predicts the other exactly."""

    chi2: Array
    log_likelihood: Array
    pair_chi2: Array
    pair_log_likelihood: Array
    alike: NDArray[np.bool_]

    def plus(self, other: "_LeftOut") -> "_LeftOut":
        """The sums over this and another component of the summary."""
        return _LeftOut(
            self.chi2 + other.chi2,
            self.log_likelihood + other.log_likelihood,
            self.pair_chi2 + other.pair_chi2,
            self.pair_log_likelihood + other.pair_log_likelihood,
            self.alike | other.alike,
        )

    def p_values(self, before: Array, dof: int, power: float) -> tuple[Array, Array]:
        """The p-value of each mean given the others; and the smallest p-value with a second mean
        left out, times the number of second means. `before` (priors,) is the log of the prior
        probabilities; likelihoods are raised to `power`."""
        single = _mixed(self.chi2, before[:, None] + power * self.log_likelihood, dof)
        if not self.alike.size:
            return single, np.ones_like(single)
        of_pairs = before[:, None, None] + power * self.pair_log_likelihood
        pairs = np.where(self.alike, 1.0, _mixed(self.pair_chi2, of_pairs, dof))
        return single, (pairs.shape[1] - 1) * pairs.min(axis=1)


def _covariances(matrix: Array, table: Array, noise: Array) -> Array:
    """The covariance (priors, templates, templates) of the means under each prior."""
    rows = matrix * table[:, None]
    return np.asarray(rows @ np.swapaxes(rows, 1, 2) + np.diag(noise))


def _left_out(
    free: Array, y: Array, covariance: Array, masked: bool, rows: slice = slice(None)
) -> _LeftOut:
    """Each of the means y (templates,) compared with its prediction by the others.

    Parameters
    ----------
    free : array (templates, free terms)
        Terms of the curve that are free.
    y : array (templates,)
        The mean of one component of the summary in every template.
    covariance : array (priors, templates, templates)
        Of these means, under each prior.
    masked : bool
        Whether to leave out a second template too.
    rows : slice
        The templates that are left out in turn.
    """
    inverse = np.linalg.inv(covariance)
    weighted = inverse @ free
    within = free.T @ weighted
    p = inverse - weighted @ np.linalg.solve(within, np.swapaxes(weighted, 1, 2))
    py = p @ y
    log_l = -0.5 * (
        py @ y + np.linalg.slogdet(covariance).logabsdet + np.linalg.slogdet(within).logabsdet
    )
    a = np.diagonal(p, axis1=1, axis2=2)
    a_k, p_k, py_k = a[:, rows], p[:, rows], py[:, rows]
    single = py_k**2 / a_k, log_l[:, None] + 0.5 * (py_k**2 / a_k - np.log(a_k))
    if not masked:
        return _LeftOut(*single, np.zeros(0), np.zeros(0), np.zeros(0, bool))
    # S = {k, j}, with k along the second axis and j along the third.
    other, a_k = a[:, None], a_k[..., None]
    both = a_k * other
    # A second template that is the first, or says exactly the same, cannot hide it.
    alike = np.eye(len(y), dtype=bool)[rows] | (both - p_k**2 <= SAME * both).any(axis=0)
    determinant = np.where(alike, 1.0, both - p_k**2)
    py_k, py_j = py_k[..., None], py[:, None]
    off = other * py_k - p_k * py_j
    chi2 = (off * py_k + (a_k * py_j - p_k * py_k) * py_j) / determinant
    likelihood = log_l[:, None, None] + 0.5 * (chi2 - np.log(determinant))
    return _LeftOut(*single, off**2 / (other * determinant), likelihood, alike)


def _mixed(chi2: Array, log_weights: Array, dof: int) -> Array:
    """The probability of a larger chi2, averaged over the priors (the first axis)."""
    weights = np.exp(log_weights - log_weights.max(axis=0))
    return np.asarray((weights * chdtrc(dof, chi2)).sum(axis=0) / weights.sum(axis=0))
