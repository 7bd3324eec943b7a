"""The uncertainty from finite simulation of a calibrated likelihood, template by template."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gridless.calibration.calibration import Calibration
from gridless.likelihood.sources import Source
from gridless.templates.arrays import Array


@dataclass(frozen=True, eq=False)
class MeanNoise(Source):
    """Independent changes of mu(theta), each by one standard deviation.

    The slope of the likelihood of events of total weight W changes by W da . d mu. Nothing is
    drawn: the covariance is the sum of the squares of what each change does.

    Attributes
    ----------
    calibration : Calibration
        How the means enter the likelihood.
    weight : float
        The sum of the weights of the events.
    held : tuple of (int, float)
        Parameters that are held: the axis of each, among those that were free when it was held, and
        its value.
    """

    calibration: Calibration
    weight: float
    held: tuple[tuple[int, float], ...] = ()

    def slopes(self, t: Array) -> Array:
        axes = list(range(self.calibration.parameters))
        for axis, value in reversed(self.held):
            t = np.insert(t, axis, value)
        for axis, _ in self.held:
            axes.pop(axis)
        return np.asarray(self.weight * self.changes(t)[:, axes])

    @abstractmethod
    def changes(self, t: Array) -> Array:
        """The effect of each change on the mean score at a point: (changes, parameters)."""

    def covariance(self, shifts: Array) -> Array:
        return np.asarray(shifts.T @ shifts)

    def __add__(self, other: Source) -> Self:
        if not isinstance(other, type(self)):
            raise ValueError("sources of different kinds do not add")
        return replace(self, weight=self.weight + other.weight)

    def restrict(self, axis: int, t: float) -> Self:
        return replace(self, held=(*self.held, (axis, t)))


class TemplateNoise(MeanNoise):
    """The statistics of the templates."""

    def changes(self, t: Array) -> Array:
        found = self.calibration.simulation_slopes(t)
        return np.asarray(found.reshape(-1, found.shape[-1]))

    def by_template(self, shifts: Array) -> Array:
        """The variance (templates, parameters) that each template contributes."""
        count = len(self.calibration.t)
        return np.asarray((shifts.reshape(count, -1, shifts.shape[1]) ** 2).sum(axis=1))


class Interpolation(MeanNoise):
    """The uncertainty of mu(theta) between the templates."""

    def changes(self, t: Array) -> Array:
        return self.calibration.model_slopes(t)
