"""The network of a fit: how large it should be, by how much the held-out events gain with a larger
one, and how it is made.

Sizes are tried from simple to complex on some of the events. A larger one is taken if the
held-out events gain more log likelihood than noise could give, and more than a share of what they
have gained already. Where the events say so little that a larger network fits their noise, the mean
of several is tried as well: it fits less noise, and may be larger. Then the ridge that held-out
events gain most with is taken. With a calibrated likelihood a smaller network costs precision only.
"""

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gridless import distributed
from gridless.density.basis import Basis
from gridless.density.exp_polynomial import ExpPolynomial
from gridless.density.network import Network, make_conditioner, outputs_needed
from gridless.errors import InputError, counted
from gridless.model.record import FitOptions, TriedSize
from gridless.parallel import progress_bar
from gridless.registry import BASES
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates
from gridless.training.events import hold_out
from gridless.training.flatness import Term
from gridless.training.newton import MAX_NEWTON_PARAMETERS, NewtonRound, newton_steps
from gridless.training.objectives import Objective
from gridless.training.trainer import AdamStage, Schedule, Trainer

DEFAULT_HIDDEN = (16,)
# Tried one after the other, by the number of parameters: degree in theta, and units.
LADDERS: dict[int, tuple[tuple[int, tuple[int, ...]], ...]] = {
    1: ((2, ()), (2, (8,)), (3, (16,)), (5, (32,)), (6, (64,))),
    2: ((2, ()), (2, (16,)), (3, (32,))),
    3: ((2, ()), (2, (16,)), (2, (32,))),
}
TRIAL_RIDGE = 1.0  # with which sizes are tried
OTHER_RIDGES = (10.0, 0.1)  # tried with the size that was taken
DEFAULT_RIDGE = 10.0  # of a size given by hand
TRIAL_EVENTS = 60_000  # events that a trial is made with, a quarter of them held out
TRIAL_HELD_OUT = 0.25
TRIAL_STEPS = 150  # of Adam
TRIAL_EPOCHS = 6  # at the least
TRIAL_NEWTON = NewtonRound(None, 10_000, 12)
MIN_SIZES = 3  # tried at the least, if there are as many
MIN_GAIN = 2.0  # units of log likelihood by which held-out events must gain: less is noise
MIN_GAIN_SHARE = 0.01  # of what they have gained already: less is half a percent of the error
# Units of log likelihood in all events for each parameter of a network, at the least, below which
# its fit to their noise shows: then the means of the templates are taken over events that it has
# not seen.
UNITS_PER_PARAMETER = 8.0
FOLDS = 4  # members of an ensemble, each of which does not see its own part of the events
SEEN_SHARE = 1 - 1 / FOLDS  # of the events, by each of them


@dataclass(frozen=True)
class Size:
    """Degree of the exponent in theta, units of the hidden layers, the ridge on their weights, and
    networks side by side."""

    degree: int
    hidden: tuple[int, ...]
    ridge: float
    members: int = 1

    def __str__(self) -> str:
        units = " x ".join(str(n) for n in self.hidden) or "no"
        return f"degree {self.degree}, {units} hidden units, ridge {self.ridge:g}"


def choose_size(
    templates: Templates, weights: Array, options: FitOptions, objective: Objective
) -> tuple[Size, tuple[TriedSize, ...]]:
    """The size that was given, or else the one that held-out events choose; and what was tried.

    A network that would fit the noise of the events becomes an ensemble, each member of which
    leaves out its own part of the events; unless the number of members was given.

    Parameters
    ----------
    templates : Templates
        The simulated events.
    weights : array (events,)
        Those of the objective.
    options : FitOptions
        Those of the fit. `ensemble` is honoured.
    objective : Objective
        What is minimised.

    Returns
    -------
    tuple of Size and tuple of TriedSize
    """
    sizes = _sizes_to_try(options, len(templates.grid.parameters))
    members = options.ensemble if options.calibrate else options.ensemble or 1
    if len(sizes) == 1 and members is not None:
        return replace(sizes[0], members=members), ()
    if len(sizes) == 1:
        generator = torch.Generator().manual_seed(options.seed)
        network = make_network(templates, weights, options, objective, sizes[0], generator)
        check_size(network, len(templates), FOLDS)  # before it is tried
    some, of_some = _some_events(templates, weights, options.seed)
    events = _total(len(templates))
    tried: list[_Trial] = []
    with progress_bar("size", 2 * len(sizes) + len(OTHER_RIDGES)) as report:

        def trial(size: Size) -> _Trial:
            tried.append(_trial(some, of_some, options, objective, size))
            report(f"{size}: gain {tried[-1].gain:.1f}")
            return tried[-1]

        best = _climb(trial, [replace(size, members=members or 1) for size in sizes], MIN_SIZES)
        larger = [one.parameters for one in tried if one.parameters > best.parameters]
        # A parameter that is fitted to noise costs half a unit for as many unseen events as it was
        # fitted to. The mean of several networks saves some of that.
        cost = 0.5 * min(larger, default=best.parameters) * best.held_out / (SEEN_SHARE * events)
        if members is None and len(sizes) > 1 and cost > best.step:
            rest = sizes[sizes.index(best.size) :]
            best = _climb(trial, [replace(size, members=FOLDS) for size in rest])
        if options.ridge is None and len(sizes) > 1 and best.size.hidden:
            ridges = [trial(replace(best.size, ridge=ridge)) for ridge in OTHER_RIDGES]
            best = max(best, *ridges, key=lambda one: one.gain)
    if members is None:
        members = FOLDS if fits_noise(best.gain * events / best.held_out, best.parameters) else 1
    record = tuple(one.record(chosen=one is best) for one in tried)
    return replace(best.size, members=members), record if len(sizes) > 1 else ()


def _climb(trial: Callable[[Size], "_Trial"], sizes: list[Size], least: int = 2) -> "_Trial":
    """The last of the sizes that gained enough over the one before; at least so many are tried."""
    best = trial(sizes[0])
    for number, size in enumerate(sizes[1:], 2):
        larger = trial(size)
        if larger.gain > best.gain + best.step:
            best = larger
        elif number >= least:
            break
    return best


def _sizes_to_try(options: FitOptions, parameters: int) -> list[Size]:
    """The size that the options give, or those from which held-out events choose."""
    by_hand = (options.basis, options.hidden, options.network)
    if all(one is None for one in by_hand) and options.components == 1 and options.calibrate:
        ridge = TRIAL_RIDGE if options.ridge is None else options.ridge
        return [Size(degree, hidden, ridge) for degree, hidden in LADDERS[parameters]]
    hidden = DEFAULT_HIDDEN if options.hidden is None else options.hidden
    return [Size(2, hidden, DEFAULT_RIDGE if options.ridge is None else options.ridge)]


def fits_noise(units: float, parameters: int) -> bool:
    """Whether a network of so many parameters P visibly fits the noise of its training events,
    which hold U = `units` of log likelihood in all.

    Fitted noise makes the means of the templates change with theta by a share P / 2 U too much. At
    the ends of the range that moves estimates by about P / 2 sqrt(U) of the error that the
    statistics of the templates cause: by half of it where U = P^2.
    """
    return units < parameters * max(parameters, UNITS_PER_PARAMETER)


def _some_events(templates: Templates, weights: Array, seed: int) -> tuple[Templates, Array]:
    """As many events of each template as a trial needs, at random, with their weights."""
    share = TRIAL_EVENTS / _total(len(templates))
    if share >= 1:
        return templates, weights
    random = np.random.default_rng(seed)
    order = random.permutation(len(templates))
    order = order[np.argsort(templates.template[order], kind="stable")]
    # Every n-th of the events in the order of their templates: each has its share.
    rows = order[(np.arange(int(share * len(order))) / share).astype(np.int64)]
    return templates.subset(rows), weights[rows]


class _Trial(NamedTuple):
    """A size that was tried: what the held-out events gained, their number, and that of the
    parameters."""

    size: Size
    gain: float
    held_out: int
    parameters: int

    @property
    def step(self) -> float:
        """How much more a larger size must gain to be taken."""
        return MIN_GAIN + MIN_GAIN_SHARE * max(self.gain, 0.0)

    def record(self, chosen: bool) -> TriedSize:
        """What the model keeps of it."""
        degree, hidden, ridge, members = astuple(self.size)
        return TriedSize(degree, hidden, self.parameters, self.gain, chosen, ridge, members)


def _trial(
    templates: Templates,
    weights: Array,
    options: FitOptions,
    objective: Objective,
    size: Size,
) -> _Trial:
    """A short training of one size. Of several members, each leaves out its own part of the events
    to train on, and the mean of their outputs is judged."""
    generator = torch.Generator().manual_seed(options.seed)
    network = make_network(templates, weights, options, objective, size, generator)
    # The same events are held out of every size.
    order = torch.Generator().manual_seed(options.seed)
    folds = round(1 / TRIAL_HELD_OUT)
    events, held_out, _ = hold_out(templates, weights, network, folds, 1, order)
    if size.members > 1:
        part = torch.arange(len(events)) % size.members
        own = part == torch.arange(size.members).unsqueeze(-1)
        events = replace(events, weights=events.weights * ~own)
    nothing = Term(size.members)  # is added to the cost
    trainer = Trainer(network, events, held_out, objective, nothing, size.ridge, generator)
    total = distributed.least(len(events)) * distributed.size()
    batch = max(1, min(total, max(total * TRIAL_EPOCHS // TRIAL_STEPS, 256)))
    epochs = max(TRIAL_EPOCHS, TRIAL_STEPS * batch // total)
    AdamStage(trainer, Schedule(epochs, batch, options.rate), 1).run([], lambda _: None)
    if network.size <= MAX_NEWTON_PARAMETERS:
        newton_steps(trainer, trainer.events, TRIAL_NEWTON)
    gain = -float(_cost_of_mean(trainer) / held_out.total) * float(held_out.effective)
    return _Trial(size, gain, round(_total(len(held_out))), network.size)


@torch.no_grad()
def _cost_of_mean(trainer: Trainer) -> float:
    """The cost of the held-out events by the mean of the members' outputs, over all ranks."""
    network, total = trainer.network, torch.zeros(1, dtype=torch.float64)
    for part in trainer.held_out.chunks():
        y = network.conditioner(part.x).mean(0, keepdim=True)
        total += trainer.objective.cost(network.mixture(y), part)
    return float(distributed.total(total))


def _total(events: int) -> float:
    """The number of events of all ranks."""
    return float(distributed.total(np.array([float(events)]))[0])


def make_network(
    templates: Templates,
    weights: Array,
    options: FitOptions,
    objective: Objective,
    size: Size,
    generator: torch.Generator,
) -> Network:
    """The network that the options ask for, of that size where they leave it open."""
    basis = _basis(options.basis, size, templates)
    inputs = templates.x.shape[1]
    chosen, settings = options.network, {}
    if chosen is None:
        chosen = "perceptron"
        settings = {"hidden": size.hidden, "activation": options.activation}
    outputs = outputs_needed(basis, options.components)
    if options.network is None:
        # Before gigabytes are taken for what would be refused.
        layers = (inputs, *size.hidden, outputs)
        _check_events(sum(a * b for a, b in pairwise(layers)), len(templates), "events")
    conditioner = make_conditioner(chosen, inputs, outputs, size.members, settings, generator)
    t = log_share = None
    if objective.normalises_over_templates:
        t = torch.tensor(templates.grid.unit, dtype=torch.float32)
        log_share = _log_share(templates, weights)
    network = Network(conditioner, basis, options.components, inputs, t, log_share)
    network.initialise(generator)
    return network


def _basis(given: Any, size: Size, templates: Templates) -> Basis:
    """The basis that was asked for, suited to the grid."""
    grid = templates.grid
    parameters = len(grid.parameters)
    if given is None:
        return ExpPolynomial.suited(size.degree, grid)
    basis: Basis
    if isinstance(given, str):
        basis = BASES.find(given).for_templates(grid, _effective(templates.mean_weights()))
        return basis
    if isinstance(given, Mapping):
        ((name, settings),) = given.items()
        try:
            basis = BASES.find(name)(**settings)
        except TypeError as error:
            raise InputError(f"basis: {name} does not take {settings} ({error})") from error
    else:
        basis = given
    if basis.parameters != parameters:
        raise InputError(
            f"basis: one of {counted(basis.parameters, 'parameter')} for templates of {parameters}"
            f"; make it with parameters={parameters}, or give its name"
        )
    return basis


def _effective(weights: Array) -> float:
    """(sum w)^2 / sum w^2, over all ranks."""
    first, second = distributed.total(np.array([weights.sum(), (weights**2).sum()]))
    return float(first**2 / second)


def _log_share(templates: Templates, weights: Array) -> Tensor:
    """The logs of the templates' shares in all events."""
    sums = np.bincount(templates.template, weights, minlength=len(templates.grid))
    total = distributed.total(torch.as_tensor(sums))
    return torch.log(total / total.sum()).float()


def check_size(network: Network, events: int, folds: int) -> None:
    """Each parameter needs at least an event to train on."""
    _check_events(network.size, events * (folds - 1) // folds, "events to train on")


def _check_events(size: int, events: int, what: str) -> None:
    if events < size:
        raise InputError(
            f"x: {events:,} {what} for a network of {size:,} parameters; give more events, or "
            "fewer hidden units"
        )
