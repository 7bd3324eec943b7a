"""fit(): from templates to a model."""

import math
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import torch

from gridless.basis import Basis, basis_kind
from gridless.errors import InputError
from gridless.model import PRIORS, Model
from gridless.network import Network
from gridless.objective import OBJECTIVES, Flatness, Penalty, histogram_density
from gridless.prior import implied_prior
from gridless.templates import Templates
from gridless.training import Events, Schedule, Trainer, train

# Points of the events that stand for all of them between two anchors of the penalty.
_REFERENCE = 4096
_STEPS = 500


def fit(
    templates: Templates,
    basis: str | Basis = "gaussian",
    components: int = 1,
    hidden: int | Sequence[int] = (16,),
    activation: str = "tanh",
    objective: str = "template",
    prior: str = "divide",
    penalty: Penalty | None = None,
    ensemble: int = 1,
    validation: float = 0.1,
    epochs: int | None = None,
    batch: int | None = None,
    rate: float = 0.03,
    ridge: float = 3.0,
    seed: int = 0,
) -> Model:
    """Train a mixture density network on templates and return it as a model.

    Parameters
    ----------
    templates
        The simulated events.
    basis, components
        The shape of the components ("gaussian", "logistic", "exp_polynomial", or a `Basis`) and
        their number. Named bases are kept at least half as wide as the gap between templates.
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
        Share of the events kept out of the training to choose the best epoch.
    epochs, batch, rate
        Passes over the events, events per step and highest learning rate; the first two are by
        default chosen for some five hundred steps. Networks of up to 2,000 parameters then take a
        few Newton steps on all events.
    ridge
        Inverse square of the width of a normal prior on the weights of the layers.
    seed
        Fixes everything random.
    """
    _check_choice("objective", objective, OBJECTIVES)
    _check_choice("prior", prior, PRIORS)
    _check_least("components", components, 1)
    _check_least("ensemble", ensemble, 1)
    hidden = (hidden,) if isinstance(hidden, int) else tuple(hidden)
    for units in hidden:
        _check_least("hidden", units, 1)
    if not 0 < validation < 1:
        raise InputError(f"validation: {validation}; give a share between 0 and 1, such as 0.1")
    if not rate > 0:
        raise InputError(f"rate: {rate}; give a positive learning rate, such as 0.03")
    if ridge < 0:
        raise InputError(f"ridge: {ridge}; give 0 for none, or a positive number such as 3")
    if penalty is not None and objective != "penalty":
        raise InputError(f'penalty: given for objective="{objective}"; set objective="penalty"')
    grid = templates.grid
    shape = basis if isinstance(basis, Basis) else basis_kind(basis).for_spacing(grid.spacing)

    generator = torch.Generator().manual_seed(seed)
    network = Network(templates.x.shape[1], shape, components, hidden, activation, ensemble)
    network.initialise(generator)
    held_out = max(1, round(validation * len(templates)))
    _check_size(network, len(templates) - held_out)

    events = _prepare(templates, network)
    order = torch.randperm(len(events), generator=generator)
    training, held = events[order[held_out:]], events[order[:held_out]]
    flatness = None
    if objective == "penalty":
        flatness = _flatness(penalty or Penalty(), templates, network, training)
    schedule = _schedule(len(training), epochs, batch, rate)
    t = torch.as_tensor(grid.unit[:, 0], dtype=torch.float32)
    trainer = Trainer(network, training, held, t, objective, ridge, generator)
    history = train(trainer, schedule, flatness, penalty.strength if penalty else None)

    q = implied_prior(network, templates.x, templates.balanced_weights(), grid)
    options = {
        "objective": objective,
        "penalty": asdict(penalty) if penalty is not None else None,
        "validation": validation,
        "epochs": schedule.epochs,
        "batch": schedule.batch,
        "rate": rate,
        "ridge": ridge,
        "seed": seed,
    }
    return Model(network, grid, templates.observables, prior, q, options, tuple(history))


def _prepare(templates: Templates, network: Network) -> Events:
    """Set the network's standardisation from the templates and apply it to them."""
    weights = templates.balanced_weights()
    mean = np.average(templates.x, axis=0, weights=weights)
    # The variance of the plain sample: with negative weights the weighted one may not be positive.
    scale = templates.x.std(axis=0)
    scale[scale == 0] = 1
    network.mean, network.scale = (torch.as_tensor(v, dtype=torch.float32) for v in (mean, scale))
    x = network.standardise(torch.as_tensor(templates.x)).float()
    return Events(x, torch.as_tensor(templates.template), torch.as_tensor(weights).float())


def _flatness(penalty: Penalty, templates: Templates, network: Network, events: Events) -> Flatness:
    """The penalty's S on the values and with the density that the user chose."""
    grid = templates.grid
    low, high = grid.bounds[0]
    at = np.linspace(low, high, 7) if penalty.at is None else np.asarray(penalty.at, float)
    if ((at < low) | (at > high)).any():
        raise InputError(f"penalty: at has values outside the bounds {low:g} to {high:g}")
    t = torch.as_tensor(grid.to_unit(at[:, None])[:, 0], dtype=torch.float32)
    if penalty.density == "events":
        reference = events.x[:_REFERENCE], events.weights[:_REFERENCE]
        return Flatness(t, reference, len(events) <= _REFERENCE, network.members)
    if events.x.shape[1] > 3:
        raise InputError(
            f"penalty: a histogram of {events.x.shape[1]} observables has too many bins; "
            'use density="events"'
        )
    centres, content = histogram_density(
        events.x.double().numpy(), events.weights.double().numpy(), penalty.bins
    )
    return Flatness(
        t,
        (torch.as_tensor(centres).float(), torch.as_tensor(content).float()),
        True,
        network.members,
    )


def _schedule(events: int, epochs: int | None, batch: int | None, rate: float) -> Schedule:
    """Some five hundred steps, in batches of a fiftieth of the events but 256 to 8,192."""
    size = min(max(events // 50, 256), 8192) if batch is None else batch
    _check_least("batch", size, 1)
    size = min(size, events)
    steps = max(1, events // size)
    passes = max(5, math.ceil(_STEPS / steps)) if epochs is None else epochs
    _check_least("epochs", passes, 1)
    return Schedule(passes, size, rate)


def _check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}: there is no {value!r}; give one of {', '.join(known)}")


def _check_least(name: str, value: int, least: int) -> None:
    if not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}: {value!r}; give a whole number of at least {least}")


def _check_size(network: Network, events: int) -> None:
    size = sum(p[0].numel() for p in network.parameters())
    if events < size:
        raise InputError(
            f"x: {events:,} events to train on for a network of {size:,} parameters; "
            "give more events, or fewer hidden units"
        )
