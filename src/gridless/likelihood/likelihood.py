"""The likelihood of a set of observed events as a continuous function of theta."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from iminuit.cost import Cost
from scipy.stats import chi2

from gridless.errors import InputError
from gridless.likelihood import chebyshev, minimum
from gridless.likelihood.estimate import (
    SIDES,
    SIMULATION,
    STAT,
    Estimate,
    ParameterEstimate,
)
from gridless.likelihood.warnings import EstimateWarning
from gridless.model.trust import Trust
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

LEVEL = 0.682689492137086


@dataclass(frozen=True)
class Curves:
    """What a likelihood is made of: functions of theta as Chebyshev coefficients, one axis per
    parameter, on the unit box.

    `total` is the likelihood itself. `scores` (parameters, parameters, ...) is
    sum_i w_i^2 s_i s_i^T, s_i = d log p / d t, for weighted events. `replicas` (replicas, ...) is
    what each bootstrap replica of the simulation would change in `total`.
    """

    total: Array
    scores: Array | None = None
    replicas: Array | None = None

    def __add__(self, other: "Curves") -> "Curves":
        return Curves(
            chebyshev.add(self.total, other.total),
            _add(self.scores, other.scores),
            _add(self.replicas, other.replicas),
        )

    def restrict(self, axis: int, t: float) -> "Curves":
        """The same with one parameter held at t."""

        def each(c: Array | None, leading: int) -> Array | None:
            return None if c is None else chebyshev.restrict(c, axis + leading, t)

        scores = self.scores
        if scores is not None:
            scores = np.delete(np.delete(scores, axis, 0), axis, 1)
        total = chebyshev.restrict(self.total, axis, t)
        return Curves(total, each(scores, 2), each(self.replicas, 1))


class Likelihood(Cost):  # type: ignore[misc]  # iminuit's Cost is untyped
    """-sum_i w_i log [p(theta | x_i) / q(theta)], with q = 1 for prior="flat".

    Call it with theta; add likelihoods of different events of one model; give it to iminuit, alone
    or added to iminuit's own costs. It is kept as Chebyshev coefficients in theta, so nothing is
    evaluated on the events again. `fix` and `constrain` give the likelihood with a parameter fixed,
    or with what another measurement says of it.

    Notes
    -----
    Intervals are where the likelihood, with all other parameters at their best, has risen by half
    the chi-square quantile (Wilks). For weighted events that rise is stretched by the ratio of the
    sandwich variance H^-1 S H^-1 to H^-1, H the second derivatives, S the sum of w_i^2 s_i s_i^T.
    """

    __slots__ = ("curves", "events", "grid", "trust")

    def __init__(
        self, curves: Curves | Array, grid: Grid, events: int, trust: Trust | None = None
    ) -> None:
        limits = {name: tuple(b) for name, b in zip(grid.parameters, grid.bounds, strict=True)}
        super().__init__(limits, 0)
        self.curves = curves if isinstance(curves, Curves) else Curves(np.asarray(curves))
        self.grid, self.events, self.trust = grid, events, trust

    @property
    def coefficients(self) -> Array:
        """The likelihood as Chebyshev coefficients on the unit box."""
        return self.curves.total

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Likelihood):
            return super().__add__(other)
        same = self.grid.parameters == other.grid.parameters
        if not (same and np.array_equal(self.grid.bounds, other.grid.bounds)):
            raise InputError(
                f"likelihoods of {self.grid.describe()} and of {other.grid.describe()} do not add; "
                "use models with the same parameters and bounds, or add them in iminuit"
            )
        if (self.curves.scores is None) != (other.curves.scores is None):
            raise InputError(
                "a likelihood of weighted events and one of unweighted events do not add; "
                "give weights=1 for every event of the second"
            )
        trust = self.trust + other.trust if self.trust and other.trust else None
        events = self.events + other.events
        return Likelihood(self.curves + other.curves, self.grid, events, trust)

    def __radd__(self, other: Any) -> Any:
        # sum([a, b]) starts from 0.
        return self if isinstance(other, int) and other == 0 else super().__radd__(other)

    def __repr__(self) -> str:
        return f"Likelihood of {self.grid.describe()} from {self.events:,} events"

    def _value(self, args: Sequence[float]) -> float:
        return minimum.value(self.coefficients, self.grid.to_unit(args))

    def _grad(self, args: Sequence[float]) -> Array:
        slopes = minimum.gradient(self.coefficients, self.grid.to_unit(args))
        return np.asarray(slopes / self.grid.range)

    def _has_grad(self) -> bool:
        return True

    def _ndata(self) -> float:
        return np.inf

    def _errordef(self) -> float:
        return 0.5

    def scan(self, theta: Any) -> Array:
        """The likelihood at each of the values, less its minimum.

        With several parameters they are on the last axis of theta.
        """
        points = np.asarray(theta, float)
        t = self.grid.to_unit(points[..., None] if len(self.grid.parameters) == 1 else points)
        floor = minimum.value(self.coefficients, self._best())
        return np.asarray(chebyshev.evaluate(self.coefficients, t) - floor)

    def profile(self, parameter: str, theta: Any) -> Array:
        """The likelihood at each value of one parameter, the others at their best, less its
        minimum."""
        axis, best = self._axis(parameter), self._best()
        function = minimum.profile(self.coefficients, axis, best)
        low, high = self.grid.bounds[axis]
        t = (np.asarray(theta, float) - low) / (high - low)
        floor = minimum.value(self.coefficients, best)
        return np.array([function(float(one)) - floor for one in t.ravel()]).reshape(t.shape)

    def fix(self, **values: float) -> "Likelihood":
        """The likelihood of the other parameters with the named ones held at these values."""
        curves, grid, trust = self.curves, self.grid, self.trust
        for name, theta in values.items():
            axis = self._axis(name, grid)
            if len(grid.parameters) == 1:
                raise InputError(f"fix: {name} is the only parameter left; nothing to estimate")
            low, high = grid.bounds[axis]
            if not low <= theta <= high:
                raise InputError(f"fix: {name} = {theta:g} is outside {low:g} to {high:g}")
            t = float((theta - low) / (high - low))
            curves = curves.restrict(axis, t)
            trust = trust.restrict(axis, t) if trust else None
            grid = Grid(
                np.delete(grid.values, axis, 1),
                np.delete(grid.bounds, axis, 0),
                tuple(n for n in grid.parameters if n != name),
            )
        return Likelihood(curves, grid, self.events, trust)

    def constrain(self, parameter: str, value: float, error: float) -> "Likelihood":
        """The likelihood times a Gaussian of a parameter: + (theta - value)^2 / 2 error^2."""
        axis = self._axis(parameter)
        if not error > 0:
            raise InputError(
                f"constrain: an error of {error:g} for {parameter}; give a positive one"
            )
        count = len(self.grid.parameters)
        low, high = self.grid.bounds[axis]
        scale = (high - low) / error
        offset = (value - low) / (high - low)
        sizes = [1] * count
        sizes[axis] = 3
        parabola = 0.5 * (scale * (chebyshev.points(3) - offset)) ** 2
        extra = chebyshev.coefficients(parabola).reshape(sizes)
        curves = replace(self.curves, total=chebyshev.add(self.curves.total, extra))
        if curves.scores is not None:
            scores = curves.scores.copy()
            scores[(axis, axis, *(0,) * count)] += scale**2
            curves = replace(curves, scores=scores)
        return Likelihood(curves, self.grid, self.events, self.trust)

    def maximum(self) -> Estimate:
        """The most likely theta, with intervals where the likelihood rises by 1/2."""
        best = self._best()
        ends, cut = self._intervals(best, LEVEL)
        pinned = minimum.at_bound(best)
        scale = np.outer(self.grid.range, self.grid.range)
        covariances = {STAT: self._covariance(best) * scale}
        simulation = self._simulation(best)
        if simulation is not None:
            covariances[SIMULATION] = simulation * scale
        intervals = self.grid.from_unit(ends.T).T
        results = []
        for p, name in enumerate(self.grid.parameters):
            low, high = intervals[p].tolist()
            budget = {STAT: 0.5 * (high - low)}
            if simulation is not None and not pinned[p]:
                budget[SIMULATION] = float(np.sqrt(covariances[SIMULATION][p, p]))
            results.append(
                ParameterEstimate(
                    name=name,
                    value=float(self.grid.from_unit(best)[p]),
                    stat_interval=(low, high),
                    budget=budget,
                    bounds=tuple(self.grid.bounds[p].tolist()),
                    at_bound=bool(pinned[p]),
                    stat_cut=tuple(cut[p].tolist()),
                )
            )
        estimate = Estimate(tuple(results), covariances, self.events)
        warnings = _bounds_warnings(estimate) + _extrapolation(estimate, self.grid)
        if self.trust is None:
            return replace(estimate, warnings=tuple(warnings))
        warnings += self.trust.warnings(estimate, best)
        return replace(
            estimate,
            warnings=tuple(warnings),
            p_value=self.trust.p_value(best),
            outside=self.trust.filling.outside / self.trust.filling.events,
        )

    def interval(
        self, level: float = LEVEL, parameter: str | None = None, *, stat: bool = False
    ) -> tuple[float, float]:
        """(low, high) of a parameter at a confidence level, cut at the bounds.

        The ends are where the likelihood has risen by half the chi-square quantile of one degree of
        freedom (Wilks): by 1.92 for level 0.95. The uncertainty from simulation is added in
        quadrature to each side, unless `stat` is true.
        """
        if parameter is None and len(self.grid.parameters) > 1:
            names = " or ".join(repr(name) for name in self.grid.parameters)
            raise InputError(f"interval: several parameters; say which: parameter={names}")
        p = 0 if parameter is None else self._axis(parameter)
        best = self._best()
        ends, cut = self._intervals(best, check_level(level))
        (bottom, top), size = self.grid.bounds[p], self.grid.range[p]
        low, high = bottom + ends[p] * size
        value = bottom + best[p] * size
        simulation = None if stat or minimum.at_bound(best)[p] else self._simulation(best)
        if simulation is not None:
            other = np.sqrt(simulation[p, p] * chi2.ppf(level, 1)) * size
            if not cut[p, 0]:
                low = max(value - np.hypot(value - low, other), bottom)
            if not cut[p, 1]:
                high = min(value + np.hypot(high - value, other), top)
        return float(low), float(high)

    def contour(self, first: str, second: str, level: float = LEVEL, points: int = 64) -> Array:
        """A closed curve (points + 1, 2) around the values of two parameters allowed at `level`.

        The likelihood, other parameters at their best, has risen there by half the chi-square
        quantile of two degrees of freedom: by 1.15 for 68 percent. Cut at the bounds.
        """
        axes = [self._axis(first), self._axis(second)]
        if axes[0] == axes[1]:
            raise InputError(f"contour: {first} twice; give two parameters")
        best = self._best()
        shape = self._covariance(best)[np.ix_(axes, axes)]
        naive = minimum.covariance(self.coefficients, best)[np.ix_(axes, axes)]
        if not np.isfinite(shape).all():
            raise InputError("contour: the likelihood has no minimum inside the bounds")
        stretch = np.sqrt(np.linalg.det(shape) / np.linalg.det(naive))
        rise = 0.5 * float(chi2.ppf(check_level(level), 2)) * stretch
        level_at = minimum.value(self.coefficients, best) + rise
        directions = np.linalg.cholesky(shape)
        curve = []
        for angle in np.linspace(0, 2 * np.pi, points, endpoint=False):
            step = directions @ [np.cos(angle), np.sin(angle)]
            curve.append(minimum.ray(self.coefficients, axes, best, step, level_at))
        curve.append(curve[0])
        return np.asarray(self.grid.bounds[axes, 0] + np.array(curve) * self.grid.range[axes])

    def _axis(self, parameter: str, grid: Grid | None = None) -> int:
        names = (grid or self.grid).parameters
        if parameter not in names:
            raise InputError(f"there is no parameter {parameter!r}; there is {', '.join(names)}")
        return names.index(parameter)

    def _best(self) -> Array:
        """The minimum in units of the range."""
        return minimum.lowest(self.coefficients)

    def _covariance(self, best: Array) -> Array:
        """The statistical covariance in units of the range: H^-1, or H^-1 S H^-1."""
        inverse = minimum.covariance(self.coefficients, best)
        if self.curves.scores is None:
            return inverse
        return inverse @ self._scores(best) @ inverse

    def _scores(self, best: Array) -> Array:
        scores = self.curves.scores
        assert scores is not None
        return np.array([[minimum.value(c, best) for c in row] for row in scores])

    def _simulation(self, best: Array) -> Array | None:
        """The covariance from finite simulation: how far replicas of it would move the minimum.

        A parameter at a bound stays there; None where the likelihood has no minimum in the others.
        """
        if self.curves.replicas is None:
            return None
        free = ~minimum.at_bound(best)
        matrix = minimum.hessian(self.coefficients, best)[np.ix_(free, free)]
        if not free.any() or np.linalg.eigvalsh(matrix).min() <= 0:
            return None
        inverse = np.linalg.inv(matrix)
        slopes = np.array([minimum.gradient(c, best)[free] for c in self.curves.replicas])
        covariance = np.zeros((len(best), len(best)))
        covariance[np.ix_(free, free)] = np.cov((slopes @ inverse).T, ddof=1)
        return covariance

    def _intervals(self, best: Array, level: float) -> tuple[Array, Array]:
        """Ends (parameters, 2) in units of the range, and whether a bound cut them."""
        count = len(best)
        ends, cut = np.empty((count, 2)), np.empty((count, 2), dtype=bool)
        naive = np.diag(minimum.covariance(self.coefficients, best))
        stretch = np.ones(count)
        if self.curves.scores is not None and np.isfinite(naive).all():
            stretch = np.diag(self._covariance(best)) / naive
        floor = minimum.value(self.coefficients, best)
        for p in range(count):
            rise = 0.5 * float(chi2.ppf(level, 1)) * stretch[p]
            width = np.sqrt(2 * rise * naive[p]) if np.isfinite(naive[p]) else 0.05
            step = min(0.35 * width, 0.05)
            for side, sign in enumerate((-1, 1)):
                function = minimum.profile(self.coefficients, p, best)
                ends[p, side], cut[p, side] = minimum.crossing(
                    function, float(best[p]), floor + rise, sign * step
                )
        return ends, cut


def _add(a: Array | None, b: Array | None) -> Array | None:
    """The sum of two stacks of polynomials of equal number; None where either is."""
    return None if a is None or b is None else chebyshev.add(a, b)


def _bounds_warnings(estimate: Estimate) -> list[EstimateWarning]:
    """What the bounds do to an estimate."""
    warnings = []
    for one in estimate.results:
        low, high = one.bounds
        for cut, bound, end in zip(one.cut, one.bounds, SIDES, strict=True):
            if abs(one.value - bound) < 1e-9 * (high - low):
                text = f"{one.name} is at the bound {bound:g}; the true value may lie beyond"
                warnings.append(EstimateWarning("at_bound", text))
            elif cut:
                text = f"the {end} end of the interval of {one.name} is cut by the bound {bound:g}"
                warnings.append(EstimateWarning("cut_by_bound", text))
            elif abs(one.value - bound) < 2 * one.stat:
                text = f"{one.name} is within two errors of the bound {bound:g}"
                warnings.append(EstimateWarning("near_bound", text))
    return warnings


def _extrapolation(estimate: Estimate, grid: Grid) -> list[EstimateWarning]:
    """Whether an estimate lies beyond the outermost templates."""
    if not len(grid.values):
        return []
    warnings = []
    for p, one in enumerate(estimate.results):
        low, high = grid.values[:, p].min(), grid.values[:, p].max()
        # Half a gap is what the paper's grid leaves beside the outermost template.
        margin = 0.51 * grid.spacing * grid.range[p]
        if not low - margin <= one.value <= high + margin:
            text = f"{one.name} is beyond the outermost templates, {low:g} and {high:g}"
            warnings.append(EstimateWarning("extrapolated", text))
    return warnings


def check_level(level: float) -> float:
    """The level itself, if it is one."""
    if not 0 < level < 1:
        raise InputError(f"level: {level}; give a number between 0 and 1, such as 0.95")
    return level
