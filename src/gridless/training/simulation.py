"""The uncertainty from finite simulation: what other templates of the same sizes would have given.

A bootstrap over the templates without training again. Weighting training event i by W_i, a Poisson
number of mean 1, moves the optimum of the cost to first order by

    d phi = -H^-1 sum_i (W_i - 1) g_i,

g_i the gradient of event i's cost and H the matrix of second derivatives. Some fifty thousand
events say how large that is: their fluctuation is scaled to that of all.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gridless import distributed
from gridless.density.network import Network
from gridless.likelihood import chebyshev
from gridless.model.evaluation import (
    SINGLE,
    merged,
    normalised,
    polynomial_basis,
    sum_of_logs,
)
from gridless.templates.arrays import Array
from gridless.training.newton import event_gradients, flatten, gradient, restore
from gridless.training.objectives import Flatness, log_prob_at
from gridless.training.trainer import LARGEST_TO_POLISH, Events, Trainer

_EVENTS = 50_000
# Events on which a replica is compared with the model: the comparison fluctuates little.
COMPARED = 4096
_BLOCK = 2**22
# Networks are moved by this share of d phi, and its effect scaled up again: along valleys of the
# cost d phi is long, and a straight line of its full length would leave the valley.
_SHARE = 0.1


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

    def changes(self, model: Network, x: Array, weights: Array, divide: bool) -> Array:
        """What each replica changes in the likelihood of the events, as Chebyshev coefficients."""
        # Of very many events the comparison must not take longer than their likelihood.
        every = max(1, len(x) // (COMPARED if len(x) <= SINGLE else COMPARED // 2))
        some, w = x[::every], weights[::every]
        w = w * (weights.sum() / w.sum())
        inputs = model.standardise(torch.as_tensor(some)).float()
        shape = self.log_q.shape[1:]
        base = _log_likelihoods(model, inputs, torch.as_tensor(w), 1, shape)
        each = _log_likelihoods(self.network, inputs, torch.as_tensor(w), len(self), shape)
        changes = (base - each) / _SHARE
        return chebyshev.add(changes, w.sum() * self.log_q) if divide else changes


def replicate(
    trainer: Trainer,
    held_out: Events | None,
    flatness: Flatness | None,
    strength: Tensor,
    replicas: int,
    shape: tuple[int, ...],
) -> Replicas:
    """Bootstrap replicas of a trained network, with implied priors on `shape` Chebyshev points.

    `held_out` are the events over which members take their implied prior, if not the training's.
    """
    # With several ranks, each does this alone, with events of its own.
    network, total = trainer.network, len(trainer.events) * distributed.size()
    events = trainer.events[slice(0, _EVENTS)]
    scale = (len(events) / total) ** 0.5
    counts = torch.poisson(torch.ones(replicas, len(events)), generator=trainer.generator)
    moved = copy.deepcopy(network)
    moved.members = replicas * network.members
    for p in moved.parameters():
        p.data = p.data.repeat(replicas, *(1,) * (p.dim() - 1))
    step = _SHARE * scale * _steps(trainer, events, counts - 1, flatness, strength)
    new = flatten(moved.parameters()) - step.transpose(0, 1).flatten(0, 1)
    restore(moved, new, torch.ones(moved.members, dtype=torch.bool))
    log_q = _log_q(network, moved, held_out or events, counts, scale, shape, trainer.generator)
    return Replicas(moved, log_q)


def _steps(
    trainer: Trainer, events: Events, change: Tensor, flatness: Flatness | None, strength: Tensor
) -> Tensor:
    """H^-1 sum_i change_i g_i / sum_i w_i: (members, replicas, parameters)."""
    network = trainer.network
    members, size = flatten(network.parameters()).shape
    slopes = torch.zeros(members, len(change), size, dtype=torch.float64)
    matrix = torch.zeros(members, size, size, dtype=torch.float64)
    start = 0
    for part in events.chunks(max(1, 8_000_000 // (members * size))):

        def cost(log_c: Tensor, z: Tensor, part: Events = part) -> Tensor:
            return trainer.cost(log_c, z, part)

        g = event_gradients(network, part.x, cost)
        slopes += torch.einsum("rn,epn->erp", change[:, start : start + len(part)], g).double()
        # Signed, unlike the curvature of the Newton steps: here it decides a size, not a path.
        inverse = torch.where(part.weights == 0, 0.0, 1 / part.weights)
        matrix += ((g * inverse.unsqueeze(1)) @ g.mT).double()
        start += len(part)
    slopes /= events.own_total[:, None, None]
    matrix /= events.own_total[:, None, None]
    ridge = trainer.ridge_vector()
    matrix += torch.diag_embed(ridge)
    if flatness is not None:
        matrix += strength[:, None, None] * flatness.curvature(network)
        slopes += strength[:, None, None] * _flatness_slopes(network, flatness, events, change)
    # A network too large for Newton steps is not at its optimum: only its last layer is moved.
    free = slice(0, size) if size <= LARGEST_TO_POLISH else network.last_layer()
    values, vectors = torch.linalg.eigh(matrix[:, free][:, :, free])
    # The ridge is the least curvature there is; less is noise of the signed sum.
    least = torch.maximum(ridge.amax(1), 1e-9 * values.amax(1)).unsqueeze(-1)
    values = torch.maximum(values, least)
    inside = torch.einsum("eij,ej,ekj,erk->eri", vectors, 1 / values, vectors, slopes[:, :, free])
    steps = torch.zeros_like(slopes)
    steps[:, :, free] = inside
    return steps


def _flatness_slopes(
    network: Network, flatness: Flatness, events: Events, change: Tensor
) -> Tensor:
    """How the gradient of the penalty changes with the weights of the events."""
    plain = copy.copy(flatness)
    plain.complete, plain.offset = True, torch.zeros_like(flatness.offset)
    slopes = []
    for one in [torch.zeros_like(change[0]), *change]:
        plain.reference = events.x, events.weights * (1 + one)
        slopes.append(gradient(plain.term(network)[1], network))
    return torch.stack(slopes[1:], dim=1) - slopes[0].unsqueeze(1)


def _log_q(
    network: Network,
    moved: Network,
    events: Events,
    counts: Tensor,
    scale: float,
    shape: tuple[int, ...],
    generator: torch.Generator,
) -> Array:
    """log q_r - log q: from other weights of the events, and from other networks on them."""
    replicas = len(counts)
    t = torch.as_tensor(chebyshev.box_points(shape)).float()
    if len(events) != counts.shape[1]:
        events = events[slice(0, _EVENTS)]
        counts = torch.poisson(torch.ones(replicas, len(events)), generator=generator)
    plain, weighted = (torch.zeros(n, len(t), dtype=torch.float64) for n in (1, replicas))
    with torch.no_grad():
        for part in _parts(len(events), network.members * len(t)):
            f = _member_density(network, events.x[part], t)
            share = events.weights[:, part].expand(len(f), -1) / events.own_total.unsqueeze(-1)
            plain += torch.einsum("enj,en->j", f, share.float())
            weighted += torch.einsum("enj,en,rn->rj", f, share.float(), counts[:, part])
        few = events[slice(0, COMPARED)]
        others = torch.zeros(replicas, len(t), dtype=torch.float64)
        before = torch.zeros(1, len(t), dtype=torch.float64)
        for part in _parts(len(few), moved.members * len(t)):
            share = (
                few.weights[:, part].expand(network.members, -1) / few.own_total[:, None]
            ).float()
            before += torch.einsum("enj,en->j", _member_density(network, few.x[part], t), share)
            f = _member_density(moved, few.x[part], t).reshape(
                replicas, network.members, -1, len(t)
            )
            others += torch.einsum("renj,en->rj", f, share)
    weighted = weighted / counts.double().mean(1, keepdim=True)
    change = scale * (weighted / plain - 1) + (others / before - 1) / _SHARE
    values = change.numpy().reshape(replicas, *shape)
    return np.array([chebyshev.coefficients(v) for v in values])


def _member_density(network: Network, x: Tensor, t: Tensor) -> Tensor:
    """p(t_j | x) of every member: (members, events, values)."""
    log_c, z = network(x)
    return torch.exp(log_prob_at(network, normalised(network, log_c, z), z, t))


@torch.no_grad()
def _log_likelihoods(
    network: Network, x: Tensor, weights: Tensor, groups: int, shape: tuple[int, ...]
) -> Array:
    """sum_i w_i log p(t | x_i), p averaged over the members of each group, as Chebyshev
    coefficients (groups, ...) up to constants; on `shape` points where it is no polynomial."""
    basis = polynomial_basis(network, network.members // groups)
    if basis is not None:
        c = basis.coefficients(network(x)[1].squeeze(2))
        totals = torch.einsum("n,gnk->gk", weights, c.double()).numpy()
        return np.array([basis.chebyshev(total) for total in totals])
    t = torch.as_tensor(chebyshev.box_points(shape)).float()
    values = torch.zeros(groups, len(t), dtype=torch.float64)
    for part in _parts(len(x), network.members * len(t)):
        log_c, z = network(x[part])
        if network.members > groups:
            log_c = normalised(network, log_c, z)
        values += sum_of_logs(network, *merged(log_c, z, groups), t, weights[part])
    rows = values.numpy().reshape(groups, *shape)
    return np.array([chebyshev.coefficients(v) for v in rows])


def _parts(events: int, per_event: int) -> list[slice]:
    size = max(64, _BLOCK // per_event)
    return [slice(start, start + size) for start in range(0, events, size)]
