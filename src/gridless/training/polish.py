"""Newton steps of a training on all of its events."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gridless import distributed
from gridless.density.mixture import Mixture
from gridless.model.record import Epoch
from gridless.training.events import Events
from gridless.training.newton import flatten, gradient, newton, restore
from gridless.training.trainer import Trainer

# The largest network, in parameters, for which a curvature matrix is worth having.
MAX_NEWTON_PARAMETERS = 2000
# Gradients held at once: events times parameters times members.
GRADIENT_NUMBERS = 2_000_000
# Units of log likelihood that a Newton step must promise to be taken.
MIN_GAIN = 0.1


@dataclass(frozen=True)
class NewtonRound:
    """On how many events (None: all), with the curvature of how many of them, and steps."""

    events: int | None
    curvature_events: int
    steps: int


# Many steps on some of the events, to get near the optimum, then a few on all.
ROUNDS = (NewtonRound(100_000, 20_000, 40), NewtonRound(None, 50_000, 6))


def polish(trainer: Trainer, number: int, epoch: int, report: Callable[[str], None]) -> list[Epoch]:
    """Newton steps on all events, undone for a member whose held-out events get worse."""
    network, strength = trainer.network, trainer.term.strength
    old = flatten(network.parameters())
    if old.shape[1] > MAX_NEWTON_PARAMETERS:
        return []
    before = trainer.mean_cost(trainer.held_out) + strength * trainer.spread()
    for chosen in ROUNDS:
        newton_steps(trainer, trainer.events[slice(0, chosen.events)], chosen)
    training, validation = (trainer.mean_cost(e) for e in (trainer.events, trainer.held_out))
    spread = trainer.spread()
    keep = validation + strength * spread < before + trainer.margin()
    restore(network, old, ~keep)
    report(f"cost {float(validation.mean()):.5f}")
    return [
        Epoch(
            number,
            epoch,
            float(training.mean()),
            float(validation.mean()),
            float(spread.mean()),
            float(strength.mean()),
            bool(keep.all()),
        )
    ]


def newton_steps(trainer: Trainer, events: Events, chosen: NewtonRound) -> None:
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


def full_cost(trainer: Trainer, events: Events) -> tuple[Tensor, Tensor]:
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


def fisher(trainer: Trainer, events: Events) -> Tensor:
    """sum_i |w_i| g_i g_i^T / sum_i w_i, g_i the gradient of event i's cost: the curvature of
    a log likelihood at its optimum or, with negative weights, more; and never negative."""
    members, size = flatten(trainer.network.parameters()).shape
    matrix = torch.zeros(members, size, size, dtype=torch.float64)
    # Weighting the cost by sqrt(w) weights g g^T by w.
    roots = replace(events, weights=events.weights.sign() * events.weights.abs().sqrt())
    for part in roots.chunks(max(1, GRADIENT_NUMBERS // (members * size))):
        g = event_gradients(trainer, part)
        matrix += (g @ g.mT).cpu().double()
    return distributed.total(matrix) / events.total[:, None, None]


def event_gradients(trainer: Trainer, events: Events) -> Tensor:
    """The gradient of each event's cost, (members, parameters, events)."""

    def cost(mixture: Mixture) -> Tensor:
        return trainer.objective.cost(mixture, events)

    return trainer.network.event_gradients(events.x, cost)
