"""Pseudo-experiments: estimates of events that are drawn from a pool of others.

The network sees every event of the pool once. Each event is stored as a short vector; the
likelihood is linear in it. So a pseudo-experiment is the sum of the vectors of its events.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gridless.curves import chebyshev
from gridless.curves.curve import Curve
from gridless.curves.intervals import LEVEL, chi2_quantile
from gridless.curves.minimum import lowest, minima_of_curves, second_slopes
from gridless.distributed import own_threads
from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.measurement.likelihood import MeasurementLikelihood
from gridless.measurement.measurement import Measurement
from gridless.measurement.term import SummaryChannel, Sums
from gridless.model.evaluation import event_features
from gridless.model.model import Model
from gridless.templates.arrays import Array

BATCH = 200  # pseudo-experiments drawn at once
SHARED_BATCHES = 8  # batches that share their random numbers
STRETCH = 48  # log2 of the random numbers set aside for each pseudo-experiment


@dataclass(frozen=True)
class Draws:
    """How pseudo-experiments are drawn from a pool, with replacement.

    Attributes
    ----------
    x : array (pool, observables)
        The events to draw from.
    events : int
        Events of a pseudo-experiment.
    seed : tuple of int
        Fixes everything random.
    share : array (pool,), optional
        The relative chance of each event to be drawn; by default all have the same.
    weights : array (pool,), optional
        The weight with which an event counts once it is drawn.
    poisson : bool
        Whether the number of events fluctuates. Every event of the pool is then drawn a Poisson
        number of times, independent of all others.
    """

    x: Array
    events: int
    seed: tuple[int, int]
    share: Array | None = None
    weights: Array | None = None
    poisson: bool = False


@own_threads()
def estimates(model: Model, draws: Draws, numbers: range) -> tuple[Array, Array]:
    """Values (experiments, parameters) and intervals (experiments, parameters, 2) of the
    pseudo-experiments of those numbers."""
    if model.measurement is not None:
        every = [one.maximum() for one in _measured(model, model.measurement, draws, numbers)]
        limits = np.array([[part.interval for part in one.results] for one in every])
        return np.array([one.values for one in every]), limits
    # All at once: a step of the search takes no longer for ten thousand than for a hundred.
    curves = np.concatenate(list(_likelihoods(model, draws, numbers)))
    grid = model.grid
    if len(grid.parameters) == 1:
        rise = np.full(len(curves), 0.5 * chi2_quantile(LEVEL, 1))
        best, ends = minima_of_curves(curves, rise)
        if model.calibration is not None and draws.weights is None:
            # As for a likelihood of events: the variance of the score over its slope.
            stretch = draws.events * model.calibration.spread_at(best) / second_slopes(curves, best)
            best, ends = minima_of_curves(curves, rise * np.where(stretch > 0, stretch, 1.0))
        return grid.from_unit(best[:, None]), grid.from_unit(ends[..., None])[:, None, :, 0]
    found = [Likelihood([Channel(c, grid, draws.events)]).maximum() for c in curves]
    intervals = [[one.stat_interval for one in e.results] for e in found]
    return np.array([e.values for e in found]), np.array(intervals)


@own_threads()
def best_values(model: Model, draws: Draws, numbers: range) -> Array:
    """The same without the intervals, which take most of the time for several parameters."""
    if model.measurement is not None:
        count = len(model.grid.parameters)
        every = _measured(model, model.measurement, draws, numbers)
        return np.array([one.joint.best[:count] for one in every])
    curves = np.concatenate(list(_likelihoods(model, draws, numbers)))
    count = len(model.grid.parameters)
    if count == 1:
        best = minima_of_curves(curves, 0.5 * chi2_quantile(LEVEL, 1))[0][:, None]
    else:
        best = np.array([lowest(Curve.of(c)) for c in curves])
    return model.grid.from_unit(best)


def _measured(
    model: Model, measurement: Measurement, draws: Draws, numbers: range
) -> Iterator[MeasurementLikelihood]:
    """Likelihoods of pseudo-experiments of a model with systematics or backgrounds."""
    features = event_features(model.network, draws.x)
    rows = [measurement.summaries(c.mean(0), z) for _, c, z in features]
    y = torch.as_tensor(np.concatenate(rows))
    w = torch.ones(len(y), 1) if draws.weights is None else torch.as_tensor(draws.weights)[:, None]
    vectors = torch.cat([w * y, w, w**2], dim=1).double()
    size = measurement.size
    flat = np.zeros((1,) * len(model.grid.parameters))
    for sums, sizes in draw(vectors, draws, numbers):
        for row, events in zip(sums.numpy(), sizes.tolist(), strict=True):
            # Few events of each experiment are heavy: the covariance of one event will do.
            made = Sums(
                events, float(row[-2]), float(row[-1]), row[:size], row[:size],
                np.zeros((size, size)), False,
            )  # fmt: skip
            base = Channel(flat, model.grid, events)
            yield MeasurementLikelihood([SummaryChannel(measurement, made, base)])


def _likelihoods(model: Model, draws: Draws, numbers: range) -> Iterator[Array]:
    """Likelihoods of pseudo-experiments, as Chebyshev coefficients."""
    vectors, matrix, offset = model.event_vectors(draws.x)
    if draws.weights is not None:
        # The last entry of the vector is the weight: its sum multiplies what every event subtracts.
        w = torch.as_tensor(draws.weights)[:, None]
        vectors = torch.cat([w * vectors, w], dim=1)
    # Without their mean the vectors have small sums, for which float32 is exact enough.
    mean = vectors.mean(0, dtype=torch.float64)
    vectors = (vectors - mean).float()
    for sums, sizes in draw(vectors, draws, numbers):
        total = (sums.double() + sizes[:, None] * mean).numpy()
        curves = -np.tensordot(total[:, : len(matrix)], matrix, 1)
        weight = sizes.numpy() if draws.weights is None else total[:, -1]
        yield chebyshev.add(curves, np.multiply.outer(weight, offset))


def draw(vectors: Tensor, draws: Draws, numbers: range) -> Iterator[tuple[Tensor, Tensor]]:
    """Sums of the drawn events' vectors, one row for each pseudo-experiment, and their numbers.

    Random numbers take longer to make than sums. So `SHARED_BATCHES` batches of experiments use
    the same ones, on a shuffled pool that each batch shifts cyclically by an offset of its own.
    Every experiment is a draw like any other. Two that share their random numbers are correlated
    as events at a fixed distance in a shuffled pool are: by 0 on average, and by 1 / sqrt(pool)
    for one such distance.
    """
    pool, shared, seed = len(vectors), 1, draws.seed
    if draws.share is None:
        shared = SHARED_BATCHES
        order = np.random.default_rng(seed).permutation(pool)
        vectors = vectors[torch.as_tensor(order)].repeat(2, 1)
    draw_rows = lru_cache(maxsize=1)(_drawer(pool, draws))
    for batch in range(numbers.start // BATCH, -(-numbers.stop // BATCH)):
        begin = batch * BATCH
        rows = range(max(numbers.start - begin, 0), min(numbers.stop - begin, BATCH))
        drawn = torch.as_tensor(draw_rows(batch // shared, rows))
        random = np.random.default_rng((*seed, batch))
        offset = 0 if shared == 1 else int(random.integers(pool))
        shifted = vectors[offset : offset + pool]
        if draws.poisson:
            all_sizes = random.poisson(draws.events, BATCH)
            sizes = torch.as_tensor(all_sizes[rows.start : rows.stop])
            begins = torch.cumsum(sizes, 0) - sizes
            drawn = drawn[torch.arange(drawn.shape[1]) < sizes[:, None]]
            sums = torch.nn.functional.embedding_bag(drawn, shifted, begins.to(drawn), mode="sum")
        else:
            sizes = torch.full((len(rows),), draws.events)
            sums = torch.nn.functional.embedding_bag(drawn, shifted, mode="sum")
        yield sums, sizes


def _drawer(pool: int, draws: Draws) -> Callable[[int, range], Any]:
    """A function of a batch and of rows in it that gives the indices of the events of those
    experiments, (rows, events). With a fluctuating number of events it gives more than any
    experiment needs."""
    source = np.random.PCG64(draws.seed)
    random, beginning = np.random.Generator(source), source.state
    events, share = draws.events, None
    if draws.poisson:
        events += int(10 * events**0.5) + 30
    if draws.share is not None:
        share = np.cumsum(draws.share / draws.share.sum())

    def draw_one(number: int) -> Any:
        # Each experiment has its own stretch of one random sequence, which is much faster than a
        # generator of its own.
        source.state = beginning
        source.advance(number << STRETCH)
        if share is None:
            return random.integers(0, pool, events, dtype=np.int32)
        return np.searchsorted(share, random.random(events), side="right").clip(max=pool - 1)

    return lambda batch, rows: np.stack([draw_one(batch * BATCH + row) for row in rows])
