"""The likelihood of a whole measurement: parameters of interest, systematics, backgrounds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from gridless.errors import InputError
from gridless.likelihood.channel import (
    Channel,
    Constraint,
    common_grid,
    join_constraints,
    make_constraint,
    merge_channels,
)
from gridless.likelihood.intervals import LEVEL, check_level, chi2_quantile
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.minuit import MinuitCost
from gridless.measurement.curve_term import CurveTerm
from gridless.measurement.estimate import MeasurementEstimate
from gridless.measurement.estimating import make_estimate
from gridless.measurement.measurement import Nuisance
from gridless.measurement.newton import inverse_on, minimise
from gridless.measurement.term import SummaryChannel, SummaryTerm
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

STARTS = {1: 25, 2: 7, 3: 5}  # values of each parameter of interest that the search begins with
REFERENCES = 3  # estimates at which the covariance of the summaries is taken, one after the other
FAR = 1e6  # errors: as good as no bound for iminuit
FARTHEST = 40.0  # errors from the minimum that the end of an interval is looked for


class MeasurementLikelihood(Likelihood):
    """Minus the log likelihood of parameters and nuisance parameters.

    sum over channels of (T - mu)' V^-1 (T - mu) / 2, and alpha^2 / 2 c^2 of each nuisance parameter
    alpha with constraint c. T is the mean of the summaries of a channel's events, mu(theta, alpha)
    its expectation, V its covariance from observed and simulated events, held at a first estimate.

    `model.likelihood(x)` makes it for a model with systematics or backgrounds. Call it with values
    in the order of `parameters`; add likelihoods of more events and of other models, which share
    parameters and nuisance parameters by name; give it to iminuit. Events enter through sums only,
    so that nothing grows with their number.

    Parameters
    ----------
    parts : sequence of SummaryChannel
        Events of models with systematics or backgrounds.
    plain : sequence of Channel
        Events of models without any.
    constraints : sequence of Constraint
        Gaussians of single parameters from elsewhere.
    held : mapping from str to float
        Parameters that do not move.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import Nuisances
    >>> example = Nuisances()
    >>> model = example.fit(events=500, seed=1)
    >>> likelihood = model.likelihood(example.sample(0.4, 2_000, seed=2))
    >>> likelihood.parameters[:3]
    ('theta', 'jes', 'bjes')
    >>> estimate = likelihood.maximum()
    >>> bool(abs(estimate.value - 0.4) < 4 * estimate.error)
    True
    """

    def __init__(
        self,
        parts: Iterable[SummaryChannel],
        plain: Iterable[Channel] = (),
        constraints: Iterable[Constraint] = (),
        held: Mapping[str, float] | None = None,
    ) -> None:
        merged: dict[Any, SummaryChannel] = {}
        for part in parts:
            known = merged.get(part.key)
            merged[part.key] = part if known is None else known + part
        self.parts = tuple(merged.values())
        self.plain = merge_channels(plain)
        self.channels = (*(part.base for part in self.parts), *self.plain)
        self.constraints = tuple(constraints)
        self.held = dict(held or {})
        self.grid = common_grid(self.channels)
        self.nuisances = _nuisances(self.parts, self.grid)
        self.names = (*self.grid.parameters, *(one.name for one in self.nuisances))
        limits = dict(zip(self.grid.parameters, self.grid.bounds.tolist(), strict=True))
        for one in self.nuisances:
            far = FAR * (one.constraint or 1.0)
            limits[one.name] = [-far, far]
        self.low, self.high = np.array(list(limits.values())).T
        MinuitCost.__init__(
            self,
            {name: (low, high) for name, (low, high) in limits.items() if name not in self.held},
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters of interest, then nuisance parameters; without those that are held."""
        return tuple(name for name in self.names if name not in self.held)

    @property
    def interest(self) -> tuple[str, ...]:
        """The parameters of interest."""
        return tuple(name for name in self.grid.parameters if name not in self.held)

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Which of all names are not held."""
        return np.array([name not in self.held for name in self.names])

    def __add__(self, other: Any) -> Any:
        """The likelihood of both, or iminuit's `CostSum` with one of its costs."""
        if not isinstance(other, Likelihood):
            return self.add_cost(other)
        if not isinstance(other, MeasurementLikelihood):
            other = MeasurementLikelihood((), other.channels, other.constraints)
        for name in set(self.held) | set(other.held):
            here = [part.held[name] for part in (self, other) if name in part.held]
            there = [part for part in (self, other) if name in part.names]
            if len(here) < len(there) or len(set(here)) > 1:
                raise InputError(f"{name} is held in one of the likelihoods only; add, then fix")
        return MeasurementLikelihood(
            (*self.parts, *other.parts),
            (*self.plain, *other.plain),
            join_constraints(self.constraints, other.constraints),
            self.held | other.held,
        )

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, Likelihood):
            return self + other
        return self if isinstance(other, int) and other == 0 else self.add_to_cost(other)

    def __repr__(self) -> str:
        text = f"Likelihood of {self.grid.describe()} from {self.events:,} events"
        number = len(self.channels)
        if number > 1:
            text += f" in {number} channels"
        text += f", {len(self.nuisances)} nuisance parameters"
        for one in self.constraints:
            text += f", {one.parameter} = {one.value:g} +- {one.error:g}"
        for name, value in self.held.items():
            text += f", {name} = {value:g}"
        return text

    def named(self, channel: str) -> "MeasurementLikelihood":
        """The same likelihood with a name for its channel, as in `estimate.p_values`.

        Parameters
        ----------
        channel : str
            Such as "electron".

        Returns
        -------
        MeasurementLikelihood
        """
        if len(self.channels) != 1:
            raise InputError("named: a sum of several channels; name each before adding them")
        only = self.parts[0]
        return self._with(parts=[replace(only, base=replace(only.base, name=channel))])

    def with_offered(self, events: int) -> "MeasurementLikelihood":
        """The same with the number of events before the selection; of one channel."""
        only = self.parts[0]
        return self._with(parts=[replace(only, base=replace(only.base, offered=events))])

    def fix(self, **values: float) -> "MeasurementLikelihood":
        """The likelihood of the other parameters with the named ones held at these values.

        Returns
        -------
        MeasurementLikelihood

        Examples
        --------
        >>> from gridless.examples import Nuisances
        >>> example = Nuisances()
        >>> likelihood = example.fit(events=500, seed=1).likelihood(example.sample(0.4, 500, seed=2))
        >>> len(likelihood.fix(jes=0, bjes=0).parameters) == len(likelihood.parameters) - 2
        True
        """
        held = dict(self.held)
        for name, value in values.items():
            place = self._place(name)
            if not self.low[place] <= value <= self.high[place]:
                raise InputError(
                    f"fix: {name} = {value:g} is outside {self.low[place]:g} to "
                    f"{self.high[place]:g}"
                )
            held[name] = float(value)
        if all(name in held for name in self.grid.parameters):
            raise InputError(f"fix: {', '.join(values)} leaves nothing to estimate")
        constraints = [one for one in self.constraints if one.parameter not in held]
        return self._with(held=held, constraints=constraints)

    def constrain(self, parameter: str, value: float, error: float) -> "MeasurementLikelihood":
        """The likelihood times a Gaussian of a parameter: + (theta - value)^2 / 2 error^2.

        Parameters
        ----------
        parameter : str
            Of interest or a nuisance parameter, which keeps its own constraint too.
        value, error : float
            What another measurement says of it.

        Returns
        -------
        MeasurementLikelihood
        """
        self._place(parameter)
        return self._with(
            constraints=[*self.constraints, make_constraint(parameter, value, error)]
        )

    def maximum(self) -> MeasurementEstimate:
        """The most likely parameters, with budget, pulls, impacts and warnings.

        Returns
        -------
        MeasurementEstimate
        """
        return self._estimate

    def profile(self, parameter: str, values: Any) -> Array:
        """The likelihood at values of one parameter, the others at their best, less its minimum.

        Parameters
        ----------
        parameter : str
            Of interest or a nuisance parameter.
        values : array
            Its values.

        Returns
        -------
        array
        """
        place = self._place(parameter)
        points = np.asarray(values, float)
        found = [self._profiled({place: one})[0] - self._floor for one in points.ravel()]
        return np.array(found).reshape(points.shape)

    def scan(self, theta: Any) -> Array:
        """The likelihood at values of the only parameter of interest, nuisance parameters at their
        best, less its minimum."""
        if len(self.interest) > 1:
            raise InputError("scan: several parameters; take profile(parameter, values)")
        return self.profile(self.interest[0], theta)

    def interval(
        self, level: float = LEVEL, parameter: str | None = None, *, stat: bool = False
    ) -> tuple[float, float]:
        """(low, high) of a parameter at a confidence level, with every uncertainty.

        The profile has risen at the ends by half the chi-square quantile (Wilks).

        Parameters
        ----------
        level : float
            Between 0 and 1.
        parameter : str, optional
            Which parameter, where there are several of interest.
        stat : bool
            Statistical only: the nuisance parameters held at their best.

        Returns
        -------
        tuple of float
        """
        if parameter is None and len(self.interest) > 1:
            names = " or ".join(repr(name) for name in self.interest)
            raise InputError(f"interval: several parameters; say which: parameter={names}")
        place = self._place(parameter or self.interest[0])
        if stat:
            held = {name: float(v) for name, v in zip(self.names, self.best, strict=True)
                    if name not in self.interest and name not in self.held}  # fmt: skip
            return self.fix(**held).interval(level, self.names[place])
        low, high = (end for end, _ in self.crossings(place, check_level(level)))
        return low, high

    def contour(self, first: str, second: str, level: float = LEVEL, points: int = 64) -> Array:
        """A closed curve around the values of two parameters allowed at `level`.

        Parameters
        ----------
        first, second : str
            Of interest or nuisance parameters.
        level : float
            Between 0 and 1.
        points : int
            Number of points on the curve.

        Returns
        -------
        array (points + 1, 2)
            The first point again at the end.
        """
        axes = [self._place(first), self._place(second)]
        if axes[0] == axes[1]:
            raise InputError(f"contour: {first} twice; give two parameters")
        shape = self.covariance[np.ix_(axes, axes)]
        if not np.isfinite(shape).all():
            raise InputError("contour: the likelihood has no minimum inside the bounds")
        root = np.linalg.cholesky(shape)
        rise = 0.5 * chi2_quantile(check_level(level), 2)
        found = []
        for angle in np.linspace(0, 2 * np.pi, points, endpoint=False):
            step = root @ [np.cos(angle), np.sin(angle)]
            reach = self._reach(axes, step, rise)[0]
            found.append(self.best[axes] + reach * step)
        return np.array([*found, found[0]]).clip(self.low[axes], self.high[axes])

    # What estimates are made of.

    def slopes(self, p: Array) -> tuple[float, Array, Array]:
        """Value, gradient and second derivatives at values of all names."""
        value, gradient, hessian = 0.0, np.zeros(len(p)), np.zeros((len(p), len(p)))
        for term in (*self._terms, *self._curves):
            part = term.slopes(p)
            value, gradient, hessian = value + part[0], gradient + part[1], hessian + part[2]
        for place, centre, error in self.gaussians:
            pull = (p[place] - centre) / error
            value += 0.5 * pull**2
            gradient[place] += pull / error
            hessian[place, place] += 1 / error**2
        return value, gradient, hessian

    @cached_property
    def gaussians(self) -> list[tuple[int, float, float]]:
        """Place, value and error of every constraint."""
        found = [
            (self.names.index(one.name), 0.0, one.constraint)
            for one in self.nuisances
            if one.constraint is not None and one.name not in self.held
        ]
        return found + [(self.names.index(c.parameter), c.value, c.error) for c in self.constraints]

    @cached_property
    def _curves(self) -> list[CurveTerm]:
        return [
            CurveTerm(channel, self._places(channel.parameters), len(self.names))
            for channel in self.plain
        ]

    def _places(self, names: Sequence[str]) -> NDArray[np.int64]:
        return np.array([self.names.index(name) for name in names], np.int64)

    def _make_terms(self, reference: Array) -> list[SummaryTerm]:
        return [
            SummaryTerm(c, self._places(c.measurement.names), reference, len(self.names))
            for c in self.parts
        ]

    @property
    def terms(self) -> tuple[list[SummaryTerm], list[CurveTerm]]:
        """The parts of the likelihood, with covariances at the estimate."""
        _ = self.best
        return self._terms, self._curves

    @cached_property
    def best(self) -> Array:
        """The best values of all names; those that are held at their values."""
        start = np.zeros(len(self.names))
        count = len(self.grid.parameters)
        start[:count] = self.grid.bounds.mean(axis=1)
        for name, value in self.held.items():
            start[self.names.index(name)] = value
        best = start
        for number in range(REFERENCES):
            self._terms = self._make_terms(best)
            best = self._search(start) if number == 0 else self._descend(best)
        return best

    def _search(self, start: Array) -> Array:
        """The lowest of the minima found from several values of the parameters of interest."""
        count = len(self.interest)
        axes = [self.grid.parameters.index(name) for name in self.interest]
        values = [
            self.grid.bounds[a, 0] + self.grid.range[a] * (np.arange(n) + 0.5) / n
            for a, n in zip(axes, [STARTS.get(count, 3)] * count, strict=True)
        ]
        nuisance = self.free.copy()
        nuisance[: len(self.grid.parameters)] = False
        promised = []
        for point in product(*values):
            p = start.copy()
            p[axes] = point
            value, gradient, hessian = self.slopes(p)
            inverse = inverse_on(hessian, nuisance) if nuisance.any() else None
            step = np.zeros_like(p) if inverse is None else -inverse @ gradient
            promised.append((value + 0.5 * gradient @ step, p + step))
        promised.sort(key=lambda pair: pair[0])
        found = [self._descend(p) for _, p in promised[:2]]
        return min(found, key=lambda p: self.slopes(p)[0])

    def _descend(self, start: Array) -> Array:
        return minimise(self.slopes, start, self.low, self.high, self.free)

    @cached_property
    def _floor(self) -> float:
        return self.slopes(self.best)[0]

    @cached_property
    def at_bound(self) -> NDArray[np.bool_]:
        """Which of all names lie on a bound."""
        edge = 1e-9 * (self.high - self.low)
        return np.asarray((self.best < self.low + edge) | (self.best > self.high - edge))

    @cached_property
    def covariances(self) -> dict[str, Array]:
        """The covariance (names, names) of the best values from every source."""
        hessian = self.slopes(self.best)[2]
        response = inverse_on(hessian, self.free & ~self.at_bound)
        if response is None:
            return {"stat": np.full_like(hessian, np.nan)}
        scores: dict[str, Array] = {}
        for term in (*self._terms, *self._curves):
            for name, matrix in term.score_covariances(self.best).items():
                scores[name] = scores.get(name, 0.0) + matrix
        for one in self.nuisances:
            if one.constraint is not None and one.name not in self.held:
                place = self.names.index(one.name)
                scores[one.name] = np.zeros_like(hessian)
                scores[one.name][place, place] = 1 / one.constraint**2
        for constraint in self.constraints:
            place = self.names.index(constraint.parameter)
            matrix = scores.setdefault(constraint.source, np.zeros_like(hessian))
            matrix[place, place] += 1 / constraint.error**2
        return {name: response @ matrix @ response for name, matrix in scores.items()}

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the best values of all names."""
        return np.asarray(sum(self.covariances.values()))

    def crossings(self, place: int, level: float) -> list[tuple[float, bool]]:
        """The low and high end of the interval of a parameter, and whether a bound cuts each."""
        error = np.sqrt(self.covariance[place, place])
        if not np.isfinite(error) or error == 0:
            return [(float(self.low[place]), True), (float(self.high[place]), True)]
        rise = 0.5 * chi2_quantile(level, 1)
        found = []
        for sign in (-1.0, 1.0):
            reach, cut = self._reach([place], np.array([sign * error]), rise)
            found.append((float(self.best[place] + reach * sign * error), cut))
        return found

    def _reach(self, axes: list[int], step: Array, rise: float) -> tuple[float, bool]:
        """How many steps from the minimum the profile has risen by `rise`, and whether a bound is
        reached before."""
        room = np.where(step > 0, self.high[axes] - self.best[axes], self.low[axes] - self.best[axes])
        with np.errstate(divide="ignore", invalid="ignore"):
            most = float(np.min(np.where(step != 0, room / step, np.inf)))
        # Of a score whose variance is not its slope, the rise is stretched.
        stretch = self._stretch(axes, step)
        state = {"start": self.best}

        def excess(reach: float) -> float:
            point = dict(zip(axes, self.best[axes] + reach * step, strict=True))
            value, state["start"] = self._profiled(point, state["start"])
            return value - self._floor - rise * stretch

        below, above = 0.0, min(np.sqrt(2 * rise), most)
        while excess(above) < 0:
            if above >= most:
                return most, True
            below, above = above, min(1.3 * above, most)
            if above > FARTHEST:
                return min(above, most), above >= most
        return float(brentq(excess, below, above, xtol=1e-4)), False

    def _stretch(self, axes: list[int], step: Array) -> float:
        """The curvature of the profile along a step of one standard deviation; 1 by right."""
        moves = self.free & ~self.at_bound
        inverse = inverse_on(self.slopes(self.best)[2], moves)
        if inverse is None:
            return 1.0
        naive = inverse[np.ix_(axes, axes)]
        return float(step @ np.linalg.solve(naive, step)) if np.linalg.det(naive) > 0 else 1.0

    def _profiled(self, held: dict[int, float], start: Array | None = None) -> tuple[float, Array]:
        """The least value with some parameters held, by place, and where it is."""
        p = self.best.copy() if start is None else start.copy()
        free = self.free.copy()
        for place, value in held.items():
            p[place] = value
            free[place] = False
        if free.any():
            p = minimise(self.slopes, p, self.low, self.high, free)
        return self.slopes(p)[0], p

    @cached_property
    def _estimate(self) -> MeasurementEstimate:
        return make_estimate(self)

    def _value(self, args: Sequence[float]) -> float:
        return self.slopes(self._whole(args))[0]

    def _grad(self, args: Sequence[float]) -> Array:
        return self.slopes(self._whole(args))[1][self.free]

    def _whole(self, args: Sequence[float]) -> Array:
        p = self.best.copy()
        p[self.free] = args
        return p

    def _place(self, parameter: str) -> int:
        if parameter not in self.parameters:
            raise InputError(
                f"there is no parameter {parameter!r}; there is {', '.join(self.parameters)}"
            )
        return self.names.index(parameter)

    def _with(self, **changes: Any) -> "MeasurementLikelihood":
        fields = {
            "parts": self.parts, "plain": self.plain, "constraints": self.constraints,
            "held": self.held,
        }  # fmt: skip
        return MeasurementLikelihood(**{**fields, **changes})


def _nuisances(parts: Sequence[SummaryChannel], grid: Grid) -> tuple[Nuisance, ...]:
    """The nuisance parameters of all channels, each once."""
    found: dict[str, Nuisance] = {}
    for part in parts:
        for one in part.measurement.nuisances:
            if one.name in grid.parameters:
                raise InputError(f"{one.name} is a parameter of one model and a systematic of another")
            if found.setdefault(one.name, one).constraint != one.constraint:
                raise InputError(
                    f"{one.name} has a constraint of {found[one.name].constraint} and of "
                    f"{one.constraint} in different models; give it the same in both, or two names"
                )
    return tuple(found.values())
