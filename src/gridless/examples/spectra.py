"""Problems with peaks, edges, interference and cuts, as spectra have them.

theta lies in [0, 1] throughout. `python -m benchmarks.zoo` fits each of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import beta, expon, gamma, norm

from gridless.examples.example import Example
from gridless.examples.zoo import TINY
from gridless.templates.arrays import Array

Rows = NDArray[np.int64]
Kept = NDArray[np.bool_]


def accepted(
    events: int, propose: Callable[[int], Array], keep: Callable[[Array, Rows], Kept]
) -> Array:
    """Rejection sampling: one event for each row. `keep(x, rows)` says which of the proposed
    events x become those of `rows`."""
    found: Array | None = None
    left: Rows = np.arange(events)
    while len(left):
        x = propose(len(left))
        found = np.zeros((events, x.shape[1])) if found is None else found
        kept = keep(x, left)
        found[left[kept]] = x[kept]
        left = left[~kept]
    return np.zeros((0, 1)) if found is None else found


@dataclass(frozen=True)
class Oscillation(Example):
    """x in 0 to 1 with the density 1 + a cos(2 pi (1 + 1.5 theta) x), up to its integral."""

    amplitude: float = 0.7
    observables = ("x",)

    def _frequency(self, theta: Array | float) -> Array | float:
        return 2 * np.pi * (1 + 1.5 * theta)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        def keep(x: Array, rows: Rows) -> Kept:
            density = 1 + self.amplitude * np.cos(self._frequency(theta[rows]) * x[:, 0])
            return np.asarray(random.random(len(x)) * (1 + self.amplitude) < density)

        return accepted(len(theta), lambda n: random.random((n, 1)), keep)

    def log_density(self, x: Array, theta: float) -> Array:
        k = self._frequency(theta)
        total = 1 + self.amplitude * np.sin(k) / k
        return np.asarray(np.log((1 + self.amplitude * np.cos(k * x[:, 0])) / total))


@dataclass(frozen=True)
class Resonance(Example):
    """A peak of width 0.08 at 0.5 + theta over a falling spectrum, and a quality of each event."""

    share: float = 0.3
    width: float = 0.08
    observables = ("mass", "quality")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events = len(theta)
        signal = random.random(events) < self.share
        peak, falling = random.normal(0.5 + theta, self.width), random.exponential(1, events)
        good, bad = random.beta(3, 1.5, events), random.beta(1.5, 3, events)
        return np.stack([np.where(signal, peak, falling), np.where(signal, good, bad)], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        mass, quality = x.T
        signal = norm.pdf(mass, 0.5 + theta, self.width) * beta.pdf(quality, 3, 1.5)
        background = expon.pdf(mass) * beta.pdf(quality, 1.5, 3)
        return np.asarray(np.log(self.share * signal + (1 - self.share) * background + TINY))


@dataclass(frozen=True)
class Lifetime(Example):
    """A decay time of mean 0.3 + 1.2 theta, measured with a resolution; and a momentum that says
    nothing."""

    resolution: float = 0.2
    observables = ("time", "momentum")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events = len(theta)
        time = random.exponential(0.3 + 1.2 * theta) + random.normal(0, self.resolution, events)
        return np.stack([time, random.lognormal(3, 0.7, events)], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        rate, time = 1 / (0.3 + 1.2 * theta), x[:, 0]
        smeared = log_ndtr(time / self.resolution - rate * self.resolution)
        return np.asarray(
            np.log(rate) - rate * time + 0.5 * (rate * self.resolution) ** 2 + smeared
        )


@dataclass(frozen=True)
class Interference(Example):
    """A coupling c = 3 theta - 1 whose square and interference change energy and angle: the
    density is a quadratic in c over its integral."""

    observables = ("energy", "cosine")

    def _density(self, x: Array, c: Array | float) -> Array:
        energy, cosine = x.T
        linear = (1 + 0.15 * c * energy * cosine) ** 2
        square = (0.1 * c * energy) ** 2 * (1 - cosine**2)
        return np.asarray(np.exp(-energy) * (linear + square + 0.5 * cosine**2))

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        def propose(events: int) -> Array:
            high = random.random(events) < 0.5
            energy = random.gamma(np.where(high, 3.0, 1.0))
            return np.stack([energy, random.uniform(-1, 1, events)], axis=1)

        def keep(x: Array, rows: Rows) -> Kept:
            proposed = 0.5 * gamma.pdf(x[:, 0], 1) + 0.5 * gamma.pdf(x[:, 0], 3)
            density = self._density(x, 3 * theta[rows] - 1)
            return np.asarray(random.random(len(x)) * 4 < density / proposed)

        return accepted(len(theta), propose, keep)

    def log_density(self, x: Array, theta: float) -> Array:
        c = 3 * theta - 1
        total = 2 + 1 / 3 + c**2 * (0.15**2 * 4 / 3 + 0.1**2 * 8 / 3)
        return np.asarray(np.log(self._density(x, c) / total))


@dataclass(frozen=True)
class CutWindow(Example):
    """x ~ N(theta, 0.6), of which only 0.2 to 1.4 is selected, and y ~ N(0.3 theta x, 1) of it."""

    width: float = 0.6
    low: float = 0.2
    high: float = 1.4
    observables = ("x", "y")

    def _edges(self, theta: Array | float) -> tuple[Array, Array]:
        low, high = ((edge - theta) / self.width for edge in (self.low, self.high))
        return ndtr(low), ndtr(high)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        low, high = self._edges(theta)
        x = theta + self.width * ndtri(random.uniform(low, high))
        return np.stack([x, random.normal(0.3 * theta * x, 1)], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        low, high = self._edges(theta)
        first = norm.logpdf(x[:, 0], theta, self.width) - np.log(high - low)
        return np.asarray(first + norm.logpdf(x[:, 1], 0.3 * theta * x[:, 0], 1))


@dataclass(frozen=True)
class Ring(Example):
    """Hits on a ring of radius 1 + 0.3 theta and Gaussian thickness 0.3, squeezed along the second
    of its coordinates by theta: no mean depends on it, and the density is not of one piece."""

    thickness: float = 0.3
    observables = ("x", "y")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events = len(theta)
        radius = random.normal(1 + 0.3 * theta, self.thickness)
        angle = random.uniform(0, 2 * np.pi, events)
        return np.stack([radius * np.cos(angle), (1 - 0.3 * theta) * radius * np.sin(angle)], 1)

    def log_density(self, x: Array, theta: float) -> Array:
        squeezed = 1 - 0.3 * theta
        radius = np.hypot(x[:, 0], x[:, 1] / squeezed)
        # A negative radius is a hit on the other side.
        both = norm.pdf(radius, 1 + 0.3 * theta, self.thickness)
        both = both + norm.pdf(-radius, 1 + 0.3 * theta, self.thickness)
        return np.asarray(np.log(both + TINY) - np.log(radius) - np.log(squeezed))


@dataclass(frozen=True)
class EnergyLoss(Example):
    """Losses with a long tail upwards, as in thin layers: exp(-(z + exp(-z)) / 2) of
    z = (x - theta) / 0.3, and a number of hits that falls with theta."""

    width: float = 0.3
    observables = ("loss", "hits")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        # exp(-z) is chi-square distributed with one degree of freedom.
        z = -np.log(random.chisquare(1, len(theta)).clip(min=TINY))
        hits = random.poisson(6 - 2 * theta)
        return np.stack([theta + self.width * z, hits], axis=1)

    def log_density(self, x: Array, theta: float) -> Array:
        z = (x[:, 0] - theta) / self.width
        mean = 6 - 2 * theta
        return np.asarray(-0.5 * (z + np.exp(-z)) + x[:, 1] * np.log(mean) - mean)


@dataclass(frozen=True)
class Counts(Example):
    """Three counts of means 0.3 + 0.7 theta, 3 - 1.5 theta and 10 + 2 theta^2."""

    observables = ("few", "some", "many")

    def _means(self, theta: Array | float) -> tuple[Array | float, ...]:
        return 0.3 + 0.7 * theta, 3 - 1.5 * theta, 10 + 2 * theta**2

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        return np.stack([random.poisson(mean) for mean in self._means(theta)], axis=1).astype(float)

    def log_density(self, x: Array, theta: float) -> Array:
        means = np.array(self._means(theta))
        return np.asarray(x @ np.log(means) - means.sum())


@dataclass(frozen=True)
class OnlyCorrelation(Example):
    """Six pairs of observables whose correlation is 0.5 theta: no single one depends on it."""

    strength: float = 0.5
    observables = tuple(f"x{j}" for j in range(12))

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        y = random.normal(size=(len(theta), 12))
        r = (self.strength * theta)[:, None]
        y[:, 1::2] = r * y[:, ::2] + np.sqrt(1 - r**2) * y[:, 1::2]
        return np.hstack([y[:, :6], np.sinh(y[:, 6:])])

    def log_density(self, x: Array, theta: float) -> Array:
        y = np.hstack([x[:, :6], np.arcsinh(x[:, 6:])])
        r = self.strength * theta
        of_pairs = norm.logpdf(y[:, 1::2], r * y[:, ::2], np.sqrt(1 - r**2))
        return np.asarray(of_pairs.sum(axis=1))
