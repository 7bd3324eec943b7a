"""Coverage: does the interval contain the truth as often as it says? By pseudo-experiments."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.files.read import Sample
from gridless.model.model import Model
from gridless.parallel import run
from gridless.templates.arrays import Array
from gridless.validation.closure import Samples, sample_pairs
from gridless.validation.pseudo_experiments import Draws, estimates


@dataclass(frozen=True)
class Coverage:
    """Per true theta, with one column per parameter: how often the 68.27 percent interval contains
    it, bias and pulls, from `toys` pseudo-experiments of `events` events each.

    What is kept are sums over pseudo-experiments, so that results add up: `a + b` of other seeds,
    or of further numbers of the same.
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

    @property
    def covered(self) -> Array:
        """The share of intervals that contain the truth."""
        return self.inside / self.toys

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
        sums = ("inside", "shift", "shift_squared", "pull", "pull_squared", "toys")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in sums})

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for a JSON file."""
        rows = asdict(self).items()
        return {key: v.tolist() if isinstance(v, np.ndarray) else v for key, v in rows}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Coverage":
        """What `as_dict` gave."""
        plain = ("toys", "events", "parameters")
        arrays = {key: np.array(v, float) for key, v in content.items() if key not in plain}
        parameters = tuple(content["parameters"])
        return cls(**arrays, toys=content["toys"], events=content["events"], parameters=parameters)

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
        lines.append(
            f"coverage {self.total:.1%} over {self.toys:,} pseudo-experiments of "
            f"{self.events:,} events at each value"
        )
        return "\n".join(lines)

    __repr__ = __str__


def coverage(
    model: Model,
    samples: Samples,
    toys: int = 1000,
    events: int | None = None,
    seed: int = 0,
    first: int = 0,
    executor: Any = None,
) -> Coverage:
    """Pseudo-experiments by drawing events of each sample with replacement.

    The network sees every event once; a pseudo-experiment is then a sum of stored vectors.

    Parameters
    ----------
    toys
        Pseudo-experiments at each value.
    events
        Events of each; by default a tenth of the sample: drawn from a pool only a few times
        larger, they would share the pool's own fluctuation.
    seed, first
        Experiment k is the same for the same seed; this does those from `first` on. So
        `coverage(..., toys=500) + coverage(..., toys=500, first=500)` is `coverage(..., 1000)`.
    executor
        Where to work: a `concurrent.futures.Executor` or a dask client; one task per value.
    """
    if toys < 2:
        raise InputError(f"toys: {toys}; give at least 2 pseudo-experiments")
    pairs = sample_pairs(samples)
    size = events or max(1, min(_size(x) for _, x, _ in pairs) // 10)
    numbers = range(first, first + toys)
    tasks = [
        (model, true, x, weights, numbers, size, (seed, i))
        for i, (true, x, weights) in enumerate(pairs)
    ]
    sums = np.array(run(_one_value, tasks, executor, "coverage"))
    truth = np.array([true for true, _, _ in pairs])
    inside, shift, shift_squared, pull, pull_squared = np.moveaxis(sums, 1, 0)
    return Coverage(
        truth,
        inside,
        shift,
        shift_squared,
        pull,
        pull_squared,
        toys,
        size,
        model.grid.parameters,
    )


def _size(x: Any) -> int:
    """The number of events of a sample, an array or a data frame."""
    return x.events if isinstance(x, Sample) else len(x)


def _one_value(
    model: Model,
    true: Array,
    x: Any,
    weights: Any,
    numbers: range,
    events: int,
    seed: tuple[int, int],
) -> Array:
    """Sums over pseudo-experiments at one value of theta: (sums, parameters)."""
    table, share = model.events(x, weights)
    # Drawing by weight makes experiments of unit weight: only positive weights can be drawn.
    if share is not None and (share < 0).any():
        raise InputError("toys: events of negative weight cannot be drawn; leave out weights")
    values, ends = estimates(model, Draws(table, events, seed, share), numbers)
    shift = values - true
    pulls = shift / (0.5 * (ends[..., 1] - ends[..., 0]))
    inside = (ends[..., 0] <= true) & (true <= ends[..., 1])
    return np.array([v.sum(axis=0) for v in (inside, shift, shift**2, pulls, pulls**2)])
