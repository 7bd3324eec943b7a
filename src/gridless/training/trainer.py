"""Training: Adam on mini-batches with a learning rate that ends at zero, best epoch kept."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gridless import distributed
from gridless.density.network import Network
from gridless.model.record import Epoch
from gridless.parallel import progress_bar
from gridless.training.adam import Adam
from gridless.training.checkpoint import Checkpoint, State, numbered
from gridless.training.newton import event_gradients, flatten, gradient, newton, restore
from gridless.training.objectives import (
    Flatness,
    posterior_cost,
    template_cost,
)

# Events of one pass of the network; and gradients held at once, events times parameters.
_CHUNK, _GRADIENTS = 32_768, 2_000_000
# Below this the implied prior is flat within the statistics of any sample: nothing to enforce.
LEAST_SPREAD = 0.002
# Newton steps: many on some of the events, to get near the optimum, then a few on all. How many
# events, how many of those give the curvature matrix, and steps.
_NEWTON = ((100_000, 20_000, 40), (None, 50_000, 6))
# The largest network for which a curvature matrix is worth having.
LARGEST_TO_POLISH = 2000


@dataclass(frozen=True)
class Events:
    """Events as training sees them: standardised x, template index, and weights.

    Weights are (members, events), 0 for events that a member of the ensemble does not see, or
    (1, events) for all members alike.
    """

    x: Tensor
    template: Tensor
    weights: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, which: Tensor | slice) -> "Events":
        return Events(self.x[which], self.template[which], self.weights[:, which])

    def to(self, device: torch.device) -> "Events":
        """The same events on a device."""
        return Events(self.x.to(device), self.template.to(device), self.weights.to(device))

    @property
    def total(self) -> Tensor:
        """The summed weight of each member, over all ranks."""
        return distributed.total(self.own_total)

    @property
    def own_total(self) -> Tensor:
        """The summed weight of each member, of this rank's events."""
        return self.weights.cpu().double().sum(-1)

    @property
    def effective(self) -> Tensor:
        """How many events of equal weight would tell as much: (sum w)^2 / sum w^2."""
        return self.total**2 / distributed.total((self.weights.cpu().double() ** 2).sum(-1))

    def chunks(self, size: int = _CHUNK) -> Iterator["Events"]:
        """Consecutive pieces small enough for one pass of the network."""
        return (self[slice(i, i + size)] for i in range(0, len(self), size))


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train: `epochs` passes in batches of `batch`, rate up to `rate`."""

    epochs: int
    batch: int
    rate: float


@dataclass(frozen=True)
class Trainer:
    """The fixed circumstances of a training: what is trained, on what, towards what."""

    network: Network
    events: Events
    validation: Events
    grid: Tensor
    objective: str
    ridge: float
    generator: torch.Generator
    checkpoint: Checkpoint | None = None

    @property
    def device(self) -> torch.device:
        """Where it trains. What is said of members, and sums over events, are on the processor."""
        return self.events.x.device

    def to(self, device: torch.device) -> "Trainer":
        """The same with events on a device; the network itself moves there."""
        return replace(
            self,
            network=self.network.to(device),
            events=self.events.to(device),
            validation=self.validation.to(device),
            grid=self.grid.to(device),
        )

    @property
    def size(self) -> float:
        """The effective number of training events."""
        return float(self.events.effective.mean())

    def cost(self, log_c: Tensor, z: Tensor, events: Events) -> Tensor:
        """The summed cost of each member."""
        if self.objective == "template":
            return template_cost(self.network, log_c, z, events.template, events.weights)
        t = self.grid[events.template]
        return posterior_cost(self.network, log_c, z, t, events.weights)

    @torch.no_grad()
    def mean_cost(self, events: Events) -> Tensor:
        """The cost per event over all the given events."""
        total = torch.zeros(self.network.members, dtype=torch.float64)
        for part in events.chunks():
            log_c, z = self.network(part.x)
            total += self.cost(log_c, z, part).cpu()
        return (distributed.total(total) / events.total).float()

    @torch.no_grad()
    def spread(self, flatness: Flatness | None) -> Tensor:
        """S over all training events; 0 where there is no penalty."""
        if flatness is None:
            return torch.zeros(self.network.members)
        self.anchor(flatness)
        return flatness.spread(self.network).cpu()

    def ridges(self) -> list[Tensor]:
        """The ridge r / n of each of the network's parameters: r w^2 / 2n is added to the cost.

        It is a normal prior of width r^-1/2 on each weight of the layers: it counts no more than a
        few events do, and so decides only what the events leave open. The bypass and the biases
        are free.
        """
        layers, ridge = len(self.network.biases), self.ridge / self.size
        parameters = enumerate(self.network.parameters())
        return [torch.full_like(p, ridge if i < layers else 0.0) for i, p in parameters]

    def ridge_vector(self) -> Tensor:
        """The ridge of every single parameter, (members, parameters)."""
        return flatten(self.ridges())

    def anchor(self, flatness: Flatness) -> None:
        """Evaluate the implied prior over all training events."""
        flatness.anchor(self.network, ((part.x, part.weights) for part in self.events.chunks()))

    def resume(self) -> State | None:
        """Go on from the checkpoint, if there is one of this training."""
        state = None if self.checkpoint is None else self.checkpoint.load()
        epoch = -1 if state is None else 1_000_000 * state.stage + state.epoch
        if distributed.least(epoch) != -distributed.least(-epoch):
            state = None  # The ranks were stopped at different epochs.
        if state is not None:
            self.generator.set_state(state.tensors["generator"])
            with torch.no_grad():
                pairs = zip(self.network.parameters(), state.under("parameter"), strict=True)
                for p, value in pairs:
                    p.copy_(value)
        return state

    def batches(self, number: int) -> Iterator[Events]:
        """All events in `number` batches, in an order and from a start drawn anew.

        The events are in random order already: a batch is a piece of them as they are in memory.
        """
        total = len(self.events)
        size = total // number
        first = int(torch.randint(total, (), generator=self.generator))
        for i in torch.randperm(number, generator=self.generator).tolist():
            start = (first + i * size) % total
            stop = start + size
            piece = slice(start, stop) if stop <= total else torch.arange(start, stop) % total
            yield self.events[piece]

    def stage(
        self,
        number: int,
        schedule: Schedule,
        flatness: Flatness | None,
        strength: Tensor,
        report: Callable[[str], None],
        history: list[Epoch],
        state: State | None = None,
    ) -> list[Epoch]:
        """Train once through the schedule, from `state` on, and go back to the best epoch of each
        member. What every epoch ended with follows `history`."""
        network = self.network
        parameters = list(network.parameters())
        optimiser = Adam(parameters, self.ridges())
        batches = distributed.least(max(1, len(self.events) * distributed.size() // schedule.batch))
        best = torch.full((network.members,), math.inf)
        # An epoch is worse only if the held-out events say so by two units of log likelihood; less
        # is their noise, and then the later epoch, with its smaller learning rate, is the better.
        margin = (2 / self.validation.effective).float()
        # Per event of the batch, on average: its own sum of weights may be anything if some are
        # negative.
        per_event = (
            (self.events.total / distributed.size() / len(self.events)).float().to(self.device)
        )
        kept = [p.detach().clone() for p in network.parameters()]
        first = 0
        if state is not None:
            first, history, best = state.epoch, state.history, state.tensors["best"]
            kept = [value.to(self.device) for value in state.under("kept")]
            optimiser.restore(state)
        for epoch in range(first, schedule.epochs):
            sums = s = torch.zeros(network.members, device=self.device)
            if flatness is not None:
                self.anchor(flatness)
            for i, events in enumerate(self.batches(batches)):
                rate = schedule.rate * _cycle((epoch + i / batches) / schedule.epochs)
                log_c, z = network(events.x)
                cost = self.cost(log_c, z, events) / (len(events) * per_event)
                sums = sums + cost.detach()
                if flatness is not None:
                    s, term = flatness.term(network)
                    cost = cost + strength.to(term) * term
                slopes = distributed.totals(list(torch.autograd.grad(cost.sum(), parameters)))
                optimiser.step([g / distributed.size() for g in slopes], rate)
            validation = self.mean_cost(self.validation)
            total = validation + strength * s.cpu()
            keep = total < best + margin
            best = torch.minimum(best, total)
            for saved, p in zip(kept, network.parameters(), strict=True):
                saved[keep] = p.detach()[keep]
            ended = Epoch(
                number,
                epoch + 1,
                float((sums / batches).mean()),
                float(validation.mean()),
                float(s.mean()),
                float(strength.mean()),
                bool(keep.all()),
            )
            history = [*history, ended]
            report(f"cost {ended.validation:.5f}")
            if self.checkpoint is not None:
                tensors = {
                    "best": best,
                    "strength": strength,
                    "rounding": torch.zeros(1) if flatness is None else flatness.rounding,
                    "generator": self.generator.get_state(),
                    **numbered("kept", kept),
                    **numbered("parameter", list(network.parameters())),
                    **optimiser.tensors(),
                }
                self.checkpoint.save(State(number, epoch + 1, history, tensors))
        with torch.no_grad():
            for saved, p in zip(kept, network.parameters(), strict=True):
                p.copy_(saved)
        return history

    def polish(
        self,
        number: int,
        epoch: int,
        flatness: Flatness | None,
        strength: Tensor,
        report: Callable[[str], None],
    ) -> list[Epoch]:
        """Newton steps on all events, undone for a member whose held-out events object."""
        network = self.network
        old = flatten(network.parameters())
        if old.shape[1] > LARGEST_TO_POLISH:
            return []
        before = self.mean_cost(self.validation) + strength * self.spread(flatness)
        for events, some, steps in _NEWTON:
            self.newton(self.events[slice(0, events)], some, steps, flatness, strength)
        training, validation = (self.mean_cost(e) for e in (self.events, self.validation))
        s = self.spread(flatness)
        keep = validation + strength * s < before + (2 / self.validation.effective).float()
        restore(network, old, ~keep)
        report(f"cost {float(validation.mean()):.5f}")
        return [
            Epoch(
                number,
                epoch,
                float(training.mean()),
                float(validation.mean()),
                float(s.mean()),
                float(strength.mean()),
                bool(keep.all()),
            )
        ]

    def newton(
        self, events: Events, some: int, steps: int, flatness: Flatness | None, strength: Tensor
    ) -> None:
        """Newton steps on the given events, with the curvature of `some` of them."""
        network, ridge = self.network, self.ridge_vector()

        def objective() -> tuple[Tensor, Tensor]:
            value, slope = self.full_cost(events)
            here = flatten(network.parameters())
            value, slope = value + 0.5 * (ridge * here**2).sum(1), slope + ridge * here
            if flatness is not None:
                self.anchor(flatness)
                term = strength.to(self.device) * flatness.term(network)[1]
                value, slope = value + term.detach().cpu(), slope + gradient(term, network)
            return value, slope

        def curvature() -> Tensor:
            matrix = self.fisher(events[slice(0, some)])
            matrix += torch.diag_embed(ridge)
            if flatness is not None:
                matrix += strength[:, None, None] * flatness.curvature(network)
            return matrix

        newton(network, objective, curvature, 0.1 / float(events.effective.mean()), steps)

    def full_cost(self, events: Events) -> tuple[Tensor, Tensor]:
        """The cost over all the given events, and its gradient (members, parameters)."""
        value = torch.zeros(self.network.members, dtype=torch.float64)
        slope = torch.zeros_like(flatten(self.network.parameters()))
        for part in events.chunks():
            log_c, z = self.network(part.x)
            cost = self.cost(log_c, z, part)
            slope += gradient(cost, self.network)
            value += cost.detach().cpu()
        total = events.total
        value, slope = distributed.totals([value, slope])
        return value / total, slope / total.unsqueeze(-1)

    def fisher(self, events: Events) -> Tensor:
        """sum_i |w_i| g_i g_i^T / sum_i w_i, g_i the gradient of event i's cost: the curvature of
        a log likelihood at its optimum or, with negative weights, more; and never negative."""
        members, size = flatten(self.network.parameters()).shape
        matrix = torch.zeros(members, size, size, dtype=torch.float64)
        # The root of a weight with the cost is the weight with the square of its gradient.
        roots = replace(events, weights=events.weights.sign() * events.weights.abs().sqrt())
        for part in roots.chunks(max(1, _GRADIENTS // (members * size))):

            def cost(log_c: Tensor, z: Tensor, part: Events = part) -> Tensor:
                return self.cost(log_c, z, part)

            g = event_gradients(self.network, part.x, cost)
            matrix += (g @ g.mT).cpu().double()
        return distributed.total(matrix) / events.total[:, None, None]


def _cycle(progress: float) -> float:
    """The rate over its maximum: up from 0 in the first quarter, then down to 0, as cosines."""
    rising = progress < 0.25
    phase = 4 * progress if rising else 1 + (progress - 0.25) / 0.75
    return 0.5 * (1 - math.cos(math.pi * phase))


def train(
    trainer: Trainer,
    schedule: Schedule,
    flatness: Flatness | None,
    strength: float | None,
    device: torch.device,
) -> tuple[list[Epoch], Tensor]:
    """One stage with the plain cost and, where there is a penalty, a second one with it.

    The network first learns the posterior loosely; then lambda is set to |C| / S, so that both
    terms of C + lambda S are comparable, and training goes on (section 5 of the paper). Gives what
    every epoch ended with, and lambda; network and flatness come back to the processor.
    """
    trainer = trainer.to(device)
    if flatness is not None:
        flatness.to(device)
    lam = none = torch.zeros(trainer.network.members)
    stages = 1 if flatness is None else 2
    state = trainer.resume()
    history: list[Epoch] = []
    with progress_bar("fit", stages * (schedule.epochs + 1)) as report:
        if state is None or state.stage == 1:
            history = trainer.stage(1, schedule, None, none, report, history, state)
            history += trainer.polish(1, schedule.epochs + 1, None, none, report)
            state = None
        if flatness is not None:
            if state is None:
                spread = trainer.spread(flatness).clamp(min=LEAST_SPREAD)
                lam = trainer.mean_cost(trainer.validation).abs() / spread
                lam = lam if strength is None else torch.full_like(lam, strength)
            else:
                spread, lam = state.tensors["rounding"], state.tensors["strength"]
            flatness.rounding = spread.to(device)
            history = trainer.stage(2, schedule, flatness, lam, report, history, state)
            history += trainer.polish(2, schedule.epochs + 1, flatness, lam, report)
            flatness.to(torch.device("cpu"))
    trainer.network.to("cpu")
    if trainer.checkpoint is not None:
        trainer.checkpoint.remove()
    return history, lam
