"""The score check: do the templates' own events give back their theta?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from gridless.calibration.calibration import Calibration
from gridless.calibration.mean_curve import PLATEAUS, fit_mean_curve
from gridless.calibration.moments import Moments
from gridless.curves import chebyshev
from gridless.curves.polynomials import terms
from gridless.templates.arrays import Array

SUSPECT_P_VALUE = 1e-4  # of a template, times their number: of good fits one in 10,000 is told
FAILED_P_VALUE = 1e-3  # of all templates together
LEAST_OTHERS = 2  # templates more than the free terms of the curve: fewer cannot foretell one
LEAST_INNER = 5  # templates between the ends that foretell both
MOST_SUSPECTS = 1 / 3  # of the templates: where more are off, none can be called the wrong one
MOST_AT_AN_END = 2  # likewise of neighbours at one end: there the curve turns
SLOW = (2,)  # degrees from which the prior of a curve falls off that shows a single wrong template


@dataclass(frozen=True, eq=False)
class ScoreCheck:
    """The mean score of every template at its own theta, in errors.

    Attributes
    ----------
    shift : array (templates, parameters)
        The bias that the mean score causes at each template, in units of the range.
    error : array (templates, parameters)
        Its statistical error from the simulation.
    event_error : array (templates, parameters)
        The statistical error of an estimate from a single observed event there.
    chi2 : float
        How far the means of all templates are from the curve through them.
    dof : float
        Its (effective) degrees of freedom.
    p_values : array (templates,)
        For each template whether its mean is where the others foretell it; 1 where they are too few
        to tell.
    information : float
        What the templates say of theta: how much worse a constant describes their means, in chi2.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(2_000, seed=1), hidden=3, seed=1)
    >>> model.check.suspects, model.check.failed
    ((), False)
    """

    shift: Array
    error: Array
    event_error: Array
    chi2: float
    dof: float
    p_values: Array
    information: float

    @property
    def p_value(self) -> float:
        """The probability of a chi2 at least as large; 1 where nothing is left to test."""
        return float(chdtrc(self.dof, self.chi2)) if self.dof > 0.5 else 1.0

    def __str__(self) -> str:
        return f"score check: chi2/dof = {self.chi2:.1f}/{self.dof:.1f}, p-value {self.p_value:.2g}"

    @property
    def pulls(self) -> Array:
        """Shifts in units of their errors."""
        return np.asarray(self.shift / np.where(self.error > 0, self.error, np.inf))

    def bias(self, events: float) -> Array:
        """The shifts in units of the statistical error of so many observed events."""
        return np.asarray(self.shift / self.event_error * np.sqrt(events))

    @property
    def suspects(self) -> tuple[int, ...]:
        """The templates that are not like the others, worst first."""
        order = np.argsort(self.p_values)
        limit = SUSPECT_P_VALUE / len(order)
        return tuple(int(k) for k in order if self.p_values[k] < limit)

    @property
    def failed(self) -> bool:
        """Whether the means of the templates do not lie on a smooth curve."""
        return self.p_value < FAILED_P_VALUE


def score_check(calibration: Calibration) -> ScoreCheck:
    """The check of a calibration, from what the fit of its mean curve has left."""
    mean, t = calibration.mean, calibration.t
    da = calibration.score_slopes(t)
    information = np.einsum("kpi,kqi->kpq", da, mean.slopes(t))
    spread = np.array(
        [[[float(chebyshev.evaluate(c, p)) for c in row] for row in calibration.spread] for p in t]
    )
    response = np.linalg.pinv(information)
    shift = np.einsum("kpq,kqi,ki->kp", response, da, mean.residual)
    of_shift = np.einsum("kpq,kqi->kpi", response, da)
    variance = np.einsum("kpi,kij,kpj->kp", of_shift, mean.residual_covariance, of_shift)
    of_event = np.einsum("kpq,kqr,ksr->kps", response, spread, response)
    return ScoreCheck(
        shift,
        np.sqrt(variance.clip(min=0)),
        np.sqrt(np.diagonal(of_event, axis1=1, axis2=2).clip(min=0)),
        mean.chi2,
        mean.dof,
        template_p_values(calibration),
        mean.information,
    )


def template_p_values(calibration: Calibration) -> Array:
    """Whether the mean of each template is where the curve through all others foretells it.

    The curve of the others has its own smoothness. So a template at the edge, to which a curve
    through all templates would bend, is told as well as one in the middle. Two ends that were
    exchanged hide each other; each is foretold by the templates between them, too. The worst
    template below the limit is taken out before the rest is looked at again: its neighbours are not
    to blame. Means may also change fast with theta. So what was taken out is compared with a curve
    through the rest that may, too; and where the rest does not come to fit, all are.
    """
    mean, of_mean = calibration.template_means()
    # A curve asks for the covariance of means and not of events.
    means = Moments(calibration.t, mean, of_mean, of_mean)
    count = len(mean)
    p_values, kept = np.ones(count), np.ones(count, bool)
    least = means.t.shape[1] + 1 + LEAST_OTHERS
    while kept.sum() > least:
        for k in np.flatnonzero(kept):
            found = [_foretold(means, k, others, SLOW) for others in _others(means.t, kept, k)]
            p_values[k] = min(1.0, len(found) * min(found))
        worst = int(np.where(kept, p_values, np.inf).argmin())
        if p_values[worst] >= SUSPECT_P_VALUE / count:
            break
        if kept.sum() <= (1 - MOST_SUSPECTS) * count or _off_at_an_end(means.t, kept):
            every = np.arange(count)
            return np.array([_foretold(means, k, every != k, PLATEAUS) for k in every])
        kept[worst] = False
    for k in np.flatnonzero(~kept):
        p_values[k] = max(p_values[k], _foretold(means, k, kept, PLATEAUS))
    return p_values


def _off_at_an_end(t: Array, kept: NDArray[np.bool_]) -> bool:
    """Whether most that may be wrong at one end of the only parameter already are."""
    order = np.argsort(t[:, 0])
    ends = (order[:MOST_AT_AN_END], order[-MOST_AT_AN_END:])
    return t.shape[1] == 1 and any(not kept[end].any() for end in ends)


def _others(t: Array, kept: NDArray[np.bool_], k: np.int64) -> list[NDArray[np.bool_]]:
    """All that are kept but k; for an end of the only parameter, also all between the ends."""
    found = [kept & (np.arange(len(t)) != k)]
    ends = t[kept].min(), t[kept].max()
    inner = kept & ~np.isin(t[:, 0], ends)
    if t.shape[1] == 1 and t[k, 0] in ends and inner.sum() >= LEAST_INNER:
        found.append(inner)
    return found


def _foretold(
    means: Moments, k: np.int64, others: NDArray[np.bool_], plateaus: tuple[int, ...]
) -> float:
    """The p-value of the mean of template k, given the curve through the others."""
    rest = means.of(others)
    try:
        curve = fit_mean_curve(rest, plateaus=plateaus)
        row = terms(means.t[k][None], curve.powers)[0]
        # What the others leave unknown: their statistics, and what they leave open.
        response = np.tensordot(row, curve.response, 1)
        noise = np.einsum("ikj,kjl,mkl->im", response, rest.mean_covariance, response)
        opened = np.tensordot(row, curve.open, 1)
        covariance = noise + opened @ opened.T + means.mean_covariance[k]
        off = means.mean[k] - row @ curve.coefficients
        found = float(chdtrc(len(off), off @ np.linalg.solve(covariance, off)))
    except np.linalg.LinAlgError:
        return 0.0  # means and covariances that no simulation can have
    return found if np.isfinite(found) else 0.0
