"""Means of the summary in every sample of a process, and what each variation does to them.

The summary is [c, s], the network's coefficients and those of `projections`. Events that the
network has seen would count its fit to their noise: where that shows, the c of an event is that
of the member of the ensemble which has not seen it. Its s is that of the other fold's projection.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridless.calibration.moments import Moments
from gridless.density.network import Network
from gridless.measurement.features import Features
from gridless.model.evaluation import event_features
from gridless.systematics.samples import Events, ProcessSamples, Varied
from gridless.systematics.statistics import Mean, combined, folds_of, sample_mean, steadied
from gridless.templates.arrays import Array


class Read(NamedTuple):
    """Summaries (events, d) of events: by the member and the fold that have not seen them, and by
    the mean of all members and folds, as those of observed events are."""

    unseen: Array
    usual: Array


@dataclass(frozen=True, eq=False)
class Summaries:
    """Summaries of simulated events.

    Attributes
    ----------
    network, features : Network, Features
        They make the summary of an event.
    projection : array (folds, features, nuisances and parameters)
        Learnt from the events of each fold; an event takes that of the other fold.
    member : array (events,) of int, optional
        The member that has not seen the nominal event of each key. Without it, and for events of no
        nominal one, the mean over the members counts.
    """

    network: Network
    features: Features
    projection: Array
    member: NDArray[np.int64] | None = None

    def __call__(self, x: Array, key: NDArray[np.int64]) -> Read:
        """The summaries of events x with these keys."""
        fold, member = folds_of(key), self._members(key)
        folds, size, count = self.projection.shape
        both = np.moveaxis(self.projection, 0, 1).reshape(size, folds * count)
        usual, unseen = [], []
        for part, c, z in event_features(self.network, x):
            rows, other = np.arange(len(z)), 1 - fold[part]
            mean = c.mean(0)
            each = self.features.project(mean, z, both).reshape(-1, folds, count)
            usual.append(np.hstack([mean, each.mean(axis=1)]))
            own, learnt = mean, each[rows, other]
            if member is not None:
                own = np.where(member[part, None] >= 0, c[member[part], rows], mean)
                # c is the first of the features, which are linear in it.
                first = self.projection[:, : c.shape[2]]
                learnt = learnt + np.einsum("nc,ncs->ns", own - mean, first[other])
            unseen.append(np.hstack([own, learnt]))
        return Read(np.concatenate(unseen), np.concatenate(usual))

    def _members(self, key: NDArray[np.int64]) -> NDArray[np.int64] | None:
        if self.member is None or self.network.members == 1:
            return None
        known = key < len(self.member)
        return np.where(known, self.member[np.where(known, key, 0)], -1)


@dataclass(frozen=True, eq=False)
class Differences:
    """What a variation does to the mean at each of its points, with the covariances of that.

    Attributes
    ----------
    linear, linear_covariance : array (points, d), array (points, d, d)
        In alpha: half of up less down, or up less nominal.
    square, square_covariance : array (points, d), array (points, d, d)
        In alpha^2, where there are up, down and nominal; else 0.
    spread : array (points, 2, d, d)
        What it does to the covariance of one event, in alpha and in alpha^2.
    """

    linear: Array
    linear_covariance: Array
    square: Array
    square_covariance: Array
    spread: Array

    def set(self, point: int, sides: list[Mean], nominal: Mean | None) -> None:
        """Take the means of the sides at a point, and that of the nominal events."""
        if len(sides) == 1:
            assert nominal is not None
            parts = [(1.0, sides[0]), (-1.0, nominal)]
        else:
            parts = [(0.5, sides[0]), (-0.5, sides[1])]
        self.spread[point, 0] = sum(c * one.covariance for c, one in parts)
        self.linear[point], self.linear_covariance[point] = combined(parts)
        if len(sides) == 2 and nominal is not None:
            parts = [(0.5, sides[0]), (0.5, sides[1]), (-1.0, nominal)]
            self.square[point], self.square_covariance[point] = combined(parts)
            self.spread[point, 1] = sum(c * one.covariance for c, one in parts)


def read_process(
    summaries: Summaries, sample: ProcessSamples
) -> tuple[Moments, tuple[Differences, ...]]:
    """Moments of the nominal summary, and the differences of every variation.

    Parameters
    ----------
    summaries : Summaries
        Of events.
    sample : ProcessSamples
        The nominal events of a process, and its variations.

    Returns
    -------
    tuple of Moments, tuple of Differences
    """
    means, covariances, of_means = [], [], []
    differences: tuple[Differences, ...] = ()
    for template in range(len(sample.t)):
        rows = np.flatnonzero(sample.nominal.point == template)
        read = summaries(sample.nominal.x[rows], sample.nominal.key[rows])
        nominal = _mean(sample.nominal, rows, read.unseen, "the templates")
        means.append(nominal.mean)
        # Members and folds disagree: of one observed event their mean is taken, which spreads less.
        covariances.append(_mean(sample.nominal, rows, read.usual, "the templates").covariance)
        of_means.append(nominal.mean_covariance)
        differences = differences or _no_differences(sample, len(nominal.mean))
        for varied, found in zip(sample.varied, differences, strict=True):
            for point in np.flatnonzero(varied.template == template):
                sides = []
                for side in varied.sides:
                    own = np.flatnonzero(side.point == point)
                    if side.x is sample.nominal.x and np.array_equal(own, rows):
                        # Other weights alone.
                        sides.append(_mean(side, own, read.unseen, _name(varied)))
                    else:
                        sides.append(_read_mean(summaries, side, int(point), varied))
                found.set(int(point), sides, nominal)
    for varied, found in zip(sample.varied, differences, strict=True):
        for point in np.flatnonzero(varied.template < 0):
            sides = [_read_mean(summaries, side, int(point), varied) for side in varied.sides]
            found.set(int(point), sides, None)
    covariance, of_mean = steadied(np.array(covariances), np.array(of_means))
    return Moments(sample.t, np.array(means), covariance, of_mean), differences


def _no_differences(sample: ProcessSamples, size: int) -> tuple[Differences, ...]:
    shapes = [(size,) * axes for axes in (1, 2, 1, 2)]
    shapes.append((2, size, size))
    return tuple(
        Differences(*(np.zeros((len(varied.t), *shape)) for shape in shapes))
        for varied in sample.varied
    )


def _read_mean(summaries: Summaries, side: Events, point: int, varied: Varied) -> Mean:
    own = np.flatnonzero(side.point == point)
    return _mean(side, own, summaries(side.x[own], side.key[own]).unseen, _name(varied))


def _mean(events: Events, own: NDArray[np.int64], y: Array, what: str) -> Mean:
    weights, key = events.weights[own], events.key[own]
    return sample_mean(y, weights, key, folds_of(key), what)


def _name(varied: Varied) -> str:
    return f"systematic {varied.name!r}"
