"""Shares of the simulation in cells at any theta, learnt from the templates alone.

The share of cell c is a polynomial in theta with more terms than there are templates,

    s_c(theta) = m_c [1 + sum_m beta_cm phi_m(theta)],

m_c its mean over all templates. Constant and linear terms are hardly held back. The others have
normal priors of two families, averaged by how likely each makes the shares of the templates:

- Smooth ones know how much the share changes over the templates. A density whose logarithm is a
  straight line in theta, with the change B, has coefficients of about 2 (B/2)^m / m!; the prior has
  widths of that order, around 0 or around the quadratic term of such a density.
- Rough ones have the same widths for all cells, and fall off slowly.

How often rough ones are needed is learnt from all cells together. No network enters: the share of a
cell is a straight line in the share of a background, and else a smooth curve. The uncertainty is
that of the templates' statistics and of what they leave open between them.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gridless.calibration.ridge import ridge
from gridless.curves.polynomials import Powers, powers_up_to, terms
from gridless.templates.arrays import Array

MAX_DEGREE = {1: 12, 2: 6, 3: 4}  # of a share, by the number of parameters
FREE_WIDTH = 2.0  # of the prior of constant and linear terms, in units of the mean share
MAX_WIDTH = 4.0  # of the prior of the others, likewise: no share that is positive needs more
SMOOTH = (0.0, 0.1, 0.3, 1.0, 3.0)  # widths of smooth priors, in units of what B allows
FALL = 0.25  # power of 1 / m! in these; 1 would be that of a straight logarithm
ROUGH_WIDTHS = tuple(np.geomspace(0.03, 1.0, 4))  # of quadratic terms, in units of the mean share
ROUGH_RATES = (0.3, 0.6, 0.85)  # at which rough priors fall off with each degree beyond
ROUGH_SHARE = 0.1  # of the cells that need a rough prior, beforehand
FAMILY_STEPS = 3  # in which that is learnt; more would leave no room for a single rough cell
# Least number of events that a cell is assumed to have: in a template for its variance, in all
# templates for its mean. An empty cell may still expect events, and weights may cancel.
LEAST_SEEN = 3.0
PASSES = 3  # of the fit, each with the variances that the one before expects


class Shares(NamedTuple):
    """Shares of cells as functions of theta.

    Attributes
    ----------
    powers : array (terms, parameters)
        Of the polynomials.
    coefficients : array (cells, terms)
        Of each share.
    covariance : array (cells, terms, terms)
        Of the coefficients.
    """

    powers: Powers
    coefficients: Array
    covariance: Array

    def __call__(self, t: Array) -> Array:
        """The shares (cells, points) at points t (points, parameters)."""
        return np.asarray(self.coefficients @ terms(t, self.powers).T)

    def variances(self, t: Array) -> Array:
        """Their variances (cells, points)."""
        rows = terms(t, self.powers)
        return np.asarray(((rows @ self.covariance) * rows).sum(axis=-1))


def smooth_shares(seen: Array, events: Array, unit: Array) -> Shares:
    """The shares at any theta, from those of the templates.

    Parameters
    ----------
    seen : array (cells, templates)
        The share of each template's events in each cell.
    events : array (templates,)
        The effective number of events of each template.
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
    matrix = terms(unit, powers)
    mean = (seen @ events).clip(min=LEAST_SEEN)[:, None] / events.sum()
    y = seen / mean - 1
    expected = seen
    for _ in range(PASSES):
        variance = expected.clip(min=LEAST_SEEN / events) / events / mean**2
        priors = _priors(powers, matrix, y, variance, mean[:, 0])
        rest = y - priors.centres @ matrix.T
        fits = ridge(
            matrix * priors.widths[:, :, None], rest, np.broadcast_to(variance, rest.shape)
        )
        found = priors.widths * fits.coefficients + priors.centres
        weight = _responsibilities(fits.log_evidence, priors.rough)
        average = np.einsum("hc,hcm->cm", weight, found)
        # Cells that have few events by chance would have small variances: take what is expected.
        expected = mean * (1 + average @ matrix.T)
    off = found - average
    scaled = priors.widths[..., None] * priors.widths[:, :, None] * np.linalg.inv(fits.curvature)
    covariance = np.einsum("hc,hcij->cij", weight, scaled)
    covariance += np.einsum("hc,hci,hcj->cij", weight, off, off)
    coefficients = mean * average
    coefficients[:, 0] += mean[:, 0]
    return Shares(powers, coefficients, covariance * mean[:, :, None] ** 2)


class _Priors(NamedTuple):
    """Normal priors of the coefficients: `widths` and `centres` (priors, cells, terms), and which
    of them are `rough` (priors,)."""

    widths: Array
    centres: Array
    rough: NDArray[np.bool_]


def _priors(powers: Powers, matrix: Array, y: Array, variance: Array, mean: Array) -> _Priors:
    """The priors of both families for the relative shares y (cells, templates).

    Parameters
    ----------
    powers, matrix : array (terms, parameters), (templates, terms)
        The terms, and their values at the templates.
    y, variance : array (cells, templates)
        Shares over their mean, less 1, and the variances of these.
    mean : array (cells,)
        The mean shares.
    """
    degree = powers.sum(axis=1)
    linear = degree <= 1
    fit = ridge(np.broadcast_to(matrix[:, linear], (len(y), *matrix[:, linear].shape)), y, variance)
    slopes = fit.coefficients[:, 1:]
    # Squares of slopes without what noise adds.
    squares = slopes[:, :, None] * slopes[:, None] - np.linalg.inv(fit.curvature)[:, 1:, 1:]
    # A straight line has three times its variance over the range as the square of its slope.
    change = 3 * (y**2 - variance).mean(axis=1)
    change = change.clip(min=0) + max(float(mean @ change / mean.sum()), 0.0)
    natural = 2 * (np.sqrt(change)[:, None] / 2) ** degree * np.exp(-FALL * gammaln(degree + 1.0))
    of_smooth = [np.minimum(width * natural, MAX_WIDTH) for width in SMOOTH]
    of_rough = [
        np.broadcast_to(width * rate ** np.maximum(degree - 2.0, 0.0), natural.shape)
        for width, rate in product(ROUGH_WIDTHS, ROUGH_RATES)
    ]
    straight_logarithm = np.zeros_like(natural)
    axis = powers[linear][1:]  # of each slope
    for term in np.flatnonzero(degree == 2):
        axes = np.flatnonzero(powers[term])
        first, last = (int(np.flatnonzero(axis[:, one])[0]) for one in (axes[0], axes[-1]))
        # exp(a x) has a^2 / 4 before T_2(x), exp(a x + b y) has a b before x y.
        size = squares[:, first, last] * (0.25 if first == last else 1.0)
        straight_logarithm[:, term] = size - mean @ size / mean.sum()  # shares sum to 1
    widths = np.where(linear, FREE_WIDTH, np.array([*of_smooth, *of_smooth, *of_rough]))
    centres = np.zeros_like(widths)
    centres[len(SMOOTH) : 2 * len(SMOOTH)] = straight_logarithm
    return _Priors(widths, centres, np.arange(len(widths)) >= 2 * len(SMOOTH))


def _responsibilities(log_evidence: Array, rough: NDArray[np.bool_]) -> Array:
    """How likely each of the priors (priors, cells) is for each cell, given how often all cells
    have a rough one: the expectation-maximisation of a mixture of two families."""
    likelihood = np.exp(log_evidence - log_evidence.max(axis=0))
    share = ROUGH_SHARE
    for _ in range(FAMILY_STEPS):
        before = np.where(rough, share / rough.sum(), (1 - share) / (~rough).sum())
        found = before[:, None] * likelihood
        found = found / found.sum(axis=0)
        share = float(found[rough].sum(axis=0).mean())
    return np.asarray(found)
