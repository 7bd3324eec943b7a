"""A measurement as named arrays and a description, and back: what a model file holds of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridless.calibration.calibration import LARGEST, MAX_POWER
from gridless.measurement.features import Features
from gridless.measurement.measurement import Measurement, Nuisance, Share
from gridless.measurement.process import Process
from gridless.measurement.shift import Shift, shift_powers
from gridless.systematics.course import NODES
from gridless.systematics.statistics import FOLDS
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

OWN = (
    "t", "powers", "coefficients", "noise", "open", "covariance", "size", "pairs", "crossed",
    "untold", "cubes", "coursed", "course", "spread",
)  # fmt: skip
OF_SHIFT = ("coefficients", "response", "covariance", "open")
KINDS = ("linear", "square")


@dataclass(frozen=True)
class MeasurementHeader:
    """Names and numbers of a measurement.

    Attributes
    ----------
    nuisances : list of str
        Systematics, then backgrounds.
    constraints : list of float or None
        Of each.
    shares : list of (int, float, float)
        The nuisance parameter, the share and its unit of every background.
    systematics : list of list of int
        Which nuisance parameters vary each process.
    """

    nuisances: list[str]
    constraints: list[float | None]
    shares: list[tuple[int, float, float]]
    systematics: list[list[int]]


def header_of(measurement: Measurement) -> MeasurementHeader:
    """The names and numbers of a measurement."""
    return MeasurementHeader(
        [one.name for one in measurement.nuisances],
        [one.constraint for one in measurement.nuisances],
        [(one.nuisance, one.share, one.unit) for one in measurement.shares],
        [process.systematics.tolist() for process in measurement.processes],
    )


def arrays_of(measurement: Measurement) -> dict[str, Array]:
    """The arrays of a measurement, by name."""
    found: dict[str, Any] = {
        "centre": measurement.centre,
        "transform": measurement.transform,
        "projection": measurement.projection,
        "directions": measurement.features.directions,
        "offsets": measurement.features.offsets,
        "knots": measurement.features.knots,
    }
    for number, process in enumerate(measurement.processes):
        found |= {f"{number}.{name}": getattr(process, name) for name in OWN}
        for kind in KINDS:
            for place, shift in enumerate(getattr(process, kind)):
                found |= {f"{number}.{kind}.{place}.{n}": v for n, v in shift.arrays().items()}
    return {name: np.asarray(value, np.float64) for name, value in found.items()}


def measurement_of(
    header: MeasurementHeader, arrays: Mapping[str, Array], grid: Grid, observables: int
) -> Measurement:
    """The measurement of a file; a ValueError or KeyError if it is none.

    Examples
    --------
    >>> from gridless.examples import Nuisances
    >>> model = Nuisances().fit(events=300, seed=1, hidden=3, epochs=2)
    >>> made = arrays_of(model.measurement)
    >>> measurement_of(header_of(model.measurement), made, model.grid, 6).names[:2]
    ('theta', 'jes')
    """
    count = len(header.nuisances)
    if len(header.constraints) != count or len(set(header.nuisances)) < count:
        raise ValueError("nuisances: names and constraints")
    for name, array in arrays.items():
        if np.abs(array).max(initial=0) > LARGEST:
            raise ValueError(f"measurement.{name} has a number over {LARGEST:g}")
    for constraint in header.constraints:
        if constraint is not None and not 1 / LARGEST < constraint < LARGEST:
            raise ValueError(f"a constraint of {constraint}")
    for nuisance, share, unit in header.shares:
        if not (0 <= nuisance < count and 0 < share < 1 and 1 / LARGEST < unit < LARGEST):
            raise ValueError("shares")
    if len(header.systematics) != 1 + len(header.shares):
        raise ValueError("systematics of the processes")
    size, d = arrays["transform"].shape
    _shape("centre", arrays["centre"], size)
    random = arrays["offsets"].shape[0]
    _shape("offsets", arrays["offsets"], random)
    _shape("directions", arrays["directions"], observables, random)
    columns = count + len(grid.parameters)
    learnt = size - columns
    _shape("knots", arrays["knots"], observables, arrays["knots"].shape[-1])
    features = Features(arrays["directions"], arrays["offsets"], arrays["knots"])
    _shape("projection", arrays["projection"], FOLDS, features.sizes(learnt)[-1], columns)
    processes = tuple(
        _process(f"{number}.", arrays, which, count, d, len(grid.parameters) if number == 0 else 0)
        for number, which in enumerate(header.systematics)
    )
    pairs = zip(header.nuisances, header.constraints, strict=True)
    return Measurement(
        grid,
        tuple(Nuisance(name, constraint) for name, constraint in pairs),
        tuple(Share(*one) for one in header.shares),
        arrays["centre"],
        arrays["transform"],
        processes,
        features,
        arrays["projection"],
    )


def _process(
    prefix: str, arrays: Mapping[str, Array], which: list[int], nuisances: int, d: int, width: int
) -> Process:
    if len(set(which)) < len(which) or any(not 0 <= one < nuisances for one in which):
        raise ValueError(f"{prefix}systematics")
    # Files that were written before courses have none.
    shape = len(NODES), len(shift_powers(width)), d
    none = {"coursed": np.zeros(0), "course": np.zeros((0, *shape))}
    none["cubes"] = np.zeros(len(which))
    none["spread"] = np.zeros((len(which), 2, d, d))
    own = none | {name: arrays[prefix + name] for name in OWN if prefix + name in arrays}
    points, terms = len(own["t"]), len(own["powers"])
    _shape(prefix + "t", own["t"], points, width)
    _shape(prefix + "powers", own["powers"], terms, width)
    _shape(prefix + "coefficients", own["coefficients"], terms, d)
    for name in ("noise", "open"):
        _shape(prefix + name, own[name], terms, d, own[name].shape[-1])
    _shape(prefix + "covariance", own["covariance"], points, d, d)
    _shape(prefix + "size", own["size"], points)
    _shape(prefix + "pairs", own["pairs"], len(own["pairs"]), 2)
    pairs = own["pairs"].astype(np.int64)
    if pairs.size and not (pairs.min() >= 0 and pairs.max() < len(which)):
        raise ValueError(f"{prefix}pairs")
    _shape(prefix + "crossed", own["crossed"], len(pairs), len(shift_powers(width)), d)
    _shape(prefix + "untold", own["untold"], len(which), len(which))
    _shape(prefix + "coursed", own["coursed"], len(own["coursed"]))
    coursed = own["coursed"].astype(np.int64)
    if coursed.size and not (coursed.min() >= 0 and coursed.max() < len(which)):
        raise ValueError(f"{prefix}coursed")
    _shape(prefix + "course", own["course"], len(coursed), *shape)
    _shape(prefix + "cubes", own["cubes"], len(which))
    _shape(prefix + "spread", own["spread"], len(which), 2, d, d)
    if own["powers"].size and not (own["powers"].min() >= 0 and own["powers"].max() <= MAX_POWER):
        raise ValueError(f"{prefix}powers")
    linear, square = (
        tuple(_shift(f"{prefix}{kind}.{place}.", arrays, d, width) for place in range(len(which)))
        for kind in KINDS
    )
    return Process(
        own["t"], own["powers"].astype(np.int64), own["coefficients"], own["noise"], own["open"],
        own["covariance"], own["size"], np.array(which, np.int64), linear, square, pairs,
        own["crossed"], own["untold"], own["cubes"], coursed, own["course"], own["spread"],
    )  # fmt: skip


def _shift(prefix: str, arrays: Mapping[str, Array], d: int, width: int) -> Shift:
    coefficients, response, covariance, left = (arrays[prefix + name] for name in OF_SHIFT)
    terms, points = len(shift_powers(width)), len(covariance)
    _shape(prefix + "coefficients", coefficients, terms, d)
    _shape(prefix + "response", response, d, terms, points)
    _shape(prefix + "covariance", covariance, points, d, d)
    _shape(prefix + "open", left, d, terms, terms)
    return Shift(coefficients, response, covariance, left)


def _shape(name: str, array: Array, *shape: int) -> None:
    if array.shape != shape:
        raise ValueError(f"measurement.{name} is {array.shape} and not {shape}")
