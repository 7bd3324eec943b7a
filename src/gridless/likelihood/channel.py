"""What the observed events of one model say: the part of a likelihood that one model gives."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from gridless.curves import chebyshev
from gridless.curves.curve import Curve, add_series, ordered
from gridless.errors import InputError
from gridless.likelihood.agreement import Agreement
from gridless.likelihood.sources import ScoreSpread, Source
from gridless.results.warning import EstimateWarning
from gridless.templates.arrays import Array, as_number
from gridless.templates.grid import Grid
from gridless.templates.histograms import Binned

# Last number of the seed for draws of what the simulation leaves open: parts of one model, which
# share their simulation, share these random numbers.
SHARED = 1

LARGEST = 1e100  # of a number: its square, times a number of events, is finite


class Distance(Protocol):
    """How unlikely the mean of the events is at theta, which tells minima of a likelihood apart."""

    def __call__(self, t: Array) -> Array:
        """Minus twice a log likelihood at points (points, parameters): (points,)."""

    def __add__(self, other: Any) -> Any:
        """That of both sets of events of one model."""

    def restrict(self, axis: int, t: float) -> "Distance":
        """With one parameter held at t."""


class Toys(ABC):
    """Draws likelihoods of events at any theta, as many events as were observed.

    The likelihood of a pseudo-experiment is -sum_j Y_j f_j(t) + g(t), with a short vector Y.
    """

    @abstractmethod
    def draw(self, t: Array, toys: int, seed: tuple[int, ...], stat: bool) -> Array:
        """Vectors Y (toys, size) of events at one point of the unit box.

        `stat` leaves out that the simulation could have come out otherwise.
        """

    @abstractmethod
    def functions(self, t: Array) -> tuple[Array, Array]:
        """f (size, points) and g (points,) at points (points, parameters)."""

    @abstractmethod
    def deviations(self, t: Array, covariance: Array, toys: int, seed: tuple[int, ...]) -> Array:
        """How far the mean of a measurement's summary (toys, size) is from its expectation, in
        events at one point of the unit box; `covariance` is that of this mean.
        """

    @abstractmethod
    def __add__(self, other: "Toys") -> "Toys":
        """Those of both sets of events of one model."""

    @abstractmethod
    def restrict(self, axis: int, t: float) -> "Toys":
        """With one parameter held at t."""


def generator(*seed: int) -> np.random.Generator:
    """Random numbers of their own for every tuple."""
    return np.random.default_rng(seed)


class Constraint(NamedTuple):
    """A Gaussian constraint on a parameter, from another measurement of this value and error."""

    parameter: str
    value: float
    error: float

    @property
    def source(self) -> str:
        """Its name in the budget."""
        return f"{self.parameter} (constraint)"


@dataclass(frozen=True, eq=False)
class Channel:
    """Events with a model of their own. Curves are Chebyshev coefficients on the box of the grid.

    Attributes
    ----------
    total : array, one axis per parameter
        Minus the log likelihood.
    grid : Grid
        Parameters and bounds, and where the templates are.
    events : int
        Number of events.
    scores : ScoreSpread, optional
        The variance of the slope, where the second derivatives do not tell.
    sources : mapping from str to Source
        Named sources of uncertainty, such as "simulation".
    agreement : Agreement, optional
        The events in the cells of the simulation.
    undivided : array, optional
        sum_i w_i log q of an implied prior that was not divided by.
    mean_score : Source, optional
        Of a density that is used as it is: its mean score in the simulation, then what that is
        uncertain by.
    warnings : tuple of EstimateWarning
        Those that hold for every estimate with the model.
    model : str
        Identity of the model: channels of one model have the same simulation.
    name : str
        How estimates call the channel.
    toys : Toys, optional
        Where pseudo-experiments come from.
    observed : Binned, optional
        The events in bins of every observable.
    offered : int or None
        Number of events before the selection; None where nothing was selected.
    distance : Distance, optional
        What tells the minima of `total` apart where it is no likelihood far from the truth.
    """

    total: Array
    grid: Grid
    events: int
    scores: ScoreSpread | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    agreement: Agreement | None = None
    undivided: Array | None = None
    mean_score: Source | None = None
    warnings: tuple[EstimateWarning, ...] = ()
    model: str = ""
    name: str = ""
    toys: Toys | None = None
    observed: Binned | None = None
    offered: int | None = None
    distance: Distance | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.grid.parameters

    @property
    def key(self) -> tuple[Any, ...]:
        """Channels with the same key are parts of one and add up to one."""
        weighted = self.scores is not None
        return self.name, self.model, self.parameters, self.grid.bounds.tobytes(), weighted

    def __add__(self, other: "Channel") -> "Channel":
        """The channel of both sets of events; of channels with the same key only."""
        return replace(
            self,
            total=chebyshev.add(self.total, other.total),
            events=self.events + other.events,
            scores=_both(self.scores, other.scores),
            sources={
                n: s + other.sources[n] for n, s in self.sources.items() if n in other.sources
            },
            agreement=_both(self.agreement, other.agreement),
            undivided=_add(self.undivided, other.undivided),
            mean_score=_both(self.mean_score, other.mean_score),
            toys=_both(self.toys, other.toys),
            observed=_both(self.observed, other.observed),
            offered=add_offered(self, other),
            distance=_both(self.distance, other.distance),
        )

    def fix(self, parameter: str, theta: float) -> "Channel":
        """The channel with a parameter held at theta; the same if it has no such parameter."""
        if parameter not in self.parameters:
            return self
        grid, axis = self.grid, self.parameters.index(parameter)
        low, high = grid.bounds[axis]
        t = float((theta - low) / (high - low))
        undivided = self.undivided
        if undivided is not None:
            undivided = chebyshev.restrict(undivided, axis, t)
        return replace(
            self,
            total=chebyshev.restrict(self.total, axis, t),
            grid=Grid(
                np.delete(grid.values, axis, 1),
                np.delete(grid.bounds, axis, 0),
                tuple(name for name in grid.parameters if name != parameter),
                grid.labels,
            ),
            scores=self.scores and self.scores.restrict(axis, t),
            sources={name: source.restrict(axis, t) for name, source in self.sources.items()},
            agreement=self.agreement and self.agreement.restrict(axis, t),
            undivided=undivided,
            mean_score=self.mean_score and self.mean_score.restrict(axis, t),
            toys=self.toys and self.toys.restrict(axis, t),
            distance=self.distance and self.distance.restrict(axis, t),
        )


class Place:
    """Where the box of a channel lies in that of a sum of channels with more or other parameters.

    `axes` are those of its parameters in the sum; t_own = offset + scale * t.
    """

    def __init__(self, channel: Channel, grid: Grid) -> None:
        self.axes = [grid.parameters.index(name) for name in channel.parameters]
        own = channel.grid
        self.offset = (grid.bounds[self.axes, 0] - own.bounds[:, 0]) / own.range
        self.scale = grid.range[self.axes] / own.range
        self.parameters = len(grid.parameters)

    def own(self, t: Array) -> Array:
        """The point (..., parameters) of the sum's box in that of the channel."""
        return np.asarray(self.offset + self.scale * t[..., self.axes])

    def slopes(self, slopes: Array) -> Array:
        """Slopes (..., own parameters) as slopes (..., parameters) in the sum's box."""
        wide = np.zeros((*slopes.shape[:-1], self.parameters))
        wide[..., self.axes] = slopes * self.scale
        return wide

    def matrix(self, matrix: Array) -> Array:
        """A matrix of products of slopes in the sum's box."""
        wide = np.zeros((self.parameters, self.parameters))
        wide[np.ix_(self.axes, self.axes)] = matrix * np.outer(self.scale, self.scale)
        return wide

    def series(self, c: Array) -> Array:
        """Coefficients of the same function on the channel's share of the sum's box."""
        for axis, (offset, scale) in enumerate(zip(self.offset, self.scale, strict=True)):
            if offset != 0 or scale != 1:
                c = chebyshev.part(c, axis, float(offset), float(offset + scale))
        return c


def merge_channels(channels: Iterable[Channel]) -> tuple[Channel, ...]:
    """The channels, those with the same key added up."""
    merged: dict[Any, Channel] = {}
    for channel in channels:
        known = merged.get(channel.key)
        merged[channel.key] = channel if known is None else known + channel
    return tuple(merged.values())


def make_constraint(parameter: str, value: float, error: float) -> Constraint:
    """A constraint with a finite value and a positive error, whose squares are finite too."""
    value, error = as_number(value, "constrain"), as_number(error, "constrain")
    if not (1 / LARGEST < error < LARGEST and abs(value) < LARGEST * min(error, 1.0)):
        raise InputError(
            f"constrain: {value:g} with an error of {error:g} for {parameter}; give a finite "
            "value and a positive error"
        )
    return Constraint(parameter, value, error)


def join_constraints(
    first: Sequence[Constraint], second: Sequence[Constraint]
) -> tuple[Constraint, ...]:
    """The constraints of two likelihoods; the same in both is refused: it would count twice."""
    for twice in set(first) & set(second):
        raise InputError(
            f"both likelihoods have {twice.parameter} constrained to {twice.value:g} +- "
            f"{twice.error:g}, which would count twice; add them first, then constrain the sum"
        )
    return (*first, *second)


def common_grid(channels: Sequence[Channel]) -> Grid:
    """Parameters of all channels by name, each between the bounds that all of them allow."""
    bounds: dict[str, tuple[float, float]] = {}
    for channel in channels:
        for name, (low, high) in zip(channel.parameters, channel.grid.bounds.tolist(), strict=True):
            least, most = bounds.get(name, (low, high))
            bounds[name] = max(low, least), min(high, most)
            if bounds[name][0] >= bounds[name][1]:
                raise InputError(
                    f"likelihoods of {name} in [{least:g}, {most:g}] and in [{low:g}, {high:g}] do "
                    "not add: there is no value that both allow; give different parameters "
                    "different names, or fit with bounds that overlap"
                )
    first = channels[0].grid
    if tuple(bounds) == first.parameters and list(bounds.values()) == [
        tuple(pair) for pair in first.bounds.tolist()
    ]:
        return first
    labels = {name: text for channel in channels for name, text in channel.grid.labels.items()}
    return Grid(np.zeros((0, len(bounds))), np.array(list(bounds.values())), tuple(bounds), labels)


def add_offered(*channels: Channel) -> int | None:
    """Events of all channels before their selections; None where none has one."""
    if all(channel.offered is None for channel in channels):
        return None
    return sum(c.events if c.offered is None else c.offered for c in channels)


def offered_to(channels: Sequence[Channel], events: int) -> list[Channel]:
    """Channels of one model to which this many events together were offered: what the selection
    left out belongs to no group, and is counted with the first."""
    rest = events - sum(channel.events for channel in channels)
    first, *others = channels
    return [
        replace(first, offered=first.events + rest),
        *(replace(one, offered=one.events) for one in others),
    ]


def make_curve(channels: Sequence[Channel], constraints: Sequence[Constraint], grid: Grid) -> Curve:
    """The sum of all channels, and of (theta - value)^2 / 2 error^2 for each constraint."""
    series = []
    for channel in channels:
        place = Place(channel, grid)
        series.append(ordered(place.axes, place.series(channel.total)))
    for constraint in constraints:
        axis = grid.parameters.index(constraint.parameter)
        low, size = grid.bounds[axis, 0], grid.range[axis]
        offset = (constraint.value - low) / size
        pull = size / constraint.error * (chebyshev.points(3) - offset)
        series.append(((axis,), chebyshev.coefficients(0.5 * pull**2)))
    return add_series(len(grid.parameters), series)


def distances(channels: Sequence[Channel], grid: Grid, t: Array) -> Array:
    """At points t (points, parameters), what `distance` has instead of twice `total`."""
    found = np.zeros(len(t))
    for channel in channels:
        if channel.distance is not None:
            own = Place(channel, grid).own(t)
            found += channel.distance(own) - 2 * chebyshev.evaluate(channel.total, own)
    return found


def _add(a: Array | None, b: Array | None) -> Array | None:
    """The sum of two stacks of polynomials of equal number; None where either is."""
    return None if a is None or b is None else chebyshev.add(a, b)


def _both(a: Any, b: Any) -> Any:
    """The sum of what two channels have; None where either has none."""
    return None if a is None or b is None else a + b
