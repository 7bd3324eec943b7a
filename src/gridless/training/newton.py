"""Newton steps for small networks: from nearly converged to converged.

Ten thousand observed events resolve differences of 1e-8 in the cost per event, which the noise of
mini-batches hides for a long time. But a network of some hundred parameters has a curvature matrix
that is cheap to solve, and a few steps with it on all events end at the optimum.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gridless import distributed
from gridless.density.network import Network
from gridless.training.events import Events

if TYPE_CHECKING:
    from gridless.training.trainer import Trainer

# The damping of the first step, relative to the curvature's own units.
FIRST_DAMPING = 1e-4
# Shares of the predicted gain: above the first the damping is halved, below the second doubled.
GOOD_GAIN = 0.75
POOR_GAIN = 0.25
# The largest network, in parameters, for which a curvature matrix is worth having.
MAX_NEWTON_PARAMETERS = 2000
# Gradients held at once: events times parameters times members.
GRADIENT_NUMBERS = 2_000_000
# Columns of the curvature that are made at once: few, as those above its diagonal are work in vain.
COLUMNS = 64
# Units of log likelihood that a Newton step must promise to be taken.
MIN_GAIN = 0.1


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Tensors with a leading axis of members as one matrix (members, parameters) in float64, on
    the CPU."""
    return torch.cat([t.detach().flatten(1).cpu().double() for t in tensors], dim=1)


def restore(network: Network, flat: Tensor, which: Tensor) -> None:
    """Set the parameters of some members (a mask) to rows of what `flatten` gave."""
    start = 0
    with torch.no_grad():
        for p in network.parameters():
            size = p[0].numel()
            values = flat[:, start : start + size].reshape(p.shape).to(p)
            mask = which.to(p.device)
            p[mask] = values[mask]
            start += size


def gradient(cost: Tensor, network: Network) -> Tensor:
    """The gradient (members, parameters) of each member's cost by its own parameters."""
    parameters = list(network.parameters())
    return flatten(torch.autograd.grad(cost.sum(), parameters, retain_graph=True))


def newton(
    network: Network,
    objective: Callable[[], tuple[Tensor, Tensor]],
    curvature: Callable[[], Tensor],
    tolerance: float,
    steps: int,
) -> Tensor:
    """Lower each member's objective by damped Newton steps; gives the value reached.

    `objective` gives value and gradient at the network as it is, `curvature` a matrix for each
    member. The damping on its diagonal (Levenberg and Marquardt) follows how well the last step's
    gain was predicted. Ends after `steps`, or when no member expects to gain more than `tolerance`.
    """
    value, slope = objective()
    damping = torch.full_like(value, FIRST_DAMPING)
    better = torch.ones_like(value, dtype=torch.bool)
    for _ in range(steps):
        if bool(better.any()):
            matrix = curvature()
        here = flatten(network.parameters())
        unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
        damped = matrix + damping[:, None, None] * unit
        step, singular = torch.linalg.solve_ex(damped, slope.unsqueeze(-1))
        # Beside huge weights the damping is lost to rounding, and the matrix stays singular.
        if bool(singular.any()):
            break
        step = step.squeeze(-1)
        predicted = 0.5 * (slope * step).sum(-1)
        if bool((predicted < tolerance).all()):
            break
        restore(network, here - step, torch.ones_like(value, dtype=torch.bool))
        new_value, new_slope = objective()
        gain = (value - new_value) / predicted
        better = gain > 0
        restore(network, here, ~better)
        value = torch.where(better, new_value, value)
        slope = torch.where(better.unsqueeze(-1), new_slope, slope)
        factor = torch.where(gain > GOOD_GAIN, 0.5, torch.where(gain > POOR_GAIN, 1.0, 2.0))
        damping = damping * factor
    return value


@dataclass(frozen=True)
class NewtonRound:
    """Newton steps on `events` events (None: all), with the curvature of some of them."""

    events: int | None
    curvature_events: int
    steps: int


# Many steps on some of the events, to get near the optimum, then a few on all.
ROUNDS = (NewtonRound(100_000, 20_000, 40), NewtonRound(None, 50_000, 6))


def newton_steps(trainer: "Trainer", events: Events, chosen: NewtonRound) -> None:
    """Newton steps on the given events, with the curvature of some of them."""
    network, term, ridge = trainer.network, trainer.term, trainer.ridge_vector()

    def objective() -> tuple[Tensor, Tensor]:
        value, slope = full_cost(trainer, events)
        here = flatten(network.parameters())
        value, slope = value + 0.5 * (ridge * here**2).sum(1), slope + ridge * here
        term.anchor(network, trainer.events)
        added, added_slope = term.with_gradient(network)
        return value + added, slope + added_slope

    def curvature() -> Tensor:
        matrix = fisher(trainer, events[slice(0, chosen.curvature_events)])
        matrix += torch.diag_embed(ridge)
        matrix += term.curvature(network)
        return matrix

    tolerance = MIN_GAIN / float(events.effective.mean())
    newton(network, objective, curvature, tolerance, chosen.steps)


def full_cost(trainer: "Trainer", events: Events) -> tuple[Tensor, Tensor]:
    """The cost over all the given events, and its gradient (members, parameters)."""
    network = trainer.network
    value = torch.zeros(network.members, dtype=torch.float64)
    slope = torch.zeros_like(flatten(network.parameters()))
    for part in events.chunks():
        cost = trainer.cost(part)
        slope += gradient(cost, network)
        value += cost.detach().cpu()
    total = events.total
    value, slope = distributed.totals([value, slope])
    return value / total, slope / total.unsqueeze(-1)


def fisher(trainer: "Trainer", events: Events) -> Tensor:
    """sum_i |w_i| g_i g_i^T / sum_i w_i, g_i the gradient of event i's cost: the curvature of
    a log likelihood at its optimum. With negative weights it is larger, and never negative."""
    members, size = flatten(trainer.network.parameters()).shape
    matrix = torch.zeros(members, size, size, dtype=torch.float64)
    # Weighting the cost by sqrt(w) weights g g^T by w.
    roots = replace(events, weights=events.weights.sign() * events.weights.abs().sqrt())
    for part in roots.chunks(max(1, GRADIENT_NUMBERS // (members * size))):
        g = event_gradients(trainer, part)
        # The matrix is symmetric: its lower half is enough.
        for start in range(0, size, COLUMNS):
            own = slice(start, start + COLUMNS)
            matrix[:, start:, own] += (g[:, start:] @ g[:, own].mT).cpu().double()
    matrix = matrix.tril() + matrix.tril(-1).mT
    return distributed.total(matrix) / events.total[:, None, None]


def event_gradients(trainer: "Trainer", events: Events) -> Tensor:
    """The gradient of each event's cost, (members, parameters, events)."""
    network = trainer.network

    def cost(y: Tensor) -> Tensor:
        return trainer.objective.cost(network.mixture(y), events)

    return network.conditioner.event_gradients(events.x, cost)
