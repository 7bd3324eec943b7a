"""The likelihood of a set of observed events as a continuous function of theta."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from iminuit.cost import Cost
from scipy.optimize import brentq
from scipy.stats import chi2

from gridless import chebyshev
from gridless.arrays import Array
from gridless.errors import InputError
from gridless.estimate import Estimate
from gridless.grid import Grid

_SCAN = np.linspace(0, 1, 2001)


class Likelihood(Cost):  # type: ignore[misc]  # iminuit's Cost is untyped
    """-sum_i w_i log [p(theta | x_i) / q(theta)], with q = 1 for prior="flat".

    Call it with theta; add likelihoods of different events of one model; give it to iminuit, alone
    or added to iminuit's own costs. It is kept as Chebyshev coefficients in theta, so nothing is
    evaluated on the events again. A flat posterior counts as 0.

    Notes
    -----
    For weighted events the curvature does not give the variance: the intervals use Wilks' theorem
    with a threshold stretched by the sandwich factor sum_i w_i^2 s_i^2 / sum_i (-w_i s_i'), where
    s_i = d log p / d theta at the estimate.
    """

    __slots__ = ("coefficients", "events", "grid", "scores")

    def __init__(
        self, coefficients: Array, grid: Grid, events: int, scores: Array | None = None
    ) -> None:
        low, high = (float(bound) for bound in grid.bounds[0])
        super().__init__({grid.parameters[0]: (low, high)}, 0)
        self.coefficients, self.grid, self.events = coefficients, grid, events
        # Coefficients of sum_i (w_i s_i)^2 in units of the range; None for unweighted events.
        self.scores = scores

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Likelihood):
            return super().__add__(other)
        same = self.grid.parameters == other.grid.parameters
        if not (same and np.array_equal(self.grid.bounds, other.grid.bounds)):
            raise InputError(
                f"likelihoods of {_describe(self.grid)} and of {_describe(other.grid)} do not add; "
                "use models with the same parameter and bounds, or add them in iminuit"
            )
        if (self.scores is None) != (other.scores is None):
            raise InputError(
                "a likelihood of weighted events and one of unweighted events do not add; "
                "give weights=1 for every event of the second"
            )
        scores = None
        if self.scores is not None and other.scores is not None:
            scores = chebyshev.add(self.scores, other.scores)
        total = chebyshev.add(self.coefficients, other.coefficients)
        return Likelihood(total, self.grid, self.events + other.events, scores)

    def __radd__(self, other: Any) -> Any:
        # sum([a, b]) starts from 0.
        return self if isinstance(other, int) and other == 0 else super().__radd__(other)

    def __repr__(self) -> str:
        return f"Likelihood of {_describe(self.grid)} from {self.events:,} events"

    def _value(self, args: Sequence[float]) -> float:
        return float(chebyshev.evaluate(self.coefficients, self._unit(args[0])))

    def _grad(self, args: Sequence[float]) -> Array:
        slope = chebyshev.evaluate(chebyshev.derivative(self.coefficients), self._unit(args[0]))
        return np.array([slope / self.grid.range[0]])

    def _has_grad(self) -> bool:
        return True

    def _ndata(self) -> float:
        return np.inf

    def _errordef(self) -> float:
        return 0.5

    def scan(self, theta: Any) -> Array:
        """The likelihood at each of the values, less its minimum."""
        t = self.grid.to_unit(np.asarray(theta, float)[..., None])[..., 0]
        lowest = chebyshev.evaluate(self.coefficients, self._best())
        return np.asarray(chebyshev.evaluate(self.coefficients, t) - lowest)

    def maximum(self) -> Estimate:
        """The most likely theta, with the interval where the likelihood rises by 1/2."""
        best = self._best()
        low, high, cut_low, cut_high = self._crossings(best, 0.5)
        edge = 1e-9
        value, theta_low, theta_high = self.grid.from_unit([[best], [low], [high]])[:, 0]
        return Estimate(
            value=float(value),
            interval=(float(theta_low), float(theta_high)),
            at_bound=best < edge or best > 1 - edge,
            cut=(cut_low, cut_high),
            events=self.events,
            parameter=self.grid.parameters[0],
            bounds=(float(self.grid.bounds[0, 0]), float(self.grid.bounds[0, 1])),
        )

    def interval(self, level: float = 0.6827) -> tuple[float, float]:
        """(low, high) at a confidence level by Wilks' theorem, cut at the bounds.

        The ends are where the likelihood has risen by half the chi-square quantile of one degree of
        freedom: by 1.92 for level 0.95.
        """
        if not 0 < level < 1:
            raise InputError(f"level: {level}; give a number between 0 and 1, such as 0.95")
        low, high, _, _ = self._crossings(self._best(), 0.5 * float(chi2.ppf(level, 1)))
        ends = self.grid.from_unit([[low], [high]])[:, 0]
        return float(ends[0]), float(ends[1])

    def _unit(self, theta: float) -> float:
        return float(self.grid.to_unit([theta])[0])

    def _best(self) -> float:
        """The minimum in units of the range: a bound, or a root of the slope."""
        values = chebyshev.evaluate(self.coefficients, _SCAN)
        near = int(values.argmin())
        slope = chebyshev.derivative(self.coefficients)
        left, right = _SCAN[max(near - 1, 0)], _SCAN[min(near + 1, len(_SCAN) - 1)]
        slopes = chebyshev.evaluate(slope, np.array([left, right]))
        if slopes[0] >= 0:
            return float(left)
        if slopes[1] <= 0:
            return float(right)
        return float(brentq(lambda t: float(chebyshev.evaluate(slope, t)), left, right, xtol=1e-14))

    def _crossings(self, best: float, rise: float) -> tuple[float, float, bool, bool]:
        """Where the likelihood has risen by `rise` on either side, and whether a bound cut it."""
        rise = rise * self._stretch(best)
        lowest = float(chebyshev.evaluate(self.coefficients, best))

        def excess(t: float) -> float:
            return float(chebyshev.evaluate(self.coefficients, t)) - lowest - rise

        values = chebyshev.evaluate(self.coefficients, _SCAN) - lowest - rise
        above = np.flatnonzero((values > 0) & (best < _SCAN))
        below = np.flatnonzero((values > 0) & (best > _SCAN))
        low = high = None
        if len(below):
            outer = _SCAN[below[-1]]
            inner = min(best, _SCAN[below[-1] + 1])
            low = brentq(excess, outer, inner, xtol=1e-14)
        if len(above):
            outer = _SCAN[above[0]]
            inner = max(best, _SCAN[above[0] - 1])
            high = brentq(excess, inner, outer, xtol=1e-14)
        return (
            0.0 if low is None else float(low),
            1.0 if high is None else float(high),
            low is None,
            high is None,
        )

    def _stretch(self, best: float) -> float:
        """The sandwich factor by which weights stretch the threshold; 1 for unweighted events."""
        if self.scores is None:
            return 1.0
        curvature = chebyshev.evaluate(
            chebyshev.derivative(chebyshev.derivative(self.coefficients)), best
        )
        if curvature <= 0:
            return 1.0
        return float(chebyshev.evaluate(self.scores, best) / curvature)


def _describe(grid: Grid) -> str:
    low, high = grid.bounds[0]
    return f"{grid.parameters[0]} in [{low:g}, {high:g}]"
