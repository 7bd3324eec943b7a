"""Closure: estimating samples whose theta is known, on and between the templates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.estimate import STAT, Estimate, correlation
from gridless.likelihood.restrict import restricted
from gridless.model.model import Model
from gridless.parallel import run
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates

Samples = Templates | Mapping[Any, Any] | Iterable[tuple[Any, Any]]


@dataclass(frozen=True)
class Closure:
    """True and estimated theta of each sample; prints as a table.

    With one parameter `true`, `value`, `pull` have one number per sample, `interval` two; with
    several they have a further axis of parameters.
    """

    truth: Array
    estimates: tuple[Estimate, ...]
    level: float | None = None
    """Confidence level of the intervals in `wider`."""
    wider: Array | None = None
    """(samples, parameters, 2): intervals at `level`."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.estimates[0].parameters

    @property
    def true(self) -> Array:
        """The true theta of each sample."""
        return self._plain(self.truth)

    @property
    def value(self) -> Array:
        """The estimated theta of each sample."""
        return self._plain(self._values)

    @property
    def interval(self) -> Array:
        """(low, high) of each sample, statistical."""
        ends = self._stat_intervals
        return ends[:, 0] if len(self.parameters) == 1 else ends

    @property
    def error(self) -> Array:
        """The error of each sample on the side of the true value, both uncertainties together.

        The one from simulation is common to all samples of a model: where it dominates, pulls are
        alike and chi2/dof may be far below 1.

        Where a bound cuts the interval short on that side, the error of the other side is taken.
        """
        return self._plain(self._errors)

    @property
    def pull(self) -> Array:
        """(estimated - true) / error."""
        return self._plain((self._values - self.truth) / self._errors)

    @property
    def chi2(self) -> float:
        """Sum of the squared pulls; with several parameters, with their correlations."""
        pulls = (self._values - self.truth) / self._errors
        total = 0.0
        for pull, estimate in zip(pulls, self.estimates, strict=True):
            total += float(pull @ np.linalg.solve(correlation(estimate.covariances[STAT]), pull))
        return total

    @property
    def dof(self) -> int:
        """Number of estimated values: nothing is fitted."""
        return int(self.truth.size)

    @property
    def lines(self) -> tuple[tuple[float, float], ...]:
        """Slope and intercept of estimated against true theta of each parameter, weighted by the
        errors."""
        fits = [
            np.polyfit(self.truth[:, p], self._values[:, p], 1, w=1 / self._errors[:, p])
            for p in range(len(self.parameters))
        ]
        return tuple((float(slope), float(intercept)) for slope, intercept in fits)

    @property
    def line(self) -> tuple[float, float]:
        """Slope and intercept of the (first) parameter."""
        return self.lines[0]

    @property
    def _values(self) -> Array:
        return np.array([estimate.values for estimate in self.estimates])

    @property
    def _errors(self) -> Array:
        sides = np.abs(self._stat_intervals - self._values[..., None])
        cut = np.array([[one.stat_cut for one in e.results] for e in self.estimates])
        sides = np.where(cut & ~cut[..., ::-1], sides[..., ::-1], sides)
        error = np.where(self._values > self.truth, sides[..., 0], sides[..., 1])
        simulation = [[one.simulation or 0.0 for one in e.results] for e in self.estimates]
        return np.hypot(error, simulation)

    @property
    def _stat_intervals(self) -> Array:
        return np.array([[one.stat_interval for one in e.results] for e in self.estimates])

    def _plain(self, values: Array) -> Array:
        return values[:, 0] if len(self.parameters) == 1 else values

    def __str__(self) -> str:
        tables = [self._table(p) for p in range(len(self.parameters))]
        total = f"chi2/dof = {self.chi2:.1f}/{self.dof} = {self.chi2 / self.dof:.2f}"
        if self.wider is not None:
            inside = (self.wider[..., 0] <= self.truth) & (self.truth <= self.wider[..., 1])
            total += (
                f"\n{inside.sum()} of {inside.size} intervals at {self.level:.0%} contain the truth"
            )
        if len(tables) == 1:
            return f"{tables[0]}, {total}"
        return "\n\n".join([*tables, total])

    __repr__ = __str__

    def _table(self, p: int) -> str:
        """One parameter's rows."""
        head = f"{'true ' + self.parameters[p]:>12} {'estimated':>10} {'interval':>20}"
        simulated = any(e.results[p].simulation is not None for e in self.estimates)
        lines = [f"{head} {'simulation':>11} {'pull':>6}" if simulated else f"{head} {'pull':>6}"]
        pulls = ((self._values - self.truth) / self._errors)[:, p]
        for true, estimate, pull in zip(self.truth[:, p], self.estimates, pulls, strict=True):
            one = estimate.results[p]
            low, high = one.stat_interval
            row = f"{true:12.4f} {estimate.values[p]:10.4f} {low:9.4f} {high:10.4f}"
            if simulated:
                row += f" {'' if one.simulation is None else f'{one.simulation:.4f}':>11}"
            mark = "" if estimate.valid else "  at a bound"
            lines.append(f"{row} {pull:6.2f}{mark}")
        slope, intercept = self.lines[p]
        return "\n".join([*lines, f"slope {slope:.4f}, intercept {intercept:.4f}"])

    def _repr_html_(self) -> str:
        return f"<pre>{self}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """The table for machines, in what JSON can hold: what `--json` prints."""
        return {
            "parameters": list(self.parameters),
            "true": self.truth.tolist(),
            "estimates": [estimate.to_dict()["parameters"] for estimate in self.estimates],
            "pull": self.pull.tolist(),
            "slope": [slope for slope, _ in self.lines],
            "chi2": self.chi2,
            "dof": self.dof,
            "level": self.level,
            "intervals": None if self.wider is None else self.wider.tolist(),
        }


def closure(
    model: Model,
    samples: Samples,
    executor: Any = None,
    *,
    constrain: Mapping[str, tuple[float, float]] | None = None,
    fix: Mapping[str, float] | None = None,
    level: float | None = None,
) -> Closure:
    """Estimate theta of each sample and compare it with the truth.

    Parameters
    ----------
    model : Model
        The model to test.
    samples : Templates, mapping or pairs
        Events by their true theta, a number or, with several parameters, a tuple: templates, a
        mapping from theta to events, or pairs of the two. Events are an array, a data frame, a
        `Sample`, or a pair (events, weights).
    executor : Executor or dask client, optional
        Runs the tasks, one per sample; this process without one.
    constrain : mapping from str to (float, float), optional
        Value and error of Gaussian constraints on parameters, the same for every sample.
    fix : mapping from str to float, optional
        Parameters to hold at a value; they are left out of the table.
    level : float, optional
        Confidence level of further intervals, of which the table says how many contain the truth.

    Returns
    -------
    Closure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(2_000, seed=1), hidden=3, seed=1)
    >>> samples = {theta: example.sample(theta, 1_000, seed=2) for theta in (0.3, 0.7)}
    >>> table = gl.closure(model, samples)
    >>> table.true, table.dof
    (array([0.3, 0.7]), 2)
    """
    pairs = sample_pairs(samples)
    if len(pairs) < 2:
        raise InputError(f"samples: {len(pairs)} sample(s); give at least two values of theta")
    for true, _, _ in pairs:
        if true.shape != (len(model.grid.parameters),):
            names = ", ".join(model.grid.parameters)
            raise InputError(f"samples: a true value {true.tolist()}; give {names} of each sample")
    tasks = [(model, x, weights, constrain, fix, level) for _, x, weights in pairs]
    estimates, wider = zip(*run(_estimate, tasks, executor, "closure"), strict=True)
    free = [p for p, name in enumerate(model.grid.parameters) if name not in (fix or {})]
    truth = np.array([true[free] for true, _, _ in pairs])
    return Closure(truth, estimates, level, None if level is None else np.array(wider))


def _estimate(
    model: Model,
    x: Any,
    weights: Any,
    constrain: Mapping[str, tuple[float, float]] | None,
    fix: Mapping[str, float] | None,
    level: float | None,
) -> tuple[Estimate, list[tuple[float, float]]]:
    """The estimate of one sample and, at a level, the interval of each parameter."""
    likelihood = restricted(model.likelihood(x, weights), constrain, fix)
    estimate = likelihood.maximum()
    if level is None:
        return estimate, []
    return estimate, [likelihood.interval(level, name) for name in estimate.parameters]


def sample_pairs(samples: Samples) -> list[tuple[Array, Any, Any]]:
    """Of every sample the true theta, the events, and their weights or None."""
    if isinstance(samples, Templates):
        triples = []
        for k, theta in enumerate(samples.grid.values):
            own = samples.template == k
            weights = None if samples.weights is None else samples.weights[own]
            triples.append((theta, samples.x[own], weights))
        return triples
    pairs = samples.items() if isinstance(samples, Mapping) else samples
    return [
        (np.atleast_1d(np.asarray(true, float)), *(x if isinstance(x, tuple) else (x, None)))
        for true, x in pairs
    ]
