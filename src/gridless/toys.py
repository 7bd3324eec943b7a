"""The examples of the paper, with their exact likelihoods as a yardstick."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.stats import gamma, norm

from gridless import chebyshev
from gridless.arrays import Array
from gridless.grid import Grid, grid
from gridless.likelihood import Likelihood
from gridless.templates import Templates


class Toy(ABC):
    """A model of events whose density p(x | theta) is known, for theta in [0, 1]."""

    observables: tuple[str, ...]

    @abstractmethod
    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        """One event (observables,) for each value of theta."""

    @abstractmethod
    def log_density(self, x: Array, theta: float) -> Array:
        """log p(x | theta) of each event."""

    def sample(self, theta: float, events: int, seed: int) -> Array:
        """`events` events at one theta, (events, observables)."""
        return self.draw(np.full(events, float(theta)), np.random.default_rng(seed))

    def templates(self, events: int, seed: int, templates: int = 10) -> Templates:
        """`events` events at each of `templates` values on the paper's grid."""
        theta = np.repeat(grid((0, 1), templates), events)
        x = self.draw(theta, np.random.default_rng(seed))
        return Templates(x, theta, bounds=(0, 1), observables=self.observables)

    def likelihood(self, x: Array) -> Likelihood:
        """The exact likelihood of the events."""
        bounds = Grid(np.zeros((0, 1)), np.array([[0.0, 1.0]]), ("theta",))
        c = chebyshev.approximate(
            lambda t: np.array([-self.log_density(x, value).sum() for value in t[:, 0]]),
            tolerance=1e-10 * len(x),
        )
        return Likelihood(c, bounds, len(x))


@dataclass(frozen=True)
class OneObservable(Toy):
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
class TwoObservables(Toy):
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
