"""What an example of a measurement is: systematics and backgrounds with an exact likelihood."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.examples.example import Example
from gridless.systematics.inputs import Background, Systematic
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates

if TYPE_CHECKING:
    from gridless.model.model import Model

STEP = 1e-3  # of each parameter, for slopes of the exact log density
LONGEST_STEP = 1.0  # in any parameter, until it converges
MOST_STEPS = 30  # of the exact fit
CONVERGED = 1e-8  # units of log likelihood


@dataclass(frozen=True)
class Exact:
    """The exact profiled likelihood of a sample: values of theta and all nuisance parameters, their
    covariance, and the impact of each nuisance parameter on theta."""

    values: Array
    covariance: Array
    impacts: Array

    @property
    def value(self) -> float:
        """The best theta."""
        return float(self.values[0])

    @property
    def error(self) -> float:
        """Its error, every systematic included."""
        return float(np.sqrt(self.covariance[0, 0]))


class Profiled(Example):
    """A measurement whose density p(x | theta, alpha) is known, alpha of unit constraints."""

    @property
    @abstractmethod
    def nuisances(self) -> tuple[str, ...]:
        """The names of all alpha: systematics, then the background."""

    @abstractmethod
    def observed(self, theta: Array, alpha: Array, random: np.random.Generator) -> Array:
        """One event for each theta with the nuisance parameters at alpha."""

    @abstractmethod
    def log_profile(self, x: Array, p: Array) -> Array:
        """log p(x | theta, alpha) of each event, p = (theta, alpha)."""

    @abstractmethod
    def simulate(
        self, events: int, seed: int, kind: str = "same", templates: int = 10
    ) -> tuple[Templates, list[Systematic], list[Background]]:
        """Signal templates of `events` events each, with systematics and the background."""

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        """One event for each theta, a background with its share."""
        return self.observed(theta, np.zeros(len(self.nuisances)), random)

    def log_density(self, x: Array, theta: Any) -> Array:
        return self.log_profile(x, np.concatenate([[theta], np.zeros(len(self.nuisances))]))

    def exact(self, x: Array, start: Array | None = None) -> Exact:
        """The minimum of -sum log p(x | theta, alpha) + alpha^2 / 2, by Newton steps with the outer
        product of the scores."""
        count = 1 + len(self.nuisances)
        p = np.concatenate([[0.5], np.zeros(count - 1)]) if start is None else start.copy()
        prior = np.diag([0.0, *[1.0] * (count - 1)])
        for _ in range(MOST_STEPS):
            scores = self.scores(x, p)
            gradient = -scores.sum(axis=0) + prior @ p
            hessian = scores.T @ scores + prior
            step = np.linalg.solve(hessian, gradient)
            p = p - step * min(1.0, LONGEST_STEP / np.abs(step).max())
            if gradient @ step < CONVERGED:
                break
        scores = self.scores(x, p)
        covariance = np.asarray(np.linalg.inv(scores.T @ scores + prior))
        return Exact(p, covariance, covariance[0, 1:])

    def scores(self, x: Array, p: Array) -> Array:
        """d log p / d (theta, alpha) of each event."""
        found = []
        for axis in range(len(p)):
            step = np.zeros_like(p)
            step[axis] = STEP
            found.append(
                (self.log_profile(x, p + step) - self.log_profile(x, p - step)) / (2 * STEP)
            )
        return np.stack(found, axis=1)

    def fit(self, events: int, seed: int, kind: str = "same", **options: Any) -> "Model":
        """A model of `simulate(events, seed, kind)`."""
        from gridless.fitting import fit

        templates, systematics, backgrounds = self.simulate(events, seed, kind)
        return fit(
            templates, systematics=systematics, backgrounds=backgrounds, seed=seed, **options
        )
