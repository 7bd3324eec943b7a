"""Networks that bootstraps of the templates would have given: the uncertainty from simulation."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gridless.curves import chebyshev
from gridless.density.network import Network
from gridless.model.evaluation import MAX_DOUBLE_EVENTS
from gridless.templates.arrays import Array, slices

# Events on which a replica is compared with the model: the comparison fluctuates little.
COMPARED_EVENTS = 4096
# Densities evaluated at once.
BLOCK_NUMBERS = 2**22
# Events evaluated at once are no fewer.
MIN_BLOCK_EVENTS = 64
# Networks are moved by this share of d phi, and its effect scaled up again: along valleys of the
# cost d phi is long, and a straight line of its full length would leave the valley.
MOVED_SHARE = 0.1


@dataclass(frozen=True)
class Replicas:
    """Networks moved towards what bootstraps of the templates would have given, with what those
    would have changed in the implied prior.

    `network` has the members of every replica one after the other; `log_q` (replicas, ...) are
    Chebyshev coefficients of log q_r - log q.
    """

    network: Network
    log_q: Array

    def __len__(self) -> int:
        return len(self.log_q)

    def changes(self, network: Network, x: Array, weights: Array) -> Array:
        """What each replica changes in the likelihood of the events, as Chebyshev coefficients.

        Parameters
        ----------
        network : Network
            The model's own.
        x, weights : array (events, observables), array (events)
            The observed events.
        """
        # With very many events, this must not take longer than the likelihood itself.
        compared = COMPARED_EVENTS if len(x) <= MAX_DOUBLE_EVENTS else COMPARED_EVENTS // 2
        stride = max(1, len(x) // compared)
        subset, w = x[::stride], weights[::stride]
        # Weights of either sign may cancel in a block of a file.
        w = w * (weights.sum() / w.sum() if w.sum() else float(stride))
        inputs = network.standardise(torch.as_tensor(subset)).float()
        shape = self.log_q.shape[1:]
        base = _log_likelihoods(network, inputs, torch.as_tensor(w), 1, shape)
        moved = _log_likelihoods(self.network, inputs, torch.as_tensor(w), len(self), shape)
        return chebyshev.add((base - moved) / MOVED_SHARE, w.sum() * self.log_q)


@torch.no_grad()
def _log_likelihoods(
    network: Network, x: Tensor, weights: Tensor, groups: int, shape: tuple[int, ...]
) -> Array:
    """sum_i w_i log p(t | x_i), p averaged over the members of each group, as Chebyshev
    coefficients (groups, ...) up to constants; on `shape` points where it is no polynomial."""
    basis = network.polynomial(network.members // groups)
    if basis is not None:
        c = network(x).coefficients()
        totals = torch.einsum("n,gnk->gk", weights, c.double()).numpy()
        return np.array([basis.chebyshev(total) for total in totals])
    t = torch.as_tensor(chebyshev.box_points(shape)).float()
    values = torch.zeros(groups, len(t), dtype=torch.float64)
    for part in event_slices(len(x), network.members * len(t)):
        mixture = network(x[part])
        if network.members > groups:
            mixture = mixture.over_templates()
        values += mixture.merged(groups).sum_log_prob(t, weights[part])
    rows = values.numpy().reshape(groups, *shape)
    return np.array([chebyshev.coefficients(v) for v in rows])


def event_slices(events: int, per_event: int) -> Iterator[slice]:
    """Pieces of the events, with so many densities for each event."""
    return slices(events, max(MIN_BLOCK_EVENTS, BLOCK_NUMBERS // per_event))
