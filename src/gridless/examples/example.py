"""What an example is: a problem whose density is known, as a yardstick for what a fit learns."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gridless.curves import chebyshev
from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid, grid
from gridless.templates.templates import Templates


class Example(ABC):
    """A problem whose density p(x | theta) is known, so that its likelihood is exact.

    Every parameter lies in [0, 1]. With one parameter theta is a number, with several an array of
    them on the last axis.

    Examples
    --------
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable(width=0.5)
    >>> example.templates(1_000, seed=1)
    Templates: 10,000 events at 10 values of theta, observables x
    >>> estimate = example.likelihood(example.sample(0.3, 2_000, seed=2)).maximum()
    >>> abs(estimate.value - 0.3) < 3 * estimate.error
    True
    """

    observables: tuple[str, ...]
    parameters: tuple[str, ...] = ("theta",)

    @abstractmethod
    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        """One event (observables,) for each value of theta."""

    @abstractmethod
    def log_density(self, x: Array, theta: Any) -> Array:
        """log p(x | theta) of each event."""

    def sample(self, theta: Any, events: int, seed: int) -> Array:
        """`events` events at one theta, (events, observables)."""
        theta_of_event = np.repeat(np.asarray(theta, float)[None], events, axis=0)
        return self.draw(theta_of_event, np.random.default_rng(seed))

    def templates(
        self,
        events: int | Sequence[int],
        seed: int,
        templates: int = 10,
        at: ArrayLike | None = None,
    ) -> Templates:
        """`events` events at each template: on the paper's grid with `templates` values of each
        parameter, or `at` the given values."""
        count = len(self.parameters)
        if at is None:
            axes = [grid((0, 1), templates)] * count
            at = np.array(list(product(*axes))) if count > 1 else axes[0]
        theta = np.repeat(np.asarray(at, float), events, axis=0)
        x = self.draw(theta, np.random.default_rng(seed))
        return Templates(
            x,
            theta,
            bounds=[(0, 1)] * count,
            observables=self.observables,
            parameters=self.parameters,
        )

    def likelihood(self, x: Array) -> Likelihood:
        """The exact likelihood of the events."""
        count = len(self.parameters)
        bounds = Grid(np.zeros((0, count)), np.array([[0.0, 1.0]] * count), self.parameters)
        c = chebyshev.approximate(
            lambda t: np.array(
                [-self.log_density(x, row if count > 1 else row[0]).sum() for row in t]
            ),
            1e-10 * len(x),
            count,
        )
        return Likelihood([Channel(c, bounds, len(x))])
