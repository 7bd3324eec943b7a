"""How far the mean summary of observed events is from what the templates have at theta.

The quasi-likelihood is the integral of a score. Around the truth it is a likelihood. Far from there
it need not be: where means turn back and forth with theta, another of its minima may be lower. The
distance between the mean of the events and mu(theta) tells them apart.
"""

from dataclasses import dataclass, replace

import numpy as np

from gridless.calibration.calibration import Calibration
from gridless.templates.arrays import Array


@dataclass(frozen=True, eq=False)
class MeanDistance:
    """Minus twice the log of the normal density of the mean summary of the events at theta.

    Attributes
    ----------
    calibration : Calibration
        What knows mu(theta) and its covariance.
    y : array (kept,)
        The sum of the whitened summaries of the events.
    weight : float
        The sum of their weights.
    held : tuple of (int, float)
        Parameters that are held: the axis of each, among those that were free when it was held, and
        its value.
    """

    calibration: Calibration
    y: Array
    weight: float
    held: tuple[tuple[int, float], ...] = ()

    def __call__(self, t: Array) -> Array:
        """At points t (points, parameters): (points,)."""
        if self.weight <= 0:
            return np.zeros(len(t))
        for axis, value in reversed(self.held):
            t = np.insert(t, axis, value, axis=1)
        off = self.y / self.weight - self.calibration.mean(t)
        # Of one event the summary has the covariance 1 on average: it is whitened.
        of_events = np.eye(len(self.y)) / self.weight
        covariance = of_events + self.calibration.mean_covariance(t)
        chi2 = (off * np.linalg.solve(covariance, off[..., None])[..., 0]).sum(axis=1)
        return np.asarray(chi2 + np.linalg.slogdet(covariance)[1])

    def __add__(self, other: "MeanDistance") -> "MeanDistance":
        """The distance of both sets of events of one model together."""
        return replace(self, y=self.y + other.y, weight=self.weight + other.weight)

    def restrict(self, axis: int, t: float) -> "MeanDistance":
        """With one parameter held at t."""
        return replace(self, held=(*self.held, (axis, t)))
