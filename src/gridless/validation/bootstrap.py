"""Bootstrap: how much estimates of the observed events fluctuate, from the events alone."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from gridless.curves.intervals import LEVEL, check_level
from gridless.errors import InputError, check_kind
from gridless.likelihood.estimate import read_only
from gridless.model.model import Model
from gridless.parallel import run
from gridless.results import printing
from gridless.templates.arrays import Array
from gridless.validation.limits import check_experiments
from gridless.validation.pseudo_experiments import BATCH, SHARED_BATCHES, Draws, best_values


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Estimates of copies of the observed events, in each of which every event counts a Poisson
    number of times, of mean 1.

    Results of further numbers, or other seeds, add up: `a + b`.

    Attributes
    ----------
    values : array (toys, parameters)
        The estimates.
    parameters : tuple of str
        The names of the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> bootstrap = Bootstrap(np.array([[0.1], [0.3], [0.2]]), ("theta",))
    >>> bootstrap.error.round(3)
    array([0.1])
    >>> bootstrap
    3 bootstraps of the observed events
      theta: error 0.1 +- 0.05
    """

    values: Array
    parameters: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))

    @property
    def error(self) -> Array:
        """The standard deviation of the estimates of each parameter."""
        return read_only(self.values.std(axis=0, ddof=1))

    @property
    def error_of_error(self) -> Array:
        """The statistical error of `error`."""
        return read_only(self.error / np.sqrt(2 * (len(self.values) - 1)))

    @property
    def covariance(self) -> Array:
        """The covariance matrix of the estimates."""
        return read_only(np.cov(self.values.T).reshape(len(self.parameters), -1))

    def interval(self, level: float = LEVEL) -> Array:
        """Quantiles of the estimates that leave (1 - level) / 2 on either side, (parameters, 2)."""
        half = 0.5 * check_level(level)
        return read_only(np.quantile(self.values, [0.5 - half, 0.5 + half], axis=0).T)

    def __add__(self, other: "Bootstrap") -> "Bootstrap":
        if self.parameters != other.parameters:
            raise InputError(
                f"bootstrap: of {', '.join(self.parameters)} does not add to one of "
                f"{', '.join(other.parameters)}; use the same model"
            )
        return Bootstrap(np.concatenate([self.values, other.values]), self.parameters)

    def to_dict(self) -> dict[str, Any]:
        """The bootstrap in what JSON can hold.

        Returns
        -------
        dict
            `parameters`, `toys`, `values` and, for each parameter, `error` and `error_of_error`.
        """
        return {
            "parameters": list(self.parameters),
            "toys": len(self.values),
            "values": self.values.tolist(),
            "error": self.error.tolist(),
            "error_of_error": self.error_of_error.tolist(),
        }

    def __str__(self) -> str:
        lines = [f"  {name}: error {error} +- {own}" for name, error, own in self._rows()]
        return "\n".join([self._summary(), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [[escape(name), f"{error} &plusmn; {own}"] for name, error, own in self._rows()]
        return f"{printing.table(['parameter', 'error'], rows)}<p>{self._summary()}</p>"

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = zip(self.parameters, self.error, self.error_of_error, strict=True)
        return [(name, f"{error:.4g}", f"{own:.1g}") for name, error, own in rows]

    def _summary(self) -> str:
        return f"{len(self.values):,} bootstraps of the observed events"


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

    The spread is the statistical error, whatever the weights of the events, and whether or not the
    model describes them. The error of the likelihood is right only if the model does.

    Parameters
    ----------
    model : Model
        The model that estimates.
    x : array (events, observables), data frame or Sample
        The observed events.
    weights : array (events,), optional
        Their weights, of either sign.
    toys : int
        Number of bootstraps.
    seed, first : int
        Bootstrap k is the same for the same seed; this does those from `first` on.
    executor : concurrent.futures.Executor or dask client, optional
        Runs the tasks; without one, this process does.

    Returns
    -------
    Bootstrap
        One estimate per bootstrap; `.error` is their standard deviation.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(events=2_000, seed=1), hidden=2, replicas=0, seed=1)
    >>> observed = example.sample(0.5, 1_000, seed=2)
    >>> error = gl.bootstrap(model, observed, toys=200).error[0]
    >>> bool(0.8 < error / model.likelihood(observed).maximum().stat < 1.2)
    True
    """
    check_kind(model, Model, "model")
    check_experiments(toys, None, seed, first)
    table, given = model.events(x, weights)
    # A task has whole groups of batches, which share their random numbers.
    group = BATCH * SHARED_BATCHES
    ends = range(first - first % group + group, first + toys, group)
    pieces = [range(a, b) for a, b in zip([first, *ends], [*ends, first + toys], strict=True)]
    tasks = [(model, table, given, seed, piece) for piece in pieces]
    values = np.concatenate(run(_bootstrap_estimates, tasks, executor, "bootstrap"))
    return Bootstrap(values, model.grid.parameters)


def _bootstrap_estimates(
    model: Model, table: Array, weights: Array | None, seed: int, numbers: range
) -> Array:
    """Estimates (experiments, parameters) of the bootstraps of those numbers."""
    draws = Draws(table, len(table), (seed, 0), weights=weights, poisson=True)
    return best_values(model, draws, numbers)
