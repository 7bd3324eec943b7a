"""Intervals by construction: what a likelihood ratio does in pseudo-experiments at every theta.

At each value of a parameter, the others at their best there, pseudo-experiments tell how large
l(theta) - min l becomes if that value is true. A value belongs to the interval of Feldman and
Cousins if the observed one is within the share `level` of them. That covers near bounds and for
few events, where the quantiles of Wilks do not.

A limit asks only for pseudo-experiments whose estimate is lower than theta, and divides by
the share of those without signal, at the lower bound, that are as far away: CLs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridless.curves import minimum
from gridless.curves.intervals import check_level
from gridless.curves.lattice import Lattice
from gridless.errors import InputError, check_choice
from gridless.files.sources import as_path
from gridless.files.write import write_whole
from gridless.likelihood.channel import Channel, Place, generator
from gridless.parallel import run
from gridless.results.by_name import chosen_parameter
from gridless.results.printing import Lines
from gridless.templates.arrays import Array, as_count

if TYPE_CHECKING:
    from gridless.likelihood.estimate import Estimate
    from gridless.likelihood.likelihood import Likelihood

FELDMAN_COUSINS = "feldman-cousins"
UPPER = "upper"
WILKS = "wilks"
METHODS = (FELDMAN_COUSINS, UPPER)
POINTS = 61  # values of the parameter at which pseudo-experiments are made
TOYS = 2000  # pseudo-experiments at each
MAX_POINTS = 100_000  # of a belt or contour: more cannot be seen in a figure
MAX_TOYS = 10_000_000
REACH = 5.0  # errors on either side of the estimate that the values span
PER_TASK = 8  # values of one task


class Settings(NamedTuple):
    """How pseudo-experiments are made: for which method, how many, at how many values."""

    method: str = FELDMAN_COUSINS
    toys: int = TOYS
    points: int = POINTS
    seed: int = 0


class Experiments(ABC):
    """The pseudo-experiments of a likelihood of observed events.

    A place says where they are drawn: the values of all parameters, of those of interest and of the
    others. A pseudo-experiment is a short vector.

    Attributes
    ----------
    estimate : Estimate
        That of the observed events.
    parameters : tuple of str
        The parameters of which a belt can be made.
    best, widths : array (parameters,)
        Their values, and about their errors, in units of the range.
    best_place : array
        The place of the estimate.
    """

    estimate: "Estimate"
    parameters: tuple[str, ...]
    best: Array
    widths: Array
    best_place: Array

    @abstractmethod
    def unit(self, place: Array) -> Array:
        """The parameters (parameters,) of a place in units of the range."""

    @abstractmethod
    def profile(self, axis: int) -> Callable[[float], tuple[Array, float]]:
        """As a function of one parameter in units of the range: the place where the observed
        likelihood is least, and how much it has risen there."""

    @abstractmethod
    def draw(self, place: Array, toys: int, seed: tuple[int, ...]) -> Array:
        """The vectors (toys, size) of pseudo-experiments at a place."""

    @abstractmethod
    def curves(self, place: Array, points: Array) -> Callable[[Array], Array]:
        """A function from vectors to likelihoods (toys, points), at points (points, parameters) in
        units of the range around the place, all other parameters at their best."""

    def lattice(self, place: Array, axis: int) -> Lattice:
        """Points around a place, for the profile of the parameter of an axis."""
        return Lattice(self.unit(place), self.widths, axis)


@dataclass(frozen=True, eq=False)
class Belt(Lines):
    """Pseudo-experiments at many values of one parameter; `likelihood.belt()` makes it.

    Belts of further pseudo-experiments, with another seed, add up: `a + b`.

    Attributes
    ----------
    parameter, method : str
        Of what, and for which interval.
    theta : array (points,)
        The values.
    observed : array (points,)
        l(theta) - min l of the observed events, the other parameters at their best.
    rises : array (points, toys)
        The same of the pseudo-experiments at each value.
    without : array (points, toys)
        Of a limit: the same of pseudo-experiments at the lower bound.
    best : float
        The estimate of the observed events.
    bounds : tuple of float
        Those of the parameter.

    Examples
    --------
    >>> import numpy as np
    >>> theta, normal = np.linspace(0, 1, 51), np.random.default_rng(1).normal(size=(51, 2000))
    >>> rises = 0.5 * normal**2
    >>> observed = 0.5 * ((theta - 0.4) / 0.05) ** 2
    >>> belt = Belt("theta", "feldman-cousins", theta, observed, rises, rises[:, :0], 0.4, (0, 1))
    >>> print("{:.2f} to {:.2f}".format(*belt.interval(0.683)))
    0.35 to 0.45
    """

    parameter: str
    method: str
    theta: Array
    observed: Array
    rises: Array
    without: Array
    best: float
    bounds: tuple[float, float]

    @property
    def toys(self) -> int:
        """Pseudo-experiments at each value."""
        return int(self.rises.shape[1])

    def interval(self, level: float) -> tuple[float, float]:
        """(low, high) at a confidence level; of a limit (lower bound, limit)."""
        check_level(level)
        if self.method == UPPER:
            with np.errstate(divide="ignore", invalid="ignore"):
                margin = np.log(self.cls().clip(min=0.1 / self.toys) / (1 - level))
            above = self.theta >= self.best
            return self.bounds[0], self._last(margin[above], self.theta[above])
        margin = np.quantile(self.rises, level, axis=1) - self.observed
        # The estimate itself always belongs to it.
        middle = int(np.argmin(self.observed))
        margin[middle] = max(margin[middle], 0.0)
        high = self._last(margin[middle:], self.theta[middle:])
        low = self._last(margin[middle::-1], self.theta[middle::-1])
        return low, high

    def cls(self) -> Array:
        """CLs of each value: the p-value of the value over that of no signal."""
        p_with = (self.rises >= self.observed[:, None]).mean(axis=1)
        p_without = (self.without >= self.observed[:, None]).mean(axis=1)
        return np.asarray(p_with / p_without.clip(min=1 / max(1, self.toys)))

    def _last(self, margin: Array, theta: Array) -> float:
        """The outer end of the interval on one side; the last value if it reaches that far."""
        outside = margin < 0
        # From the far end inwards: gaps inside of the interval are filled.
        inside = np.flatnonzero(~outside)
        if not len(inside):
            return float(theta[0])
        i = int(inside[-1])
        if i == len(theta) - 1:
            return float(theta[-1])
        share = margin[i] / (margin[i] - margin[i + 1])
        return float(theta[i] + share * (theta[i + 1] - theta[i]))

    def __add__(self, other: "Belt") -> "Belt":
        same = (self.parameter, self.method) == (other.parameter, other.method)
        if (
            not same
            or not np.array_equal(self.theta, other.theta)
            or not np.allclose(self.observed, other.observed)
        ):
            raise InputError("belts of different likelihoods, methods or values do not add")
        return Belt(
            self.parameter, self.method, self.theta, self.observed,
            np.hstack([self.rises, other.rises]), np.hstack([self.without, other.without]),
            self.best, self.bounds,
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write it to a file (.npz), from which `Belt.load` makes it again."""
        content = BytesIO()
        np.savez(content, names=np.array([self.parameter, self.method]), theta=self.theta,
                 observed=self.observed, rises=self.rises, without=self.without,
                 numbers=np.array([self.best, *self.bounds]))  # fmt: skip
        write_whole(as_path(path), content.getvalue())

    @staticmethod
    def load(path: str | Path) -> "Belt":
        """The belt of a file that `save` wrote."""
        path = as_path(path)
        try:
            with np.load(path, allow_pickle=False) as found:
                parameter, method = (str(name) for name in found["names"])
                best, low, high = found["numbers"].tolist()
                arrays = [found[name] for name in ("theta", "observed", "rises", "without")]
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{path}: no belt ({error}); give a file of belt.save()") from error
        theta, observed, rises, without = arrays
        return Belt(parameter, method, theta, observed, rises, without, best, (low, high))

    def __repr__(self) -> str:
        return (
            f"Belt of {self.parameter} ({self.method}): {self.toys:,} pseudo-experiments at "
            f"each of {len(self.theta)} values from {self.theta[0]:.6g} to {self.theta[-1]:.6g}"
        )


def constructed(
    experiments: Experiments, level: float, parameter: str, method: str, belt: Belt | None
) -> tuple[float, float]:
    """An interval by pseudo-experiments: those of the belt, or new ones."""
    check_choice("method", method, (WILKS, *METHODS))
    if belt is None:
        belt = make_belt(experiments, parameter, Settings(method))
    if (belt.parameter, belt.method) != (parameter, method):
        raise InputError(f"belt: {belt!r} is not one of {parameter}, {method}")
    low, high = experiments.estimate[parameter].bounds
    best = low + (high - low) * experiments.best[experiments.parameters.index(parameter)]
    if not np.isclose(belt.best, best, atol=1e-6 * (high - low)):
        raise InputError("belt: made of other observed events; make one of this likelihood")
    return belt.interval(level)


def make_belt(
    experiments: Experiments, parameter: str | None, settings: Settings, executor: Any = None
) -> Belt:
    """The belt of a parameter; without a name, of the only one."""
    method, toys, points = settings.method, settings.toys, settings.points
    if method not in METHODS:
        raise InputError(f"method: {method!r:.80}; give {' or '.join(map(repr, METHODS))}")
    as_count(toys, "toys", 2, MAX_TOYS)
    as_count(points, "points", 3, MAX_POINTS)
    as_count(settings.seed, "seed", 0)
    parameter = chosen_parameter(experiments.parameters, parameter)
    axis = experiments.parameters.index(parameter)
    best = experiments.best[axis]
    t = np.linspace(*_span(experiments, axis), points)
    # The estimate itself is one of the values, and all keep their order.
    t[np.argmin(np.abs(t - best))] = best
    profile = experiments.profile(axis)
    places, rises = zip(*(profile(float(one)) for one in t), strict=True)
    observed = np.array(rises)
    if method == UPPER:
        observed = np.where(t >= best, observed, 0.0)
    without = profile(0.0)[0]
    tasks = [
        (experiments, axis, settings, np.array(places[i : i + PER_TASK]), i, without)
        for i in range(0, points, PER_TASK)
    ]
    found = run(_rises, tasks, executor, "belt")
    low, high = experiments.estimate[parameter].bounds
    return Belt(
        parameter,
        method,
        low + t * (high - low),
        observed.clip(min=0),
        np.concatenate([one for one, _ in found]),
        np.concatenate([others for _, others in found]),
        float(low + best * (high - low)),
        (float(low), float(high)),
    )


def _span(experiments: Experiments, axis: int) -> tuple[float, float]:
    """The values that an interval could reach, in units of the range."""
    one = experiments.estimate[experiments.parameters[axis]]
    low, high = one.bounds
    error = max(one.error, one.interval[1] - one.interval[0]) / (high - low)
    # At a bound the interval may be short by chance.
    reach = REACH * max(error, float(experiments.widths[axis]))
    best = float(experiments.best[axis])
    return max(best - reach, 0.0), min(best + reach, 1.0)


def _rises(
    experiments: Experiments,
    axis: int,
    settings: Settings,
    places: Array,
    first: int,
    without: Array,
) -> tuple[Array, Array]:
    """l(theta) - min l of pseudo-experiments at each of the places (points, toys), and of those at
    the place without signal."""
    found, others = [], []
    one_sided = settings.method == UPPER
    toys, seed = settings.toys, (settings.seed, first)
    drawn = experiments.draw(without, toys, (*seed, 0)) if one_sided else None
    for number, place in enumerate(places, start=1):
        lattice = experiments.lattice(place, axis)
        curves = experiments.curves(place, lattice.points)
        at_place = experiments.draw(place, toys, (*seed, number))
        found.append(_of_toys(lattice, curves(at_place), one_sided))
        if drawn is not None:
            others.append(_of_toys(lattice, curves(drawn), one_sided))
    empty = np.zeros((len(places), 0))
    return np.array(found), np.array(others) if others else empty


def _of_toys(lattice: Lattice, values: Array, one_sided: bool) -> Array:
    rise, best = lattice.rises(values)
    return np.where(best <= lattice.here, rise, 0.0) if one_sided else rise


class CurveExperiments(Experiments):
    """Pseudo-experiments of a likelihood that is a curve in its parameters; `stat` leaves out the
    statistics of the simulation. A place is a point of the unit box."""

    def __init__(self, likelihood: "Likelihood", stat: bool = False) -> None:
        check_toys(likelihood.channels)
        self.likelihood, self.stat = likelihood, stat
        self.estimate, self.parameters = likelihood.maximum(), likelihood.parameters
        self.best = self.best_place = likelihood.unit_best
        variance = np.diag(likelihood.unit_covariance)
        known = np.isfinite(variance) & (variance > 0)
        self.widths = np.sqrt(np.where(known, variance, 1.0)).clip(max=1.0)

    def unit(self, place: Array) -> Array:
        return place

    def profile(self, axis: int) -> Callable[[float], tuple[Array, float]]:
        curve = self.likelihood.curve
        floor, lowest = curve.value(self.best), minimum.profile_points(curve, axis, self.best)

        def found(t: float) -> tuple[Array, float]:
            place = lowest(t)
            return place, curve.value(place) - floor

        return found

    def draw(self, place: Array, toys: int, seed: tuple[int, ...]) -> Array:
        likelihood, parts = self.likelihood, list[Array]()
        for channel in likelihood.channels:
            assert channel.toys is not None
            own = Place(channel, likelihood.grid).own(place)
            parts.append(channel.toys.draw(own, toys, (*seed, len(parts)), self.stat))
        for constraint in likelihood.constraints:
            p = likelihood.parameters.index(constraint.parameter)
            width = constraint.error / likelihood.grid.range[p]
            # The centre of the constraint fluctuates too.
            random = generator(*seed, len(parts))
            parts.append(random.normal(place[p], width, (toys, 1)) / width**2)
        return np.hstack(parts)

    def curves(self, place: Array, points: Array) -> Callable[[Array], Array]:  # noqa: ARG002
        # What the vectors multiply (sizes, points), and what is added (points,).
        likelihood, rows, added = self.likelihood, list[Array](), np.zeros(len(points))
        for channel in likelihood.channels:
            assert channel.toys is not None
            f, g = channel.toys.functions(Place(channel, likelihood.grid).own(points))
            rows.append(f)
            added = added + g
        for constraint in likelihood.constraints:
            p = likelihood.parameters.index(constraint.parameter)
            rows.append(points[None, :, p])
            added = added + 0.5 * (points[:, p] * likelihood.grid.range[p] / constraint.error) ** 2
        functions = np.vstack(rows)
        return lambda vectors: np.asarray(added - vectors @ functions)


def check_toys(channels: Iterable[Channel]) -> None:
    """Refuse channels from whose model nothing can be drawn."""
    missing = [channel.name or "a channel" for channel in channels if channel.toys is None]
    if missing:
        raise InputError(
            f"pseudo-experiments: {', '.join(missing)} has no simulation to draw from; fit with a "
            "version that keeps events"
        )
