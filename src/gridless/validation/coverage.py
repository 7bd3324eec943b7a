"""Coverage: does the interval contain the truth as often as it says? By pseudo-experiments."""

import warnings
from dataclasses import dataclass, fields, replace
from html import escape
from typing import Any

import numpy as np

from gridless.errors import GridlessWarning, InputError
from gridless.likelihood.estimate import read_only
from gridless.model.model import Model
from gridless.parallel import run
from gridless.results import printing
from gridless.templates.arrays import Array
from gridless.validation.limits import check_experiments
from gridless.validation.nuisances import constrained_nuisances, coverage_notes
from gridless.validation.pseudo_experiments import Draws, estimates
from gridless.validation.samples import ROUNDING, KnownSample, Samples, known_samples

# Sums over pseudo-experiments, (values, parameters) each: everything else follows from them.
SUMS = ("inside", "shift", "shift_squared", "pull", "pull_squared")
POOL_PER_EXPERIMENT = 10  # times as large as an experiment should a sample be at least


@dataclass(frozen=True, eq=False)
class Coverage:
    """How often the 68.27 percent interval contains the true theta, with bias and pulls.

    What is kept are sums over pseudo-experiments, so that results add up: `a + b` of other seeds,
    or of further numbers of the same. Arrays have a row per true theta and a column per parameter.

    Attributes
    ----------
    truth : array (values, parameters)
        The true theta of each sample.
    inside : array (values, parameters)
        Number of pseudo-experiments whose interval contains the truth.
    shift, shift_squared : array (values, parameters)
        Sums of estimated - true, and of its square.
    pull, pull_squared : array (values, parameters)
        Sums of (estimated - true) / error, and of its square.
    toys : int
        Pseudo-experiments at each value.
    events : int
        Events of each.
    parameters : tuple of str
        The names of the parameters.
    constrained : tuple of str
        Nuisance parameters whose constraints are in the errors, but do not vary between
        pseudo-experiments: coverage and pulls are then not those of a measurement.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(events=2_000, seed=1), hidden=2, replicas=0, seed=1)
    >>> pools = {0.5: example.sample(0.5, 20_000, seed=2)}
    >>> first = gl.coverage(model, pools, toys=100, events=500)
    >>> both = first + gl.coverage(model, pools, toys=100, events=500, first=100)
    >>> both.toys, both.covered.shape
    (200, (1, 1))
    """

    truth: Array
    inside: Array
    shift: Array
    shift_squared: Array
    pull: Array
    pull_squared: Array
    toys: int
    events: int
    parameters: tuple[str, ...]
    constrained: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("truth", *SUMS):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def covered(self) -> Array:
        """The share of intervals that contain the truth."""
        return read_only(self.inside / self.toys)

    @property
    def error(self) -> Array:
        """The statistical error of `covered`."""
        return np.sqrt(self.covered * (1 - self.covered) / self.toys)

    @property
    def bias(self) -> Array:
        """The mean of estimated - true."""
        return self.shift / self.toys

    @property
    def bias_error(self) -> Array:
        """The statistical error of `bias`."""
        spread = np.sqrt((self.shift_squared / self.toys - self.bias**2).clip(min=0))
        return np.asarray(spread / np.sqrt(self.toys))

    @property
    def pull_mean(self) -> Array:
        """The mean of (estimated - true) / error; its error is pull_width / sqrt(toys)."""
        return self.pull / self.toys

    @property
    def pull_width(self) -> Array:
        """The standard deviation of the pulls; its error is pull_width / sqrt(2 toys)."""
        variance = self.pull_squared / self.toys - self.pull_mean**2
        return np.asarray(np.sqrt(variance.clip(min=0)))

    @property
    def total(self) -> float:
        """The coverage over all values of theta."""
        return float(self.covered.mean())

    def __add__(self, other: "Coverage") -> "Coverage":
        same = self.parameters == other.parameters and self.events == other.events
        if not (same and np.array_equal(self.truth, other.truth)):
            raise InputError(
                "coverage of other values, parameters or numbers of events does not add; "
                "use the same samples and events"
            )
        added = {name: getattr(self, name) + getattr(other, name) for name in (*SUMS, "toys")}
        return replace(self, **added)

    def to_dict(self) -> dict[str, Any]:
        """The sums, and what follows from them, in what JSON can hold.

        Returns
        -------
        dict
            The attributes, and `coverage`, `bias` and `pull_width`.
        """
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        derived = {"coverage": self.covered, "bias": self.bias, "pull_width": self.pull_width}
        names = {"parameters": list(self.parameters), "constrained": list(self.constrained)}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in (kept | derived | names).items()
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Coverage":
        """The coverage that `to_dict` gave."""
        kept = {field.name: content[field.name] for field in fields(cls) if field.name in content}
        names = {key: tuple(content.get(key, ())) for key in ("parameters", "constrained")}
        return cls(**kept | names)

    def __str__(self) -> str:
        names = " ".join(f"{'true ' + name:>12}" for name in self.parameters)
        columns = f"{'parameter':>12} {'bias':>10} {'+-':>9} {'covered':>9} {'+-':>6}"
        lines = [f"{names} {columns} {'pull':>7} {'width':>6}"]
        for i, true in enumerate(self.truth):
            values = " ".join(f"{v:12.4f}" for v in true)
            for p, name in enumerate(self.parameters):
                at = (i, p)
                lines.append(
                    f"{values} {name:>12} {self.bias[at]:10.3g} {self.bias_error[at]:9.2g} "
                    f"{self.covered[at]:9.1%} {self.error[at]:6.1%} "
                    f"{self.pull_mean[at]:7.2f} {self.pull_width[at]:6.2f}"
                )
        return "\n".join([*lines, self._summary(), *coverage_notes(self.constrained)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = [*(f"true {name}" for name in self.parameters), "parameter"]
        head += ["bias", "covered", "pull", "width"]
        rows = []
        for i, true in enumerate(self.truth):
            for p, name in enumerate(self.parameters):
                at = (i, p)
                rows.append(
                    [
                        *(f"{v:g}" for v in true),
                        escape(name),
                        f"{self.bias[at]:.3g} &plusmn; {self.bias_error[at]:.2g}",
                        f"{self.covered[at]:.1%} &plusmn; {self.error[at]:.1%}",
                        f"{self.pull_mean[at]:.2f}",
                        f"{self.pull_width[at]:.2f}",
                    ]
                )
        return f"{printing.table(head, rows)}<p>{self._summary()}</p>" + "".join(
            f"<p>{escape(note)}</p>" for note in coverage_notes(self.constrained)
        )

    def _summary(self) -> str:
        return (
            f"coverage {self.total:.1%} over {self.toys:,} pseudo-experiments of "
            f"{self.events:,} events at each value"
        )


def coverage(
    model: Model,
    samples: Samples,
    toys: int = 1000,
    events: int | None = None,
    seed: int = 0,
    first: int = 0,
    executor: Any = None,
) -> Coverage:
    """Test the intervals with pseudo-experiments, drawn from each sample with replacement.

    The network sees every event once; a pseudo-experiment is then a sum of stored vectors.

    Parameters
    ----------
    model : Model
        The model to test.
    samples : Templates, mapping or iterable of pairs
        As for `closure`. Weights are the chance of an event to be drawn, and may not be negative.
    toys : int
        Pseudo-experiments at each value.
    events : int, optional
        Events of each; by default a tenth of the smallest sample: experiments that are drawn from
        a sample only a few times larger share its own fluctuation. More than a sample has is a
        GridlessWarning.
    seed, first : int
        Experiment k is the same for the same seed; this does those from `first` on. So
        `coverage(..., toys=500) + coverage(..., toys=500, first=500)` is `coverage(..., 1000)`.
    executor : concurrent.futures.Executor or dask client, optional
        Runs one task per value; without one, this process does.

    Returns
    -------
    Coverage
        Coverage, bias and pulls at each value; results add up.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(events=2_000, seed=1), hidden=2, replicas=0, seed=1)
    >>> pools = {0.5: example.sample(0.5, 20_000, seed=2)}
    >>> coverage = gl.coverage(model, pools, toys=300, events=500, seed=1)
    >>> bool(0.5 < coverage.total < 0.8)
    True
    """
    check_experiments(toys, events, seed, first)
    known = known_samples(model, samples)
    _check_weights(model, known)
    size = events or max(1, min(len(sample.x) for sample in known) // POOL_PER_EXPERIMENT)
    _warn_of_small_samples(model, known, size)
    numbers = range(first, first + toys)
    tasks = [(model, sample, numbers, size, (seed, i)) for i, sample in enumerate(known)]
    sums = np.array(run(_sums_at_one_value, tasks, executor, "coverage"))
    truth = np.array([sample.truth for sample in known])
    named = dict(zip(SUMS, np.moveaxis(sums, 1, 0), strict=True))
    parameters, constrained = model.grid.parameters, constrained_nuisances(model)
    return Coverage(
        truth, **named, toys=toys, events=size, parameters=parameters, constrained=constrained
    )


def _warn_of_small_samples(model: Model, known: list[KnownSample], events: int) -> None:
    """Warn where experiments have more events than a sample has (weighted ones as far as they
    count): all of them share its fluctuation, which is then larger than their own."""
    for sample in known:
        w = np.ones(len(sample.x)) if sample.weights is None else sample.weights
        there = float(w.sum() ** 2 / (w @ w))
        if events > there * (1 + ROUNDING):
            warnings.warn(
                f"coverage: experiments of {events:,} events are drawn from a sample of "
                f"{there:,.0f}, {_point(model, sample)}, whose fluctuation all of them share: how "
                f"many intervals contain the truth says nothing; give {POOL_PER_EXPERIMENT} times "
                "as many events as an experiment has, or a smaller number of events",
                GridlessWarning,
                stacklevel=3,
            )


def _point(model: Model, sample: KnownSample) -> str:
    pairs = zip(model.grid.parameters, sample.truth, strict=True)
    return ", ".join(f"{name} = {value:g}" for name, value in pairs)


def _check_weights(model: Model, known: list[KnownSample]) -> None:
    """Drawing by weight makes experiments of unit weight: only positive weights can be drawn."""
    for sample in known:
        if sample.weights is not None and (sample.weights < 0).any():
            raise InputError(
                f"toys: the sample {_point(model, sample)} has events of negative weight, which "
                "cannot be drawn; give events without weights (in the shell, --weight 1)"
            )


def _sums_at_one_value(
    model: Model, sample: KnownSample, numbers: range, events: int, seed: tuple[int, int]
) -> Array:
    """Sums over pseudo-experiments at one value of theta: (sums, parameters)."""
    draws = Draws(sample.x, events, seed, sample.weights)
    values, ends = estimates(model, draws, numbers)
    shift = values - sample.truth
    pulls = shift / (0.5 * (ends[..., 1] - ends[..., 0]))
    inside = (ends[..., 0] <= sample.truth) & (sample.truth <= ends[..., 1])
    return np.array([v.sum(axis=0) for v in (inside, shift, shift**2, pulls, pulls**2)])
