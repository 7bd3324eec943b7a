"""The examples of the paper, and two beyond it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import gamma, multivariate_normal, norm

from gridless.examples.example import Example
from gridless.templates.arrays import Array


@dataclass(frozen=True)
class OneObservable(Example):
    """x ~ N(theta, width): the example of section 5.2, and with width 4 that of section 5.1."""

    width: float = 1.0
    observables = ("x",)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        return random.normal(theta, self.width)[:, None]

    def log_density(self, x: Array, theta: float) -> Array:
        return np.asarray(norm.logpdf(x[:, 0], theta, self.width))

    def quantiles(self, theta: float, events: int = 10_000) -> Array:
        """The exact quantiles of p(x | theta): a sample without statistical fluctuation."""
        return np.asarray(norm.ppf((np.arange(events) + 0.5) / events, theta, self.width))[:, None]


@dataclass(frozen=True)
class TwoObservables(Example):
    """The example of section 5.3: x1 depends on theta only where x2 is small.

    p(x1, x2 | theta) = f N(x1; theta, 0.5) N(x2; 1, 0.5)
                        + (1 - f) Gamma(x1 - shift; shape, 1) N(x2; 3, 0.5).
    The paper gives the means 1 and 3 in x2 and the kinds of the densities; the other numbers here
    are our choice.
    """

    fraction: float = 0.5
    width: float = 0.5
    low_mean: float = 1.0
    high_mean: float = 3.0
    width_2: float = 0.5
    shift: float = -1.0
    shape: float = 3.0
    scale: float = 0.5
    observables = ("x1", "x2")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events = len(theta)
        sensitive = random.random(events) < self.fraction
        x1 = np.where(
            sensitive,
            random.normal(theta, self.width),
            self.shift + random.gamma(self.shape, self.scale, events),
        )
        x2 = random.normal(np.where(sensitive, self.low_mean, self.high_mean), self.width_2)
        return np.stack([x1, x2], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        x1, x2 = x.T
        sensitive = norm.logpdf(x1, theta, self.width) + norm.logpdf(
            x2, self.low_mean, self.width_2
        )
        other = gamma.logpdf(x1, self.shape, self.shift, self.scale) + norm.logpdf(
            x2, self.high_mean, self.width_2
        )
        both = np.log(self.fraction) + sensitive, np.log1p(-self.fraction) + other
        return np.asarray(np.logaddexp(*both))


@dataclass(frozen=True)
class ManyObservables(Example):
    """Ten correlated observables, each weakly sensitive, of very different scales and tails.

    y ~ N(0.25 theta (1, -1, 1, ...), 0.7 + 0.3 between any two); the first half is observed as
    x_j = 10^(j - 2) y_j, the second as x_j = exp(1.5 y_j).
    """

    shift: float = 0.25
    correlation: float = 0.3
    observables = tuple(f"x{j}" for j in range(10))

    @property
    def _covariance(self) -> Array:
        return self.correlation + (1 - self.correlation) * np.eye(10)

    def _mean(self, theta: Any) -> Array:
        return np.asarray(np.multiply.outer(theta, self.shift * (-1.0) ** np.arange(10)))

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        y = self._mean(theta) + random.multivariate_normal(
            np.zeros(10), self._covariance, len(theta), method="cholesky"
        )
        return np.hstack([y[:, :5] * 10.0 ** np.arange(-2, 3), np.exp(1.5 * y[:, 5:])])

    def log_density(self, x: Array, theta: Any) -> Array:
        # Without the Jacobian, which does not depend on theta.
        y = np.hstack([x[:, :5] / 10.0 ** np.arange(-2, 3), np.log(x[:, 5:]) / 1.5])
        return np.asarray(multivariate_normal.logpdf(y, self._mean(theta), self._covariance))


@dataclass(frozen=True)
class TwoParameters(Example):
    """x1 ~ N(t1, 1), x2 ~ N(t1 / 2, 1 + 0.4 t2)."""

    observables = ("x1", "x2")
    parameters = ("t1", "t2")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        t1, t2 = theta.T
        return np.stack([random.normal(t1, 1), random.normal(t1 / 2, 1 + 0.4 * t2)], axis=1)

    def log_density(self, x: Array, theta: Any) -> Array:
        t1, t2 = theta
        return np.asarray(norm.logpdf(x[:, 0], t1, 1) + norm.logpdf(x[:, 1], t1 / 2, 1 + 0.4 * t2))
