"""Reasons to doubt an estimate: one table, and the rule of each.

A new warning is a row in `WARNINGS`, a function below it, and a call of that in `_warnings` of both
`estimating.py`, or in `Model.warnings`. docs/warnings.md has the same table.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import betainc

from gridless.results.printing import probability
from gridless.results.warning import EstimateWarning
from gridless.templates.arrays import Array
from gridless.templates.audit import Audit
from gridless.templates.event_findings import MAX_COPIES
from gridless.templates.grid import Grid

SMALL_P_VALUE = 1e-3  # below this a test says that data and simulation differ
OUTSIDE_SHARE = 1e-3  # of the simulated events that count as outside, which defines the reach
LEAST_OUTSIDE = 1e-9  # share of events, and its relative variance, that are still numbers
ON_BOUND = 1e-9  # of the range: closer to a bound than this is on it
RIVAL_RISE = 4.5  # units of log likelihood that three standard deviations are
NEAR_BOUND = 2.0  # errors from a bound
TEMPLATE_MARGIN = 0.51  # gaps beyond the outermost template; the paper's grid has margins of 0.5
PRIOR_SHIFT = 0.3  # errors by which an implied prior may move an estimate
LARGE_LOG_Q = 0.5  # units of log likelihood: a correction this large is not exact
COLLAPSED_LOG_Q = 0.1  # units of log likelihood between templates and halfway between them
SCORE_CHECK_P_VALUE = 1e-3  # of the means of all templates together
BIASED = 0.5  # statistical errors of bias, as seen in the simulation, that are not warned of
BIASED_NOISE = 2.0  # a bias below this many of its own errors is noise of the templates
LEAST_INFORMATION = 25.0  # in chi2: a slope that is known to a fifth of itself
LEAST_GAIN = 3.0  # units of log likelihood on held-out events
# In errors from simulation: between templates of few events the interpolation has errors up to 1.2.
WIDE_OF_SIMULATION = 2.0
WIDE_GAP = 0.5  # statistical errors: templates 0.1 apart leave 0.1 to 0.4 open in our examples
FAR_PULL = 3.0  # standard deviations of its constraint that a nuisance parameter may be pulled
FAR_VARIED = 2.5  # times its variation: one of unit constraint is there in 1 percent of fits
TIGHT_PULL = 0.05  # of its constraint: an error after the fit that few variations are meant for


class Rule(NamedTuple):
    """A row of the table: the name of a warning, when it comes, what to do, and whether the
    estimate should not be used before."""

    name: str
    when: str
    cure: str
    serious: bool = True


WARNINGS = (
    Rule(
        "at_bound",
        "the best value lies on a bound",
        "widen the bounds and simulate there: the true value may lie beyond",
    ),
    Rule(
        "cut_by_bound",
        "a bound cuts the 68 percent interval",
        "the same; the other end of the interval is still right",
        serious=False,
    ),
    Rule(
        "near_bound",
        f"a bound is within {NEAR_BOUND:g} errors",
        "a 95 percent interval will be cut",
        serious=False,
    ),
    Rule(
        "extrapolated",
        "the value lies more than half a gap beyond the outermost template; or a nuisance "
        f"parameter over {FAR_VARIED:g} times its variation",
        "simulate there; nothing was learnt that far out",
    ),
    Rule(
        "other_solution",
        f"at another minimum the mean of the events is less likely by under {RIVAL_RISE:g} units "
        "of log likelihood (three standard deviations)",
        "the interval is that of the best solution alone; look at the likelihood as a whole, and "
        "add an observable or a constraint that tells the two apart",
    ),
    Rule(
        "no_information",
        f"the means of the templates differ by less than {LEAST_INFORMATION:g} in chi2; without "
        f"calibration, the held-out events gain less than {LEAST_GAIN:g} units of log likelihood",
        "the observables say nothing about the parameters, or training failed: add observables, "
        "widen the range, or train longer",
    ),
    Rule(
        "template_check",
        "the mean summary of a template is not where the other templates predict it (p < 0.002 "
        "over their number)",
        "look for a wrong file, label or weight of the template that is named; if there is none, "
        "the observables change faster there than the grid follows: simulate a value beside it",
    ),
    Rule(
        "score_check",
        "the means of the templates do not lie on a smooth curve "
        f"(p < {SCORE_CHECK_P_VALUE:g}); what is left counts as noise of the templates, which a "
        "kink between two of them is not. Or they scatter around their values of theta by more "
        "than their statistics. Without calibration: the mean score of the templates' own events "
        f"says that the estimate is off by more than {BIASED:g} statistical errors",
        "look at `model.check`; simulate more values between the templates; look for wrong files; "
        "without calibration, fit with it",
        serious=False,
    ),
    Rule(
        "wide_gap",
        "what the templates leave open between them, `model` in the budget, is over "
        f"{WIDE_GAP:g} statistical errors and over twice their statistics; or what the variations "
        "of a systematic leave open: at too few values of theta, one-sided, or large",
        "simulate a template between the two that are named (`gl.gaps`), or more of the systematic",
        serious=False,
    ),
    Rule(
        "collapsed",
        f"log q between neighbouring templates differs by over {COLLAPSED_LOG_Q:g} from that at "
        "them",
        "fewer components, or a larger floor on their width: they sit on the templates instead of "
        "interpolating",
    ),
    Rule(
        "implied_prior",
        f'prior="flat": q(theta) moves the estimate by over {PRIOR_SHIFT:g} errors; '
        f'prior="divide": max abs(log q) is over {LARGE_LOG_Q:g}',
        'fit with prior="divide"; with objective="template"; train longer',
    ),
    Rule(
        "outside_simulation",
        f"more events than chance allows (p < {SMALL_P_VALUE:g}) lie farther from the simulation "
        f"than {1 - OUTSIDE_SHARE:.1%} of the templates' events; or any lies farther outside than "
        "the simulation is wide",
        "compare the distributions of data and templates; cut, or simulate what is missing; look "
        "at the events that are named: such ones count 0",
    ),
    Rule(
        "bad_fit",
        "the events do not fill the space of the observables as the simulation at the estimate "
        f"does (p < {SMALL_P_VALUE:g}), in a channel or in all together",
        "the model does not describe the data; do not use the estimate before it does",
    ),
    Rule(
        "repeated_events",
        f"over {MAX_COPIES:.0%} of the events are exact copies of others, or in two channels, and "
        "more than chance would have it",
        "give every event once: copies make errors too small",
    ),
    Rule(
        "audit",
        "the templates do not meet a demand of the audit",
        "what its text says; see `gridless audit`",
        serious=False,
    ),
    Rule(
        "no_simulation_error",
        "some channels of a sum have an uncertainty from simulation and others have none",
        "fit the models of the others with replicas: theirs is missing from the error",
        serious=False,
    ),
    Rule(
        "pulled",
        f"a nuisance parameter is over {FAR_PULL:g} standard deviations from its constraint",
        "the variation does not describe what the observed events show: look at its distribution",
    ),
    Rule(
        "over_constrained",
        f"the fit knows a nuisance parameter to under {TIGHT_PULL:g} of its constraint",
        "one parameter may be too few for this systematic: split it, or make the variation smaller",
        serious=False,
    ),
)


def rule_of(name: str) -> Rule:
    """The row of a warning in the table."""
    return next(rule for rule in WARNINGS if rule.name == name)


def bound_warnings(
    name: str, value: float, bounds: Sequence[float], cut: Sequence[bool], error: float
) -> list[EstimateWarning]:
    """at_bound, cut_by_bound, near_bound: what the bounds do to the estimate of a parameter."""
    found = []
    low, high = bounds
    for end, bound, is_cut in zip(("low", "high"), bounds, cut, strict=True):
        if abs(value - bound) < ON_BOUND * (high - low):
            text = f"{name} is at the bound {bound:g}; the true value may lie beyond"
            found.append(EstimateWarning("at_bound", text))
        elif is_cut:
            text = f"the {end} end of the interval of {name} is cut by the bound {bound:g}"
            found.append(EstimateWarning("cut_by_bound", text))
        elif abs(value - bound) < NEAR_BOUND * error:
            text = f"{name} is within two errors of the bound {bound:g}"
            found.append(EstimateWarning("near_bound", text))
    return found


def extrapolation_warnings(values: Array, grid: Grid) -> list[EstimateWarning]:
    """extrapolated: values of the grid's parameters beyond its outermost templates."""
    found = []
    for p, name in enumerate(grid.parameters if len(grid) else ()):
        low, high = grid.values[:, p].min(), grid.values[:, p].max()
        margin = TEMPLATE_MARGIN * grid.spacing * grid.range[p]
        if not low - margin <= values[p] <= high + margin:
            text = f"{name} is beyond the outermost templates, {low:g} and {high:g}"
            found.append(EstimateWarning("extrapolated", text))
    return found


def rival_warnings(
    names: Sequence[str], rivals: Sequence[tuple[Array, float]]
) -> list[EstimateWarning]:
    """other_solution: values of the parameters at other minima, and how much higher these are."""
    found = []
    for values, rise in rivals:
        where = ", ".join(f"{n} = {value:.4g}" for n, value in zip(names, values, strict=True))
        text = f"another solution, {where}, is less likely by {rise:.1f} units of log likelihood"
        found.append(EstimateWarning("other_solution", text))
    return found


def variation_warnings(name: str, value: float) -> list[EstimateWarning]:
    """extrapolated: a nuisance parameter far beyond the variations that were simulated."""
    text = f"{name} is at {value:+.1f} times its variation; simulate a larger one"
    return [EstimateWarning("extrapolated", text)] if abs(value) > FAR_VARIED else []


def is_wide(left_open: float, stat: float, simulation: float) -> bool:
    """Whether a further template between two others would help more than more events of each."""
    return left_open > max(WIDE_GAP * stat, WIDE_OF_SIMULATION * simulation)


def gap_warnings(name: str, sizes: tuple[float, float, float], what: str) -> list[EstimateWarning]:
    """wide_gap: `what` is too far apart for the number of events. `sizes` are the errors from
    interpolation, from the observed events, and from the statistics of the simulation."""
    text = f"{name}: {sizes[0] / sizes[1]:.2g} statistical errors are left open between {what}"
    return [EstimateWarning("wide_gap", text)] if is_wide(*sizes) else []


def far_warnings(far: int, rows: int, named: Sequence[object]) -> list[EstimateWarning]:
    """outside_simulation: `far` of so many rows are left out, some of which are named."""
    some = ", ".join(map(str, named)) + (", ..." if far > len(named) else "")
    text = (
        f"{far:,} of {rows:,} events lie farther outside of the simulation than it is wide and "
        f"are left out: {some}; look for missing values and wrong units"
    )
    return [EstimateWarning("outside_simulation", text)] if far else []


def outside_warnings(
    outside: int, events: int, share: float, variance: float
) -> list[EstimateWarning]:
    """outside_simulation: `outside` of the events lie outside of the simulation, significantly more
    than the expected share, which has a variance."""
    share = max(share, LEAST_OUTSIDE)
    expected, shape = share * events, 1 / max(variance / share**2, LEAST_OUTSIDE)
    # At least as many, of a Poisson number whose mean has a gamma distribution.
    if not outside or betainc(outside, shape, expected / (expected + shape)) >= SMALL_P_VALUE:
        return []
    text = (
        f"{outside / events:.2%} of the events lie outside of the simulation, where "
        f"{share:.2%} are expected; compare the distributions of data and templates"
    )
    return [EstimateWarning("outside_simulation", text)]


def fit_warnings(p_value: float) -> list[EstimateWarning]:
    """bad_fit: the events are not distributed as the simulation at the estimate."""
    text = (
        f"the events do not look like the simulation at the estimate (p {probability(p_value)}); "
        "compare their distributions, add what the templates lack"
    )
    return _told("bad_fit", text, p_value < SMALL_P_VALUE)


def copy_warnings(share: float) -> list[EstimateWarning]:
    """repeated_events: that share of the events are copies of others."""
    text = f"{share:.0%} of the events are exact copies of others, which makes errors too small"
    return [EstimateWarning("repeated_events", text)] if share else []


def common_warnings(one: str, other: str, share: float) -> list[EstimateWarning]:
    """repeated_events: that share of the events of one channel are in another one too."""
    text = f"{share:.0%} of the events of {one} are in {other} too, which makes errors too small"
    return [EstimateWarning("repeated_events", text)] if share else []


def audit_warnings(audit: Audit) -> tuple[EstimateWarning, ...]:
    """audit: demands on the templates that they do not meet."""
    failed = [finding for finding in audit.findings if not finding.met]
    return tuple(EstimateWarning("audit", f"{one.demand}: {one.text}") for one in failed)


def prior_warnings(names: Sequence[str], shifts: Array) -> list[EstimateWarning]:
    """implied_prior of prior="flat": q moves the parameters by `shifts` errors."""
    worst = int(shifts.argmax())
    text = (
        f"q is not flat, which moves {names[worst]} by about {shifts[worst]:.1f} errors; "
        'fit with prior="divide"'
    )
    return [EstimateWarning("implied_prior", text)] if shifts[worst] > PRIOR_SHIFT else []


def nuisance_warnings(name: str, pull: float, constrained: float) -> list[EstimateWarning]:
    """pulled, over_constrained: a nuisance parameter after the fit, in units of its constraint."""
    far = f"{name} is pulled by {pull:+.1f} standard deviations of its constraint"
    tight = f"{name} is known to {constrained:.2g} of its constraint from the events alone"
    found = [EstimateWarning("pulled", far)] if abs(pull) > FAR_PULL else []
    return found + [EstimateWarning("over_constrained", tight)] * (constrained < TIGHT_PULL)


def source_warnings(source: str, without: Sequence[str]) -> list[EstimateWarning]:
    """no_simulation_error: the channels `without` a source of uncertainty that others have."""
    text = f"{', '.join(without)}: no uncertainty from {source}, which the error therefore lacks"
    return [EstimateWarning("no_simulation_error", text)] if without else []


def template_warnings(suspects: Sequence[str]) -> tuple[EstimateWarning, ...]:
    """template_check: the templates that are not like the others."""
    names = " and of ".join(suspects[:3])
    text = f"the events of {names} do not fit the other templates: wrong file, label or weight?"
    return (EstimateWarning("template_check", text),) if suspects else ()


def score_warnings(parameters: Sequence[str], shifts: Array, noise: Array) -> list[EstimateWarning]:
    """score_check: estimates that the mean score moves by `shifts`, known to `noise`, both in
    statistical errors; by infinity where the likelihood has no minimum that could move."""
    found = []
    for name, shift, error in zip(parameters, shifts, noise, strict=True):
        if shift > max(BIASED, BIASED_NOISE * error):
            off = f"off by {shift:.1f} statistical errors"
            off = off if shift < math.inf else "pushed to a bound"
            text = f"the templates' own events say that {name} is {off}; fit with calibrate=True"
            found.append(EstimateWarning("score_check", text))
    return found


def scatter_warnings(p_value: float) -> tuple[EstimateWarning, ...]:
    """score_check: the templates scatter around their values of theta, each by a mistake of its
    own."""
    text = (
        "the templates' own events scatter around their values of theta by more than their "
        f"statistics (p {probability(p_value)}); look at what differs between the simulations: "
        "versions, settings, selections; if nothing does, the network may not know a sharp edge"
    )
    return tuple(_told("score_check", text, p_value < SCORE_CHECK_P_VALUE))


def check_warnings(p_value: float, information: float) -> tuple[EstimateWarning, ...]:
    """score_check, no_information: what the templates say against a calibration, `p_value` that
    their means lie on a curve, and `information` in chi2 by which a constant is worse."""
    off = (
        f"the means of the templates do not lie on a smooth curve (p {probability(p_value)}); "
        "the uncertainty from simulation is scaled up by it"
    )
    alike = (
        "the templates can hardly be told apart (a constant is worse by "
        f"{information:.1f} in chi2, below {LEAST_INFORMATION:g}); add observables, simulate "
        "more, or widen the range"
    )
    return (
        *_told("score_check", off, p_value < SCORE_CHECK_P_VALUE),
        *_told("no_information", alike, information < LEAST_INFORMATION),
    )


def model_warnings(
    gain: float, dip: float, max_log_q: float, divided: bool
) -> tuple[EstimateWarning, ...]:
    """no_information, collapsed, implied_prior: what speaks against a model without calibration.

    `gain` is the log likelihood that held-out events gain over a model that knows nothing, `dip`
    is log q halfway between templates less that at them, `max_log_q` the largest abs(log q), and
    `divided` whether likelihoods are divided by q.
    """
    nothing = (
        "the network can hardly distinguish parameter values (held-out log likelihood "
        f"{gain:+.1f}, below {LEAST_GAIN:g}); add observables, or train longer"
    )
    between = (
        f"log q between templates differs by {dip:+.2f} from log q at them: components "
        "have collapsed onto templates; use fewer, or a larger floor of their width"
    )
    large = (
        f"max |log q| = {max_log_q:.2f} is a large correction; "
        'fit with objective="template", or train longer'
    )
    return (
        *_told("no_information", nothing, gain < LEAST_GAIN),
        *_told("collapsed", between, abs(dip) > COLLAPSED_LOG_Q),
        *_told("implied_prior", large, divided and max_log_q > LARGE_LOG_Q),
    )


def _told(name: str, text: str, holds: bool) -> list[EstimateWarning]:
    return [EstimateWarning(name, text)] if holds else []
