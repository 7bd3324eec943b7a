"""Value, minimum, profiles and covariances of a likelihood of all parameters together."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from gridless.curves.intervals import chi2_quantile
from gridless.curves.newton import inverse_on, minimise
from gridless.errors import InputError
from gridless.likelihood.channel import Channel, Constraint
from gridless.likelihood.estimate import STAT, correlation
from gridless.measurement.measurement import FREE, Nuisance
from gridless.measurement.term import CurveTerm, SummaryChannel, SummaryTerm
from gridless.measurement.turning import other_side, turning_points
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

STARTS = {1: 25, 2: 7, 3: 5}  # values of each parameter of interest that the search begins with
# Estimates at which the covariance of the summaries is taken, one after the other, and how many at
# the most where they do not settle.
REFERENCES = 3
MOST_REFERENCES = 12
SETTLED = 0.3  # errors that an estimate may be from where its covariance is taken
MOST = (
    10 * FREE
)  # units of a variation: where nothing holds a nuisance parameter, it goes no farther
EDGE = 1e-9  # of the range: closer to a bound than this is on it
ROUNDING = 1e-6  # units of log likelihood, and of a correlation, below which numbers are equal
TWO_ERRORS = 2.0  # standard deviations: a turning point that far away is hardly seen
FARTHEST = 40.0  # errors from the minimum that the end of an interval is looked for


class Joint:
    """The likelihood as a function of the values of all names.

    Parameters
    ----------
    parts, plain : sequence of SummaryChannel, of Channel
        The events.
    grid, nuisances : Grid, sequence of Nuisance
        Parameters of interest and nuisance parameters; `names` has both, in this order.
    constraints : sequence of Constraint
        From elsewhere.
    held : mapping from str to float
        Names that do not move.
    """

    def __init__(
        self,
        parts: Sequence[SummaryChannel],
        plain: Sequence[Channel],
        grid: Grid,
        nuisances: Sequence[Nuisance],
        constraints: Sequence[Constraint],
        held: Mapping[str, float],
    ) -> None:
        self.parts, self.plain, self.grid, self.nuisances = parts, plain, grid, nuisances
        self.constraints, self.held = constraints, held
        self.names = (*grid.parameters, *(one.name for one in nuisances))
        self.low = np.concatenate([grid.bounds[:, 0], np.full(len(nuisances), -np.inf)])
        self.high = np.concatenate([grid.bounds[:, 1], np.full(len(nuisances), np.inf)])
        self.free = np.array([name not in held for name in self.names])

    @property
    def interest(self) -> tuple[str, ...]:
        """The parameters of interest that are not held."""
        return tuple(name for name in self.grid.parameters if name not in self.held)

    def place(self, name: str) -> int:
        """The index of a parameter in `names`."""
        return self.names.index(name)

    def slopes(self, p: Array, observed: bool = False) -> tuple[float, Array, Array]:
        """Value, gradient and (expected or observed) second derivatives at values of all names."""
        value, gradient, hessian = 0.0, np.zeros(len(p)), np.zeros((len(p), len(p)))
        for term in self._all:
            part = term.slopes(p, observed)
            value, gradient, hessian = value + part[0], gradient + part[1], hessian + part[2]
        for place, centre, error in [*self.gaussians, *self.unconstrained]:
            pull = (p[place] - centre) / error
            value += 0.5 * pull**2
            gradient[place] += pull / error
            hessian[place, place] += 1 / error**2
        return value, gradient, hessian

    @property
    def _all(self) -> list[SummaryTerm | CurveTerm]:
        return [*self._terms, *self._curves]

    @cached_property
    def gaussians(self) -> list[tuple[int, float, float]]:
        """Place, value and error of every constraint."""
        found = [
            (self.place(one.name), 0.0, one.constraint)
            for one in self.nuisances
            if one.constraint is not None and one.name not in self.held
        ]
        return found + [(self.place(c.parameter), c.value, c.error) for c in self.constraints]

    @cached_property
    def unconstrained(self) -> list[tuple[int, float, float]]:
        """Place, centre and width of weak Gaussians that hold free nuisance parameters near 0: so
        wide that they matter only for parameters without any information in the events."""
        return [
            (self.place(one.name), 0.0, one.width)
            for one in self.nuisances
            if one.constraint is None and one.name not in self.held
        ]

    @cached_property
    def _curves(self) -> list[CurveTerm]:
        return [
            CurveTerm(channel, self._places(channel.parameters), len(self.names))
            for channel in self.plain
        ]

    def _places(self, names: Sequence[str]) -> NDArray[np.int64]:
        return np.array([self.place(name) for name in names], np.int64)

    def terms_at(self, p: Array) -> list[SummaryTerm]:
        """The terms of the summaries as they would be if the estimate were p."""
        _ = self.best
        return self._make_terms(p, self.errors(p))

    def _make_terms(self, reference: Array, errors: Array) -> list[SummaryTerm]:
        return [
            SummaryTerm(c, self._places(c.measurement.names), reference, errors) for c in self.parts
        ]

    @property
    def _constraints(self) -> Array:
        """The standard deviation of every parameter's constraint; 0 for those without one."""
        found = [one.constraint or 0.0 for one in self.nuisances]
        return np.where(self.free, np.array([*np.zeros(len(self.grid.parameters)), *found]), 0.0)

    def errors(self, p: Array) -> Array:
        """The errors of all parameters from the curvature of the likelihood, and at most those from
        their constraints."""
        inverse = inverse_on(self.slopes(p)[2], self.free)
        limits = self._constraints
        if inverse is None:
            return limits
        errors = np.sqrt(np.diag(inverse))
        return np.where(limits > 0, np.minimum(errors, limits), errors)

    @property
    def terms(self) -> tuple[list[SummaryTerm], list[CurveTerm]]:
        """The parts of the likelihood, with covariances at the estimate."""
        _ = self.best
        return self._terms, self._curves

    @cached_property
    def best(self) -> Array:
        """The best values of all names; those that are held at their values."""
        reference, errors = self._start, self._constraints
        self._terms = self._make_terms(reference, errors)
        best = self._search(reference)
        for number in range(1, MOST_REFERENCES):
            errors = self.errors(best)
            if number < REFERENCES:
                reference = best
            elif (np.abs(best - reference) > SETTLED * errors)[self.free].any():
                # Two estimates may alternate, each far from the reference of its covariance.
                reference = reference + (best - reference) / (number - 1)
            else:
                break
            self._terms = self._make_terms(reference, errors)
            best = self._lowest(best, self.free)
        return best

    @cached_property
    def _turns(self) -> dict[int, float]:
        """Where the effects of nuisance parameters turn over, with the covariance of the start."""
        start = self._start
        return turning_points(self._terms, self.slopes(start)[2], start, self.free)

    def two_sided(self) -> tuple[str, ...]:
        """The nuisance parameters whose effect turns over within two errors of the estimate."""
        errors = self.errors(self.best)
        return tuple(
            self.names[place]
            for place, turn in self._turns.items()
            if abs(self.best[place] - turn) < TWO_ERRORS * errors[place]
        )

    @property
    def _start(self) -> Array:
        """The middle of the range, nuisance parameters at 0; what is held at its value."""
        start = np.zeros(len(self.names))
        start[: len(self.grid.parameters)] = self.grid.bounds.mean(axis=1)
        for name, value in self.held.items():
            start[self.place(name)] = value
        return start

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
        # The two least, and every one that is less than its neighbours.
        heights = np.array([value for value, _ in promised])
        low = [k for k in range(len(heights)) if heights[k] <= heights[max(k - 1, 0) : k + 2].min()]
        order = heights.argsort(kind="stable")
        chosen = {*order[:2].tolist(), *(low if len(axes) == 1 else ())}
        found = [self._lowest(promised[k][1], self.free) for k in sorted(chosen)]
        found.sort(key=lambda p: self.slopes(p)[0])
        return found[0]

    def _observed(self, p: Array) -> tuple[float, Array, Array]:
        return self.slopes(p, observed=True)

    def _descend(self, start: Array, free: NDArray[np.bool_]) -> Array:
        """The minimum next to a start, over the parameters that are free."""
        low, high = self.low.clip(min=-MOST), self.high.clip(max=MOST)
        return minimise(self._observed, start, low, high, free)

    def _lowest(self, start: Array, free: NDArray[np.bool_]) -> Array:
        """The lower one of the minimum next to a start and of those on the other side of where the
        effect of a nuisance parameter turns over."""
        best = self._descend(start, free)
        if not self._turns:
            return best
        least = self.slopes(best)[0]
        for place, turn in self._turns.items():
            if not free[place]:
                continue
            other = self._descend(other_side(best, place, turn), free)
            value = self.slopes(other)[0]
            if value < least - ROUNDING:
                best, least = other, value
        return best

    @cached_property
    def floor(self) -> float:
        """The least value, at the best values of all names."""
        return self.slopes(self.best)[0]

    @cached_property
    def at_bound(self) -> NDArray[np.bool_]:
        """Which parameters lie on a bound."""
        bounded = np.isfinite(self.high)
        edge = np.where(bounded, EDGE * np.where(bounded, self.high - self.low, 1.0), 0.0)
        return np.asarray((self.best < self.low + edge) | (self.best > self.high - edge))

    @cached_property
    def covariances(self) -> dict[str, Array]:
        """The covariance (names, names) of the best values from every source."""
        hessian = self.slopes(self.best)[2]
        response = inverse_on(hessian, self.free & ~self.at_bound)
        if response is None:
            return {STAT: np.full_like(hessian, np.nan)}
        scores: dict[str, Array] = {}
        for term in self._all:
            for name, matrix in term.score_covariances(self.best).items():
                scores[name] = scores.get(name, 0.0) + matrix
        for place, _, width in self.unconstrained:
            scores[STAT][place, place] += 1 / width**2
        for one in self.nuisances:
            if one.constraint is not None and one.name not in self.held:
                place = self.place(one.name)
                scores[one.name] = np.zeros_like(hessian)
                scores[one.name][place, place] = 1 / one.constraint**2
        for constraint in self.constraints:
            place = self.place(constraint.parameter)
            matrix = scores.setdefault(constraint.source, np.zeros_like(hessian))
            matrix[place, place] += 1 / constraint.error**2
        return {name: response @ matrix @ response for name, matrix in scores.items()}

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the best values of all names."""
        return np.asarray(sum(self.covariances.values()))

    def error(self, place: int) -> float:
        """The standard deviation of a parameter; NaN where nothing determines it."""
        # A sum of products of huge numbers may be rounded to less than 0.
        return float(np.sqrt(np.maximum(self.covariance[place, place], 0.0)))

    def crossings(self, place: int, level: float) -> list[tuple[float, bool]]:
        """The low and high end of the interval of a parameter, and whether a bound cuts each."""
        at_bound = self.at_bound[place]
        error = self.errors(self.best)[place] if at_bound else self.error(place)
        if not np.isfinite(error) or error == 0:
            return [(float(self.low[place]), True), (float(self.high[place]), True)]
        rise = 0.5 * chi2_quantile(level, 1)
        found = []
        for sign in (-1.0, 1.0):
            reach, cut = self.reach([place], np.array([sign * error]), rise)
            found.append((float(self.best[place] + reach * sign * error), cut))
        return found

    def reach(self, axes: list[int], step: Array, rise: float) -> tuple[float, bool]:
        """How many steps from the minimum the profile has risen by `rise`, and whether a bound is
        reached before."""
        room = np.where(
            step > 0, self.high[axes] - self.best[axes], self.low[axes] - self.best[axes]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            most = float(np.min(np.where(step != 0, room / step, np.inf)))
        # Where the variance of the score differs from its slope, the rise is stretched.
        stretch = self._stretch(axes, step)
        state = {"start": self.best}
        # Each point is profiled once: from another start it may end at another minimum.
        known = {0.0: -rise * stretch}

        def excess(reach: float) -> float:
            if reach in known:
                return known[reach]
            point = dict(zip(axes, self.best[axes] + reach * step, strict=True))
            value, state["start"] = self.profiled(point, state["start"])
            known[reach] = value - self.floor - rise * stretch
            return known[reach]

        below, above = 0.0, min(np.sqrt(2 * rise), most)
        while (found := excess(above)) < 0:
            if abs(found) < ROUNDING:
                break
            if above >= most:
                return most, True
            below, above = above, min(1.3 * above, most)
            if above > FARTHEST:
                return min(above, most), above >= most
        if abs(found) < ROUNDING:
            return float(above), False
        return float(brentq(excess, below, above, xtol=1e-3)), False

    def _stretch(self, axes: list[int], step: Array) -> float:
        """The curvature of the profile along a step of one standard deviation: 1 where the variance
        of the score is its slope."""
        moves = self.free & ~self.at_bound
        inverse = inverse_on(self.slopes(self.best)[2], moves)
        if inverse is None:
            return 1.0
        naive = inverse[np.ix_(axes, axes)]
        return float(step @ np.linalg.solve(naive, step)) if np.linalg.det(naive) > 0 else 1.0

    def profiled(self, held: dict[int, float], start: Array | None = None) -> tuple[float, Array]:
        """The least value with some parameters held, by place, and where it is."""
        p = self.best.copy() if start is None else start.copy()
        free = self.free.copy()
        for place, value in held.items():
            p[place] = value
            free[place] = False
        if free.any():
            p = self._lowest(p, free)
        return self.slopes(p)[0], p

    def contour(self, axes: list[int], level: float, points: int) -> Array:
        """A closed curve (points + 1, 2) around the values of two parameters allowed at a level."""
        shape = self.covariance[np.ix_(axes, axes)]
        if not np.isfinite(shape).all():
            raise InputError("contour: the likelihood has no minimum inside the bounds")
        if not abs(correlation(shape)[0, 1]) < 1 - ROUNDING:
            raise InputError(
                "contour: one of the two is at a bound, or events do not tell them apart; "
                "constrain or fix one"
            )
        root = np.linalg.cholesky(shape)
        rise = 0.5 * chi2_quantile(level, 2)
        found = []
        for angle in np.linspace(0, 2 * np.pi, points, endpoint=False):
            step = root @ [np.cos(angle), np.sin(angle)]
            found.append(self.best[axes] + self.reach(axes, step, rise)[0] * step)
        return np.array([*found, found[0]]).clip(self.low[axes], self.high[axes])


def common_nuisances(parts: Sequence[SummaryChannel], grid: Grid) -> tuple[Nuisance, ...]:
    """The nuisance parameters of all channels, each once."""
    found: dict[str, Nuisance] = {}
    for part in parts:
        for one in part.measurement.nuisances:
            if one.name in grid.parameters:
                raise InputError(
                    f"{one.name} is a parameter of one model and a systematic of another"
                )
            if found.setdefault(one.name, one).constraint != one.constraint:
                raise InputError(
                    f"{one.name} has a constraint of {found[one.name].constraint} and of "
                    f"{one.constraint} in different models; give it the same in both, or two names"
                )
    return tuple(found.values())
