"""A training: what it works with (network, events, objective) and its stages.

A stage is Adam on mini-batches with a learning rate that ends at zero, the best epoch kept, then
Newton steps.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gridless import distributed
from gridless.density.network import Network
from gridless.model.record import MAX_EPOCHS, Epoch
from gridless.parallel import progress_bar
from gridless.training.checkpoint import Checkpoint, State, numbered
from gridless.training.events import Events
from gridless.training.flatness import Term
from gridless.training.newton import (
    MAX_NEWTON_PARAMETERS,
    ROUNDS,
    flatten,
    newton_steps,
    restore,
)
from gridless.training.objectives import Objective

# Units of log likelihood on the held-out events by which an epoch must be worse to be undone:
# less is noise, and then the later epoch, with its smaller learning rate, is the better.
UNDO_MARGIN = 2.0
RISING_SHARE = 0.25  # of the training, in which the learning rate rises
MEAN_DECAY = 0.9  # share of the running mean of the gradient that a step keeps
SQUARE_DECAY = 0.99  # the same of its square; noisy batches are averaged over a hundred steps
MIN_ROOT = 1e-8  # keeps the step finite for a weight whose gradient has been 0

Report = Callable[[str], None]  # is told what an epoch ended with


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train: `epochs` passes in batches of `batch`, rate up to `rate`."""

    epochs: int
    batch: int
    rate: float


@dataclass(frozen=True)
class Trainer:
    """What a training works with: the network, the events, and the objective."""

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
        """Where it trains. Numbers per member and sums over events are kept on the CPU."""
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
        # One number tells both how far a rank has come.
        reached = -1 if state is None else MAX_EPOCHS * state.stage + state.epoch
        if distributed.least(reached) != -distributed.least(-reached):
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
        fits = known and state.fits(expected) and {"adam_steps", *term} <= state.tensors.keys()
        if fits and _is_generator_state(state.tensors["generator"]):
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


def _is_generator_state(state: Tensor) -> bool:
    """Whether random numbers can be drawn from it."""
    try:
        torch.Generator().set_state(state)
    except RuntimeError:
        return False
    return True


@torch.no_grad()
def assign(parameters: list[torch.nn.Parameter], values: list[Tensor]) -> None:
    """Set parameters to values."""
    for p, value in zip(parameters, values, strict=True):
        p.copy_(value)


class Adam:
    """w <- w - rate m / (sqrt(s) + 1e-8), m and s running means of the gradient g and of g^2.

    torch has one too, but making it loads torch's compiler, which takes longer than many a
    training.

    To each gradient, decay times weight is added: `decays` are of the shapes of the `weights`.
    """

    def __init__(self, weights: Sequence[Tensor], decays: Sequence[Tensor]) -> None:
        self.weights, self.decays = list(weights), list(decays)
        self.mean = [torch.zeros_like(w) for w in self.weights]
        self.square = [torch.zeros_like(w) for w in self.weights]
        self.steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """Move the weights once."""
        self.steps += 1
        # Running means start from 0: these divisors correct for it.
        first, second = 1 - MEAN_DECAY**self.steps, 1 - SQUARE_DECAY**self.steps
        rows = zip(self.weights, self.decays, gradients, self.mean, self.square, strict=True)
        for w, decay, g, mean, square in rows:
            slope = torch.addcmul(g, decay, w)
            mean.lerp_(slope, 1 - MEAN_DECAY)
            square.mul_(SQUARE_DECAY).addcmul_(slope, slope, value=1 - SQUARE_DECAY)
            w.addcdiv_(mean, (square / second).sqrt_().add_(MIN_ROOT), value=-rate / first)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return {
            "adam_steps": torch.tensor(self.steps),
            **numbered("adam_mean", self.mean),
            **numbered("adam_square", self.square),
        }

    def restore(self, state: State) -> None:
        """Go on from what `tensors` gave."""
        self.steps = int(state.tensors["adam_steps"])
        for own, kept in ((self.mean, "adam_mean"), (self.square, "adam_square")):
            own[:] = [value.to(w) for value, w in zip(state.under(kept), self.weights, strict=True)]


class AdamStage:
    """One pass through a schedule, which ends at the best epoch of each member."""

    def __init__(self, trainer: Trainer, schedule: Schedule, number: int) -> None:
        self.trainer = trainer
        self.schedule = schedule
        self.number = number
        self.history: list[Epoch] = []
        self.finished_epochs = 0
        self.parameters = list(trainer.network.parameters())
        self.kept = [p.detach().clone() for p in self.parameters]
        self.best = torch.full((trainer.network.members,), math.inf)
        self.margin = trainer.margin()
        self.optimiser = Adam(self.parameters, trainer.ridges())
        events = trainer.events
        ranks = distributed.size()
        self.batches = distributed.least(max(1, len(events) * ranks // schedule.batch))
        # Costs are divided by the mean weight of all events: a batch's own sum of weights may be
        # anything if some are negative.
        self.mean_weight = (events.total / ranks / len(events)).float().to(trainer.device)

    def restore(self, state: State) -> None:
        """Go on from the end of an epoch."""
        self.finished_epochs = state.epoch
        self.best = state.tensors["best"]
        self.kept = [value.to(self.trainer.device) for value in state.under("kept")]
        self.optimiser.restore(state)

    def run(self, history: list[Epoch], report: Report) -> list[Epoch]:
        """Train. Returns `history` with a row added for every epoch."""
        for epoch in range(self.finished_epochs, self.schedule.epochs):
            ended = self._epoch(epoch)
            history = [*history, ended]
            report(f"cost {ended.validation:.5f}")
            self._save(history, epoch + 1)
        assign(self.parameters, self.kept)
        return history

    def _epoch(self, epoch: int) -> Epoch:
        """All batches once, then the judgement of the held-out events."""
        trainer, batches = self.trainer, self.batches
        network, term = trainer.network, trainer.term
        costs = torch.zeros(network.members, device=trainer.device)
        spread = torch.zeros(())
        term.anchor(network, trainer.events)
        for i, events in enumerate(trainer.batches(batches)):
            cost = trainer.cost(events) / (len(events) * self.mean_weight)
            costs = costs + cost.detach()
            spread, added = term.value(network)
            slopes = torch.autograd.grad((cost + added).sum(), self.parameters)
            rate = self.schedule.rate * learning_rate_cycle(
                (epoch + i / batches) / self.schedule.epochs
            )
            summed = distributed.totals(list(slopes))
            self.optimiser.step([g / distributed.size() for g in summed], rate)
        validation = trainer.mean_cost(trainer.held_out)
        kept = self._keep(validation + term.strength * spread.cpu())
        return Epoch(
            self.number,
            epoch + 1,
            float((costs / batches).mean()),
            float(validation.mean()),
            float(spread.mean()),
            float(term.strength.mean()),
            kept,
        )

    def _keep(self, cost: Tensor) -> bool:
        """Keep the weights of members that are not worse than their best epoch; whether all are."""
        keep = cost < self.best + self.margin
        self.best = torch.minimum(self.best, cost)
        for saved, p in zip(self.kept, self.parameters, strict=True):
            saved[keep] = p.detach()[keep]
        return bool(keep.all())

    def _save(self, history: list[Epoch], epoch: int) -> None:
        if self.trainer.checkpoint is None:
            return
        tensors = {
            "best": self.best,
            "generator": self.trainer.generator.get_state(),
            **self.trainer.term.tensors(),
            **numbered("kept", self.kept),
            **numbered("parameter", self.parameters),
            **self.optimiser.tensors(),
        }
        self.trainer.checkpoint.save(State(self.number, epoch, history, tensors))


def learning_rate_cycle(progress: float) -> float:
    """The rate over its maximum: up from 0 in the first quarter, then down to 0, as cosines."""
    if progress < RISING_SHARE:
        phase = progress / RISING_SHARE
    else:
        phase = 1 + (progress - RISING_SHARE) / (1 - RISING_SHARE)
    return 0.5 * (1 - math.cos(math.pi * phase))


def train(trainer: Trainer, schedule: Schedule, device: torch.device) -> list[Epoch]:
    """One stage with the plain cost and, where the objective adds a term, a second one with it.

    The network first learns the posterior loosely; then the strength of the term is set, and
    training goes on (section 5 of the paper). Gives what every epoch ended with; network and term
    come back to the CPU.
    """
    trainer = trainer.to(device)
    term, network = trainer.term, trainer.network
    state = trainer.resume()
    history: list[Epoch] = [] if state is None else state.history
    stages = 2 if term.active else 1
    with progress_bar("fit", stages * (schedule.epochs + 1)) as report:
        if state is None or state.stage == 1:
            history = _stage(trainer.without_term(), schedule, 1, state, history, report)
            state = None
        if term.active:
            if state is None:
                term.anchor(network, trainer.events)
                term.begin(network, trainer.mean_cost(trainer.held_out))
            else:
                term.restore(state)
            history = _stage(trainer, schedule, 2, state, history, report)
    network.to("cpu")
    term.to(torch.device("cpu"))
    return history


def _stage(
    trainer: Trainer,
    schedule: Schedule,
    number: int,
    state: State | None,
    history: list[Epoch],
    report: Report,
) -> list[Epoch]:
    """Mini-batches, then Newton steps on all events."""
    stage = AdamStage(trainer, schedule, number)
    if state is not None:
        stage.restore(state)
    history = stage.run(history, report)
    return [*history, *_polish(trainer, number, schedule.epochs + 1, report)]


def _polish(trainer: Trainer, number: int, epoch: int, report: Report) -> list[Epoch]:
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
