"""Shares of the simulation in cells at any theta, learnt from the templates alone.

The share of cell c is a polynomial in theta with more terms than there are templates,

    s_c(theta) = m_c [1 + sum_m beta_cm phi_m(theta)],

m_c its mean over all templates. Constant and linear terms are hardly held back. The others have a
normal prior that falls off with the degree; its width and how fast it falls are what the templates
make likely, for the cell itself and for all of them. No network enters: the share of a
cell is a straight line in the share of a background, and else a smooth curve. The uncertainty is
that of the templates' statistics and of what they leave open between them.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

from gridless.calibration.ridge import ridge
from gridless.curves.polynomials import Powers, powers_up_to, terms
from gridless.templates.arrays import Array

MAX_DEGREE = {1: 12, 2: 6, 3: 4}  # of a share, by the number of parameters
FREE_WIDTH = 1.0  # of the prior of constant and linear terms, in units of the mean share
WIDTHS = (0.0, *np.geomspace(3e-3, 1.0, 8))  # of the prior of quadratic terms, likewise
RATES = (0.3, 0.6, 0.85)  # at which it falls off with each degree beyond
PASSES = 3  # of the fit, each with the variances that the one before expects
MIXTURE_STEPS = 20  # until the frequencies of the priors have settled
LEAST_MEAN = 1e-9  # share of a cell over all templates: weights of either sign may cancel


class Shares(NamedTuple):
    """Shares of cells as functions of theta.

    Attributes
    ----------
    powers : array (terms, parameters)
        Of the polynomials.
    coefficients : array (cells, terms)
        Those of each share.
    covariance : array (cells, terms, terms)
        Theirs.
    response : array (cells, terms, templates)
        What they change by with the share of a template.
    noise : array (cells, templates)
        The variances of the templates' shares.
    """

    powers: Powers
    coefficients: Array
    covariance: Array
    response: Array
    noise: Array

    def __call__(self, t: Array) -> Array:
        """The shares (cells, points) at points t (points, parameters)."""
        return np.asarray(self.coefficients @ terms(t, self.powers).T)

    def variances(self, t: Array) -> Array:
        """Their variances (cells, points)."""
        rows = terms(t, self.powers)
        return np.asarray(((rows @ self.covariance) * rows).sum(axis=-1))

    def left_open(self, t: Array) -> Array:
        """The part of the variances (cells, points) that is not the statistics of the templates."""
        moved = terms(t, self.powers) @ self.response
        sampled = (moved**2 * self.noise[:, None]).sum(axis=-1)
        return np.asarray((self.variances(t) - sampled).clip(min=0))


def smooth_shares(seen: Array, events: Array, unit: Array) -> Shares:
    """The shares at any theta, from those of the templates.

    Parameters
    ----------
    seen : array (cells, templates)
        The share of each template's events in each cell.
    events : array (templates,)
        The number of events of each template that its statistics are worth.
    unit : array (templates, parameters)
        Where the templates are, in units of the range.

    Returns
    -------
    Shares

    Examples
    --------
    >>> unit = np.linspace(0, 1, 5)[:, None]
    >>> seen = np.stack([0.4 + 0.2 * unit[:, 0], 0.6 - 0.2 * unit[:, 0]])
    >>> shares = smooth_shares(seen, np.full(5, 1e4), unit)
    >>> shares(np.array([[0.4]]))[:, 0].round(3).tolist()
    [0.48, 0.52]
    """
    count, parameters = unit.shape
    powers = powers_up_to(min(MAX_DEGREE[parameters], count + 2), parameters)
    matrix, degree = terms(unit, powers), powers.sum(axis=1)
    mean = (seen @ events / events.sum()).clip(min=LEAST_MEAN)[:, None]
    y = seen / mean - 1
    widths = np.array(
        [
            np.where(degree <= 1, FREE_WIDTH, width * rate ** np.maximum(degree - 2.0, 0.0))
            for width, rate in product(WIDTHS, RATES)
        ]
    )
    expected = seen
    for _ in range(PASSES):
        # That of at least one event: a template without any in a cell does not know that it has 0.
        variance = expected.clip(min=1 / events) / events / mean**2
        evidence = np.array([ridge(matrix * one, y, variance).log_evidence for one in widths])
        width = np.sqrt(_responsibilities(evidence).T @ widths**2)
        fit = ridge(matrix * width[:, None], y, variance)
        # Cells that have few events by chance would have small variances: take what is expected.
        expected = mean * (1 + (width * fit.coefficients) @ matrix.T)
    scale = mean * width
    coefficients = scale * fit.coefficients
    coefficients[:, 0] += mean[:, 0]
    inverse = np.linalg.inv(fit.curvature)
    covariance = inverse * scale[:, :, None] * scale[:, None]
    rows = (matrix * width[:, None]) / variance[:, :, None]
    response = width[:, :, None] * (inverse @ np.swapaxes(rows, 1, 2))
    return Shares(powers, coefficients, covariance, response, variance * mean**2)


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
