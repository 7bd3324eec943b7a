"""The mean score of the density that a network has learnt, in the simulation: 0 if it is right."""

from dataclasses import dataclass, field

import numpy as np

from gridless.calibration.check import ScoreCheck, template_p_values
from gridless.calibration.source import MeanNoise
from gridless.curves import chebyshev
from gridless.curves.curve import Curve
from gridless.templates.arrays import Array

LEAST_SLOPE = 1e-12  # of a score with theta, in units of the range


@dataclass(frozen=True, eq=False)
class LearntScore(MeanNoise):
    """The mean of d/dt log [p(t | x) / q(t)] at t, and its uncertainty.

    With the mean mu(t) of the summary it is d phi(t) . mu(t) - d log q(t). An estimate from many
    events is off by it, divided by the mean slope of the score.

    Attributes
    ----------
    curves : array (d, ...)
        Chebyshev coefficients of the functions phi of which a summary has the coefficients.
    log_q : array
        Chebyshev coefficients of what is subtracted from the log density of each event.
    """

    curves: Array = field(kw_only=True)
    log_q: Array = field(kw_only=True)

    def changes(self, t: Array) -> Array:
        """The mean score at t, and in further rows its independent uncertainties."""
        known = self.calibration
        score = self._mean_curve(known.mean(t[None])[0]).gradient(t)
        of_summary = known.mean_changes(t[None])[0].T @ known.back
        return np.vstack([score, of_summary @ self._slopes(t)])

    def check(self) -> ScoreCheck:
        """The mean score of every template at its own theta."""
        known = self.calibration
        means, covariances = known.template_means()
        shifts, errors, event_errors, chi2 = [], [], [], 0.0
        for t, mean, covariance in zip(known.t, means, covariances, strict=True):
            curve, slopes = self._mean_curve(mean), known.back @ self._slopes(t)
            score, of_score = curve.gradient(t), slopes.T @ covariance @ slopes
            response = np.linalg.pinv(-curve.hessian(t), hermitian=True)
            chi2 += float(score @ np.linalg.pinv(of_score, hermitian=True) @ score)
            shifts.append(response @ score)
            errors.append(np.sqrt(np.diag(response @ of_score @ response).clip(min=0)))
            event_errors.append(np.sqrt(np.diag(response).clip(min=LEAST_SLOPE)))
        return ScoreCheck(
            np.array(shifts), np.array(errors), np.array(event_errors), chi2,
            float(known.t.size), template_p_values(known), known.mean.information,
        )  # fmt: skip

    def _mean_curve(self, mean: Array) -> Curve:
        """The mean log density of events whose whitened summary has this mean."""
        c = self.calibration.centre + mean @ self.calibration.back
        total = chebyshev.add(np.tensordot(c, self.curves, 1), -self.log_q)
        return Curve.of(total)

    def _slopes(self, t: Array) -> Array:
        """d phi / dt at one point: (d, parameters)."""
        return np.array([Curve.of(c).gradient(t) for c in self.curves])
