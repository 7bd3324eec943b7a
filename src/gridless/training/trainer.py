"""What a training works with: the network, the events, the objective; and its costs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gridless import distributed
from gridless.density.network import Network
from gridless.training.checkpoint import Checkpoint, State, numbered
from gridless.training.events import Events
from gridless.training.flatness import Term
from gridless.training.newton import flatten
from gridless.training.objectives import Objective

# Units of log likelihood on the held-out events by which an epoch must be worse to be undone:
# less is noise, and then the later epoch, with its smaller learning rate, is the better.
UNDO_MARGIN = 2.0


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
    held_out: Events
    objective: Objective
    term: Term
    ridge: float
    generator: torch.Generator
    checkpoint: Checkpoint | None = None

    @property
    def device(self) -> torch.device:
        """Where it trains. What is said of members, and sums over events, are on the CPU."""
        return self.events.x.device

    def to(self, device: torch.device) -> "Trainer":
        """The same with events on a device; network and term themselves move there."""
        self.term.to(device)
        return replace(
            self,
            network=self.network.to(device),
            events=self.events.to(device),
            held_out=self.held_out.to(device),
        )

    def without_term(self) -> "Trainer":
        """The same with nothing added to the cost of the events."""
        return replace(self, term=Term(self.network.members))

    def cost(self, events: Events) -> Tensor:
        """The summed cost of each member."""
        return self.objective.cost(self.network(events.x), events)

    @torch.no_grad()
    def mean_cost(self, events: Events) -> Tensor:
        """The cost per event over all the given events."""
        total = torch.zeros(self.network.members, dtype=torch.float64)
        for part in events.chunks():
            total += self.cost(part).cpu()
        return (distributed.total(total) / events.total).float()

    @torch.no_grad()
    def spread(self) -> Tensor:
        """The term over all training events, without its strength."""
        self.term.anchor(self.network, self.events)
        return self.term.spread(self.network).cpu()

    def margin(self) -> Tensor:
        """`UNDO_MARGIN` per held-out event of each member."""
        return (UNDO_MARGIN / self.held_out.effective).float()

    def ridges(self) -> list[Tensor]:
        """The ridge r / n of each of the network's parameters: r w^2 / 2n is added to the cost.

        It is a normal prior of width r^-1/2 on each weight of the layers: it counts no more than a
        few events do, and so decides only what the events leave open.
        """
        ridge = self.ridge / float(self.events.effective.mean())
        rows = zip(self.network.parameters(), self.network.conditioner.ridged(), strict=True)
        return [torch.full_like(p, ridge if held else 0.0) for p, held in rows]

    def ridge_vector(self) -> Tensor:
        """The ridge of every single parameter, (members, parameters)."""
        return flatten(self.ridges())

    def resume(self) -> State | None:
        """Go on from the checkpoint, if there is one of this training."""
        state = self._kept_state()
        epoch = -1 if state is None else 1_000_000 * state.stage + state.epoch
        if distributed.least(epoch) != -distributed.least(-epoch):
            state = None  # The ranks were stopped at different epochs.
        if state is not None:
            self.generator.set_state(state.tensors["generator"])
            assign(list(self.network.parameters()), state.under("parameter"))
        return state

    def _kept_state(self) -> State | None:
        """What the checkpoint has, if it is of this training and fits it."""
        state = None if self.checkpoint is None else self.checkpoint.load()
        if self.checkpoint is None or state is None:
            return None
        parameters = list(self.network.parameters())
        expected = {"generator": self.generator.get_state(), "best": self.term.strength}
        for name in ("parameter", "kept", "adam_mean", "adam_square"):
            expected |= numbered(name, parameters)
        term = self.term.tensors() if state.stage == 2 else {}
        known = self.term.active or state.stage == 1
        if known and state.fits(expected) and {"adam_steps", *term} <= state.tensors.keys():
            return state
        self.checkpoint.refuse(f"{self.checkpoint.path} does not fit the network")
        return None

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


@torch.no_grad()
def assign(parameters: list[torch.nn.Parameter], values: list[Tensor]) -> None:
    """Set parameters to values."""
    for p, value in zip(parameters, values, strict=True):
        p.copy_(value)
