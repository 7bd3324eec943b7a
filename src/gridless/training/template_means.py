"""Mean and covariance of the network's summaries in each template, for the calibration."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridless import distributed
from gridless.calibration.moments import Moments
from gridless.density.network import Network
from gridless.model.evaluation import (
    at_precision,
    event_summaries,
    mean_summaries,
    summary_basis,
)
from gridless.systematics.statistics import steadied
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates
from gridless.training.events import check_parts


def template_moments(network: Network, templates: Templates, fold: Tensor | None) -> Moments:
    """Means and covariances of the summary in each template, over all ranks.

    Parameters
    ----------
    network : Network
        Trained.
    templates : Templates
        The simulated events.
    fold : Tensor (events), optional
        The member that has not seen each event, or -1 where all have. The means are then taken
        over events that the network did not see; without it, over all.

    Returns
    -------
    Moments
    """
    count, folds = len(templates.grid), 1 if fold is None else network.members
    weights = templates.event_weights
    if fold is not None:
        kept_out = np.flatnonzero(fold.numpy() >= 0)
        templates, weights, fold = templates.subset(kept_out), weights[kept_out], fold[kept_out]
    which = np.zeros(len(templates), np.int64) if fold is None else fold.numpy()
    check_parts(templates, which, folds)
    group = templates.template * folds + which
    size = summary_basis(network).outputs
    centre = _centre(network, templates.x, size)
    # Sums by template and member over events that the member has not seen; and by template over
    # all events, of the mean over the members.
    unseen, pooled = _Sums(count * folds, size), _Sums(count, size)
    for part, c in event_summaries(at_precision(network, len(templates)), templates.x):
        rows = c.double().numpy() - centre
        mean = rows.mean(axis=0)
        own = mean if fold is None else rows[which[part], np.arange(rows.shape[1])]
        unseen.add(group[part], weights[part], own)
        pooled.add(templates.template[part], weights[part], mean)
    unseen.share()
    pooled.share()
    mean = unseen.mean().reshape(count, folds, size).mean(axis=1)
    of_mean = unseen.mean_covariance().reshape(count, folds, size, size).sum(axis=1) / folds**2
    covariance = pooled.covariance()
    events = pooled.effective()
    covariance, of_mean = steadied(covariance, of_mean, events)
    return Moments(templates.grid.unit, mean + centre, covariance, of_mean)


class _Sums:
    """Weighted sums of summaries by group, from which means and covariances follow."""

    def __init__(self, groups: int, size: int) -> None:
        self.groups = groups
        self.first = np.zeros((2, groups))  # of w, w^2
        self.second = np.zeros((2, groups, size))  # of w c, w^2 c
        self.third = np.zeros((2, groups, size, size))  # of w c c^T, w^2 c c^T

    def add(self, group: NDArray[np.int64], weights: Array, c: Array) -> None:
        for power, w in enumerate((weights, weights**2)):
            self.first[power] += np.bincount(group, w, self.groups)
            for i in range(c.shape[1]):
                wc = w * c[:, i]
                self.second[power, :, i] += np.bincount(group, wc, self.groups)
                for j in range(i + 1):
                    product = np.bincount(group, wc * c[:, j], self.groups)
                    self.third[power, :, i, j] += product
                    if i != j:
                        self.third[power, :, j, i] += product

    def share(self) -> None:
        """Add up the ranks."""
        tensors = [torch.as_tensor(v) for v in (self.first, self.second, self.third)]
        self.first, self.second, self.third = (v.numpy() for v in distributed.totals(tensors))

    def effective(self) -> Array:
        return np.asarray(self.first[0] ** 2 / self.first[1].clip(min=1e-300))

    def mean(self) -> Array:
        return np.asarray(self.second[0] / self.first[0][:, None])

    def covariance(self) -> Array:
        """Of one event."""
        m, events = self.mean(), self.effective()
        found = self.third[0] / self.first[0][:, None, None] - np.einsum("ki,kj->kij", m, m)
        return np.asarray(found * (events / (events - 1).clip(min=1))[:, None, None])

    def mean_covariance(self) -> Array:
        """Of the mean: sum w^2 (c - m)(c - m)^T / (sum w)^2."""
        m, (total, squares) = self.mean(), self.first
        crossed = np.einsum("ki,kj->kij", m, self.second[1])
        found = self.third[1] - crossed - np.swapaxes(crossed, 1, 2)
        found = found + squares[:, None, None] * np.einsum("ki,kj->kij", m, m)
        events = self.effective()
        found = found * (events / (events - 1).clip(min=1))[:, None, None]
        return np.asarray(found / (total**2)[:, None, None])


def _centre(network: Network, x: Array, size: int) -> Array:
    """A typical summary, subtracted so that sums of squares lose no digits."""
    some = x[:: max(1, len(x) // 1000)]
    rows = [c.double().numpy() for _, c in mean_summaries(network, some)]
    centre = np.concatenate(rows).mean(axis=0) if rows else np.zeros(size)
    return np.asarray(distributed.of_first(torch.as_tensor(centre)).numpy())
