"""A coefficient for each systematic, background and parameter: the function of an event that is
most sensitive to its change of the simulation.

s_k(x) = p_k . f(x), f the features of an event. p_k is learnt from how the mean of the features
changes, Delta_k, in each of two folds of the events, so that it can be applied to the other one.
The coefficient of a parameter, from its slope over the templates, has what a poor network missed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridless.density.network import Network
from gridless.measurement.features import Features, discriminants
from gridless.measurement.measurement import Share
from gridless.model.evaluation import event_features, summary_basis
from gridless.systematics.samples import Events, ProcessSamples, Varied
from gridless.systematics.statistics import FOLDS, folds_of, nonnegative
from gridless.templates.arrays import Array

MOST_LEARNT = 400_000  # events of a sample from which projections are learnt
LEAST_LEARNT = 1_000  # events at one value of theta, of which none is left out


class _Process(NamedTuple):
    """Features of a process: their mean (folds, features) over all templates, their covariance
    within a template, how each systematic changes the mean (systematics, folds, features), and
    how theta does (parameters, folds, features)."""

    mean: Array
    covariance: Array
    changes: Array
    slopes: Array


def learn_projections(
    network: Network,
    features: Features,
    samples: Sequence[ProcessSamples],
    shares: Sequence[Share],
    names: Sequence[str],
) -> Array:
    """Projections (folds, features, nuisances and parameters) of the features.

    Parameters
    ----------
    network, features : Network, Features
        The features take the network's summary of an event, and its inputs.
    samples : sequence of ProcessSamples
        The signal, then every background.
    shares : sequence of Share
        Of the backgrounds.
    names : sequence of str
        The nuisance parameters.

    Returns
    -------
    array
        Learnt from the events of each fold.
    """
    fractions = np.array([1 - sum(one.share for one in shares), *(one.share for one in shares)])
    learnt = [_process(network, features, sample) for sample in samples]
    centre = fractions @ np.array([one.mean.mean(axis=0) for one in learnt])
    covariance = np.zeros((len(centre), len(centre)))
    deltas = np.zeros((FOLDS, len(names), len(centre)))
    for sample, one, fraction in zip(samples, learnt, fractions, strict=True):
        # The processes differ in their means too.
        rest = one.mean.mean(axis=0) - centre
        covariance += fraction * (one.covariance + np.outer(rest, rest))
        for varied, change in zip(sample.varied, one.changes, strict=True):
            deltas[:, names.index(varied.name)] += fraction * change
    for share, one in zip(shares, learnt[1:], strict=True):
        deltas[:, share.nuisance] = one.mean - learnt[0].mean
    outputs = summary_basis(network).outputs
    sizes = features.sizes(outputs)
    of_nuisances = discriminants(deltas, covariance, sizes)
    # Without the network's summary, which has seen the theta of its events.
    slopes = np.moveaxis(learnt[0].slopes[..., outputs:], 1, 0)
    others = covariance[outputs:, outputs:]
    of_theta = discriminants(slopes, others, [size - outputs for size in sizes])
    of_theta = np.pad(of_theta, ((0, 0), (outputs, 0), (0, 0)))
    return np.concatenate([of_nuisances, of_theta], axis=2)


def _process(network: Network, features: Features, sample: ProcessSamples) -> _Process:
    nominal = _some(sample.nominal)
    # Variations that are other weights of the same events are read with them.
    weights, places = [nominal.weights], {}
    for number, varied in enumerate(sample.varied):
        for side, events in enumerate(varied.sides):
            if events.x is sample.nominal.x:
                places[number, side] = len(weights)
                weights.append(_some(events).weights)
    means, covariance = _moments(network, features, nominal, weights)
    changes = []
    for number, varied in enumerate(sample.varied):
        ends = []
        for side, events in enumerate(varied.sides):
            if (number, side) in places:
                ends.append(means[places[number, side]][varied.template])
            else:
                some = _some(events)
                moments = _moments(network, features, some, [some.weights], covariance=False)
                ends.append(moments[0][0])
        changes.append(_change(varied, ends, means[0]))
    empty = np.zeros((0, *means.shape[2:]))
    changed = np.array(changes) if changes else empty
    return _Process(means[0].mean(axis=0), covariance, changed, straight(sample.t, means[0]))


def straight(t: Array, means: Array) -> Array:
    """Slopes (parameters, ...) of straight lines through means (points, ...)."""
    rows = np.linalg.pinv(t - t.mean(axis=0))
    return np.asarray(np.tensordot(rows, means, 1))


def _change(varied: Varied, ends: list[Array], nominal: Array) -> Array:
    """Half the difference of up and down, or up less nominal, by fold; the mean over points."""
    if len(ends) == 1:
        return np.asarray((ends[0] - nominal[varied.template]).mean(axis=0))
    return np.asarray(0.5 * (ends[0] - ends[1]).mean(axis=0))


def _moments(
    network: Network,
    features: Features,
    events: Events,
    weights: list[Array],
    covariance: bool = True,
) -> tuple[Array, Array]:
    """Means (sets of weights, points, folds, features) of the features of events, and with the
    first set their covariance within a point, averaged over points, if that is asked for."""
    found: list[Array] = []
    total: Array | float = 0.0
    points = int(events.point.max()) + 1
    for point in range(points):
        own = np.flatnonzero(events.point == point)
        x, fold = events.x[own], folds_of(events.key[own])
        sums = _Sums(np.array([one[own] for one in weights]), fold)
        for part, c, z in event_features(network, x):
            for rows, f in features.blocks(c.mean(0), z):
                sums.add(slice(part.start + rows.start, part.start + rows.stop), f, covariance)
        found.append(sums.means())
        total = total + (sums.covariance() / points if covariance else 0.0)
    if covariance and (weights[0] < 0).any():
        total = nonnegative(np.asarray(total))
    return np.stack(found, axis=1), np.asarray(total)


class _Sums:
    """Sums over events of features f, and of their products, for some sets of weights (sets,
    events), by fold."""

    def __init__(self, weights: Array, fold: NDArray[np.int64]) -> None:
        self.weights = weights
        self.in_fold = np.array([fold == k for k in range(FOLDS)])
        self.centre = np.zeros(0)
        self.first: Array | float = 0.0
        self.second: Array | float = 0.0

    def add(self, rows: slice, f: Array, products: bool) -> None:
        """The events of some rows."""
        if not len(self.centre):
            self.centre = f.mean(axis=0)  # squares then lose no digits
        f = f - self.centre
        w = self.weights[:, rows]
        self.first = self.first + (w[:, None] * self.in_fold[:, rows]) @ f
        if products:
            self.second = self.second + (f * w[0][:, None]).T @ f

    def means(self) -> Array:
        """(sets, folds, features)."""
        return np.asarray(self._means() + self.centre)

    def _means(self) -> Array:
        totals = (self.weights[:, None] * self.in_fold).sum(axis=-1)[..., None]
        whole = np.sum(self.first, axis=1, keepdims=True) / totals.sum(axis=1, keepdims=True)
        # A fold whose weights cancel takes the mean of both folds.
        return np.where(totals > 0, self.first / np.where(totals > 0, totals, 1.0), whole)

    def covariance(self) -> Array:
        """With the first set, around the mean of the means of the folds."""
        middle = self._means()[0].mean(axis=0)
        total = self.weights[0].sum()
        crossed = np.outer(middle, np.sum(self.first, axis=1)[0] / total)
        return np.asarray(self.second / total - crossed - crossed.T + np.outer(middle, middle))


def _some(events: Events) -> Events:
    """Some of very many events, chosen by key: the same ones in every sample that has them."""
    step = len(events.x) // MOST_LEARNT + 1
    if step == 1:
        return events
    few = np.bincount(events.point)[events.point] < LEAST_LEARNT
    keep = np.flatnonzero(few | ((events.key // FOLDS) % step == 0))
    return Events(events.x[keep], events.weights[keep], events.point[keep], events.key[keep])
