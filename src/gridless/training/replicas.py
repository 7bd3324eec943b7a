"""The uncertainty from finite simulation: what other templates of the same sizes would have given.

A bootstrap over the templates without training again. Weighting training event i by W_i, a Poisson
number of mean 1, moves the optimum of the cost to first order by

    d phi = -H^-1 sum_i (W_i - 1) g_i,

g_i the gradient of event i's cost and H the matrix of second derivatives. Fifty thousand events are
drawn again; the result is scaled to the fluctuation of all events.
"""

import warnings

import numpy as np
import torch
from torch import Tensor

from gridless import distributed
from gridless.curves import chebyshev
from gridless.density.network import Network
from gridless.errors import GridlessWarning
from gridless.model.replicas import COMPARED_EVENTS, MOVED_SHARE, Replicas, event_slices
from gridless.templates.arrays import Array
from gridless.training.events import Events
from gridless.training.newton import MAX_NEWTON_PARAMETERS, event_gradients, flatten, restore
from gridless.training.trainer import Trainer

# Training events that are drawn again.
DRAWN_EVENTS = 50_000
# Gradients held at once: events times parameters times members.
GRADIENT_NUMBERS = 8_000_000
# The least curvature, relative to the largest: less is rounding.
MIN_RELATIVE_CURVATURE = 1e-9


def replicate(
    trainer: Trainer, held_out: Events | None, replicas: int, shape: tuple[int, ...]
) -> Replicas | None:
    """Bootstrap replicas of a trained network, with implied priors on `shape` Chebyshev points.

    Parameters
    ----------
    trainer : Trainer
        The training that has ended.
    held_out : Events, optional
        Events over which members take their implied prior, if not the training's.
    replicas : int
        Their number.
    shape : tuple of int
        Chebyshev points of each parameter.

    Returns
    -------
    Replicas, or None for a network that is large and has no known last layer
    """
    # With several ranks, each does this alone, with events of its own.
    network, total = trainer.network, len(trainer.events) * distributed.size()
    free = _free_parameters(network)
    if free is None:
        return None
    events = trainer.events[slice(0, DRAWN_EVENTS)]
    scale = (len(events) / total) ** 0.5
    counts = torch.poisson(torch.ones(replicas, len(events)), generator=trainer.generator)
    moved = network.repeated(replicas)
    step = MOVED_SHARE * scale * _steps(trainer, events, counts - 1, free)
    new = flatten(moved.parameters()) - step.transpose(0, 1).flatten(0, 1)
    restore(moved, new, torch.ones(moved.members, dtype=torch.bool))
    log_q = _log_q(network, moved, held_out or events, counts, scale, shape, trainer.generator)
    return Replicas(moved, log_q)


def _free_parameters(network: Network) -> Tensor | None:
    """Which parameters are moved: all; or those of the last layer, if the network is too large for
    Newton steps and therefore not at its optimum."""
    size = network.size
    if size <= MAX_NEWTON_PARAMETERS:
        return torch.arange(size)
    last = network.conditioner.last_layer()
    if last is None or len(last) > MAX_NEWTON_PARAMETERS:
        warnings.warn(
            f"network: of {size:,} parameters without a small linear layer at its end, so that the "
            "uncertainty from simulation is not known; end it with a torch.nn.Linear, or give "
            "replicas=0",
            GridlessWarning,
            stacklevel=3,
        )
        return None
    return last


def _steps(trainer: Trainer, events: Events, change: Tensor, free: Tensor) -> Tensor:
    """H^-1 sum_i change_i g_i / sum_i w_i: (members, replicas, parameters)."""
    network = trainer.network
    members, size = flatten(network.parameters()).shape
    slopes = torch.zeros(members, len(change), len(free), dtype=torch.float64)
    matrix = torch.zeros(members, len(free), len(free), dtype=torch.float64)
    start = 0
    for part in events.chunks(max(1, GRADIENT_NUMBERS // (members * size))):
        g = event_gradients(trainer, part)
        g = g if len(free) == size else g[:, free]
        slopes += torch.einsum("rn,epn->erp", change[:, start : start + len(part)], g).double()
        # Weights keep their signs here, unlike in Newton steps, which only need a safe direction.
        inverse = torch.where(part.weights == 0, 0.0, 1 / part.weights)
        matrix += ((g * inverse.unsqueeze(1)) @ g.mT).double()
        start += len(part)
    slopes /= events.own_total[:, None, None]
    matrix /= events.own_total[:, None, None]
    ridge = trainer.ridge_vector()
    matrix += torch.diag_embed(ridge[:, free])
    if trainer.term.active:
        matrix += trainer.term.curvature(network)[:, free][:, :, free]
        slopes += trainer.term.slopes(network, events, change)[:, :, free]
    values, vectors = torch.linalg.eigh(matrix)
    # The ridge is the least curvature there is; less is noise of the signed sum.
    least = torch.maximum(ridge.amax(1), MIN_RELATIVE_CURVATURE * values.amax(1)).unsqueeze(-1)
    values = torch.maximum(values, least)
    steps = torch.zeros(members, len(change), size, dtype=torch.float64)
    steps[:, :, free] = torch.einsum("eij,ej,ekj,erk->eri", vectors, 1 / values, vectors, slopes)
    return steps


@torch.no_grad()
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
    replicas, members = len(counts), network.members
    t = torch.as_tensor(chebyshev.box_points(shape)).float()
    if len(events) != counts.shape[1]:
        events = events[slice(0, DRAWN_EVENTS)]
        counts = torch.poisson(torch.ones(replicas, len(events)), generator=generator)
    plain, weighted = (torch.zeros(n, len(t), dtype=torch.float64) for n in (1, replicas))
    for part in event_slices(len(events), members * len(t)):
        f = _density(network, events.x[part], t)
        share = events.weights[:, part].expand(len(f), -1) / events.own_total.unsqueeze(-1)
        plain += torch.einsum("enj,en->j", f, share.float())
        weighted += torch.einsum("enj,en,rn->rj", f, share.float(), counts[:, part])
    few = events[slice(0, COMPARED_EVENTS)]
    before, after = (torch.zeros(n, len(t), dtype=torch.float64) for n in (1, replicas))
    for part in event_slices(len(few), moved.members * len(t)):
        share = (few.weights[:, part].expand(members, -1) / few.own_total[:, None]).float()
        before += torch.einsum("enj,en->j", _density(network, few.x[part], t), share)
        f = _density(moved, few.x[part], t).reshape(replicas, members, -1, len(t))
        after += torch.einsum("renj,en->rj", f, share)
    weighted = weighted / counts.double().mean(1, keepdim=True)
    change = scale * (weighted / plain - 1) + (after / before - 1) / MOVED_SHARE
    values = change.numpy().reshape(replicas, *shape)
    return np.array([chebyshev.coefficients(v) for v in values])


def _density(network: Network, x: Tensor, t: Tensor) -> Tensor:
    """p(t_j | x) of every member: (members, events, values)."""
    return torch.exp(network(x).over_templates().log_prob_at(t))
