"""Where uncertainty comes from: the scores of the observed events, and other sources by name.

A source knows what it could change in the likelihood of a channel, as curves. Parts of one model
vary together; different models vary independently. A source of another kind is another class here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from gridless.curves import chebyshev
from gridless.curves.curve import Curve
from gridless.templates.arrays import Array

LEAST_FREE = 0.5  # events beyond the number of parameters: with fewer, the spread says nothing


@dataclass(frozen=True, eq=False)
class ScoreSpread:
    """The variance of the slope of a likelihood of events: sum_i w_i^2 s_i s_i^T, with the score
    s_i = d log p(t | x_i) / dt of each event.

    Attributes
    ----------
    coefficients : array (parameters, parameters, ...)
        Chebyshev coefficients of every element.
    squares, fourths : float
        Sums of w^2 and of w^4 of events whose own scores are in the sum.
    known : float
        The number of events of which the simulation says what they add.

    Examples
    --------
    >>> ten = ScoreSpread(np.full((1, 1, 1), 5.0), squares=10.0, fourths=10.0)
    >>> (ten + ten).covariance(np.array([0.5])).round(2).tolist()
    [[10.53]]
    """

    coefficients: Array
    squares: float = 0.0
    fourths: float = 0.0
    known: float = 0.0

    def covariance(self, t: Array) -> Array:
        """The matrix (parameters, parameters) at a point of the unit box.

        Where the parameters are fitted to the same events, the sum is too small: it is multiplied
        by n / (n - parameters), n = (sum w^2)^2 / sum w^4.
        """
        matrix = np.array([[Curve.of(c).value(t) for c in row] for row in self.coefficients])
        if not self.fourths:
            return matrix
        events = self.squares**2 / self.fourths + self.known
        return np.asarray(matrix * events / max(events - len(matrix), LEAST_FREE))

    def __add__(self, other: "ScoreSpread") -> "ScoreSpread":
        return ScoreSpread(
            chebyshev.add(self.coefficients, other.coefficients),
            self.squares + other.squares,
            self.fourths + other.fourths,
            self.known + other.known,
        )

    def restrict(self, axis: int, t: float) -> "ScoreSpread":
        """The same with one parameter held at t."""
        rest = np.delete(np.delete(self.coefficients, axis, 0), axis, 1)
        return replace(self, coefficients=chebyshev.restrict(rest, axis + 2, t))


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
