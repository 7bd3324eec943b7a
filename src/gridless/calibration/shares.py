"""Shares of the simulation in cells at any theta: the forecast of a network, and its correction.

The network weights all simulated events to any theta, which foretells the share f_c(theta) of each
cell c. The templates say what it is at their own values. The share is taken as

    s_c(theta) = f_c(theta) exp(sum_m beta_cm phi_m(theta)),

phi_m polynomials, fitted to the events that each template has in the cell, whose number is Poisson
distributed. The coefficients have a normal prior that falls off with the degree. Its width and how
fast it falls are what the templates make likely, for a cell itself and for all of them: a good
forecast leaves nothing to correct, and of a poor one the fit says how well the share is known
between the templates. Of few templates no one knows
what is between them, whatever the forecast: a network that is right at three templates has a cubic
term by chance. Degrees that the templates do not determine are as open as the last that they do,
falling off from there.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

from gridless.calibration.polynomials import powers_up_to, terms
from gridless.templates.arrays import Array

MAX_DEGREE = {1: 12, 2: 6, 3: 4}  # of a correction, by the number of parameters
FREE_WIDTH = 1.0  # of the prior of constant and linear terms: factors are near 1
WIDTHS = (0.0, *np.geomspace(3e-3, 1.0, 8))  # of the prior of quadratic terms
RATES = (0.3, 0.6, 0.85)  # at which it falls off with each degree beyond
UNSEEN_RATE = 0.4  # the same for degrees that the templates do not determine
NEWTON_STEPS = 15  # of a fit, which begins near its end
MIXTURE_STEPS = 20  # until the frequencies of the priors have settled
MAX_STEP = 1.0  # in standard deviations of the prior: farther steps may overflow


class _Fit(NamedTuple):
    """Coefficients (cells, terms) in units of their prior's widths, the inverse (cells, terms,
    terms) of their covariance, and how likely (cells,) the widths make what was seen."""

    beta: Array
    curvature: Array
    log_evidence: Array


def corrected_shares(
    foretold: Array, seen: Array, events: Array, unit: Array, t: Array
) -> tuple[Array, Array]:
    """What the templates themselves say of the shares that a network foretells.

    Parameters
    ----------
    foretold, seen : array (cells, templates)
        Shares of each template's events, as the network has them and as they are.
    events : array (templates,)
        The number of events of each template that its statistics are worth.
    unit, t : array (templates, parameters), array (points, parameters)
        Where the templates are, and where shares are asked for, in units of the range.

    Returns
    -------
    tuple of array (cells, points), array (cells, points)
        The factor on the forecast, and the relative variance of the share: what the statistics
        of the templates and the gaps between them leave open.

    Examples
    --------
    >>> unit, t = np.linspace(0, 1, 5)[:, None], np.array([[0.4]])
    >>> flat = np.full((2, 5), 0.5)
    >>> seen = np.stack([0.4 + 0.2 * unit[:, 0], 0.6 - 0.2 * unit[:, 0]])
    >>> factor, _ = corrected_shares(flat, seen, np.full(5, 1e4), unit, t)
    >>> (0.5 * factor[:, 0]).round(2).tolist()
    [0.48, 0.52]
    """
    count, parameters = unit.shape
    powers = powers_up_to(min(MAX_DEGREE[parameters], count + 2), parameters)
    at_templates, at_points = terms(unit, powers), terms(t, powers)
    degree = powers.sum(axis=1)
    expected, found = foretold * events, seen * events
    unseen = _unseen_widths(np.log(seen + 1 / events), at_templates, degree)
    widths = []
    fits = []
    for width, rate in product(WIDTHS, RATES):
        bent = width * rate ** np.maximum(degree - 2.0, 0.0)
        widths.append(np.maximum(np.where(degree <= 1, FREE_WIDTH, bent), unseen))
        fits.append(_fit(at_templates * widths[-1][:, None], expected, found))
    weight = _responsibilities(np.array([fit.log_evidence for fit in fits]))
    width = np.sqrt(np.einsum("nc,ncm->cm", weight, np.array(widths) ** 2))
    best = _fit(at_templates * width[:, None], expected, found)
    rows = at_points * width[:, None]
    covariance = np.linalg.inv(best.curvature)
    variance = np.einsum("cpi,cij,cpj->cp", rows, covariance, rows, optimize=True)
    return np.exp(np.einsum("cpi,ci->cp", rows, best.beta)), variance


def _responsibilities(log_evidence: Array) -> Array:
    """How likely each of the priors (priors, cells) is for each cell, given how often all cells
    have each: the expectation-maximisation of a mixture."""
    likelihood = np.exp(log_evidence - log_evidence.max(axis=0))
    frequency = np.full(len(likelihood), 1 / len(likelihood))
    for _ in range(MIXTURE_STEPS):
        found = frequency[:, None] * likelihood
        found = found / found.sum(axis=0)
        frequency = found.mean(axis=1)
    return np.asarray(found)


def _unseen_widths(logs: Array, at_templates: Array, degree: Array) -> Array:
    """Widths (cells, terms) of terms that the templates do not determine, 0 for the others: the
    size of the last degree that they do in the logs (cells, templates) of the shares, falling off
    from there."""
    known = max(d for d in degree if (degree <= d).sum() <= len(at_templates))
    determined = at_templates[:, degree <= known]
    found = np.linalg.lstsq(determined, logs.T, rcond=None)[0].T
    size = np.sqrt((found[:, degree[degree <= known] == known] ** 2).mean(axis=1))
    falling = np.where(degree > known, UNSEEN_RATE ** (degree - known).astype(float), 0.0)
    return np.asarray(size[:, None] * falling)


def _fit(rows: Array, expected: Array, found: Array) -> _Fit:
    """Poisson regression of all cells at once, each coefficient with a normal prior of width 1.

    `rows` (cells, templates, terms) are the terms in units of their widths.
    """
    beta = np.zeros((len(rows), rows.shape[2]))
    identity = np.eye(rows.shape[2])
    across = np.swapaxes(rows, 1, 2)
    for _ in range(NEWTON_STEPS):
        mean = expected * np.exp(_product(rows, beta))
        curvature = across @ (mean[:, :, None] * rows) + identity
        slope = _product(across, found - mean) - beta
        beta = beta + np.linalg.solve(curvature, slope[..., None])[..., 0].clip(-MAX_STEP, MAX_STEP)
    exponent = _product(rows, beta)
    fitted = found * exponent - expected * np.exp(exponent)
    log_evidence = fitted.sum(axis=1) - 0.5 * (beta**2).sum(axis=1)
    return _Fit(beta, curvature, log_evidence - 0.5 * np.linalg.slogdet(curvature)[1])


def _product(matrices: Array, vectors: Array) -> Array:
    return np.asarray((matrices @ vectors[..., None])[..., 0])
