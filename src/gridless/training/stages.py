"""Stages of a training: Adam on mini-batches with a learning rate that ends at zero, best epoch
kept, then Newton steps."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gridless import distributed
from gridless.model.record import Epoch
from gridless.parallel import progress_bar
from gridless.training.checkpoint import State, numbered
from gridless.training.newton import polish
from gridless.training.trainer import Schedule, Trainer, assign

Report = Callable[[str], None]
# The share of the training in which the learning rate rises.
RISING_SHARE = 0.25
MEAN_DECAY = 0.9  # share of the running mean of the gradient that a step keeps
SQUARE_DECAY = 0.99  # the same of its square; noisy batches are averaged over a hundred steps
MIN_ROOT = 1e-8  # keeps the step finite for a weight whose gradient has been 0


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
        # Running means start from 0: these make up for it.
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
        """Train; what every epoch ended with follows `history`."""
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
        """Remember the members that are not worse than at their best; whether all are."""
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
    return [*history, *polish(trainer, number, schedule.epochs + 1, report)]
