"""Bootstrap: how much estimates of the observed events fluctuate, asked of the events alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.intervals import LEVEL, check_level
from gridless.model.model import Model
from gridless.parallel import run
from gridless.templates.arrays import Array
from gridless.validation.pseudo_experiments import BATCH, TURNS, Draws, estimates


@dataclass(frozen=True)
class Bootstrap:
    """Estimates (toys, parameters) of copies of the observed events, in each of which every event
    counts a Poisson number of times, of mean 1.

    Results of further numbers, or other seeds, add up: `a + b`.
    """

    values: Array
    parameters: tuple[str, ...]

    @property
    def error(self) -> Array:
        """The standard deviation of the estimates, of each parameter."""
        return np.asarray(self.values.std(axis=0, ddof=1))

    @property
    def error_of_error(self) -> Array:
        """The statistical error of `error`."""
        return np.asarray(self.error / np.sqrt(2 * (len(self.values) - 1)))

    @property
    def covariance(self) -> Array:
        """The covariance matrix of the estimates."""
        return np.asarray(np.cov(self.values.T)).reshape(len(self.parameters), -1)

    def interval(self, level: float = LEVEL) -> Array:
        """Quantiles of the estimates that leave (1 - level) / 2 on either side, (parameters, 2)."""
        half = 0.5 * check_level(level)
        return np.quantile(self.values, [0.5 - half, 0.5 + half], axis=0).T

    def __add__(self, other: "Bootstrap") -> "Bootstrap":
        if self.parameters != other.parameters:
            raise InputError("bootstrap: does not add: of other parameters")
        return Bootstrap(np.concatenate([self.values, other.values]), self.parameters)

    def __str__(self) -> str:
        rows = zip(self.parameters, self.error, self.error_of_error, strict=True)
        lines = [f"  {name}: error {error:.4g} +- {own:.1g}" for name, error, own in rows]
        return "\n".join([f"{len(self.values):,} bootstraps of the observed events", *lines])


def bootstrap(
    model: Model,
    x: Any,
    weights: Any = None,
    toys: int = 1000,
    seed: int = 0,
    first: int = 0,
    executor: Any = None,
) -> Bootstrap:
    """Estimate the observed events `toys` times, each event counting a Poisson number of times.

    The spread is the statistical error, whatever the events' weights, and whether or not the model
    describes them: the likelihood's own error is right if it does.

    Parameters
    ----------
    seed, first
        Number k is the same for the same seed; this does those from `first` on.
    executor
        Where to work: a `concurrent.futures.Executor` or a dask client.
    """
    if toys < 2:
        raise InputError(f"toys: {toys}; give at least 2 bootstraps")
    table, given = model.events(x, weights)
    size = BATCH * TURNS
    ends = range(first - first % size + size, first + toys, size)
    pieces = [range(a, b) for a, b in zip([first, *ends], [*ends, first + toys], strict=True)]
    tasks = [(model, table, given, seed, piece) for piece in pieces]
    values = np.concatenate(run(_some, tasks, executor, "bootstrap"))
    return Bootstrap(values, model.grid.parameters)


def _some(model: Model, table: Array, weights: Array | None, seed: int, numbers: range) -> Array:
    draws = Draws(table, len(table), (seed, 0), weights=weights, poisson=True)
    return estimates(model, draws, numbers)[0]
