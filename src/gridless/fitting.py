"""fit(): from templates to a model."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from gridless import distributed
from gridless.calibration.calibration import calibrate as calibrate_moments
from gridless.density.basis import Basis
from gridless.errors import InputError
from gridless.model.cells import make_cells
from gridless.model.model import Model
from gridless.model.prior import implied_prior
from gridless.model.record import FitOptions, TrainingRecord
from gridless.model.reweighting import keep_events
from gridless.systematics.audit import audit_samples
from gridless.systematics.bins import bin_samples
from gridless.systematics.inputs import (
    Background,
    Systematic,
    check_backgrounds,
    check_systematics,
)
from gridless.templates.arrays import Array, weights_or_ones
from gridless.templates.grid import Grid
from gridless.templates.summary import files_of_all_ranks, summarise
from gridless.templates.templates import Templates
from gridless.training.checkpoint import Checkpoint, checkpoint_path, fingerprint
from gridless.training.events import Events, Split, split_events
from gridless.training.measuring import check_measurement, measure_network
from gridless.training.objectives import Objective, find_objective
from gridless.training.replicas import replicate
from gridless.training.sizing import check_size, choose_size, fits_noise, make_network
from gridless.training.template_means import template_moments
from gridless.training.trainer import Schedule, Trainer, train

# Steps of Adam that a training takes by default, at the least; and passes over the events.
DEFAULT_STEPS = 500
MIN_DEFAULT_EPOCHS = 5
# A batch is by default this part of the events, within these limits.
DEFAULT_BATCHES = 50
MIN_DEFAULT_BATCH = 256
MAX_DEFAULT_BATCH = 8192
# Bootstrap replicas of a model without calibration.
DEFAULT_REPLICAS = 32
# Events of a background that are mixed into each template, at the most.
MAX_BACKGROUND_EVENTS = 20_000
# Share of the events that a single network keeps out by default.
DEFAULT_VALIDATION = 0.1


@distributed.own_threads()
def fit(
    templates: Templates,
    *,
    basis: str | Basis | None = None,
    components: int = 1,
    hidden: int | Sequence[int] | None = None,
    activation: str = "tanh",
    network: str | nn.Module | Callable[[int, int], nn.Module] | None = None,
    objective: str | Mapping[str, Mapping[str, Any]] | Objective = "template",
    prior: str = "divide",
    ensemble: int | None = None,
    validation: float | None = None,
    epochs: int | None = None,
    batch: int | None = None,
    rate: float = 0.03,
    ridge: float | None = None,
    replicas: int | None = None,
    calibrate: bool = True,
    seed: int = 0,
    device: str = "cpu",
    checkpoint: str | Path | None = None,
    systematics: Sequence[Systematic] = (),
    backgrounds: Sequence[Background] = (),
) -> Model:
    """Train a mixture density network on templates and return it as a model.

    Parameters
    ----------
    templates : Templates
        The simulated events.
    basis : str, dict or Basis, optional
        The shape of the components: "exp_polynomial", "gaussian", "logistic", the name of a
        registered basis, a name with settings as {"exp_polynomial": {"degree": 3}}, or a `Basis`.
        Named bases without settings are kept at least half as wide as the gap between templates.
        By default the exponential of a polynomial, whose degree and hidden units are chosen, from
        simple to complex, by what held-out events gain.
    components : int
        Number of components.
    hidden : int or sequence of int, optional
        Units of the hidden layer, or of each of several; 16 where a basis or components are given.
    activation : str
        "tanh", "silu" or "relu".
    network : str, torch.nn.Module or function (inputs, outputs) -> torch.nn.Module, optional
        A network of your own from standardised observables (events, inputs) to (events, outputs),
        or the name of a registered one; then `hidden` and `activation` are not used.
    objective : str, dict or Objective
        "template", normalised over the templates instead of the range; "posterior", the plain cost
        of section 2 of the paper; "penalty", with the correction of section 5, which takes settings
        as `Penalty(strength=2)` or {"penalty": {"strength": 2}}; or an `Objective` of your own.
    prior : str
        "divide" divides p(theta | x) by the implied prior q(theta); "flat" takes it as the
        likelihood, as the paper does.
    ensemble : int, optional
        Networks trained side by side from different starts and averaged. By default 1, or 4 where
        the events say so little that a network's fit to their noise would show: each then keeps out
        its own quarter of the events, over which it is calibrated.
    validation : float, optional
        Share of the events kept out of the training to judge it by: by default a tenth. Each
        member of an ensemble of n keeps out its own n-th, over which its implied prior is taken.
    epochs, batch : int, optional
        Passes over the events and events per step; by default chosen for some five hundred steps.
        Networks of up to 2,000 parameters then take a few Newton steps on all events.
    rate : float
        Highest learning rate.
    ridge : float, optional
        Inverse square of the width of a normal prior on the weights of the layers; by default
        chosen by held-out events, or 10 where `basis`, `hidden` or `network` is given.
    replicas : int, optional
        Without calibration: bootstrap replicas of the templates that give the uncertainty from
        finite simulation; 32 by default, 0 for none.
    calibrate : bool
        Calibrate likelihoods by the mean and covariance of the network's outputs in the templates:
        valid whatever it learnt. If not, the network's density is taken as it is.
    seed : int
        Fixes everything random.
    device : str
        Where to train: "cpu", "cuda" or "mps". A GPU is for large networks. The model is on the CPU
        in any case.
    checkpoint : str or Path, optional
        A file that keeps where the training stands. After an interruption the same call goes on
        from there. It stays when the fit has ended, so that nothing is lost before the model is
        saved; delete it then. A damaged one, or one of other events or options, is not used.
    systematics : sequence of Systematic
        Named changes of the simulation, each with a nuisance parameter: see
        docs/howto/systematics.md.
    backgrounds : sequence of Background
        Processes that are mixed into every template with a share.

    Returns
    -------
    Model
        Gives likelihoods and posteriors of observed events.

    Examples
    --------
    >>> import numpy as np, gridless as gl
    >>> random = np.random.default_rng(1)
    >>> theta = np.repeat(gl.grid((0, 1), 10), 2000)
    >>> templates = gl.Templates(random.normal(theta), theta, bounds=(0, 1))
    >>> model = gl.fit(templates, seed=1)
    >>> bool(abs(model.likelihood(random.normal(0.4, size=2000)).maximum().value - 0.4) < 0.1)
    True
    """
    arguments = locals()
    options = FitOptions.of(**{name: arguments[name] for name in FitOptions.model_fields})
    _check_templates(templates)
    systematics = check_systematics(systematics, templates.observables)
    backgrounds = check_backgrounds(backgrounds, templates.observables)
    varied = check_measurement(templates, systematics, backgrounds, options.calibrate)
    target = find_objective(options.objective)
    mixture = with_backgrounds(templates, backgrounds)
    trainer, split, weights, record, units = _train(mixture, options, target, checkpoint)

    net, grid = trainer.network, mixture.grid
    q = implied_prior(net, split.unseen, grid)
    # Means over events that the network has seen would count its fit to their noise. Whether that
    # shows decided the number of members; of a number given by hand it is asked here.
    given = options.ensemble is not None or not options.calibrate
    alone = given and fits_noise(units, net.size)
    fold = split.fold if net.members > 1 or alone else None
    known = calibrate_moments(template_moments(net, mixture, fold))
    copies = None
    if not options.calibrate and options.replicas != 0:
        unseen = split.held_out if net.members > 1 else None
        copies = replicate(trainer, unseen, options.replicas or DEFAULT_REPLICAS, q.log_q.shape)
    cells = make_cells(net, mixture, weights)
    simulated = keep_events(mixture, options.seed)
    summary = summarise(templates, options.components, target)
    if varied:
        found = audit_samples(varied.samples, [one.name for one in backgrounds], few=True)
        summary = replace(summary, audit=summary.audit.joined(found))
    files = files_of_all_ranks(mixture.files)
    measurement = measure_network(net, varied, options.seed, fold) if varied else None
    names = [one.name for one in varied.nuisances] if varied else []
    binned = bin_samples(varied.samples, names, summary.edges, grid) if varied else ()
    return Model(
        net, grid, mixture.query, options, record, q, cells, summary, files, known, simulated,
        copies, measurement, binned,
    )  # fmt: skip


def with_backgrounds(templates: Templates, backgrounds: Sequence[Background]) -> Templates:
    """The templates with the backgrounds in each of them, to train a network on.

    The same background events, 20,000 at the most, are in every template: they say
    nothing of theta.
    """
    if not backgrounds:
        return templates
    signal = 1 - sum(one.share for one in backgrounds)
    totals = templates.totals()
    xs, thetas, weights = [templates.x], [templates.theta], [templates.event_weights]
    for one in backgrounds:
        step = -(-len(one.x) // MAX_BACKGROUND_EVENTS)
        x = one.x[::step]
        w = weights_or_ones(one.weights, len(one.x))[::step]
        if not w.sum() > 0:
            x, w = one.x, weights_or_ones(one.weights, len(one.x))
        for total, value in zip(totals, templates.grid.values, strict=True):
            xs.append(x)
            thetas.append(np.repeat(value[None], len(x), axis=0))
            weights.append(w * (one.share / signal * total / w.sum()))
    return Templates(
        np.concatenate(xs),
        np.concatenate(thetas),
        templates.grid.bounds,
        np.concatenate(weights),
        parameters=templates.grid.parameters,
        query=templates.query,
        files=templates.files,
        labels=templates.grid.labels,
    )


class _Trained(NamedTuple):
    """A trained network with its events and their weights, the record of the training, and the log
    likelihood that all events gain by it."""

    trainer: Trainer
    split: Split
    weights: Array
    record: TrainingRecord
    units: float


def _train(
    templates: Templates, options: FitOptions, objective: Objective, checkpoint: str | Path | None
) -> _Trained:
    """Choose the size of the network, and train it on all events but those held out."""
    device = distributed.find_device(options.device)
    generator = torch.Generator().manual_seed(options.seed)
    weights = objective.weights(templates)
    size, tried = choose_size(templates, weights, options, objective)
    net = make_network(templates, weights, options, objective, size, generator)
    share = _held_out_share(options, net.members)
    check_size(net, len(templates), max(net.members, round(1 / share)))
    split = split_events(templates, weights, net, share, generator)
    events, held_out = split.training, split.held_out
    schedule = _schedule(events, options)
    term = objective.term(templates.grid, events, net.members)
    keep = _checkpoint(checkpoint, events, templates.grid, options)
    trainer = Trainer(net, events, held_out, objective, term, size.ridge, generator, keep)
    with distributed.own_threads(net):
        history = tuple(train(trainer, schedule, device))
    # In units of log likelihood, over the held-out events: 0 means that nothing was learnt.
    gain = float(-(trainer.mean_cost(held_out) * held_out.effective).sum())
    record = TrainingRecord(history, gain, schedule.epochs, schedule.batch, share, sizes=tried)
    return _Trained(trainer, split, weights, record, gain / share)


def _check_templates(templates: Any) -> None:
    if not isinstance(templates, Templates):
        raise InputError(
            f"templates: {type(templates).__name__}; make Templates of arrays, "
            "gl.Templates(x, theta, bounds=(low, high)), or of files, gl.read_templates(...)"
        )


def _held_out_share(options: FitOptions, members: int) -> float:
    """The share of the events that a member does not see."""
    if options.validation is not None:
        return options.validation
    # Each event is kept out by exactly one member of an ensemble.
    return DEFAULT_VALIDATION if members == 1 else 1 / members


def _schedule(events: Events, options: FitOptions) -> Schedule:
    """Some five hundred steps, in batches of a fiftieth of the events but 256 to 8,192."""
    total = distributed.least(len(events)) * distributed.size()
    size = min(max(total // DEFAULT_BATCHES, MIN_DEFAULT_BATCH), MAX_DEFAULT_BATCH)
    size = min(size if options.batch is None else options.batch, total)
    steps = max(1, total // size)
    epochs = max(MIN_DEFAULT_EPOCHS, math.ceil(DEFAULT_STEPS / steps))
    return Schedule(epochs if options.epochs is None else options.epochs, size, options.rate)


def _checkpoint(
    path: str | Path | None, events: Events, grid: Grid, options: FitOptions
) -> Checkpoint | None:
    """The checkpoint of this very training, in a file of each rank's own; None without a path."""
    if path is None:
        return None
    theta = [torch.as_tensor(values.copy()) for values in (grid.unit, grid.bounds)]
    arrays = [events.x, events.template, events.weights, *theta]
    return Checkpoint(checkpoint_path(path), fingerprint(arrays, options.to_dict()))
