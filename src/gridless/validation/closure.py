"""Closure: estimating samples whose theta is known, on and between the templates."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import compress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridless.curves.intervals import check_level
from gridless.likelihood.derived import restricted
from gridless.likelihood.estimate import STAT, Estimate, correlation, read_only
from gridless.model.combined import Channels
from gridless.model.model import Model
from gridless.parallel import run
from gridless.results import printing
from gridless.results.by_name import ByName
from gridless.templates.arrays import Array
from gridless.validation import nuisances
from gridless.validation.samples import AnySample, Samples, likelihood_of, samples_of

Flags = NDArray[np.bool_]
Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class ParameterClosure:
    """The closure of one parameter: `closure["mtop"]`. Arrays have one entry per sample.

    Attributes
    ----------
    name : str
        The parameter.
    true, value : array (samples,)
        True and estimated values.
    interval : array (samples, 2)
        (low, high) with every uncertainty.
    error : array (samples,)
        The total uncertainty on the side of the true value. Where a bound cuts the interval short
        on that side, it is that of the other side.
    scatter : array (samples,)
        How far the value should scatter about the truth: the error without the part of the
        constraints, at whose centres the nuisance parameters of the samples are.
    simulation : array (samples,)
        The part that comes from the finite number of simulated events; NaN where it is not known.
    usable : array (samples,) of bool
        Whether the sample counts: false if one of its estimates lies at a bound.
    """

    name: str
    true: Array
    value: Array
    interval: Array
    error: Array
    scatter: Array
    simulation: Array
    usable: Flags

    @property
    def pull(self) -> Array:
        """(value - true) / scatter; NaN for a sample that does not count.

        The uncertainty from simulation is common to all samples: where it dominates, pulls are
        alike, and chi2/dof may be far below 1.
        """
        scatter = np.where(self.usable & (self.scatter > 0), self.scatter, np.nan)
        return read_only((self.value - self.true) / scatter)

    @cached_property
    def line(self) -> tuple[float, float] | None:
        """Slope and intercept of estimated against true theta, weighted by the errors; None with
        fewer than two values of theta that count."""
        true, value, error = (v[self.usable] for v in (self.true, self.value, self.error))
        if len(np.unique(true)) < 2:
            return None
        slope, intercept = np.polyfit(true, value, 1, w=1 / error)
        return float(slope), float(intercept)

    @property
    def slope(self) -> float | None:
        """The slope of `line`: 1 if nothing is biased."""
        return None if self.line is None else self.line[0]

    @property
    def intercept(self) -> float | None:
        """The intercept of `line`."""
        return None if self.line is None else self.line[1]

    def __str__(self) -> str:
        simulated = bool(np.isfinite(self.simulation).any())
        head = f"{'true ' + self.name:>12} {'estimated':>10} {'interval':>20}"
        head += f" {'simulation':>11}" if simulated else ""
        lines = [f"{head} {'pull':>6}"]
        columns = (self.true, self.value, self.interval, self.simulation, self.pull, self.usable)
        for true, value, (low, high), simulation, pull, usable in zip(*columns, strict=True):
            row = f"{true:12.4f} {value:10.4f} {low:9.4f} {high:10.4f}"
            if simulated:
                row += f" {f'{simulation:.4f}' if np.isfinite(simulation) else '':>11}"
            lines.append(f"{row} {pull:6.2f}" if usable else f"{row}  at a bound")
        if self.line is not None:
            lines.append(f"slope {self.slope:.4f}, intercept {self.intercept:.4f}")
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Closure(ByName[ParameterClosure]):
    """True and estimated theta of each sample; prints as a table.

    `closure["mtop"]` is the closure of one parameter. Where there is only one, `true`, `value`,
    `interval`, `error`, `pull`, `slope` and `intercept` are its numbers.

    An estimate at a bound tests nothing: its sample does not count in pull, slope, chi2 and dof,
    and is named in the last line.

    Attributes
    ----------
    truth : array (samples, parameters)
        The true theta of each sample.
    estimates : tuple of Estimate
        One for each sample.
    intervals : array (samples, parameters, 2)
        (low, high) with every uncertainty, at `level`.
    level : float or None
        The confidence level of the intervals, if not 68 percent.
    held : tuple of str
        Nuisance parameters that were held at 0, as by `leave_one_out`.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(events=2_000, seed=1), hidden=2, replicas=0, seed=1)
    >>> samples = {t: example.sample(t, 1_000, seed=2) for t in (0.3, 0.6)}
    >>> closure = gl.closure(model, samples)
    >>> closure["theta"].true
    array([0.3, 0.6])
    >>> closure.dof, bool(abs(closure.pull).max() < 3)
    (2, True)
    """

    truth: Array
    estimates: tuple[Estimate, ...]
    intervals: Array
    level: float | None = None
    held: tuple[str, ...] = ()
    kind: ClassVar[str] = "closure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", read_only(self.truth))
        object.__setattr__(self, "intervals", read_only(self.intervals))

    @cached_property
    def usable(self) -> Flags:
        """Whether each sample counts (samples,): false if an estimate of it lies at a bound, or if
        bounds cut both ends of its interval, so that it has no error."""
        results = [estimate.results for estimate in self.estimates]
        counts = np.array([not any(r.at_bound or all(r.stat_cut) for r in row) for row in results])
        counts.flags.writeable = False
        return counts

    @cached_property
    def by_name(self) -> Mapping[str, ParameterClosure]:
        """The closure of each parameter."""
        found = {}
        for p, name in enumerate(self.estimates[0].parameters):
            results = [estimate.results[p] for estimate in self.estimates]
            true, value = self.truth[:, p], read_only([r.value for r in results])
            sides = np.array([r.sides for r in results])
            cut = np.array([r.stat_cut for r in results])
            sides = np.where(cut & ~cut[:, ::-1], sides[:, ::-1], sides)
            error = read_only(np.where(value > true, sides[:, 0], sides[:, 1]))
            scatter = read_only(error * nuisances.varying_shares(self.estimates, name))
            parts = read_only([np.nan if r.simulation is None else r.simulation for r in results])
            found[name] = ParameterClosure(
                name, true, value, self.intervals[:, p], error, scatter, parts, self.usable
            )
        return found

    @property
    def true(self) -> Array:
        """The true value of the only parameter in each sample."""
        return self.only("true").true

    @property
    def value(self) -> Array:
        """The estimated value of the only parameter in each sample."""
        return self.only("value").value

    @property
    def interval(self) -> Array:
        """(low, high) of the only parameter in each sample, with every uncertainty."""
        return self.only("interval").interval

    @property
    def error(self) -> Array:
        """The total uncertainty of the only parameter, on the side of the true value."""
        return self.only("error").error

    @property
    def pull(self) -> Array:
        """(value - true) / scatter of the only parameter; NaN for samples that do not count."""
        return self.only("pull").pull

    @property
    def slope(self) -> float | None:
        """The slope of estimated against true values of the only parameter."""
        return self.only("slope").slope

    @property
    def intercept(self) -> float | None:
        """The intercept that belongs to `slope`."""
        return self.only("intercept").intercept

    @property
    def chi2(self) -> float:
        """Sum of the squared pulls; with several parameters, with their correlations."""
        pulls = np.stack([one.pull for one in self.by_name.values()], axis=1)
        counted = zip(pulls[self.usable], compress(self.estimates, self.usable), strict=True)
        total = 0.0
        for pull, estimate in counted:
            matrix = correlation(estimate.covariances[STAT])
            # A maximum without curvature has no correlations: its pulls count on their own.
            matrix = np.where(np.isfinite(matrix), matrix, np.eye(len(matrix)))
            total += float(pull @ np.linalg.pinv(matrix, hermitian=True) @ pull)
        return total

    @property
    def dof(self) -> int:
        """Number of estimated values that count: nothing is fitted."""
        return int(self.usable.sum()) * len(self.parameters)

    @property
    def at_bound(self) -> Array:
        """The true theta of the samples that do not count (samples, parameters)."""
        return read_only(self.truth[~self.usable])

    def to_dict(self) -> dict[str, Any]:
        """The closure for machines, in what JSON can hold: what `--json` prints.

        Returns
        -------
        dict
            `parameters`, `true`, `estimates`, `pull` (None for a sample that does not count; one
            number per sample, or a list of one per parameter), `slope` and `intercept` of each
            parameter, `chi2`, `dof`, `level`, `intervals` (None without a level), `at_bound` (the
            true theta of samples left out), and `nuisances` of each sample where the model has any.
        """
        pulls = np.stack([one.pull for one in self.by_name.values()], axis=1)
        rows = [[None if np.isnan(p) else p for p in row] for row in pulls.tolist()]
        one = len(self.parameters) == 1
        return {
            "parameters": list(self.parameters),
            "true": self.truth.tolist(),
            "estimates": [estimate.to_dict()["parameters"] for estimate in self.estimates],
            "pull": [row[0] for row in rows] if one else rows,
            "slope": [self[name].slope for name in self],
            "intercept": [self[name].intercept for name in self],
            "chi2": self.chi2,
            "dof": self.dof,
            "level": self.level,
            "intervals": None if self.level is None else self.intervals.tolist(),
            "at_bound": self.at_bound.tolist(),
        } | ({"nuisances": found} if (found := nuisances.nuisances_of(self.estimates)) else {})

    def __str__(self) -> str:
        return "\n\n".join(str(self[name]) for name in self) + "\n" + "\n".join(self.notes())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = []
        for name in self:
            one = self[name]
            head = [f"true {name}", "estimated", "interval", "pull"]
            columns = (one.true, one.value, one.interval, one.pull, self.usable)
            rows = [
                [
                    f"{true:g}",
                    f"{value:.6g}",
                    f"[{low:.6g}, {high:.6g}]",
                    f"{pull:.2f}" if usable else "at a bound",
                ]
                for true, value, (low, high), pull, usable in zip(*columns, strict=True)
            ]
            tables.append(printing.table(head, rows))
            if one.line is not None:
                tables.append(f"<p>slope {one.slope:.4f}, intercept {one.intercept:.4f}</p>")
        return "".join([*tables, *(f"<p>{escape(line)}</p>" for line in self.notes())])

    def notes(self) -> list[str]:
        """chi2/dof, and which samples do not count."""
        lines = []
        if self.dof:
            lines.append(f"chi2/dof = {self.chi2:.1f}/{self.dof} = {self.chi2 / self.dof:.2f}")
        if self.dof and self.level is not None:
            true, ends = self.truth[self.usable], self.intervals[self.usable]
            inside = (ends[..., 0] <= true) & (true <= ends[..., 1])
            lines.append(
                f"{inside.sum()} of {inside.size} intervals at {self.level:.0%} contain the truth"
            )
        lines += nuisances.nuisance_notes(self.estimates) + nuisances.held_notes(self.held)
        if left_out := len(self.at_bound):
            values = ", ".join(_label(truth) for truth in self.at_bound)
            lines.append(
                f"{left_out} of {len(self.truth)} samples not counted, their estimates are at a "
                f"bound: {', '.join(self.parameters)} = {values}"
            )
        return lines


def closure(
    model: Model | Channels,
    samples: Samples | Mapping[str, Samples],
    executor: Any = None,
    *,
    constrain: Mapping[str, tuple[float, float]] | None = None,
    fix: Mapping[str, float] | None = None,
    level: float | None = None,
    signal: bool = False,
) -> Closure:
    """Estimate theta of each sample and compare it with the truth.

    The pull is (estimated - true) / error. It scatters about 0 with width 1 if the model is right
    and the samples were not used to train it. With systematics that error leaves out the part of
    the constraints, by which samples at their centres do not vary; one that was made with a
    variation moves the estimate by its impact.

    Parameters
    ----------
    model : Model or Channels
        The model to test, or channels that are measured together.
    samples : Templates, mapping or iterable of pairs
        True theta, a tuple for several parameters, and events: an array, a data frame, a `Sample`,
        or a pair (events, weights). One sample is enough. Of channels, the samples of each by its
        name, at the same values of theta.
    executor : concurrent.futures.Executor or dask client, optional
        Runs one task per sample; without one, this process does.
    constrain : mapping from str to (float, float), optional
        Value and error that another measurement gives a parameter.
    fix : mapping from str to float, optional
        Parameters to hold at a value, which the samples should have been made with.
    level : float, optional
        Confidence level of the intervals, if not 68 percent; the last line says how many of them
        contain the truth. Pulls do not depend on it.
    signal : bool
        The samples are of the simulated process alone: the shares of all backgrounds of the model
        are held at 0.

    Returns
    -------
    Closure
        Results by parameter name, pulls, slope, chi2.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(events=2_000, seed=1), hidden=2, replicas=0, seed=1)
    >>> closure = gl.closure(model, {0.4: example.sample(0.4, 1_000, seed=2)})
    >>> bool(abs(closure.pull[0]) < 3)
    True
    """
    if level is not None:
        check_level(level)
    known = samples_of(model, samples)
    if signal:
        fix = nuisances.without_backgrounds(model) | dict(fix or {})
    tasks = [(model, sample, constrain, fix, level) for sample in known]
    results = run(_estimate, tasks, executor, "closure")
    estimates = tuple(estimate for estimate, _ in results)
    kept = [model.grid.parameters.index(name) for name in estimates[0].parameters]
    truth = np.array([sample.truth for sample in known])[:, kept]
    return Closure(truth, estimates, np.array([ends for _, ends in results]), level)


def _estimate(
    model: Model | Channels,
    sample: AnySample,
    constrain: Mapping[str, tuple[float, float]] | None,
    fix: Mapping[str, float] | None,
    level: float | None,
) -> tuple[Estimate, Intervals]:
    """The estimate of a sample, and the interval of each parameter at the level."""
    likelihood = restricted(likelihood_of(model, sample), constrain, fix)
    estimate = likelihood.maximum()
    if level is None:
        return estimate, tuple(one.interval for one in estimate.results)
    return estimate, tuple(likelihood.interval(level, name) for name in estimate)


def _label(truth: Array) -> str:
    values = [f"{value:g}" for value in truth]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
