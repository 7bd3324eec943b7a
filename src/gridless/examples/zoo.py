"""Problems of many families. docs/method.md says which of them settings were chosen on.

theta lies in [0, 1] throughout. `python -m benchmarks.zoo` fits each of them.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln
from scipy.stats import beta, expon, gamma, norm, t, vonmises

from gridless.examples.example import Example
from gridless.templates.arrays import Array

TINY = 1e-300  # densities are no less, so that their logs are finite


@dataclass(frozen=True)
class SharpEdges(Example):
    """Five observables with hard edges, one of which resolves a tenth of the range per event.

    x1 is a Gaussian core with wider tails around theta; x2 and x4 are powers of uniform numbers,
    x3 is exponential, x5 beta: each ends at an edge that does not move.
    """

    width: float = 0.1
    wide: float = 0.18
    wide_share: float = 0.3
    observables = ("x1", "x2", "x3", "x4", "x5")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events = len(theta)
        width = np.where(random.random(events) < self.wide_share, self.wide, self.width)
        return np.stack(
            [
                random.normal(theta, width),
                random.random(events) ** (1 / (1 + theta)),
                random.exponential(0.5 + theta),
                1 - random.random(events) ** (1 / (1 + 2 * theta)),
                random.beta(2, 2 + 3 * theta),
            ],
            axis=1,
        )

    def log_density(self, x: Array, theta: float) -> Array:
        x1, x2, x3, x4, x5 = x.T
        core, tail = (norm.pdf(x1, theta, width) for width in (self.width, self.wide))
        return np.asarray(
            np.log((1 - self.wide_share) * core + self.wide_share * tail + TINY)
            + np.log(1 + theta)
            + theta * np.log(x2)
            + expon.logpdf(x3, scale=0.5 + theta)
            + np.log(1 + 2 * theta)
            + 2 * theta * np.log1p(-x4)
            + beta.logpdf(x5, 2, 2 + 3 * theta)
        )


@dataclass(frozen=True)
class HardToTell(Example):
    """A mass whose whole range changes the observables by a few percent, as that of the W does.

    x1 ~ Gamma(shape, scale (1 + change theta)), x2 ~ N(0.04 theta, 1).
    """

    change: float = 0.06
    shape: float = 4.0
    observables = ("x1", "x2")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        x1 = random.gamma(self.shape, 0.25 * (1 + self.change * theta))
        return np.stack([x1, random.normal(0.04 * theta, 1)], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        first = gamma.logpdf(x[:, 0], self.shape, scale=0.25 * (1 + self.change * theta))
        return np.asarray(first + norm.logpdf(x[:, 1], 0.04 * theta, 1))


@dataclass(frozen=True)
class BackgroundShare(Example):
    """The parameter is the share of a background: p = (1 - theta) N(1, 0.2) + theta Exp(1)."""

    width: float = 0.2
    observables = ("x",)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events = len(theta)
        background = random.random(events) < theta
        signal = random.normal(1, self.width, events)
        return np.where(background, random.exponential(1, events), signal)[:, None]

    def log_density(self, x: Array, theta: float) -> Array:
        signal, background = norm.pdf(x[:, 0], 1, self.width), expon.pdf(x[:, 0])
        return np.asarray(np.log((1 - theta) * signal + theta * background + TINY))


@dataclass(frozen=True)
class TwoSolutions(Example):
    """x1 ~ N(4 (theta - 1/2)^2, 0.5) cannot tell two values apart, x2 ~ N(theta, 1) hardly can."""

    width: float = 0.5
    observables = ("x1", "x2")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        x1 = random.normal(4 * (theta - 0.5) ** 2, self.width)
        return np.stack([x1, random.normal(theta, 1)], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        first = norm.logpdf(x[:, 0], 4 * (theta - 0.5) ** 2, self.width)
        return np.asarray(first + norm.logpdf(x[:, 1], theta, 1))


@dataclass(frozen=True)
class OnlyWidth(Example):
    """x ~ N(0, 0.5 + theta): no mean depends on the parameter."""

    observables = ("x",)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        return random.normal(0, 0.5 + theta)[:, None]

    def log_density(self, x: Array, theta: float) -> Array:
        return np.asarray(norm.logpdf(x[:, 0], 0, 0.5 + theta))


@dataclass(frozen=True)
class OnlyTail(Example):
    """A falling spectrum whose tail alone depends on theta: nine tenths Exp(1), one tenth
    Exp(1 + 2 theta)."""

    share: float = 0.1
    observables = ("x",)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        tail = random.random(len(theta)) < self.share
        return random.exponential(np.where(tail, 1 + 2 * theta, 1.0))[:, None]

    def log_density(self, x: Array, theta: float) -> Array:
        core, tail = expon.pdf(x[:, 0]), expon.pdf(x[:, 0], scale=1 + 2 * theta)
        return np.asarray(np.log((1 - self.share) * core + self.share * tail + TINY))


@dataclass(frozen=True)
class AngleAndCount(Example):
    """An angle in -pi to pi around pi theta, of von Mises' density, and a count of mean
    2 + 2 theta."""

    concentration: float = 0.8
    observables = ("phi", "jets")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        phi = random.vonmises(np.pi * theta, self.concentration)
        return np.stack([phi, random.poisson(2 + 2 * theta)], axis=1).astype(float)

    def log_density(self, x: Array, theta: float) -> Array:
        mean = 2 + 2 * theta
        counted = x[:, 1] * np.log(mean) - mean - gammaln(x[:, 1] + 1)
        return np.asarray(vonmises.logpdf(x[:, 0], self.concentration, np.pi * theta) + counted)


@dataclass(frozen=True)
class HeavyTails(Example):
    """x1 around theta with the tails of Student's t of 1.5 degrees of freedom, x2 log-normal."""

    dof: float = 1.5
    observables = ("x1", "x2")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        x1 = theta + random.standard_t(self.dof, len(theta))
        return np.stack([x1, np.exp(random.normal(0.5 * theta, 2))], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        second = norm.logpdf(np.log(x[:, 1]), 0.5 * theta, 2)
        return np.asarray(t.logpdf(x[:, 0] - theta, self.dof) + second)


@dataclass(frozen=True)
class UselessObservables(Example):
    """One observable, N(theta, 0.7), beside twenty that say nothing."""

    width: float = 0.7
    observables = ("x", *(f"useless{j}" for j in range(20)))

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        good = random.normal(theta, self.width)
        return np.hstack([good[:, None], random.normal(size=(len(theta), 20))])

    def log_density(self, x: Array, theta: float) -> Array:
        return np.asarray(norm.logpdf(x[:, 0], theta, self.width))
