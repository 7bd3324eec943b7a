"""Observed events as a channel of a likelihood: calibrated, or as the network has learnt it.

Every group of events is a channel with a name.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gridless.calibration.calibration import Calibration
from gridless.calibration.distance import MeanDistance
from gridless.calibration.source import Interpolation, TemplateNoise
from gridless.curves import chebyshev
from gridless.density.network import Network
from gridless.errors import InputError, errors_of
from gridless.likelihood.agreement import Agreement
from gridless.likelihood.channel import Channel
from gridless.likelihood.estimate import MODEL, SIMULATION
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.sources import ReplicaNoise, ScoreSpread
from gridless.measurement.measurement import Measurement
from gridless.measurement.term import Sums, sums_of
from gridless.model.evaluation import (
    event_features,
    event_polynomials,
    log_density,
    log_likelihood,
    mean_summaries,
)
from gridless.model.replicas import Replicas
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

MAX_GROUPS = 50  # more are a mistake: a number that differs from event to event

Evaluate = Callable[[Array, Array | None], Likelihood]


def calibrated_channel(
    network: Network, calibration: Calibration, grid: Grid, table: Array, weights: Array | None
) -> Channel:
    """The likelihood that is calibrated by the templates: see `Calibration`."""
    size = len(calibration.centre)
    total, weight = np.zeros(size), 0.0
    products, sums, squares, fourths = np.zeros((size, size)), np.zeros(size), 0.0, 0.0
    for part, c in mean_summaries(network, table):
        if weights is None:
            total += c.sum(0, dtype=torch.float64).numpy()
            weight += len(c)
            continue
        rows, w = c.double().numpy() - calibration.centre, weights[part]
        total += w @ (rows + calibration.centre)
        weight += float(w.sum())
        products += (rows * (w**2)[:, None]).T @ rows
        sums += w**2 @ rows
        squares += float((w**2).sum())
        fourths += float((w**4).sum())
    transform = calibration.transform
    y = (total - weight * calibration.centre) @ transform
    channel = channel_of_sum(calibration, grid, y, weight, len(table))
    if weights is None:
        return channel
    spread = calibration.observed_spread(
        transform.T @ products @ transform, sums @ transform, squares
    )
    return replace(channel, scores=ScoreSpread(spread, squares, fourths))


def channel_of_sum(
    calibration: Calibration, grid: Grid, y: Array, weight: float, events: int
) -> Channel:
    """The likelihood of events with the sum y of whitened summaries."""
    return Channel(
        calibration.total(y, weight),
        grid,
        events,
        scores=ScoreSpread(events * calibration.spread, known=events),
        sources={
            SIMULATION: TemplateNoise(calibration, weight),
            MODEL: Interpolation(calibration, weight),
        },
        distance=MeanDistance(calibration, y, weight),
    )


def check_used(
    used: int, events: int, agreement: Agreement | None, simulated: Mapping[str, Array]
) -> None:
    """Refuse observed events none of which the simulation can say anything about.

    Parameters
    ----------
    used, events : int
        Of how many it can say something, and how many there are.
    agreement : Agreement, optional
        It names some of the others.
    simulated : mapping from str to array
        The bins of each observable in the simulation.
    """
    if used:
        return
    text = f"x: all {events:,} events lie farther outside of the simulation than it is wide"
    for far in agreement.filling.named[:1] if agreement else ():
        text += f", such as {far}"
        if far.observable in simulated:
            edges = simulated[far.observable]
            text += f" where {edges[0]:g} to {edges[-1]:g} was simulated"
    raise InputError(f"{text}; check units, marks of missing values, and the order of observables")


def observed_sums(
    network: Network, measurement: Measurement, table: Array, weights: Array | None
) -> Sums:
    """Sums over observed events of their summaries: all that a measurement needs of them."""
    parts = [
        sums_of(measurement.summaries(c.mean(0), z), None if weights is None else weights[part])
        for part, c, z in event_features(network, table)
    ]
    return reduce(add, parts)


def learnt_channel(
    network: Network,
    grid: Grid,
    log_q: Array,
    replicas: Replicas | None,
    table: Array,
    weights: Array | None,
) -> Channel:
    """The likelihood as the network has learnt it, less `log_q` of each event.

    `replicas`, if any, have in their `log_q` what each changes in that.
    """
    w = np.ones(len(table)) if weights is None else weights
    c = -log_likelihood(network, table, weights)
    c = chebyshev.add(c, w.sum() * log_q)
    sources = {}
    if replicas is not None:
        changes = replicas.changes(network, table, w)
        if not np.isfinite(changes).all():
            raise InputError(
                "replicas: the uncertainty from simulation is not finite; fit with calibrate=True "
                "or replicas=0, with more events, or with bounds near the templates"
            )
        sources[SIMULATION] = ReplicaNoise(changes)
    scores = None
    if weights is not None:
        spread = _score_spread(network, log_q, table, w, c.shape)
        scores = ScoreSpread(spread, float((w**2).sum()), float((w**4).sum()))
    return Channel(c, grid, len(table), scores=scores, sources=sources)


def _score_spread(
    network: Network, log_q: Array, x: Array, weights: Array, sizes: tuple[int, ...]
) -> Array:
    """Coefficients of sum_i w_i^2 s_i s_i^T, s_i = d log p(t | x_i) / dt: see `Channel`."""
    # Squares of slopes need as many points as the likelihood, and no fewer than these; a variance
    # need not be known as well as a likelihood that asks for the most.
    least, *_, most, _ = chebyshev.SIZES[len(sizes)]
    sizes = tuple(min(max(size, least), most) for size in sizes)
    t = chebyshev.box_points(sizes)
    subtracted = chebyshev.evaluate(log_q, t)
    count = len(sizes)
    total = np.zeros((count, count, len(t)))
    for part, log_p in log_density(network, x, t, factor=False):
        values = (log_p.double().numpy() - subtracted).reshape(-1, *sizes)
        slopes = [
            np.moveaxis(np.tensordot(values, slope, (axis + 1, 1)), -1, axis + 1)
            for axis, slope in enumerate(chebyshev.differentiation(size) for size in sizes)
        ]
        flat = np.stack([s.reshape(len(values), -1) for s in slopes])
        total += np.einsum("n,anj,bnj->abj", weights[part] ** 2, flat, flat)
    every = total.reshape(-1, *sizes)
    return np.array([chebyshev.coefficients(c) for c in every]).reshape(count, count, *sizes)


def calibrated_vectors(
    network: Network, calibration: Calibration, table: Array
) -> tuple[Tensor, Array]:
    """A vector for each event (events, size), and the matrix that makes Chebyshev coefficients of
    log likelihoods of sums of vectors; less the calibration's offset for each event."""
    rows = [c for _, c in mean_summaries(network, table)]
    transform = torch.as_tensor(calibration.transform)
    y = (torch.cat(rows).double() - torch.as_tensor(calibration.centre)) @ transform
    return y, calibration.curve_matrix()


def learnt_vectors(network: Network, sizes: tuple[int, ...], table: Array) -> tuple[Tensor, Array]:
    """The same for a likelihood as the network has learnt it, less log q for each event; on `sizes`
    points where it is no polynomial."""
    basis = network.polynomial()
    if basis is not None:
        rows = [c for _, c in event_polynomials(network, table)]
        return torch.cat(rows), basis.chebyshev_terms()
    t = chebyshev.box_points(sizes)
    rows = [log_p for _, log_p in log_density(network, table, t, factor=False)]
    units = np.eye(len(t)).reshape(-1, *sizes)
    return torch.cat(rows), np.array([chebyshev.coefficients(u) for u in units])


def grouped(likelihood_of: Evaluate, table: Array, weights: Array | None, by: Any) -> Likelihood:
    """The sum of the likelihoods of the groups, each evaluated once.

    Parameters
    ----------
    likelihood_of : callable
        The likelihood of events and weights.
    table, weights : array (events, observables), array (events,) or None
        The events.
    by : array (events,)
        The group of each: numbers or texts.
    """
    try:
        labels = np.asarray(by)
    except ValueError as error:
        raise InputError(f"by: {error}; give one number or text for each event") from error
    if labels.shape != (len(table),):
        raise InputError(
            f"by: {labels.shape} for {len(table)} events that are used; give one group per event"
        )
    if labels.dtype.kind not in "biufUS":
        raise InputError(f"by: {labels.dtype} for groups; give numbers or texts")
    values, number = np.unique(labels, return_inverse=True)
    if len(values) > MAX_GROUPS:
        raise InputError(
            f"by: {len(values):,} different values; give at most {MAX_GROUPS} groups, such as "
            "run - run % 1000"
        )
    parts = []
    for k, value in enumerate(values):
        own = number == k
        name = f"{value:g}" if np.issubdtype(values.dtype, np.floating) else str(value)
        with errors_of(name):
            part = likelihood_of(table[own], None if weights is None else weights[own])
        parts.append(part.named(name))
    return reduce(add, parts)
