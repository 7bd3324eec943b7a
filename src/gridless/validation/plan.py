"""What to simulate next: the total error for any number of observed and simulated events.

The variance of an estimate from simulation is a sum over templates, V_k / n_k with n_k events of
template k. So the error of any other simulation is known before it is made. For a given total
it is least if n_k is proportional to sqrt(V_k).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gridless.calibration.calibration import calibrate
from gridless.calibration.moments import Moments
from gridless.curves.polynomials import slopes, terms
from gridless.curves.simplest import simplest_polynomial
from gridless.errors import InputError
from gridless.fitting import fit
from gridless.likelihood.estimate import MODEL, SIMULATION
from gridless.likelihood.estimating import beyond_covariances
from gridless.likelihood.likelihood import Likelihood
from gridless.model.model import Model
from gridless.model.observed import channel_of_sum
from gridless.results.printing import Lines
from gridless.templates.arrays import Array, as_size
from gridless.templates.grid import Grid
from gridless.templates.templates import Templates

COST = 1.1  # of the statistical error: simulation that makes the total no larger is enough
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # times the simulation at hand, in the table
PLACES = 5  # values of theta over which a plan averages, if none is given
WEAK_INFORMATION = 400.0  # chi2 of the templates for theta: with less a network learns only a part
MAX_DEGREE = {1: 8, 2: 4, 3: 3}  # of the curve through a pilot's means
LEAST_TRUE = 0.25  # of the information: a pilot that is noise for the rest is not corrected further
MUCH_BETTER = 0.95  # of the error: another template is advised if it gets below


@dataclass(frozen=True, eq=False)
class Plan(Lines):
    """Errors to expect, and what to simulate; `gl.plan` makes it.

    Attributes
    ----------
    parameter : str
        The parameter whose error it is.
    events : float
        Observed events.
    simulated : float
        Simulated events at hand, in effective numbers.
    factors, errors : array (factors,), array (factors, 3)
        Times the simulation at hand; statistical error, that from simulation (with what the
        templates leave open), and the total, at each.
    enough : float
        Simulated events, shared as now, with which the total is 1.1 of the statistical error.
    labels : tuple of str
        The templates.
    shares : array (templates,)
        The best share of the next events over the templates.
    next_events : float
        How many those are.
    equal_error, shared_error, between_error : float
        The total error with the next events in the same shares as now, in the best ones, and
        in a new template.
    between : float
        Where a new template helps most.
    uncertainty : float
        The relative statistical uncertainty of all these errors.
    weak : bool
        Whether the simulation at hand tells so little of theta that a network learns a part of it
        only: errors with more simulation may then be off by a factor of two or three.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> made = gl.plan(OneObservable().templates(1_000, seed=1), events=100)
    >>> made.parameter, made.weak
    ('theta', False)
    """

    parameter: str
    events: float
    simulated: float
    factors: Array
    errors: Array
    enough: float
    labels: tuple[str, ...]
    shares: Array
    next_events: float
    equal_error: float
    shared_error: float
    between_error: float
    between: float
    uncertainty: float
    weak: bool

    @property
    def advice(self) -> str:
        """What to do, in a sentence."""
        stat, _, now = self.errors[self.factors == 1.0][0]
        if now <= COST * stat:
            return "the simulation is enough: more would change the total error by a tenth at most"
        if self.between_error < MUCH_BETTER * min(self.shared_error, self.equal_error):
            return f"simulate a new template at {self.parameter} = {self.between:.6g}"
        if self.shared_error < MUCH_BETTER * self.equal_error:
            return "simulate more of the templates with the largest shares"
        return "simulate more of every template, in the shares of now"

    def to_dict(self) -> dict[str, Any]:
        """The plan in what JSON can hold."""
        content = {k: np.asarray(v).tolist() for k, v in vars(self).items() if k != "labels"}
        shares = dict(zip(self.labels, content.pop("shares"), strict=True))
        names = ("stat", "simulation", "total")
        rows = [dict(zip(names, row, strict=True)) for row in content.pop("errors")]
        return content | {"errors": rows, "shares": shares, "advice": self.advice}

    def __str__(self) -> str:
        lines = [f"errors of {self.parameter} with {self.events:,.0f} observed events:"]
        lines.append("  simulated events   stat   simulation   total")
        for factor, (stat, sim, total) in zip(self.factors, self.errors, strict=True):
            mark = "  (now)" if factor == 1 else ""
            number = f"{factor * self.simulated:,.0f}"
            lines.append(f"  {number:>16}   {stat:.3g}   {sim:.3g}   {total:.3g}{mark}")
        lines.append(f"  each known to {self.uncertainty:.0%}")
        if self.weak:
            lines.append("  rough: so few events say little of theta; take a larger pilot")
        lines.append(f"  total within a tenth of stat from {self.enough:,.0f} simulated events on")
        lines.append(f"best shares of the next {self.next_events:,.0f} events:")
        lines += [
            f"  {label}: {share:.0%}" for label, share in zip(self.labels, self.shares, strict=True)
        ]
        lines.append(
            f"total error then: {self.shared_error:.4g}; in the shares of now "
            f"{self.equal_error:.4g}; in a new template at {self.between:.6g}: "
            f"{self.between_error:.4g}"
        )
        return "\n".join([*lines, self.advice])

    __repr__ = __str__


def plan(
    model: Model | Templates,
    events: float,
    simulated: float | None = None,
    theta: Any = None,
    parameter: str | None = None,
) -> Plan:
    """The total error for any number of simulated events, and what to simulate next.

    Parameters
    ----------
    model : Model or Templates
        A calibrated model, or a small pilot of the templates, which is fitted.
    events : float
        Events that will be observed.
    simulated : float, optional
        Events to simulate next; by default as many as there are.
    theta : float or sequence of float, optional
        The value that is expected; by default errors are averaged over the templates' range.
    parameter : str, optional
        Whose error, where there are several.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> pilot = OneObservable().templates(1_000, seed=1)
    >>> gl.plan(pilot, events=10_000).advice
    'simulate ...'
    """
    if not isinstance(model, Model | Templates):
        raise InputError(f"model: {type(model).__name__}; give a Model or Templates")
    events = as_size(events)
    simulated = None if simulated is None else as_size(simulated, "simulated")
    trained = fit(model) if isinstance(model, Templates) else model
    calibration, grid = trained.calibration, trained.grid
    if calibration is None:
        raise InputError("plan: the model was fitted with calibrate=False; fit it anew")
    if parameter is not None and parameter not in grid.parameters:
        raise InputError(f"parameter: no {parameter!r}; there is {', '.join(grid.parameters)}")
    p = grid.parameters.index(parameter or grid.parameters[0])
    places = _places(grid, theta)
    measured = trained.reweighting.moments
    now = measured.effective
    curve = _Simple(measured)
    # A simple curve instead of means that scatter about it: the scatter will be another one.
    smooth = Moments(measured.t, curve(measured.t), measured.covariance, measured.mean_covariance)
    made = _Errors(smooth, curve, grid, places, (events, p))
    factors = np.array(FACTORS)
    errors = np.array([made(factor * now) for factor in factors])
    more = float(now.sum() if simulated is None else simulated)
    shares = _best_shares(made.by_template(now), now, more)
    middles = [0.5 * (grid.unit[i] + grid.unit[j]) for i, j in grid.neighbours()]
    between = [made(now, (middle, more))[2] for middle in middles]
    best = int(np.argmin(between))
    low, size = grid.bounds[p, 0], grid.range[p]
    return Plan(
        grid.parameters[p],
        events,
        float(now.sum()),
        factors,
        errors,
        _enough(made, now),
        tuple(grid.label(k) for k in range(len(grid))),
        shares,
        more,
        made(now * (1 + more / now.sum()))[2],
        made(now + more * shares)[2],
        float(between[best]),
        float(low + size * middles[best][p]),
        # The information was measured with a chi2 of this size; an error goes with its root.
        float(1 / np.sqrt(max(calibration.mean.information, 1.0)) + np.sqrt(0.5 / now.min())),
        bool(calibration.mean.information < WEAK_INFORMATION),
    )


class _Simple:
    """The simplest curve through the means of a pilot. Noise in its slope looks like information:
    the square of a slope is too large by its variance."""

    def __init__(self, moments: Moments) -> None:
        self.moments = moments
        self.powers, self.matrix = simplest_polynomial(
            moments.t, moments.mean, moments.mean_covariance, MAX_DEGREE[moments.t.shape[1]]
        )
        self.coefficients = self.matrix @ moments.mean

    def __call__(self, t: Array) -> Array:
        return np.asarray(terms(t, self.powers) @ self.coefficients)

    def true_share(self, t: Array, p: int) -> float:
        """The share of the information on parameter p at a point that is not noise."""
        m = self.moments
        row = slopes(t[None], self.powers)[0, p]
        slope, moved = row @ self.coefficients, row @ self.matrix
        noise = np.tensordot(moved**2, m.mean_covariance, 1)
        nearest = int(np.argmin(((m.t - t) ** 2).sum(axis=1)))
        inverse = np.linalg.pinv(m.noise_per_event[nearest], hermitian=True)
        return float(1 - np.trace(inverse @ noise) / max(float(slope @ inverse @ slope), 1e-300))


class _Errors:
    """Statistical error, that from simulation and the total for any numbers of simulated events:
    roots of mean squares over some values of theta."""

    def __init__(
        self, moments: Moments, curve: _Simple, grid: Grid, places: Array, case: tuple[float, int]
    ) -> None:
        self.moments, self.curve, self.grid, self.places = moments, curve, grid, places
        self.events, self.p = case  # observed events, the parameter's place

    def __call__(self, sizes: Array, extra: tuple[Array, float] | None = None) -> Array:
        values, changed = self.grid.values, self._resized(sizes)
        if extra is not None:
            place, number = extra
            nearest = int(np.argmin(((changed.t - place) ** 2).sum(axis=1)))
            changed = Moments(
                np.vstack([changed.t, place]),
                np.vstack([changed.mean, self.curve(place[None])]),
                np.concatenate([changed.covariance, changed.covariance[[nearest]]]),
                np.concatenate(
                    [changed.mean_covariance, self.moments.noise_per_event[[nearest]] / number]
                ),
            )
            values = np.vstack([values, self.grid.from_unit(place)])
        found = [self._at(changed, values, place)[0] for place in self.places]
        stat, sim = np.sqrt(np.mean(found, axis=0))
        return np.array([stat, sim, np.hypot(stat, sim)])

    def by_template(self, sizes: Array) -> Array:
        """The variance that each template contributes, averaged over the places."""
        changed = self._resized(sizes)
        each = [self._at(changed, self.grid.values, t)[1] for t in self.places]
        return np.asarray(np.mean(each, axis=0))

    def _resized(self, sizes: Array) -> Moments:
        """The moments of templates of other sizes."""
        m = self.moments
        return Moments(m.t, m.mean, m.covariance, m.noise_per_event / sizes[:, None, None])

    def _at(self, moments: Moments, values: Array, place: Array) -> tuple[Array, Array]:
        """Variances (statistical, simulation), and that of each template, at one value."""
        calibration = calibrate(moments)
        grid = Grid(values, self.grid.bounds, self.grid.parameters)
        y = self.events * calibration.mean(place[None])[0]
        channel = channel_of_sum(calibration, grid, y, self.events, round(self.events))
        likelihood = Likelihood([channel])
        p, size = self.p, self.grid.range[self.p]
        beyond = beyond_covariances(likelihood, likelihood.unit_best)
        sim = sum(beyond[name][p, p] for name in (SIMULATION, MODEL) if name in beyond)
        slopes = calibration.simulation_slopes(place)  # (templates, kept, parameters)
        response = likelihood.unit_covariance * self.events
        each = ((slopes @ response)[..., p] ** 2).sum(axis=1)
        share = self.curve.true_share(place, p)
        stat = likelihood.unit_covariance[p, p] / max(share, LEAST_TRUE)
        return np.array([stat, sim]) * size**2, each * size**2


def _places(grid: Grid, theta: Any) -> Array:
    if theta is not None:
        t = grid.unit_point(theta)
        if not ((t >= 0) & (t <= 1)).all():
            raise InputError(f"theta: {theta!r:.80} is outside of {grid.describe()}")
        return t[None]
    low, high = grid.unit.min(axis=0), grid.unit.max(axis=0)
    share = np.linspace(0.1, 0.9, PLACES)[:, None]
    return np.asarray(low + share * (high - low))


def _best_shares(variances: Array, now: Array, more: float) -> Array:
    """Shares of the next events that make n_k proportional to sqrt(V_k), as far as the events that
    are there already allow."""
    wanted = np.sqrt(variances * now)
    wanted = wanted / wanted.sum()
    use = np.ones(len(now), bool)
    for _ in range(len(now)):
        total = now[use].sum() + more
        missing = np.where(use, total * wanted / wanted[use].sum() - now, 0.0)
        if (missing >= 0).all():
            break
        use &= missing > 0
    return np.asarray(missing.clip(min=0) / missing.clip(min=0).sum())


def _enough(made: _Errors, now: Array) -> float:
    """The simulated events with which the total is within a tenth of the statistical error."""
    low, high = -3.0, 4.0  # powers of ten times the simulation at hand
    for _ in range(20):
        middle = 0.5 * (low + high)
        stat, _, total = made(10**middle * now)
        low, high = (low, middle) if total <= COST * stat else (middle, high)
    return float(10**high * now.sum())
