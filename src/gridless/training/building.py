"""The network of a fit: its basis, its size and its first weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gridless import distributed
from gridless.density.basis import Basis
from gridless.density.exp_polynomial import ExpPolynomial
from gridless.density.network import Network, make_conditioner, outputs_needed
from gridless.errors import InputError
from gridless.model.record import FitOptions
from gridless.registry import BASES
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid
from gridless.templates.templates import Templates
from gridless.training.objectives import Objective


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
    grid: Grid = templates.grid
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
            f"basis: one of {basis.parameters} parameter(s) for templates of {parameters}; "
            f"make it with parameters={parameters}, or give its name"
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
    seen = events * (folds - 1) // folds
    if seen < network.size:
        raise InputError(
            f"x: {seen:,} events to train on for a network of {network.size:,} parameters; "
            "give more events, or fewer hidden units"
        )
