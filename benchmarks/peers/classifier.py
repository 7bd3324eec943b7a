"""A classifier with one class per template, made continuous by a parabola in theta.

A perceptron (48, 48, SiLU) learns which template an event is from. Its log probabilities of the
templates, log p(x | theta_k) up to a constant of the event, are projected on a quadratic polynomial
in theta event by event; dividing by the implied prior q(theta) keeps p(x | theta) normalised.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Array = NDArray[Any]
_Q_POINTS = 17
_CHUNK = 65_536


@dataclass(frozen=True)
class Trained:
    """The classifier, the projection (coefficients, templates), and log q as Chebyshev
    coefficients."""

    network: nn.Module
    mean: Array
    scale: Array
    projection: Tensor
    log_q: Array
    notes: dict[str, Any] = field(default_factory=dict)


def train(
    x: Array,
    theta: Array,
    seed: int,
    epochs: int = 4,
    batch: int = 2048,
    rate: float = 0.03,
    degree: int = 2,
) -> Trained:
    """Adam with a one-cycle schedule; the epoch of least cost on a held-out tenth is kept."""
    torch.manual_seed(seed)
    values, template = np.unique(theta, return_inverse=True)
    mean, scale = x.mean(axis=0), x.std(axis=0)
    events = torch.as_tensor((x - mean) / scale, dtype=torch.float32)
    label = torch.as_tensor(template)
    order = torch.randperm(len(events))
    events, label = events[order], label[order]
    held = len(events) // 10
    network = nn.Sequential(
        nn.Linear(x.shape[1], 48),
        nn.SiLU(),
        nn.Linear(48, 48),
        nn.SiLU(),
        nn.Linear(48, len(values)),
    )
    size = min(batch, len(events) // 20)
    costs = _train(
        network, (events[held:], label[held:]), (events[:held], label[:held]), epochs, size, rate
    )
    powers = np.polynomial.chebyshev.chebvander(2 * values - 1, degree)
    projection = torch.as_tensor(np.linalg.pinv(powers), dtype=torch.float32)
    trained = Trained(network, mean, scale, projection, np.zeros(1))
    notes = {"epochs": epochs, "held-out cost": round(min(costs), 6)}
    return replace(trained, log_q=_implied_prior(trained, x, values), notes=notes)


def log_density(trained: Trained, x: Array, values: Array) -> Array:
    """log p(x | theta) up to a constant of the event."""
    c = _coefficients(trained, x).double().numpy()
    powers = np.polynomial.chebyshev.chebvander(2 * values - 1, c.shape[1] - 1)
    return np.asarray(c @ powers.T - _log_q(trained, values))


def curve(trained: Trained, x: Array, values: Array) -> Array:
    """The sum over events, which is one of coefficients."""
    total = np.zeros(len(trained.projection))
    for start in range(0, len(x), _CHUNK):
        total += _coefficients(trained, x[start : start + _CHUNK]).double().sum(dim=0).numpy()
    log_p = np.polynomial.chebyshev.chebval(2 * values - 1, total)
    return np.asarray(len(x) * _log_q(trained, values) - log_p)


def _train(
    network: nn.Module,
    training: tuple[Tensor, Tensor],
    held: tuple[Tensor, Tensor],
    epochs: int,
    batch: int,
    rate: float,
) -> list[float]:
    """Train in place; the held-out cost of every epoch."""
    x, label = training
    cost = nn.CrossEntropyLoss()
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    steps = len(x) // batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, epochs * steps)
    costs: list[float] = []
    best: dict[str, Tensor] = {}
    for _ in range(epochs):
        order = torch.randperm(len(x))
        events, classes = x[order], label[order]
        for step in range(steps):
            part = slice(step * batch, (step + 1) * batch)
            optimiser.zero_grad(set_to_none=True)
            cost(network(events[part]), classes[part]).backward()
            optimiser.step()
            schedule.step()
        with torch.no_grad():
            costs.append(float(cost(network(held[0]), held[1])))
        if costs[-1] == min(costs):
            best = {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(best)
    return costs


@torch.no_grad()
def _coefficients(trained: Trained, x: Array) -> Tensor:
    """Polynomial in theta of each event, in Chebyshev polynomials."""
    events = torch.as_tensor((x - trained.mean) / trained.scale, dtype=torch.float32)
    # The constant of log-softmax goes into the constant of the polynomial, which does not matter.
    scores: Tensor = trained.network(events)
    return scores @ trained.projection.T


def _log_q(trained: Trained, values: Array) -> Array:
    return np.asarray(np.polynomial.chebyshev.chebval(2 * values - 1, trained.log_q))


def _implied_prior(trained: Trained, x: Array, templates: Array) -> Array:
    """log of q(theta) = mean over events of f(theta, x) / mean_l f(theta_l, x), with f the
    exponential of the polynomial."""
    points = 0.5 - 0.5 * np.cos(np.pi * np.arange(_Q_POINTS) / (_Q_POINTS - 1))
    degree = len(trained.projection) - 1
    at, own = (
        torch.as_tensor(np.polynomial.chebyshev.chebvander(2 * t - 1, degree), dtype=torch.float32)
        for t in (points, templates)
    )
    total = np.zeros(_Q_POINTS)
    for start in range(0, len(x), _CHUNK):
        c = _coefficients(trained, x[start : start + _CHUNK])
        norm = torch.logsumexp(c @ own.T, dim=1, keepdim=True) - np.log(len(templates))
        total += torch.exp(c @ at.T - norm).double().sum(dim=0).numpy()
    return np.polynomial.chebyshev.chebfit(2 * points - 1, np.log(total / len(x)), _Q_POINTS - 1)
