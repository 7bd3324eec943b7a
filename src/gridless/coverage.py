"""Coverage: does the interval contain the truth as often as it says? By pseudo-experiments."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy.stats import chi2

from gridless import chebyshev, many
from gridless.arrays import Array, as_weights
from gridless.closure import Samples, sample_pairs
from gridless.errors import InputError
from gridless.evaluation import event_polynomials, log_density, polynomial_basis
from gridless.likelihood import LEVEL, Curves, Likelihood
from gridless.model import Model
from gridless.parallel import run
from gridless.saving import received, sent

# Pseudo-experiments drawn at once, how many such batches share random numbers, and the log2 of the
# random numbers set aside for each experiment.
_BATCH, _TURNS, _STRETCH = 200, 8, 48


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
    size = events or max(1, min(len(x) for _, x, _ in pairs) // 10)
    given, numbers = sent(model, executor), range(first, first + toys)
    tasks = [
        (given, true, x, weights, numbers, size, (seed, i))
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


def _one_value(
    model: Model | bytes,
    true: Array,
    x: Any,
    weights: Any,
    numbers: range,
    events: int,
    seed: tuple[int, int],
) -> Array:
    """Sums over pseudo-experiments at one value of theta: (sums, parameters)."""
    model = received(model)
    # All at once: a step of the search takes no longer for ten thousand than for a hundred.
    curves = np.concatenate(list(_experiments(model, x, weights, numbers, events, seed)))
    values, ends = _estimates(model, curves, events)
    shift = values - true
    pulls = shift / (0.5 * (ends[..., 1] - ends[..., 0]))
    inside = (ends[..., 0] <= true) & (true <= ends[..., 1])
    return np.array([v.sum(axis=0) for v in (inside, shift, shift**2, pulls, pulls**2)])


def _estimates(model: Model, curves: Array, events: int) -> tuple[Array, Array]:
    """Values (experiments, parameters) and intervals (experiments, parameters, 2)."""
    grid = model.grid
    if len(grid.parameters) == 1:
        best, ends = many.estimates(curves, 0.5 * float(chi2.ppf(LEVEL, 1)))
        return grid.from_unit(best[:, None]), grid.from_unit(ends[..., None])[:, None, :, 0]
    found = [Likelihood(Curves(c), grid, events).maximum() for c in curves]
    return np.array([e.values for e in found]), np.array([e.intervals for e in found])


def _experiments(
    model: Model, x: Any, weights: Any, numbers: range, events: int, seed: tuple[int, int]
) -> Iterator[Array]:
    """Likelihoods, as Chebyshev coefficients, of draws of `events` events each."""
    table = model.table(x)
    share = as_weights(weights, len(table))
    if share is not None:
        # Drawing by weight makes experiments of unit weight: only positive weights can be drawn.
        if (share < 0).any():
            raise InputError("toys: events of negative weight cannot be drawn; leave out weights")
        share = np.cumsum(share / share.sum())
    vectors, matrix = _event_vectors(model, table)
    # Sums of what is left after the mean stay small, and exact enough in float32.
    mean = vectors.mean(0, dtype=torch.float64)
    vectors = (vectors - mean).float()
    for sums in _draw(vectors, share, numbers, events, seed):
        curves = -np.tensordot((sums.double() + events * mean).numpy(), matrix, 1)
        if model.prior == "divide":
            log_q = events * model.implied_prior.log_q
            curves = chebyshev.add(curves, np.broadcast_to(log_q, (len(curves), *log_q.shape)))
        yield curves


def _draw(
    vectors: torch.Tensor, share: Array | None, numbers: range, events: int, seed: tuple[int, int]
) -> Iterator[torch.Tensor]:
    """Sums of the vectors of events drawn with replacement, one row for each pseudo-experiment.

    Random numbers take longer than sums. So `_TURNS` batches of experiments have the same ones, but
    the pool, shuffled, is each time turned round by a number of places drawn anew. Every experiment
    is a draw like any other, and two that share their numbers are correlated as events c places
    apart in a shuffled pool are: by 0 on average, and 1 / sqrt(pool) at a time.
    """
    pool, turns = len(vectors), 1
    if share is None:
        turns = _TURNS
        order = np.random.default_rng(seed).permutation(pool)
        vectors = vectors[torch.as_tensor(order)].repeat(2, 1)
    draw = lru_cache(maxsize=1)(_drawer(pool, share, events, seed))
    for batch in range(numbers.start // _BATCH, -(-numbers.stop // _BATCH)):
        begin = batch * _BATCH
        rows = range(max(numbers.start - begin, 0), min(numbers.stop - begin, _BATCH))
        drawn = torch.as_tensor(draw(batch // turns, rows))
        turn = 0 if turns == 1 else int(np.random.default_rng((*seed, batch)).integers(pool))
        yield torch.nn.functional.embedding_bag(drawn, vectors[turn : turn + pool], mode="sum")


def _drawer(
    pool: int, share: Array | None, events: int, seed: tuple[int, int]
) -> Callable[[int, range], Any]:
    """A function that gives which events make up some experiments of a batch."""
    source = np.random.PCG64(seed)
    random, beginning = np.random.Generator(source), source.state

    def draw_one(number: int) -> Any:
        # A stretch of the random sequence for each: much faster than a generator for each.
        source.state = beginning
        source.advance(number << _STRETCH)
        if share is None:
            return random.integers(0, pool, events, dtype=np.int32)
        return np.searchsorted(share, random.random(events), side="right").clip(max=pool - 1)

    return lambda batch, rows: np.stack([draw_one(batch * _BATCH + row) for row in rows])


def _event_vectors(model: Model, table: Array) -> tuple[torch.Tensor, Array]:
    """A vector of each event, and the matrix that takes sums of them to Chebyshev coefficients."""
    network = model.network
    basis = polynomial_basis(network)
    if basis is not None:
        rows = [c for _, c in event_polynomials(network, basis, table)]
        return torch.cat(rows), np.array([basis.chebyshev(unit) for unit in np.eye(basis.outputs)])
    sizes = model.likelihood(table).coefficients.shape
    t = chebyshev.box_points(sizes)
    rows = [log_p for _, log_p in log_density(network, table, t, factor=False)]
    units = np.eye(len(t)).reshape(-1, *sizes)
    return torch.cat(rows), np.array([chebyshev.coefficients(unit) for unit in units])
