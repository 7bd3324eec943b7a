"""Problems that real ntuples bring: marks of missing values, categories, overflows, rare signals.

theta lies in [0, 1] throughout. `python -m benchmarks.zoo` fits each of them.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax
from scipy.stats import beta, expon, gamma, norm

from gridless.examples.example import Example
from gridless.examples.zoo import TINY
from gridless.templates.arrays import Array


@dataclass(frozen=True)
class MissingJet(Example):
    """The momenta of two jets, and an angle: without a second jet, as in a third of the events, its
    momentum is -1 and the angle -999."""

    mark: float = -999.0
    observables = ("first", "second", "angle")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        missing = random.random(len(theta)) < 0.3 + 0.1 * theta
        first, second = random.gamma(3, 20 + 6 * theta), random.gamma(2, 15 + 9 * theta)
        angle = random.normal(theta, 1)
        return np.stack(
            [first, np.where(missing, -1.0, second), np.where(missing, self.mark, angle)], axis=1
        )

    def log_density(self, x: Array, theta: float) -> Array:
        first, second, angle = x.T
        missing, share = second == -1, 0.3 + 0.1 * theta
        jet = gamma.logpdf(np.where(missing, 1.0, second), 2, scale=15 + 9 * theta)
        of_second = np.log(1 - share) + jet + norm.logpdf(angle, theta, 1)
        return np.asarray(
            gamma.logpdf(first, 3, scale=20 + 6 * theta)
            + np.where(missing, np.log(share), of_second)
        )


@dataclass(frozen=True)
class Categories(Example):
    """One of five categories, coded 0 to 4 in no order, whose shares depend on theta; and x, whose
    mean follows theta forwards in some of them and backwards in others."""

    observables = ("category", "x")

    def _log_shares(self, theta: Array | float) -> Array:
        slopes = np.array([0.0, -0.8, 0.9, 0.4, -0.1])
        logits = np.array([0.0, 0.5, -0.5, 0.2, -0.3]) + np.multiply.outer(theta, slopes)
        return np.asarray(log_softmax(logits, axis=-1))

    def _mean(self, category: Array, theta: Array | float) -> Array:
        return np.asarray(np.array([1.0, -1.0, 0.5, 0.0, -0.5])[category.astype(int)] * theta)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        below = np.exp(self._log_shares(theta)).cumsum(axis=1)[:, :-1]
        category = (random.random(len(theta))[:, None] > below).sum(axis=1).astype(float)
        return np.stack([category, random.normal(self._mean(category, theta), 1)], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        shares = self._log_shares(theta)[x[:, 0].astype(int)]
        return np.asarray(shares + norm.logpdf(x[:, 1], self._mean(x[:, 0], theta), 1))


@dataclass(frozen=True)
class Overflow(Example):
    """A falling spectrum of mean 0.5 + theta; what lies beyond 1.5 is at 1.5."""

    edge: float = 1.5
    observables = ("x",)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        return np.minimum(random.exponential(0.5 + theta), self.edge)[:, None]

    def log_density(self, x: Array, theta: float) -> Array:
        mean, inside = 0.5 + theta, x[:, 0] < self.edge
        return np.asarray(np.where(inside, -np.log(mean) - x[:, 0] / mean, -self.edge / mean))


@dataclass(frozen=True)
class RareSignal(Example):
    """One event in a hundred is in a peak at 0.2 + 0.6 theta over a flat background; a second
    observable tells most of the background."""

    share: float = 0.01
    width: float = 0.04
    observables = ("mass", "quality")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events = len(theta)
        signal = random.random(events) < self.share
        peak, flat = random.normal(0.2 + 0.6 * theta, self.width), random.random(events)
        good, bad = random.beta(6, 1, events), random.beta(1, 3, events)
        return np.stack([np.where(signal, peak, flat), np.where(signal, good, bad)], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        mass, quality = x.T
        signal = norm.pdf(mass, 0.2 + 0.6 * theta, self.width) * beta.pdf(quality, 6, 1)
        flat = ((mass >= 0) & (mass <= 1)) * beta.pdf(quality, 1, 3)
        return np.asarray(np.log(self.share * signal + (1 - self.share) * flat + TINY))


@dataclass(frozen=True)
class ThreeSolutions(Example):
    """x1 ~ N(cos(3 pi theta), 0.8) goes to and fro: it leaves three values open, of which
    x2 ~ N(theta, 0.5) tells one."""

    width: float = 0.8
    observables = ("x1", "x2")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        x1 = random.normal(np.cos(3 * np.pi * theta), self.width)
        return np.stack([x1, random.normal(theta, 0.5)], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        first = norm.logpdf(x[:, 0], np.cos(3 * np.pi * theta), self.width)
        return np.asarray(first + norm.logpdf(x[:, 1], theta, 0.5))


@dataclass(frozen=True)
class MassAndShare(Example):
    """Two parameters: a peak of width 0.15 at 0.4 + 0.6 mass over a falling background, whose share
    is 0.2 + 0.6 share."""

    width: float = 0.15
    observables = ("x",)
    parameters = ("mass", "share")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events = len(theta)
        background = random.random(events) < 0.2 + 0.6 * theta[:, 1]
        peak = random.normal(0.4 + 0.6 * theta[:, 0], self.width)
        return np.where(background, random.exponential(0.5, events), peak)[:, None]

    def log_density(self, x: Array, theta: Array) -> Array:
        mass, share = theta
        background = 0.2 + 0.6 * share
        signal = norm.pdf(x[:, 0], 0.4 + 0.6 * mass, self.width)
        falling = expon.pdf(x[:, 0], scale=0.5)
        return np.asarray(np.log((1 - background) * signal + background * falling + TINY))
