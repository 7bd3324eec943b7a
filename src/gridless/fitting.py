"""fit(): from templates to a model."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gridless import distributed
from gridless.density.basis import Basis, basis_kind
from gridless.density.network import Network
from gridless.distributed import find_device
from gridless.errors import InputError
from gridless.model.cells import make_cells
from gridless.model.model import Model
from gridless.model.prior import implied_prior
from gridless.model.record import FitOptions, TrainingRecord
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid
from gridless.templates.summary import files_of_all_ranks, summarise
from gridless.templates.templates import Templates
from gridless.training.checkpoint import Checkpoint, fingerprint
from gridless.training.objectives import Flatness, Penalty, histogram_density
from gridless.training.simulation import replicate
from gridless.training.trainer import Events, Schedule, Trainer, train

# Points of the events that stand for all of them between two anchors of the penalty.
_REFERENCE = 4096
_STEPS = 500


@distributed.own_threads()
def fit(
    templates: Templates,
    basis: str | Basis = "exp_polynomial",
    components: int = 1,
    hidden: int | Sequence[int] = (16,),
    activation: str = "tanh",
    objective: str = "template",
    prior: str = "divide",
    penalty: Penalty | None = None,
    ensemble: int = 1,
    validation: float | None = None,
    epochs: int | None = None,
    batch: int | None = None,
    rate: float = 0.03,
    ridge: float = 10.0,
    replicas: int = 32,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    device: str = "cpu",
) -> Model:
    """Train a mixture density network on templates and return it as a model.

    Parameters
    ----------
    templates
        The simulated events.
    basis, components
        The shape of the components ("exp_polynomial", "gaussian", "logistic", or a `Basis`) and
        their number. Named bases are kept at least half as wide as the gap between templates.
        "exp_polynomial" is the exponential of a quadratic, or of a cubic for one parameter, six or
        more templates and 200,000 or more effective events.
    hidden, activation
        Units of the hidden layer, or of each of several, and "tanh", "silu" or "relu".
    objective
        "posterior", the plain cost of section 2; "penalty", with the correction of section 5;
        "template", normalised over the templates instead of the range.
    prior
        "flat" takes p(theta | x) as the likelihood, as the paper does; "divide" divides it by the
        implied prior q(theta).
    penalty
        Settings of objective="penalty".
    ensemble
        Networks trained side by side from different starts and averaged as densities.
    validation
        Share of the events kept out of the training to judge it by: by default a tenth. Each
        member of an ensemble of n keeps out its own n-th, over which its implied prior is taken.
    epochs, batch, rate
        Passes over the events, events per step and highest learning rate; the first two are by
        default chosen for some five hundred steps. Networks of up to 2,000 parameters then take a
        few Newton steps on all events.
    ridge
        Inverse square of the width of a normal prior on the weights of the layers.
    replicas
        Bootstrap replicas of the templates that give the uncertainty from finite simulation; 0 for
        none.
    seed
        Fixes everything random.
    checkpoint
        A file that keeps where the training stands. After an interruption the same call goes on
        from there; when the training is finished it is removed.
    device
        Where to train: "cpu", "cuda" or "mps". A graphics card is for large networks. The model is
        on the processor in any case.
    """
    options = FitOptions.of(
        basis=basis,
        components=components,
        hidden=hidden,
        activation=activation,
        objective=objective,
        prior=prior,
        ensemble=ensemble,
        validation=validation,
        epochs=epochs,
        batch=batch,
        rate=rate,
        ridge=ridge,
        replicas=replicas,
        seed=seed,
        device=device,
    )
    place = find_device(options.device)
    layers = options.hidden
    if validation is None:
        # Each event is kept out by one member of an ensemble, and none is wasted.
        validation = 0.1 if ensemble == 1 else 1 / ensemble
    if penalty is not None and objective != "penalty":
        raise InputError(f'penalty: given for objective="{objective}"; set objective="penalty"')
    if penalty is not None:
        options = options.model_copy(update={"objective": {"penalty": asdict(penalty)}})
    grid = templates.grid
    kind = _basis(basis, grid, _effective(templates.mean_weights()))
    t = torch.as_tensor(grid.unit, dtype=torch.float32)

    generator = torch.Generator().manual_seed(seed)
    # Normalised over the templates, the sizes of the samples may be as they are; over the range,
    # p(theta) must be made flat.
    by_template = objective == "template"
    weights = templates.mean_weights() if by_template else templates.balanced_weights()
    network = Network(
        templates.x.shape[1],
        kind,
        components,
        layers,
        activation,
        ensemble,
        t if by_template else None,
        _log_share(templates, weights) if by_template else None,
    )
    network.initialise(generator)
    folds = max(ensemble, round(1 / validation))
    _check_size(network, len(templates) * (folds - 1) // folds)

    events = _prepare(templates, weights, network)
    fold = _folds(templates, folds, generator)
    training, held = _split(events, fold, ensemble, generator)
    flatness = None
    if objective == "penalty":
        flatness = _flatness(penalty or Penalty(), templates, network, training)
    everywhere = distributed.least(len(training)) * distributed.size()
    schedule = _schedule(everywhere, epochs, batch, rate)
    settings = {
        "objective": objective,
        "penalty": asdict(penalty) if penalty is not None else None,
        "validation": validation,
        "epochs": schedule.epochs,
        "batch": schedule.batch,
        "rate": rate,
        "ridge": ridge,
        "seed": seed,
    }
    keep = None
    if checkpoint is not None:
        shape_of = [kind.name, kind.options(), components, layers, activation, ensemble]
        key = fingerprint([events.x, events.template, events.weights], settings | {"net": shape_of})
        alone = "" if distributed.size() == 1 else f".{distributed.rank()}"
        keep = Checkpoint(Path(f"{checkpoint}{alone}"), key)
    trainer = Trainer(network, training, held, t, objective, ridge, generator, keep)
    with distributed.own_threads(network):
        history, strength = train(
            trainer, schedule, flatness, penalty.strength if penalty else None, place
        )

    samples = _samples(templates.x, weights, fold, ensemble)
    q = implied_prior(network, samples, grid)
    shape = q.log_q.shape
    copies = None
    if replicas:
        unseen = held if ensemble > 1 else None
        copies = replicate(trainer, unseen, flatness, strength, replicas, shape)
    cells = make_cells(network, templates.x, templates.template, weights, shape)
    # In units of log likelihood, over the held-out events: none means nothing was learnt.
    gain = float(-(trainer.mean_cost(held) * held.effective).sum())
    return Model(
        network,
        grid,
        templates.query,
        options,
        TrainingRecord(tuple(history), gain, schedule.epochs, schedule.batch, validation),
        q,
        copies,
        cells,
        summarise(templates, components, objective),
        files_of_all_ranks(templates.files),
    )


def _effective(weights: Array) -> float:
    """How many events of equal weight would tell as much, over all ranks."""
    first, second = distributed.total(torch.tensor([weights.sum(), (weights**2).sum()]))
    return float(first**2 / second)


def _prepare(templates: Templates, weights: Array, network: Network) -> Events:
    """Set the network's standardisation from the templates and apply it to them."""
    transformation = input_transformation(templates.x)
    network.mean, network.scale, network.bend = (
        distributed.of_first(torch.as_tensor(v, dtype=torch.float32)) for v in transformation
    )
    x = network.standardise(torch.as_tensor(templates.x)).float()
    return Events(
        x, torch.as_tensor(templates.template), torch.as_tensor(weights).float().unsqueeze(0)
    )


def _log_share(templates: Templates, weights: Array) -> Tensor:
    """The logs of the templates' shares in all events."""
    sums = np.bincount(templates.template, weights, minlength=len(templates.grid))
    total = distributed.total(torch.as_tensor(sums))
    return torch.log(total / total.sum()).float()


def input_transformation(x: Array) -> tuple[Array, Array, Array]:
    """Centre, scale and bend of each observable: (x - centre) / scale, bent in if its tails are
    heavier than a network can be expected to take in.

    Mean and standard deviation where those describe the sample; where they do not, since one event
    in a thousand lies beyond ten times what holds the middle 68 percent, median and half the width
    of the middle 68 percent, and y -> asinh(y), which grows as a logarithm.
    """
    sample = x[:: max(1, len(x) // 100_000)]
    low, median, high = np.quantile(sample, [0.1587, 0.5, 0.8413], axis=0)
    half = 0.5 * (high - low)
    far = np.quantile(np.abs(sample - median), 0.999, axis=0)
    heavy = (far > 10 * half) & (half > 0)
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return np.where(heavy, median, mean), np.where(heavy, half, scale), heavy.astype(float)


def _folds(templates: Templates, folds: int, generator: torch.Generator) -> Tensor:
    """Which of the folds an event is in: of every template an equal share, at random."""
    order = torch.randperm(len(templates), generator=generator)
    order = order[torch.argsort(torch.as_tensor(templates.template)[order], stable=True)]
    fold = torch.empty_like(order)
    fold[order] = torch.arange(len(order)) % folds
    return fold


def _split(
    events: Events, fold: Tensor, ensemble: int, generator: torch.Generator
) -> tuple[Events, Events]:
    """Training and held-out events in random order: member e does not see fold e."""
    order = torch.randperm(len(events), generator=generator)
    fold = fold[order]
    if ensemble == 1:
        return events[order[fold != 0]], events[order[fold == 0]]
    events = events[order]
    held = fold == torch.arange(ensemble).unsqueeze(-1)
    some = fold < ensemble
    return (
        replace(events, weights=events.weights * ~held),
        replace(events, weights=events.weights * held)[some],
    )


def _samples(x: Array, weights: Array, fold: Tensor, ensemble: int) -> list[tuple[Array, Array]]:
    """Events (x, weights) over which each member's implied prior is taken: those that it has not
    seen or, for a single network, all."""
    if ensemble == 1:
        return [(x, weights)]
    held = [(fold == e).numpy() for e in range(ensemble)]
    return [(x[which], weights[which]) for which in held]


def _basis(basis: str | Basis, grid: Grid, events: float) -> Basis:
    """The basis that was asked for, suited to the grid."""
    parameters = len(grid.parameters)
    if isinstance(basis, str):
        return basis_kind(basis).for_templates(grid, events)
    if basis.parameters != parameters:
        raise InputError(
            f"basis: one of {basis.parameters} parameter(s) for templates of {parameters}; "
            f"make it with parameters={parameters}, or give its name"
        )
    return basis


def _flatness(penalty: Penalty, templates: Templates, network: Network, events: Events) -> Flatness:
    """The penalty's S on the values and with the density that the user chose."""
    grid = templates.grid
    parameters = len(grid.parameters)
    if penalty.at is None:
        axis = np.linspace(0, 1, 7 if parameters == 1 else 5)
        at = grid.from_unit(np.array(list(product(axis, repeat=parameters))))
    else:
        at = np.asarray(penalty.at, float).reshape(len(penalty.at), -1)
    if at.shape[1] != parameters:
        raise InputError(f"penalty: at has {at.shape[1]} parameter(s); the templates {parameters}")
    if ((at < grid.bounds[:, 0]) | (at > grid.bounds[:, 1])).any():
        raise InputError(f"penalty: at has values outside the bounds of {grid.describe()}")
    t = torch.as_tensor(grid.to_unit(at), dtype=torch.float32)
    if penalty.density == "events":
        points = distributed.least(min(len(events), _REFERENCE))
        reference = events.x[:points], events.weights[:, :points]
        complete = distributed.size() == 1 and len(events) <= _REFERENCE
        x, weights = (distributed.of_first(values) for values in reference)
        return Flatness(t, (x, weights), complete, network.members)
    if distributed.size() > 1:
        raise InputError('penalty: a histogram is filled in one process; use density="events"')
    if events.x.shape[1] > 3:
        raise InputError(
            f"penalty: a histogram of {events.x.shape[1]} observables has too many bins; "
            'use density="events"'
        )
    centres, content = histogram_density(
        events.x.double().numpy(), events.weights.double().mean(0).numpy(), penalty.bins
    )
    return Flatness(
        t,
        (torch.as_tensor(centres).float(), torch.as_tensor(content).float().unsqueeze(0)),
        True,
        network.members,
    )


def _schedule(events: int, epochs: int | None, batch: int | None, rate: float) -> Schedule:
    """Some five hundred steps, in batches of a fiftieth of the events but 256 to 8,192."""
    size = min(max(events // 50, 256), 8192) if batch is None else batch
    size = min(size, events)
    steps = max(1, events // size)
    passes = max(5, math.ceil(_STEPS / steps)) if epochs is None else epochs
    return Schedule(passes, size, rate)


def _check_size(network: Network, events: int) -> None:
    size = sum(p[0].numel() for p in network.parameters())
    if events < size:
        raise InputError(
            f"x: {events:,} events to train on for a network of {size:,} parameters; "
            "give more events, or fewer hidden units"
        )
