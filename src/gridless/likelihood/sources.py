"""Sources of uncertainty besides the observed events, by name: how each moves the minimum.

A source knows what it could change in the likelihood of a channel, as curves. Parts of one model
vary together; different models vary independently. A source of another kind is another class here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from gridless.curves import chebyshev
from gridless.curves.curve import Curve
from gridless.templates.arrays import Array


class Source(ABC):
    """Changes of a likelihood by something that is not known exactly."""

    @abstractmethod
    def slopes(self, t: Array) -> Array:
        """d/dt of each change at a point: (changes, parameters)."""

    @abstractmethod
    def covariance(self, shifts: Array) -> Array:
        """The covariance of the minimum that is moved by `shifts` (changes, parameters)."""

    @abstractmethod
    def __add__(self, other: "Source") -> "Source":
        """The source for more events of the same model."""

    @abstractmethod
    def restrict(self, axis: int, t: float) -> "Source":
        """The source with one parameter held at t."""


@dataclass(frozen=True, eq=False)
class ReplicaNoise(Source):
    """Bootstrap replicas of the simulation: `changes` (replicas, ...) are Chebyshev coefficients of
    what each would change in the likelihood. The covariance is that of the minima among them."""

    changes: Array

    def slopes(self, t: Array) -> Array:
        return np.array([Curve.of(c).gradient(t) for c in self.changes])

    def covariance(self, shifts: Array) -> Array:
        return np.asarray(np.cov(shifts.T, ddof=1).reshape(shifts.shape[1], shifts.shape[1]))

    def __add__(self, other: Source) -> "ReplicaNoise":
        if not isinstance(other, ReplicaNoise) or len(other.changes) != len(self.changes):
            # Parts of one model have the same replicas: no user can get here.
            raise ValueError("replicas of different models do not add one by one")
        return ReplicaNoise(chebyshev.add(self.changes, other.changes))

    def restrict(self, axis: int, t: float) -> "ReplicaNoise":
        return ReplicaNoise(chebyshev.restrict(self.changes, axis + 1, t))
