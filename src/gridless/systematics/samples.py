"""Varied samples beside the nominal ones: where they were made, and which events they share."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError, counted
from gridless.systematics.inputs import SIDES, Background, Side, Systematic
from gridless.systematics.statistics import check_halves, folds_of
from gridless.templates.arrays import Array, weights_or_ones
from gridless.templates.grid import Grid
from gridless.templates.templates import Templates

SAME_POINT = 1e-6  # of the range: closer values of theta are one
RELATED = 0.2  # correlation of rows above which they are the same events
COMPARED = 20_000  # rows that are looked at to see that


@dataclass(frozen=True, eq=False)
class Events:
    """Simulated events of a process.

    Attributes
    ----------
    x : array (events, observables)
        The observables.
    weights : array (events,)
        Their weights.
    point : array (events,) of int
        The number of the point (value of theta) at which each was simulated.
    key : array (events,) of int
        Equal keys are one simulated event in several samples.
    """

    x: Array
    weights: Array
    point: NDArray[np.int64]
    key: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Varied:
    """The variations of one process by one systematic.

    Attributes
    ----------
    name : str
        That of the systematic.
    t : array (points, parameters)
        Where they were made.
    template : array (points,) of int
        The nominal sample made there; -1 where there is none.
    sides : tuple of Events
        Up, and down if there is one.
    same : bool
        Whether they are made of the nominal events.
    """

    name: str
    t: Array
    template: NDArray[np.int64]
    sides: tuple[Events, ...]
    same: bool


@dataclass(frozen=True, eq=False)
class ProcessSamples:
    """The nominal events of a process at the points t, and its variations."""

    t: Array
    nominal: Events
    varied: tuple[Varied, ...]


def signal_samples(templates: Templates, systematics: tuple[Systematic, ...]) -> ProcessSamples:
    """The templates with their variations."""
    events = Events(
        templates.x,
        weights_or_ones(templates.weights, len(templates)),
        templates.template,
        np.arange(len(templates)),
    )
    grid = templates.grid
    check_events(events, len(grid), "the templates")
    return ProcessSamples(
        grid.unit, events, tuple(_varied(one, events, templates.theta, grid) for one in systematics)
    )


def background_samples(background: Background, observables: int) -> ProcessSamples:
    """A background with its variations."""
    if background.x.shape[1] != observables:
        raise InputError(
            f"background {background.name!r}: {counted(background.x.shape[1], 'column')}, but the "
            f"templates have {counted(observables, 'observable')}; give the same ones, in "
            "their order"
        )
    count = len(background.x)
    events = Events(
        background.x,
        weights_or_ones(background.weights, count),
        np.zeros(count, np.int64),
        np.arange(count),
    )
    check_events(events, 1, f"background {background.name!r}")
    made = tuple(_varied(one, events, None, None) for one in background.systematics)
    return ProcessSamples(np.zeros((1, 0)), events, made)


def check_events(events: Events, points: int, what: str) -> None:
    """Refuse too few events, or too many negative weights, at some point: see `check_halves`."""
    check_halves(events.weights, folds_of(events.key), events.point, points, what)


def only_nominal(sample: ProcessSamples, rows: NDArray[np.int64]) -> ProcessSamples:
    """The process with some of its nominal events, and without varied events made of the others.

    Parameters
    ----------
    sample : ProcessSamples
        Of nominal events with the keys 0, 1, 2, ...
    rows : array (kept,) of int
        The nominal events to keep, which get the keys 0, 1, 2, ...
    """
    nominal = sample.nominal
    count = len(nominal.key)
    if len(rows) == count:
        return sample
    new_key = np.full(count, -1)
    new_key[rows] = np.arange(len(rows))
    x = nominal.x[rows]
    kept = Events(x, nominal.weights[rows], nominal.point[rows], np.arange(len(rows)))

    def part(side: Events) -> Events:
        key = np.where(side.key < count, new_key[side.key.clip(max=count - 1)], side.key)
        own = np.flatnonzero(key >= 0)
        own_x = x if side.x is nominal.x else side.x[own]
        return Events(own_x, side.weights[own], side.point[own], key[own])

    varied = tuple(replace(v, sides=tuple(part(side) for side in v.sides)) for v in sample.varied)
    return ProcessSamples(sample.t, kept, varied)


def _varied(one: Systematic, nominal: Events, theta: Array | None, grid: Grid | None) -> Varied:
    where = f"systematic {one.name!r}"
    values = [
        _theta(side, nominal, theta, f"{where}, {s}")
        for side, s in zip(one.sides, SIDES, strict=False)
    ]
    t, template, points = _points(values, grid, where)
    if len(one.sides) == 1 and (template < 0).any():
        raise InputError(
            f"{where}: only up, at values of theta without a template; give down too, or simulate "
            "it at the templates"
        )
    sides: list[Events] = []
    same = True
    for side, name, value in zip(one.sides, SIDES, values, strict=False):
        x = nominal.x if side.x is None else side.x
        point = points[len(sides)] if points else np.zeros(len(x), np.int64)
        if x.shape[1] != nominal.x.shape[1]:
            raise InputError(
                f"{where}, {name}: {counted(x.shape[1], 'column')}, but the nominal events have "
                f"{nominal.x.shape[1]}; give the same observables, in their order"
            )
        weights = side.weights
        if (
            weights is None
            and side.x is not None
            and len(x) == len(nominal.x)
            and _aligned(side, one, nominal, theta, value)
        ):
            weights = nominal.weights
        weights = weights_or_ones(weights, len(x))
        key, related = _keys(one, side, nominal, theta, value, len(sides))
        same &= related
        check_halves(weights, folds_of(key), point, len(t), f"{where}, {name}")
        sides.append(Events(x, weights, point, key))
    return Varied(one.name, t, template, tuple(sides), same)


def _theta(side: Side, nominal: Events, theta: Array | None, where: str) -> Array | None:
    """The theta of each event of a side."""
    if side.x is None and len(side.weights) != len(nominal.x):  # type: ignore[arg-type]
        raise InputError(
            f"{where}: {len(side.weights):,} weights for {len(nominal.x):,} nominal events; give "  # type: ignore[arg-type]
            "one weight per event"
        )
    if theta is None:
        return None
    if side.theta is not None:
        if side.theta.shape[1] != theta.shape[1]:
            raise InputError(
                f"{where}: theta has {counted(side.theta.shape[1], 'column')}, not "
                f"{theta.shape[1]}; give one for each parameter"
            )
        return side.theta
    if side.x is not None and len(side.x) != len(nominal.x):
        raise InputError(
            f"{where}: {len(side.x):,} events without theta for {len(nominal.x):,} of the "
            "templates; give (x, theta)"
        )
    return theta


def _points(
    values: list[Array | None], grid: Grid | None, where: str
) -> tuple[Array, NDArray[np.int64], list[NDArray[np.int64]]]:
    """The points of all sides, the template at each, and the point of each event."""
    if grid is None:
        return np.zeros((1, 0)), np.zeros(1, np.int64), []
    found: list[NDArray[np.int64]] = []
    inverse: list[NDArray[np.int64]] = []
    for value in values:
        assert value is not None
        rounded = np.round(grid.to_unit(value) / SAME_POINT).astype(np.int64)
        if (rounded < 0).any() or (rounded > round(1 / SAME_POINT)).any():
            raise InputError(
                f"{where}: theta outside the bounds of the templates; give variations at "
                f"{grid.describe()}"
            )
        points, place = np.unique(rounded, axis=0, return_inverse=True)
        found.append(points)
        inverse.append(place.reshape(-1).astype(np.int64))
    if any(len(points) != len(found[0]) or (points != found[0]).any() for points in found[1:]):
        raise InputError(f"{where}: up and down are at different values of theta; give the same")
    t = found[0] * SAME_POINT
    distance = np.abs(t[:, None] - grid.unit).max(axis=-1)
    template = np.where(distance.min(axis=1) < 2 * SAME_POINT, distance.argmin(axis=1), -1)
    t = np.where(template[:, None] >= 0, grid.unit[template], t)
    return np.asarray(t, np.float64), template.astype(np.int64), inverse


def _aligned(
    side: Side, one: Systematic, nominal: Events, theta: Array | None, value: Array | None
) -> bool:
    """Whether a side without weights has the nominal events, row by row."""
    if one.same_events is not None or one.numbers is not None:
        return bool(one.same_events)
    if theta is not None and value is not None and not np.array_equal(theta, value):
        return False
    assert side.x is not None
    return _related(side.x, nominal)


def _related(x: Array, nominal: Events) -> bool:
    """Whether rows are correlated with the nominal ones beyond what their points explain."""
    step = max(1, len(x) // COMPARED)
    here, there = x[::step], nominal.x[::step]
    point = nominal.point[::step]
    counts = np.bincount(point).clip(min=1)
    for j in range(x.shape[1]):
        a, b = (
            column - (np.bincount(point, column) / counts)[point]
            for column in (here[:, j], there[:, j])
        )
        size = np.sqrt((a @ a) * (b @ b))
        if size > 0 and a @ b / size > RELATED:
            return True
    return False


def _keys(
    one: Systematic,
    side: Side,
    nominal: Events,
    theta: Array | None,
    value: Array | None,
    number: int,
) -> tuple[NDArray[np.int64], bool]:
    """A key for each event of a side, and whether the side shares events with the nominal one."""
    if side.x is None:
        return nominal.key, True
    count, events = len(nominal.key), len(side.x)
    if one.numbers is not None and side.numbers is not None:
        return _by_number(one, side, nominal, theta, value), True
    where = f"systematic {one.name!r}"
    if one.same_events and events != count:
        raise InputError(
            f"{where}: {events:,} events, said to be the same as the {count:,} nominal ones; give "
            "their numbers, same_events=(numbers, numbers of up, numbers of down)"
        )
    if events == count and _aligned(side, one, nominal, theta, value):
        return nominal.key, True
    return count * (number + 1) + np.arange(events) + number * events, False


def _by_number(
    one: Systematic, side: Side, nominal: Events, theta: Array | None, value: Array | None
) -> NDArray[np.int64]:
    """Keys by event number at the same theta; those of no nominal event come after them."""
    assert one.numbers is not None
    assert side.numbers is not None
    if len(one.numbers) != len(nominal.key):
        raise InputError(
            f"systematic {one.name!r}: {len(one.numbers):,} event numbers for {len(nominal.key):,} "
            "nominal events; give one each"
        )
    columns: list[Any] = [np.concatenate([one.numbers, side.numbers])]
    if theta is not None and value is not None:
        both = np.concatenate([theta, value])
        columns += list(np.round(both / np.ptp(both, axis=0).clip(min=1e-300), 6).T)
    _, label = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    label = label.reshape(-1)
    count = len(nominal.key)
    row = np.full(label.max() + 1, -1)
    row[label[:count]] = np.arange(count)
    found = row[label[count:]]
    # Numbers themselves make keys that up and down share.
    apart = count + np.asarray(side.numbers) - min(0, int(side.numbers.min()))
    return np.where(found >= 0, found, apart)
