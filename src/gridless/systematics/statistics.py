"""Means of summaries in samples, and the covariances of their differences event by event.

Two folds of the events take turns: coefficients learnt from one are applied to the other. The mean
of a sample is the mean of both folds. Event i moves it by a_i = w_i (y_i - m_fold) / 2 W_fold; the
covariance of any two means is the sum over events of the products of their a_i.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError
from gridless.templates.arrays import LEAST_WORTH, Array, worth

FOLDS = 2
ROUNDING = 1e-12  # of the largest eigenvalue of a covariance
PRIOR_EVENTS = 5  # times the size of a summary: events that the pooled covariance counts as


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean of the summary in a sample.

    Attributes
    ----------
    mean : array (d,)
        Of both folds.
    influence : array (events, d)
        How far each event moves it.
    key : array (events,) of int
        Equal keys are one simulated event in several samples.
    covariance : array (d, d)
        Of one event.
    """

    mean: Array
    influence: Array
    key: NDArray[np.int64]
    covariance: Array

    @property
    def mean_covariance(self) -> Array:
        """The covariance of the mean."""
        return np.asarray(self.influence.T @ self.influence)


def sample_mean(
    y: Array, weights: Array, key: NDArray[np.int64], fold: NDArray[np.int64], what: str
) -> Mean:
    """The mean of summaries y (events, d), each from the fold that has not seen the event."""
    check_halves(weights, fold, np.zeros(len(y), np.int64), 1, what)
    influence, means = np.empty_like(y), []
    spread = np.zeros((y.shape[1],) * 2)
    for number in range(FOLDS):
        own = fold == number
        w = weights[own]
        total = w.sum()
        mean = w @ y[own] / total
        rest = y[own] - mean
        influence[own] = w[:, None] * rest / (FOLDS * total)
        spread += (rest * w[:, None]).T @ rest / (FOLDS * total)
        means.append(mean)
    return Mean(np.mean(means, axis=0), influence, key, spread)


def folds_of(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """The fold of each event, by its key."""
    return key % FOLDS


def check_halves(
    weights: Array, fold: NDArray[np.int64], point: NDArray[np.int64], points: int, what: str
) -> None:
    """Refuse a sample of which a fold is worth less than `LEAST_WORTH` events at some point."""
    group, size = point * FOLDS + fold, FOLDS * points
    total, squares = (np.bincount(group, w, size).astype(float) for w in (weights, weights**2))
    found = worth(total, squares)
    if found.min() < LEAST_WORTH:
        count = int((point == found.argmin() // FOLDS).sum())
        raise InputError(
            f"{what}: {count:,} events at one value of theta, of which one half is worth "
            f"{found.min():.3g} events, (sum w)^2 / sum w^2; give more events, or fewer negative "
            "weights"
        )


def combined(parts: list[tuple[float, Mean]]) -> tuple[Array, Array]:
    """sum_i c_i mean_i of samples that may share events, and its covariance."""
    mean = np.sum([c * part.mean for c, part in parts], axis=0)
    first = parts[0][1].key
    if all(part.key is first or np.array_equal(part.key, first) for _, part in parts):
        rows = np.sum([c * part.influence for c, part in parts], axis=0)
        return mean, np.asarray(rows.T @ rows)
    label = np.unique(np.concatenate([part.key for _, part in parts]), return_inverse=True)[1]
    rows = np.zeros((int(label.max()) + 1, len(mean)))
    begin = 0
    for c, part in parts:
        end = begin + len(part.key)
        # A key may come twice in a sample, as events that were drawn again.
        np.add.at(rows, label[begin:end], c * part.influence)
        begin = end
    return mean, np.asarray(rows.T @ rows)


def steadied(covariance: Array, of_mean: Array, events: Array | None = None) -> tuple[Array, Array]:
    """Covariances (points, d, d) of one event and of the mean, shrunk for small samples towards
    the average over all points, so that none is singular. `events` (points,) are effective numbers;
    by default the ratio of both covariances."""
    covariance = nonnegative(covariance)
    if events is None:
        traces = np.trace(covariance, axis1=1, axis2=2), np.trace(of_mean, axis1=1, axis2=2)
        events = traces[0] / np.where(traces[1] > 0, traces[1], np.inf)
    pooled = np.tensordot(events / max(events.sum(), 1e-300), covariance, 1)
    pooled = pooled + 1e-12 * np.trace(pooled) * np.eye(len(pooled))
    keep = (events / (events + PRIOR_EVENTS * len(pooled)))[:, None, None]
    return (
        keep * covariance + (1 - keep) * pooled,
        keep * of_mean + (1 - keep) * pooled / events.clip(min=1)[:, None, None],
    )


def nonnegative(covariance: Array) -> Array:
    """Covariances (..., d, d) without negative eigenvalues, which weights of either sign give."""
    values, vectors = np.linalg.eigh(covariance)
    negative = values[..., 0] < -ROUNDING * np.abs(values).max(axis=-1)
    if not negative.any():
        return covariance
    made = (vectors * values.clip(min=0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return np.where(negative[..., None, None], made, covariance)
