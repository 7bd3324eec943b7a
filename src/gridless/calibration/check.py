"""The score check: do the templates' own events give back their theta?"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from gridless.calibration.calibration import Calibration
from gridless.curves import chebyshev
from gridless.templates.arrays import Array

SUSPECT_P_VALUE = 1e-4  # of a template, times their number: below this it is not like the others
FAILED_P_VALUE = 1e-3  # of all templates together
FAR_STEP = 5.0  # times the usual step between neighbouring templates: no end is so far off
MIN_TEMPLATES_FOR_STEPS = 6  # of fewer a usual step is not known


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
        For each template whether its events are like those of the others.
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
    residual, size = mean.residual, mean.residual.shape[1]
    inverse = np.linalg.pinv(mean.residual_covariance, rcond=1e-6, hermitian=True)
    chi2 = np.einsum("ki,kij,kj->k", residual, inverse, residual)
    p_values = np.asarray(chdtrc(size, chi2))
    p_values[_far_ends(calibration)] = 0.0
    return ScoreCheck(
        shift,
        np.sqrt(variance.clip(min=0)),
        np.sqrt(np.diagonal(of_event, axis1=1, axis2=2).clip(min=0)),
        mean.chi2,
        mean.dof,
        p_values,
        mean.information,
    )


def _far_ends(calibration: Calibration) -> list[int]:
    """Outermost templates whose mean is far off the next one's, against the usual step: a smooth
    curve can go there, but two ends that were exchanged look like that."""
    t = calibration.t
    if t.shape[1] > 1 or len(t) < MIN_TEMPLATES_FOR_STEPS:
        return []
    order = np.argsort(t[:, 0])
    means = (calibration.mean(t) + calibration.mean.residual)[order]
    steps = np.linalg.norm(np.diff(means, axis=0), axis=1) / np.diff(t[order, 0])
    usual = float(np.median(steps[1:-1]))
    ends = ((0, order[0]), (-1, order[-1]))
    return [int(template) for place, template in ends if steps[place] > FAR_STEP * usual]
