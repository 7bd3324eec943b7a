"""Coverage: does the interval contain the truth as often as it says? By pseudo-experiments."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gridless import chebyshev
from gridless.arrays import Array
from gridless.closure import Samples, sample_pairs
from gridless.errors import InputError
from gridless.evaluation import log_density
from gridless.likelihood import Curves, Likelihood
from gridless.model import Model
from gridless.progress import progress_bar


@dataclass(frozen=True)
class Coverage:
    """Per true theta: how often the 68.27 percent interval contains it, and the pulls' mean and
    width, from `toys` pseudo-experiments of `events` events each; one column per parameter."""

    truth: Array
    covered: Array
    pull_mean: Array
    pull_width: Array
    toys: int
    events: int
    parameters: tuple[str, ...]

    @property
    def error(self) -> Array:
        """The statistical error of `covered`."""
        return np.sqrt(self.covered * (1 - self.covered) / self.toys)

    @property
    def total(self) -> float:
        """The coverage over all values of theta."""
        return float(self.covered.mean())

    def __str__(self) -> str:
        names = " ".join(f"{'true ' + name:>12}" for name in self.parameters)
        lines = [f"{names} {'parameter':>12} {'covered':>9} {'+-':>6} {'pull':>7} {'width':>6}"]
        for i, true in enumerate(self.truth):
            values = " ".join(f"{v:12.4f}" for v in true)
            for p, name in enumerate(self.parameters):
                lines.append(
                    f"{values} {name:>12} {self.covered[i, p]:9.1%} {self.error[i, p]:6.1%} "
                    f"{self.pull_mean[i, p]:7.2f} {self.pull_width[i, p]:6.2f}"
                )
        lines.append(
            f"coverage {self.total:.1%} over {self.toys:,} pseudo-experiments of "
            f"{self.events:,} events at each value"
        )
        return "\n".join(lines)

    __repr__ = __str__


def coverage(
    model: Model, samples: Samples, toys: int = 1000, events: int | None = None, seed: int = 0
) -> Coverage:
    """Pseudo-experiments by drawing events of each sample with replacement.

    `events` per experiment are by default a tenth of the sample: drawn from a pool only a few times
    larger, experiments would share the pool's own fluctuation. The network sees every event once;
    an experiment is then a matrix product.
    """
    if toys < 2:
        raise InputError(f"toys: {toys}; give at least 2 pseudo-experiments")
    pairs = sample_pairs(samples)
    random = np.random.default_rng(seed)
    count = len(model.grid.parameters)
    size = events or max(1, min(len(x) for _, x, _ in pairs) // 10)
    shape = (len(pairs), count)
    covered, mean, width = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    with progress_bar("coverage", len(pairs)) as report:
        for i, (true, x, weights) in enumerate(pairs):
            estimates = [
                likelihood.maximum()
                for likelihood in _experiments(model, x, weights, toys, size, random)
            ]
            values = np.array([e.values for e in estimates])
            ends = np.array([e.intervals for e in estimates])
            errors = np.array([e.errors for e in estimates])
            covered[i] = ((ends[..., 0] <= true) & (true <= ends[..., 1])).mean(axis=0)
            pulls = (values - true) / errors
            mean[i], width[i] = pulls.mean(axis=0), pulls.std(axis=0)
            report(f"{i + 1} of {len(pairs)} values")
    truth = np.array([true for true, _, _ in pairs])
    return Coverage(truth, covered, mean, width, toys, size, model.grid.parameters)


def _experiments(
    model: Model, x: Any, weights: Any, toys: int, events: int, random: np.random.Generator
) -> list[Likelihood]:
    """Likelihoods of `toys` draws of `events` events each, with replacement."""
    pool = model.likelihood(x, weights)
    sizes = pool.coefficients.shape
    t = chebyshev.box_points(sizes)
    table = model.table(x)
    # Drawing by weight makes experiments of unit weight: only positive weights can be drawn.
    share = None
    if weights is not None:
        share = np.asarray(weights, float)
        if (share < 0).any():
            raise InputError("toys: events of negative weight cannot be drawn; leave out weights")
        share = share / share.sum()
    curves = np.zeros((toys, len(t)))
    drawn = random.multinomial(events, share if share is not None else _equal(len(table)), toys)
    for part, log_p in log_density(model.network, table, t):
        curves -= drawn[:, part] @ log_p
    if model.prior == "divide":
        curves += events * chebyshev.evaluate(model.implied_prior.log_q, t)
    return [
        Likelihood(Curves(chebyshev.coefficients(c.reshape(sizes))), model.grid, events)
        for c in curves
    ]


def _equal(count: int) -> Array:
    return np.full(count, 1 / count)
