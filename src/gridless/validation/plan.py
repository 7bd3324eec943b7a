"""What to simulate next: the total error for any number of observed and simulated events.

The variance of an estimate from simulation is a sum over templates: `gridless.validation.forecast`.
For a given number of events it is least if n_k is proportional to sqrt(V_k).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.fitting import fit
from gridless.likelihood.estimate import MODEL, SIMULATION
from gridless.model.combined import Channels
from gridless.model.model import Model
from gridless.model.virtual import inner_point
from gridless.results.printing import Lines
from gridless.templates.arrays import Array, as_size
from gridless.templates.grid import Grid
from gridless.templates.templates import Templates
from gridless.validation.forecast import WEAK_INFORMATION, Forecast, NewTemplate, Pilot, pilot_of

COST = 1.1  # of the statistical error: simulation that makes the total no larger is enough
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # times the simulation at hand, in the table
PLACES = 5  # values of theta over which a plan averages, if none is given
# Relative uncertainty of errors where the network grows with its events, or learns a part only:
# pilots of a tenth predicted errors that were off by 24 percent, root mean square.
ROUGH = 0.25
DIGITS = 3  # of the least total error, in the table
MUCH_BETTER = 0.95  # of the error: another template is advised if it gets below


@dataclass(frozen=True, eq=False)
class Plan(Lines):
    """Errors to expect, and what to simulate; `gl.plan` makes it.

    Attributes
    ----------
    parameter : str
        The parameter whose error it is.
    events : float
        Observed events, of all channels.
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
    channel : str
        In which channel; empty where there is one only.
    uncertainty : float
        The relative uncertainty of all these errors.
    weak : bool
        Whether the simulation at hand tells so little of theta that a network learns a part of it
        only: errors with more simulation may then be off by a factor of two or three.
    pilot : float
        Simulated events from which on it is not weak.
    growing : bool
        Whether the network grew with its events: from more of them a larger one learns more, so
        that errors are rather smaller than predicted.
    held : tuple of str
        Systematics and backgrounds of the model, whose nuisance parameters are held: all these
        errors are without them.
    totals : tuple of float
        The total error with them, by `model.expected`: with the simulation at hand, and with any
        amount of it, variations included; empty without systematics and backgrounds.

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
    channel: str
    uncertainty: float
    weak: bool
    pilot: float
    growing: bool
    held: tuple[str, ...] = ()
    totals: tuple[float, ...] = ()

    @property
    def advice(self) -> str:
        """What to do, in a sentence."""
        now = self.errors[self.factors == 1.0][0, 2]
        if now <= COST * self.errors[-1, 0]:
            return "the simulation is enough: more would change the total error by a tenth at most"
        if self.between_error < MUCH_BETTER * min(self.shared_error, self.equal_error):
            return f"simulate a new template{self._where}"
        if self.shared_error < MUCH_BETTER * self.equal_error:
            return "simulate more of the templates with the largest shares"
        return "simulate more of every template, in the present proportions"

    @property
    def _where(self) -> str:
        """Where a new template helps most."""
        channel = f" of {self.channel}" if self.channel else ""
        return f"{channel} at {self.parameter} = {self.between:.6g}"

    def to_dict(self) -> dict[str, Any]:
        """The plan in what JSON can hold."""
        content = {k: np.asarray(v).tolist() for k, v in vars(self).items() if k != "labels"}
        shares = dict(zip(self.labels, content.pop("shares"), strict=True))
        names = ("stat", "simulation", "total")
        rows = [dict(zip(names, row, strict=True)) for row in content.pop("errors")]
        return content | {"errors": rows, "shares": shares, "advice": self.advice}

    def __str__(self) -> str:
        lines = [f"errors of {self.parameter} with {self.events:,.0f} observed events:"]
        lines.append("  simulated events      stat  simulation     total")
        digits = max(0, DIGITS - 1 - math.floor(math.log10(self.errors[:, 2].min())))
        for factor, row in zip(self.factors, self.errors, strict=True):
            mark = "  (now)" if factor == 1 else ""
            number = f"{factor * self.simulated:,.0f}"
            stat, sim, total = (f"{error:.{digits}f}" for error in row)
            lines.append(f"  {number:>16}  {stat:>8}  {sim:>10}  {total:>8}{mark}")
        lines.append(f"  each known to {self.uncertainty:.0%}; events are effective ones")
        if self.held:
            now, least = (f"{error:.{digits}f}" for error in self.totals)
            lines.append(f"  held in all of these: {', '.join(self.held)}")
            lines.append(f"  with them the total is {now} now, {least} with any simulation")
        if self.weak:
            lines.append(
                f"  rough: so few events say little of {self.parameter}; take a pilot of some "
                f"{self.pilot:.1e} events"
            )
        if self.growing:
            lines.append("  rough: a larger network learns more from more events; rather less")
        lines.append(f"  total within a tenth of stat from {self.enough:,.0f} simulated events on")
        lines.append(f"best shares of the next {self.next_events:,.0f} events:")
        lines += [
            f"  {label}: {share:.0%}" for label, share in zip(self.labels, self.shares, strict=True)
        ]
        lines.append(
            f"total error then: {self.shared_error:.4g}; in the present proportions "
            f"{self.equal_error:.4g}; in a new template{self._where}: {self.between_error:.4g}"
        )
        return "\n".join([*lines, self.advice])

    __repr__ = __str__


def plan(
    model: Model | Channels | Templates,
    events: float | Mapping[str, float],
    simulated: float | None = None,
    theta: Any = None,
    parameter: str | None = None,
) -> Plan:
    """The total error for any number of simulated events, and what to simulate next.

    Parameters
    ----------
    model : Model, Channels or Templates
        A calibrated model, those of several channels, or a small pilot of the templates, which is
        fitted.
    events : float or mapping from str to float
        Events that will be observed; of several channels those of each.
    simulated : float, optional
        Events to simulate next, in all channels together; by default as many as there are.
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
    if not isinstance(model, Model | Templates | Channels):
        raise InputError(f"model: {type(model).__name__}; give a Model or Templates")
    if isinstance(events, Mapping):
        events = {name: as_size(one) for name, one in events.items()}
    else:
        events = as_size(events)
    simulated = None if simulated is None else as_size(simulated, "simulated")
    trained = fit(model) if isinstance(model, Templates) else model
    grid, pilots = trained.grid, _pilots(trained, events)
    if parameter is not None and parameter not in grid.parameters:
        raise InputError(f"parameter: no {parameter!r}; there is {', '.join(grid.parameters)}")
    p = grid.parameters.index(parameter or grid.parameters[0])
    places = _places(grid, pilots, theta)
    made = Forecast(pilots, grid, places, p)
    now = made.now
    more = float(now.sum() if simulated is None else simulated)
    factors = np.array(FACTORS)
    errors = np.array([made(factor * now) for factor in factors])
    if not np.isfinite(errors).all():
        raise InputError(
            f"plan: the templates of this pilot do not tell {grid.parameters[p]} at all; add "
            "observables, simulate more, or set the bounds near the templates"
        )
    shares = _best_shares(made.by_template(now), now, more)
    new = [
        NewTemplate(k, middle, more)
        for k, one in enumerate(pilots)
        if grid.parameters[p] in one.grid.parameters
        for middle in one.middles
    ]
    between = [made(now, one)[2] for one in new]
    best = new[int(np.argmin(between))]
    where = pilots[best.pilot].grid
    own = where.parameters.index(grid.parameters[p])
    information = sum(one.information for one in pilots)
    growing = any(_grows(one) for one in _models(trained))
    weak = bool(information < WEAK_INFORMATION)
    # The information was measured with a chi2 of this size; an error goes with its root.
    uncertainty = 1 / np.sqrt(max(information, 1.0)) + np.sqrt(0.5 / now.min())
    held = tuple(dict.fromkeys(name for one in _models(trained) for name in one.nuisances))
    return Plan(
        grid.parameters[p],
        sum(one.events for one in pilots),
        float(now.sum()),
        factors,
        errors,
        _enough(made, now),
        tuple(label for one in pilots for label in one.labels),
        shares,
        more,
        made(now * (1 + more / now.sum()))[2],
        made(now + more * shares)[2],
        float(min(between)),
        float(where.from_unit(best.t)[own]),
        pilots[best.pilot].name,
        float(np.hypot(uncertainty, ROUGH if growing or weak else 0.0)),
        weak,
        float(now.sum() * WEAK_INFORMATION / max(information, 1.0)),
        growing,
        held,
        _totals(trained, grid.from_unit(places), events, grid.parameters[p]) if held else (),
    )


def _models(trained: Model | Channels) -> list[Model]:
    return list(trained.values()) if isinstance(trained, Channels) else [trained]


def _pilots(trained: Model | Channels, events: float | Mapping[str, float]) -> list[Pilot]:
    """The simulation at hand of every channel."""
    if isinstance(trained, Channels):
        trained.check_names(events, "events")
        assert isinstance(events, Mapping)
        return [pilot_of(model, events[name], name) for name, model in trained.items()]
    if isinstance(events, Mapping):
        raise InputError("events: by channel, and there is one only; give a number")
    return [pilot_of(trained, events)]


def _totals(
    trained: Model | Channels, places: Array, events: Any, parameter: str
) -> tuple[float, float]:
    """The total error with nuisance parameters, and the same without what simulation adds: root
    mean squares over values of theta (places, parameters)."""
    found = []
    for theta in places:
        budget = trained.expected(theta, events).maximum()[parameter].budget
        now = sum(part**2 for part in budget.values())
        found.append((now, now - sum(budget.get(name, 0.0) ** 2 for name in (SIMULATION, MODEL))))
    now, least = np.sqrt(np.mean(found, axis=0)).tolist()
    return now, least


def _grows(model: Model) -> bool:
    """Whether events chose a network larger than the smallest with hidden units."""
    sizes = model.record.sizes
    taken = [one.parameters for one in sizes if one.chosen]
    return bool(taken) and len({one.hidden for one in sizes if one.parameters < taken[0]}) > 1


def _places(grid: Grid, pilots: list[Pilot], theta: Any) -> Array:
    """Where errors are averaged: at theta, or over the range that all templates have."""
    if theta is not None:
        return inner_point(grid, theta)[None]
    ends = grid.bounds.copy()
    for p, name in enumerate(grid.parameters):
        own = [
            one.grid.values[:, one.grid.parameters.index(name)]
            for one in pilots
            if name in one.grid.parameters
        ]
        low, high = max(values.min() for values in own), min(values.max() for values in own)
        if low < high:  # else no value has templates of all channels on either side
            ends[p] = low, high
    low, high = grid.to_unit(ends.T)
    share = np.linspace(0.1, 0.9, PLACES)[:, None]
    return np.asarray(low + share * (high - low))


def _best_shares(variances: Array, now: Array, more: float) -> Array:
    """Shares of the next events that make n_k proportional to sqrt(V_k), as far as the events that
    are there already allow."""
    wanted = np.sqrt(variances * now)
    # Where no template matters, all count alike.
    wanted = wanted / wanted.sum() if wanted.sum() > 0 else np.full(len(now), 1 / len(now))
    use = np.ones(len(now), bool)
    for _ in range(len(now)):
        total = now[use].sum() + more
        missing = np.where(use, total * wanted / wanted[use].sum() - now, 0.0)
        if (missing >= 0).all():
            break
        use &= missing > 0
    missing = missing.clip(min=0)
    return np.asarray(missing / missing.sum() if missing.sum() > 0 else wanted)


def _enough(made: Forecast, now: Array) -> float:
    """The simulated events with which the total is within a tenth of the statistical error."""
    low, high = -3.0, 4.0  # powers of ten times the simulation at hand
    for _ in range(20):
        middle = 0.5 * (low + high)
        stat, _, total = made(10**middle * now)
        low, high = (low, middle) if total <= COST * stat else (middle, high)
    return float(10**high * now.sum())
