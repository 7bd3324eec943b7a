"""The score check: do the templates' own events give back their theta?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, factorial

from gridless.calibration.calibration import Calibration
from gridless.calibration.left_out import SAME, curve_p_values, surface_p_values
from gridless.calibration.mean_curve import curve_powers
from gridless.curves import chebyshev
from gridless.curves.polynomials import powers_up_to, terms
from gridless.results import printing
from gridless.results.printing import Lines
from gridless.templates.arrays import Array

SUSPECT_P_VALUE = 2e-3  # of a template, times their number: two in 1,000 good fits have a suspect
FAILED_P_VALUE = 1e-3  # of all templates together
LEAST_OTHERS = 2  # templates beyond the number of free terms: fewer cannot predict another one
SCATTER_DEGREE = 3  # of the polynomial in theta by which a network's mean score may differ from 0
LEAST_SCATTER = 3  # degrees of freedom that must remain after that polynomial is fitted
BEYOND_P_VALUE = 0.01  # below this the means bend more than one event resolves
EFFORT_P_VALUE = 0.1  # of the curve, or of its worst template: above it the means lie on it
MOST_SUSPECTS = 1 / 3  # of the templates: where more are off, none can be called the wrong one


@dataclass(frozen=True, eq=False)
class ScoreCheck(Lines):
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
        The p-value of each template's mean given the means of the others; 1 where there are too few
        others.
    information : float
        What the templates say of theta: the chi2 of a constant less that of the curve.
    scatter : float
        The p-value of the hypothesis that the network's mean score is a smooth function of theta
        plus the statistical noise of each template.

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
    scatter: float = 1.0

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

    def __str__(self) -> str:
        return self.text([f"template {k}" for k in range(len(self.p_values))])

    def text(self, names: Sequence[str]) -> str:
        """What was found, with a name of each template."""
        text = f"Score check of {len(self.p_values)} templates: chi2/dof = {self.chi2:.1f}/"
        text += f"{self.dof:.1f}, p-value {printing.probability(self.p_value).removeprefix('= ')}"
        found = [f"{names[k]} is not like the others (p-value {self.p_values[k]:.1g})"
                 for k in self.suspects]  # fmt: skip
        if self.scatter < FAILED_P_VALUE:
            found.append(f"templates scatter around their theta (p-value {self.scatter:.1g})")
        return "\n  ".join([text, *found])

    __repr__ = __str__

    @property
    def failed(self) -> bool:
        """Whether the means of the templates do not lie on a smooth curve."""
        return min(self.p_value, self.scatter) < FAILED_P_VALUE


def score_check(calibration: Calibration, p_values: Array | None = None) -> ScoreCheck:
    """The check of a calibration, from the residuals of the fit of its mean curve; with the
    p-values of its templates where they are known already."""
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
        template_p_values(calibration) if p_values is None else p_values,
        mean.information,
    )


def scatter_p_value(calibration: Calibration, found: ScoreCheck, learnt: ScoreCheck) -> float:
    """Whether templates scatter around their values of theta by more than their statistics.

    Templates that each have their own mistake are not smooth in theta, but the mean curve may bend
    enough to follow them. Three signs reveal them, and all must be present:

    1. The means bend more than one event resolves theta: see `_beyond_resolution`. A narrow peak of
       few events can do that without any mistake.
    2. The mean score of the network's own density, which is 0 at every template if the density was
       learnt, scatters around a polynomial of low degree, which stands for what was not learnt. A
       density that the network cannot describe, such as that of a background share, can do that
       without any mistake, but its means do not bend.
    3. The curve follows the means with some effort: its chi2, or a template that is left out, is
       not quite as it should be. A sharp edge that moves with theta shows the first two signs
       without any mistake, but its means lie on the curve.

    With several parameters nothing is tested.

    Parameters
    ----------
    calibration : Calibration
        With the means of the templates.
    found, learnt : ScoreCheck
        The check of the calibration, and that of the network's own density.
    """
    t, shift, error = calibration.t, learnt.shift, learnt.error
    dof = len(t) - SCATTER_DEGREE - 1
    if t.shape[1] > 1 or dof < LEAST_SCATTER or not (error > 0).all():
        return 1.0
    if min(found.p_value, len(t) * float(found.p_values.min())) > EFFORT_P_VALUE:
        return 1.0
    if not _beyond_resolution(calibration):
        return 1.0
    rows = terms(t, powers_up_to(SCATTER_DEGREE, 1)) / error
    pulls = (shift / error)[:, 0]
    left = pulls - rows @ np.linalg.lstsq(rows, pulls)[0]
    return float(chdtrc(dof, left @ left))


def _beyond_resolution(calibration: Calibration) -> bool:
    """Whether the means bend more than the resolution of one event in theta allows.

    Let l be the change of the means over half of the range, along the score at a template and in
    units of the spread of one event, from the median slope at the templates. For normal observables
    no coefficient of degree m exceeds l^m / (2^(m-1) sqrt(m!)). These limits are the widths of a
    prior; the means are compared with that prior and their statistics.
    """
    means, of_means = calibration.template_means()
    t, count = calibration.t, len(means)
    slopes = calibration.mean.slopes(t)[:, 0]
    powers = curve_powers(count, 1)
    matrix, degree = terms(t, powers), powers[:, 0]
    free, least = matrix[:, degree <= 1], 1.0
    for direction in calibration.score_slopes(t)[:, 0]:
        along = direction / max(float(np.linalg.norm(direction)), SAME)
        y, noise = means @ along, np.einsum("i,kij,j->k", along, of_means, along)
        change = float(np.median(np.abs(slopes @ along))) / 2
        most = change**degree / 2.0 ** (degree - 1) / np.sqrt(factorial(degree))
        rows = matrix * np.where(degree <= 1, 0.0, most)
        inverse = np.linalg.inv(rows @ rows.T + np.diag(noise))
        within = inverse @ free
        left = inverse - within @ np.linalg.solve(free.T @ within, within.T)
        least = min(least, float(chdtrc(count - free.shape[1], y @ left @ y)))
    return bool(count * least < BEYOND_P_VALUE)


def template_p_values(calibration: Calibration) -> Array:
    """The p-value of each template's mean given those of the other templates.

    A wrong template makes its neighbours look wrong too. So the worst one is taken out and the
    others are tested again, until all agree. Those taken out are then compared with the others.
    """
    means, of_means = calibration.template_means()
    t, score = calibration.t, calibration.score_slopes(calibration.t)
    count = len(means)

    def given_others(kept: NDArray[np.bool_], masked: bool) -> Array:
        moments = t[kept], means[kept], of_means[kept]
        several = t.shape[1] > 1
        if several:
            found = surface_p_values(*moments, masked)
        else:
            found = curve_p_values(*moments, score[kept], masked)
        return np.nan_to_num(found, nan=0.0)  # of means that no simulation can have

    p_values, kept = np.ones(count), np.ones(count, bool)
    least = t.shape[1] + 1 + LEAST_OTHERS
    try:
        while kept.sum() > least:
            p_values[kept] = given_others(kept, masked=True)
            worst = int(np.where(kept, p_values, np.inf).argmin())
            if p_values[worst] >= SUSPECT_P_VALUE / count:
                break
            if kept.sum() <= (1 - MOST_SUSPECTS) * count:
                return given_others(np.ones(count, bool), masked=False)
            kept[worst] = False
        for k in np.flatnonzero(~kept):
            with_k = kept | (np.arange(count) == k)
            again = given_others(with_k, masked=False)[with_k[:k].sum()]
            p_values[k] = max(p_values[k], again)
    except np.linalg.LinAlgError:
        return np.zeros(count)  # covariances that no simulation can have
    return p_values
