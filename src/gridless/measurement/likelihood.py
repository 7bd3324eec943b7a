"""The likelihood of a whole measurement: parameters of interest, systematics, backgrounds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gridless.curves import chebyshev
from gridless.curves.curve import Curve
from gridless.curves.intervals import LEVEL, check_level
from gridless.errors import InputError
from gridless.likelihood.belt import MAX_POINTS, WILKS, Belt, constructed
from gridless.likelihood.channel import (
    Channel,
    Constraint,
    common_grid,
    join_constraints,
    make_constraint,
    merge_channels,
    offered_to,
)
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.minuit import MinuitCost
from gridless.measurement.estimate import MeasurementEstimate
from gridless.measurement.estimating import make_estimate
from gridless.measurement.joint import Joint, common_nuisances
from gridless.measurement.term import SummaryChannel
from gridless.measurement.toys import SummaryExperiments
from gridless.results.by_name import chosen_parameter
from gridless.templates.arrays import Array, as_count, as_names, as_number, as_numbers

# Chebyshev points of each parameter of interest for the profile as a curve.
CURVE_POINTS = {1: 33, 2: 13, 3: 7}


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
    >>> model = example.fit(events=500, seed=1, hidden=3, epochs=3)
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
        self.parts = _added((part.key, part) for part in parts)
        self.plain = merge_channels(plain)
        self.channels = (*(part.base for part in self.parts), *self.plain)
        self.constraints = tuple(constraints)
        self.held = dict(held or {})
        self.grid = common_grid(self.channels)
        self.nuisances = common_nuisances(self.parts, self.grid)
        # Groups of one model have one simulation, whose fluctuations move all of them together.
        whole = _added((part.base.model, part) for part in self.parts)
        self.joint = Joint(
            whole, self.plain, self.grid, self.nuisances, self.constraints, self.held
        )
        limits = zip(
            self.joint.names, self.joint.low.tolist(), self.joint.high.tolist(), strict=True
        )
        MinuitCost.__init__(
            self, {name: (low, high) for name, low, high in limits if name not in self.held}
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters of interest, then nuisance parameters; without those that are held."""
        return tuple(name for name in self.joint.names if name not in self.held)

    @property
    def interest(self) -> tuple[str, ...]:
        """The parameters of interest."""
        return self.joint.interest

    @property
    def _nuisance_names(self) -> set[str]:
        """Those of nuisance parameters that are not held."""
        return {one.name for one in self.nuisances} - set(self.held)

    def __add__(self, other: Any) -> Any:
        """The likelihood of both, or iminuit's `CostSum` with one of its costs."""
        if not isinstance(other, Likelihood):
            return self.add_cost(other)
        if not isinstance(other, MeasurementLikelihood):
            other = MeasurementLikelihood((), other.channels, other.constraints)
        for name in set(self.held) | set(other.held):
            here = [part.held[name] for part in (self, other) if name in part.held]
            there = [part for part in (self, other) if name in part.joint.names]
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
        text = f"{super().__repr__()}, {len(self.nuisances)} nuisance parameters"
        return text + "".join(f", {name} = {value:g}" for name, value in self.held.items())

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
        (name,) = as_names([channel], "named")
        only = self.parts[0]
        return self._with(parts=[replace(only, base=replace(only.base, name=name))])

    def with_offered(self, events: int) -> "MeasurementLikelihood":
        """The same with the number of events before the selection."""
        bases = offered_to([part.base for part in self.parts], events)
        pairs = zip(self.parts, bases, strict=True)
        return self._with(parts=[replace(part, base=base) for part, base in pairs])

    def fix(self, **values: float) -> "MeasurementLikelihood":
        """The likelihood of the other parameters with the named ones held at these values.

        Returns
        -------
        MeasurementLikelihood

        Examples
        --------
        >>> from gridless.examples import Nuisances
        >>> example = Nuisances()
        >>> model = example.fit(events=500, seed=1, hidden=3, epochs=3)
        >>> likelihood = model.likelihood(example.sample(0.4, 500, seed=2))
        >>> len(likelihood.fix(jes=0, bjes=0).parameters) == len(likelihood.parameters) - 2
        True
        """
        held = dict(self.held)
        for name, value in values.items():
            place, value = self._place(name), as_number(value, f"fix: {name}")
            if not self.joint.low[place] <= value <= self.joint.high[place]:
                raise InputError(
                    f"fix: {name} = {value:g} is outside {self.joint.low[place]:g} to "
                    f"{self.joint.high[place]:g}"
                )
            held[name] = value
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
            The Gaussian constraint: what another measurement gave.

        Returns
        -------
        MeasurementLikelihood
        """
        self._place(parameter)
        return self._with(constraints=[*self.constraints, make_constraint(parameter, value, error)])

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
        points = as_numbers(values, "values")
        self._check_inside(points.ravel()[:, None], [place])
        found = [self.joint.profiled({place: one})[0] - self.joint.floor for one in points.ravel()]
        return np.array(found).reshape(points.shape)

    def scan(self, theta: Any) -> Array:
        """The likelihood at values of the only parameter of interest, nuisance parameters at their
        best, less its minimum."""
        if len(self.interest) > 1:
            raise InputError("scan: several parameters; take profile(parameter, values)")
        return self.profile(self.interest[0], theta)

    def interval(
        self,
        level: float = LEVEL,
        parameter: str | None = None,
        *,
        stat: bool = False,
        method: str = WILKS,
        belt: Belt | None = None,
    ) -> tuple[float, float]:
        """(low, high) of a parameter at a confidence level, with every uncertainty.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        parameter : str, optional
            Which parameter, where there are several of interest.
        stat : bool
            Statistical only: the nuisance parameters held at their best.
        method, belt : str, Belt
            "wilks": the profile has risen at the ends by half the chi-square quantile; or by
            pseudo-experiments, of a parameter of interest: see `Likelihood.interval`.

        Returns
        -------
        tuple of float
        """
        place, level = self.axis(parameter), check_level(level)
        if method != WILKS:
            name = self.joint.names[place]
            return constructed(self.experiments(stat), level, name, method, belt)
        if stat:
            return self._statistical().interval(level, self.joint.names[place])
        low, high = (end for end, _ in self.joint.crossings(place, level))
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
        as_count(points, "points", 3, MAX_POINTS)
        return self.joint.contour(axes, check_level(level), points)

    def axis(self, parameter: str | None) -> int:
        """The place of a parameter among all; of the only one of interest, without a name."""
        return self._place(parameter or chosen_parameter(self.interest, None))

    def experiments(self, stat: bool = False) -> SummaryExperiments:
        """Where pseudo-experiments come from; `stat`: with the nuisance parameters held."""
        return SummaryExperiments(self._statistical() if stat else self)

    def _statistical(self) -> "MeasurementLikelihood":
        """The same with the nuisance parameters held at their best."""
        best = zip(self.joint.names, self.joint.best.tolist(), strict=True)
        return self.fix(**{name: value for name, value in best if name in self._nuisance_names})

    def channel_alone(self, number: int) -> "MeasurementLikelihood":
        """The likelihood of one channel, with the constraints of its parameters."""
        count = len(self.parts)
        if number < count:
            alone = MeasurementLikelihood([self.parts[number]])
        else:
            alone = MeasurementLikelihood([], [self.plain[number - count]])
        names = alone.joint.names
        return alone._with(
            constraints=[one for one in self.constraints if one.parameter in names],
            held={name: value for name, value in self.held.items() if name in names},
        )

    @cached_property
    def curve(self) -> Curve:
        """The profile over all nuisance parameters, on the unit box of the parameters of
        interest."""
        count = len(self.grid.parameters)
        if len(self.interest) < count:
            raise InputError("curve: a parameter of interest is held; take profile(...)")
        sizes = (CURVE_POINTS[count],) * count
        points = self.grid.from_unit(chebyshev.box_points(sizes))
        values = [self.joint.profiled(dict(enumerate(point.tolist())))[0] for point in points]
        return Curve.of(chebyshev.coefficients(np.array(values).reshape(sizes)))

    @cached_property
    def unit_best(self) -> Array:
        """The minimum in units of the range of the parameters of interest."""
        return self.grid.to_unit(self.joint.best[: len(self.grid.parameters)])

    @cached_property
    def _estimate(self) -> MeasurementEstimate:
        return make_estimate(self)

    def _value(self, args: Sequence[float]) -> float:
        return self.joint.slopes(self._whole(args))[0]

    def _grad(self, args: Sequence[float]) -> Array:
        return np.asarray(self.joint.slopes(self._whole(args))[1][self.joint.free])

    def _whole(self, args: Sequence[float]) -> Array:
        values = as_numbers(args, "values")
        if values.shape != (len(self.parameters),):
            raise InputError(f"values: {args!r:.80}; give one each: {', '.join(self.parameters)}")
        self._check_inside(values, np.flatnonzero(self.joint.free))
        p = self.joint.best.copy()
        p[self.joint.free] = values
        return p

    def _check_inside(self, values: Array, places: Any) -> None:
        """Refuse values (..., places) that are no numbers, or beyond the bounds of theta."""
        count = len(self.grid.parameters)
        if not np.isfinite(values).all():
            raise InputError(f"values: {values!r:.80}; give finite numbers")
        of_theta = [k for k, place in enumerate(places) if place < count]
        t = (values - self.joint.low[places])[..., of_theta]
        self.grid.unit_inside(t / self.grid.range[np.asarray(places)[of_theta]], "values")

    def _place(self, parameter: str) -> int:
        if parameter not in self.parameters:
            raise InputError(
                f"there is no parameter {parameter!r}; there is {', '.join(self.parameters)}"
            )
        return self.joint.names.index(parameter)

    def _with(self, **changes: Any) -> "MeasurementLikelihood":
        fields = {
            "parts": self.parts, "plain": self.plain, "constraints": self.constraints,
            "held": self.held,
        }  # fmt: skip
        return MeasurementLikelihood(**{**fields, **changes})


def _added(parts: Iterable[tuple[Any, SummaryChannel]]) -> tuple[SummaryChannel, ...]:
    """The channels, those with the same key added up."""
    found: dict[Any, SummaryChannel] = {}
    for key, part in parts:
        found[key] = found[key] + part if key in found else part
    return tuple(found.values())
