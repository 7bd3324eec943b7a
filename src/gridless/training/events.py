"""Events as training sees them: standardised, in folds, with weights for each member."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridless import distributed
from gridless.density.inputs import standardisation
from gridless.density.network import Network
from gridless.errors import InputError
from gridless.templates.arrays import LEAST_WORTH, Array, slices, unusable_units, worth
from gridless.templates.templates import Templates

# Events of one pass of the network.
CHUNK_EVENTS = 32_768


@dataclass(frozen=True)
class Events:
    """Events of a training.

    Parameters
    ----------
    x : Tensor (events, observables)
        Standardised observables.
    template : Tensor (events)
        Which template each event belongs to.
    weights : Tensor (members, events), or (1, events) for all members alike
        0 for events that a member of the ensemble does not see.
    grid : Tensor (templates, parameters)
        The templates' values of theta, in units of the range.
    """

    x: Tensor
    template: Tensor
    weights: Tensor
    grid: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, which: Tensor | slice) -> "Events":
        return Events(self.x[which], self.template[which], self.weights[:, which], self.grid)

    def to(self, device: torch.device) -> "Events":
        """The same events on a device."""
        tensors = (self.x, self.template, self.weights, self.grid)
        return Events(*(tensor.to(device) for tensor in tensors))

    @property
    def t(self) -> Tensor:
        """Each event's value of theta, in units of the range: (events, parameters)."""
        return self.grid[self.template]

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
        """(sum w)^2 / sum w^2 of each member, over all ranks."""
        return self.total**2 / distributed.total((self.weights.cpu().double() ** 2).sum(-1))

    def chunks(self, size: int = CHUNK_EVENTS) -> Iterator["Events"]:
        """Consecutive pieces small enough for one pass of the network."""
        return (self[part] for part in slices(len(self), size))


@dataclass(frozen=True)
class Split:
    """Events to train on, and those that each member keeps out.

    `unseen` are the events (x, weights) over which each member's implied prior is taken: those that
    it has not seen or, for a single network, all. `fold` is the member that has not seen each
    event, or -1 where all have.
    """

    training: Events
    held_out: Events
    unseen: list[tuple[Array, Array]]
    fold: Tensor


def split_events(
    templates: Templates,
    weights: Array,
    network: Network,
    validation: float,
    generator: torch.Generator,
) -> Split:
    """Standardise the events, and keep a share of them out of the training of each member.

    Sets the network's standardisation.
    """
    members = network.members
    folds = max(members, round(1 / validation))
    training, held_out, fold = hold_out(templates, weights, network, folds, members, generator)
    unseen = [(templates.x, weights)]
    if members > 1:
        check_parts(templates, torch.where(fold < members, fold, -1).numpy(), members)
        own = [(fold == e).numpy() for e in range(members)]
        unseen = [(templates.x[which], weights[which]) for which in own]
    return Split(training, held_out, unseen, torch.where(fold < members, fold, -1))


def hold_out(
    templates: Templates,
    weights: Array,
    network: Network,
    folds: int,
    members: int,
    generator: torch.Generator,
) -> tuple[Events, Events, Tensor]:
    """Standardised events to train on and events that are held out, in random order, and the fold
    of each template's event: member e does not see fold e.

    Sets the network's standardisation.
    """
    events = _standardised(templates, weights, network)
    fold = _assign_folds(templates, folds, generator)
    return *_divide(events, fold, members, generator), fold


def check_parts(templates: Templates, part: NDArray[np.int64], parts: int) -> None:
    """Refuse templates that know no mean in one of their parts, over which means are taken.

    Parameters
    ----------
    templates : Templates
        The simulated events.
    part : array (events,) of int
        The part of each event, below 0 for none.
    parts : int
        How many parts there are.
    """
    used = part >= 0
    group, size = (templates.template * parts + part)[used], len(templates.grid) * parts
    w = templates.event_weights[used]
    sums = np.array([np.bincount(group, one, size) for one in (w, w**2)])
    found = worth(*distributed.total(sums)).reshape(-1, parts).min(axis=1)
    if found.min() >= LEAST_WORTH:
        return
    which = f"one of the {parts} parts of " if parts > 1 else ""
    raise InputError(
        f"templates: {which}{templates.grid.label(int(found.argmin()))} is worth {found.min():.3g} "
        f"events, (sum w)^2 / sum w^2; simulate {LEAST_WORTH * parts:g} or many more there, with "
        "fewer negative weights, or leave that template out"
    )


def _standardised(templates: Templates, weights: Array, network: Network) -> Events:
    """Set the network's standardisation from the templates and apply it to them."""
    network.set_inputs(
        *(distributed.of_first(torch.as_tensor(v)) for v in standardisation(templates.x))
    )
    _check_scale(templates, network)
    inputs = network.unlimited(torch.as_tensor(templates.x)).float()
    network.low = distributed.lowest(inputs.amin(0))
    network.high = -distributed.lowest(-inputs.amax(0))
    return Events(
        inputs,
        torch.as_tensor(templates.template),
        torch.as_tensor(weights).float().unsqueeze(0),
        torch.tensor(templates.grid.unit, dtype=torch.float32),
    )


def _check_scale(templates: Templates, network: Network) -> None:
    """Refuse observables too large or too small for float32, in which networks compute."""
    fits = torch.isfinite(network.mean) & torch.isfinite(network.scale)
    least = torch.finfo(torch.float32).tiny
    fits &= network.scale > least
    # Squares of the smallest numbers are lost, and their spread with them.
    spread = torch.as_tensor(np.array([c.max() - c.min() for c in templates.x.T]))
    fits &= (spread == 0) | (spread > least)
    for name, column, fit in zip(templates.observables, templates.x.T, fits, strict=True):
        if not fit:
            raise unusable_units(name, column)


def _assign_folds(templates: Templates, folds: int, generator: torch.Generator) -> Tensor:
    """Which of the folds an event is in: of every template an equal share, at random."""
    order = torch.randperm(len(templates), generator=generator)
    order = order[torch.argsort(torch.as_tensor(templates.template)[order], stable=True)]
    fold = torch.empty_like(order)
    fold[order] = torch.arange(len(order)) % folds
    return fold


def _divide(
    events: Events, fold: Tensor, members: int, generator: torch.Generator
) -> tuple[Events, Events]:
    """Training and held-out events in random order: member e does not see fold e."""
    order = torch.randperm(len(events), generator=generator)
    fold = fold[order]
    if members == 1:
        return events[order[fold != 0]], events[order[fold == 0]]
    events = events[order]
    held_out = fold == torch.arange(members).unsqueeze(-1)
    of_any = fold < members
    return (
        replace(events, weights=events.weights * ~held_out),
        replace(events, weights=events.weights * held_out)[of_any],
    )
