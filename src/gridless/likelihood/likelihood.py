"""The likelihood of a set of observed events as a continuous function of theta."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gridless.curves import minimum
from gridless.curves.curve import Curve
from gridless.curves.intervals import LEVEL, check_level, contour, interval, widened
from gridless.errors import InputError
from gridless.likelihood.belt import MAX_POINTS, WILKS, Belt, constructed
from gridless.likelihood.channel import (
    Channel,
    Constraint,
    common_grid,
    distances,
    join_constraints,
    make_constraint,
    make_curve,
    merge_channels,
    offered_to,
)
from gridless.likelihood.derived import Derived
from gridless.likelihood.display import Displayed
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.estimating import beyond_covariances, inside_covariances, make_estimate
from gridless.results.by_name import chosen_parameter
from gridless.templates.arrays import Array, as_count, as_names, as_number, as_numbers


class Likelihood(Displayed, Derived):
    """-sum_i w_i log [p(theta | x_i) / q(theta)], with q = 1 for prior="flat".

    `model.likelihood(x)` makes it. Call it with theta; add likelihoods of other events and of other
    models; give it to iminuit, alone or added to iminuit's own costs. It is kept as Chebyshev
    coefficients in theta, so nothing is evaluated on the events again. `fix` and `constrain` give
    the likelihood with a parameter held, or with a Gaussian constraint on it.

    Parameters
    ----------
    channels : sequence of Channel
        The events of each model.
    constraints : sequence of Constraint
        Gaussians of single parameters.

    Notes
    -----
    *Intervals* are where the likelihood, all other parameters at their best, has risen by half the
    chi-square quantile (Wilks). For weighted events that rise is stretched by the ratio of the
    sandwich variance H^-1 J H^-1 to H^-1, H the second derivatives, J the sum of w_i^2 s_i s_i^T
    with the scores s_i; events without weights have J = H.

    *Sums* share parameters by name. A parameter of several models lies where the bounds of all of
    them allow it. Different models have independent simulations; parts of one model have the same.

    Examples
    --------
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> x = example.quantiles(0.4, 1000)
    >>> likelihood = example.likelihood(x[:500]) + example.likelihood(x[500:])
    >>> likelihood.maximum()
    theta = 0.400 +- 0.032 (stat)
      1,000 events
    """

    def __init__(self, channels: Iterable[Channel], constraints: Iterable[Constraint] = ()) -> None:
        self.channels = merge_channels(channels)
        self.constraints = tuple(constraints)
        self.grid = common_grid(self.channels)
        limits = zip(self.grid.parameters, self.grid.bounds.tolist(), strict=True)
        super().__init__({name: (low, high) for name, (low, high) in limits})

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.grid.parameters

    @cached_property
    def curve(self) -> Curve:
        """The likelihood as a function on the unit box, t = (theta - low) / (high - low)."""
        return make_curve(self.channels, self.constraints, self.grid)

    @property
    def coefficients(self) -> Array:
        """The likelihood as Chebyshev coefficients on the unit box, one axis per parameter."""
        c = self.curve.coefficients
        if c is None:
            raise InputError(
                "coefficients: there are several arrays; take those of likelihood.curve.series"
            )
        return c

    def __add__(self, other: Any) -> Any:
        """The likelihood of both sets of events, or iminuit's `CostSum` with one of its costs."""
        if not isinstance(other, Likelihood):
            return self.add_cost(other)
        constraints = join_constraints(self.constraints, other.constraints)
        return Likelihood((*self.channels, *other.channels), constraints)

    def __radd__(self, other: Any) -> Any:
        # sum([a, b]) starts from 0.
        return self if isinstance(other, int) and other == 0 else self.add_to_cost(other)

    def _value(self, args: Sequence[float]) -> float:
        return self.curve.value(self.grid.unit_inside(self.grid.unit_point(args)))

    def _grad(self, args: Sequence[float]) -> Array:
        return np.asarray(self.curve.gradient(self.grid.unit_point(args)) / self.grid.range)

    def named(self, channel: str) -> "Likelihood":
        """The same likelihood with a name for its channel, as in `estimate.p_values`.

        Parameters
        ----------
        channel : str
            Such as "electron". Parts of one model with different names are different channels.

        Returns
        -------
        Likelihood

        Examples
        --------
        >>> from gridless.examples import OneObservable
        >>> example = OneObservable()
        >>> parts = [example.likelihood(example.quantiles(t)).named(f"{t}") for t in (0.4, 0.5)]
        >>> sum(parts)
        Likelihood of theta in [0, 1] from 20,000 events in 2 channels
        """
        if len(self.channels) > 1:
            raise InputError("named: a sum of several channels; name each before adding them")
        (name,) = as_names([channel], "named")
        return Likelihood([replace(self.channels[0], name=name)], self.constraints)

    def with_offered(self, events: int) -> "Likelihood":
        """The same with the number of events before the selection."""
        return Likelihood(offered_to(self.channels, events), self.constraints)

    def scan(self, theta: Any) -> Array:
        """The likelihood at points, less its minimum.

        Parameters
        ----------
        theta : array
            Values of the only parameter, or points with the parameters on the last axis.

        Returns
        -------
        array
            -log L(theta) + log L(best), one value per point.

        Examples
        --------
        >>> from gridless.examples import OneObservable
        >>> example = OneObservable()
        >>> example.likelihood(example.quantiles(0.4)).scan([0.4, 0.41, 0.42]).round(3)
        array([0. , 0.5, 2. ])
        """
        points = as_numbers(theta, "theta")
        t = self.grid.to_unit(points[..., None] if len(self.parameters) == 1 else points)
        return np.asarray(self.curve(self.grid.unit_inside(t)) - self._floor)

    def profile(self, parameter: str, values: Any) -> Array:
        """The likelihood at values of one parameter, the others at their best, less its minimum.

        Parameters
        ----------
        parameter : str
            Which parameter.
        values : array
            Its values.

        Returns
        -------
        array
            -log L, profiled over the other parameters, less its minimum.

        Examples
        --------
        >>> from gridless.examples import TwoParameters
        >>> example = TwoParameters()
        >>> likelihood = example.likelihood(example.sample((0.5, 0.5), 1000, seed=1))
        >>> low, high = likelihood.interval(parameter="t1")
        >>> likelihood.profile("t1", [low, high]).round(3)
        array([0.5, 0.5])
        """
        axis = self.axis(parameter)
        function = minimum.profile(self.curve, [axis], self.unit_best)
        low, high = self.grid.bounds[axis]
        t = self.grid.unit_inside((as_numbers(values, "values") - low) / (high - low), "values")
        rises = [function(np.array([one])) - self._floor for one in t.ravel()]
        return np.array(rises).reshape(t.shape)

    def fix(self, **values: float) -> "Likelihood":
        """The likelihood of the other parameters with the named ones held at these values.

        Returns
        -------
        Likelihood

        Examples
        --------
        >>> from gridless.examples import TwoParameters
        >>> example = TwoParameters()
        >>> example.likelihood(example.sample((0.5, 0.5), 1000, seed=1)).fix(t2=0.5)
        Likelihood of t1 in [0, 1] from 1,000 events
        """
        channels, constraints = self.channels, self.constraints
        left = list(self.parameters)
        for name, theta in values.items():
            low, high = self.grid.bounds[self.axis(name)]
            theta = as_number(theta, f"fix: {name}")
            if len(left) == 1:
                raise InputError(f"fix: {name} is the only parameter left; nothing to estimate")
            if not low <= theta <= high:
                raise InputError(f"fix: {name} = {theta:g} is outside {low:g} to {high:g}")
            left.remove(name)
            channels = tuple(channel.fix(name, theta) for channel in channels)
            constraints = tuple(c for c in constraints if c.parameter != name)
        return Likelihood(channels, constraints)

    def constrain(self, parameter: str, value: float, error: float) -> "Likelihood":
        """The likelihood times a Gaussian of a parameter: + (theta - value)^2 / 2 error^2.

        Parameters
        ----------
        parameter : str
            Which parameter.
        value, error : float
            The Gaussian constraint: what another measurement gave.

        Returns
        -------
        Likelihood

        Notes
        -----
        The constraint is a source of its own in `estimate.budget`: the part of the uncertainty that
        a change of `value` by `error` would cause. Of a sum, constrain the sum and not each part.

        Examples
        --------
        >>> from gridless.examples import TwoParameters
        >>> example = TwoParameters()
        >>> likelihood = example.likelihood(example.sample((0.5, 0.5), 1000, seed=1))
        >>> list(likelihood.constrain("t2", 0.5, 0.05).maximum().budget["t1"])
        ['stat', 't2 (constraint)']
        """
        name = self.parameters[self.axis(parameter)]
        constraint = make_constraint(name, value, error)
        return Likelihood(self.channels, (*self.constraints, constraint))

    def maximum(self) -> Estimate:
        """The most likely theta, with intervals, budget and warnings.

        Returns
        -------
        Estimate
            By parameter: `estimate["mtop"].value`, `.error`, `.interval`, ...

        Examples
        --------
        >>> from gridless.examples import OneObservable
        >>> OneObservable().likelihood(OneObservable().quantiles(0.4)).maximum()
        theta = 0.400 +- 0.010 (stat)
          10,000 events
        """
        return self._estimate

    def interval(
        self,
        level: float = LEVEL,
        parameter: str | None = None,
        *,
        stat: bool = False,
        method: str = WILKS,
        belt: Belt | None = None,
    ) -> tuple[float, float]:
        """(low, high) of a parameter at a confidence level, cut at the bounds.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        parameter : str, optional
            Which parameter, where there are several.
        stat : bool
            Without the uncertainty from simulation.
        method : str
            "wilks", or by pseudo-experiments "feldman-cousins" or "upper", a limit (CLs).
        belt : Belt, optional
            Pseudo-experiments for these, as `belt` makes them; by default made now.

        Returns
        -------
        tuple of float

        Notes
        -----
        The ends are where the likelihood has risen by half the chi-square quantile of one degree of
        freedom (Wilks): by 1.92 for level 0.95. Other sources are added in quadrature to each side.

        Examples
        --------
        >>> from gridless.examples import OneObservable
        >>> example = OneObservable()
        >>> low, high = example.likelihood(example.quantiles(0.4)).interval(0.95)
        >>> print(f"{low:.4f} {high:.4f}")
        0.3804 0.4196
        """
        p, level = self.axis(parameter), check_level(level)
        if method != WILKS:
            return constructed(self.experiments(stat), level, self.parameters[p], method, belt)
        ends, cut = self.unit_interval(p, level)
        if not stat:
            other = sum(c[p, p] for c in beyond_covariances(self).values())
            ends = widened(ends, cut, self.unit_best[p], other, level)
        low, high = self.grid.bounds[p, 0] + ends * self.grid.range[p]
        return float(low), float(high)

    def contour(self, first: str, second: str, level: float = LEVEL, points: int = 64) -> Array:
        """A closed curve around the values of two parameters allowed at `level`.

        Parameters
        ----------
        first, second : str
            The parameters.
        level : float
            Between 0 and 1.
        points : int
            Number of points on the curve.

        Returns
        -------
        array (points + 1, 2)
            The first point again at the end.

        Notes
        -----
        The likelihood, other parameters at their best, has risen there by half the chi-square
        quantile of two degrees of freedom: by 1.15 for 68 percent. Statistical; cut at the bounds.

        Examples
        --------
        >>> from gridless.examples import TwoParameters
        >>> example = TwoParameters()
        >>> likelihood = example.likelihood(example.sample((0.5, 0.5), 1000, seed=1))
        >>> likelihood.contour("t1", "t2", 0.95).shape
        (65, 2)
        """
        axes = [self.axis(first), self.axis(second)]
        if axes[0] == axes[1]:
            raise InputError(f"contour: {first} twice; give two parameters")
        parts = self.curve, self.unit_best, self.unit_covariance
        t = contour(*parts, axes, check_level(level), as_count(points, "points", 3, MAX_POINTS))
        curve = self.grid.bounds[axes, 0] + t * self.grid.range[axes]
        return np.vstack([curve, curve[:1]])

    @property
    def unit_best(self) -> Array:
        """The minimum in units of the range."""
        return self.unit_minima[0]

    @cached_property
    def unit_minima(self) -> list[Array]:
        """The minimum, and others where the mean of the events can be."""
        return minimum.minima(self.curve, self.distance)

    def distance(self, t: Array) -> Array:
        """What tells minima (points, parameters) apart: minus twice a log likelihood."""
        return np.asarray(2 * self.curve(t) + distances(self.channels, self.grid, t))

    @cached_property
    def _floor(self) -> float:
        return self.curve.value(self.unit_best)

    @cached_property
    def _estimate(self) -> Estimate:
        return make_estimate(self)

    @cached_property
    def unit_covariance(self) -> Array:
        """The covariance from events and constraints in units of the range."""
        return np.asarray(sum(inside_covariances(self).values()))

    def unit_interval(self, p: int, level: float) -> tuple[Array, Array]:
        """Ends of an interval in units of the range, and whether a bound cuts each."""
        return interval(self.curve, self.unit_best, self.unit_covariance, p, level)

    def axis(self, parameter: str | None) -> int:
        """The place of a parameter among all; of the only one, without a name."""
        return self.parameters.index(chosen_parameter(self.parameters, parameter))
