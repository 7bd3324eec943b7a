"""Reasons to doubt an estimate: one table, and the rule of each.

A new warning is a row in `WARNINGS` and a function below it; docs/warnings.md has the same table.
"""

from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import pdtrc

from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

SMALL_P_VALUE = 1e-3  # below this a test says that data and simulation differ
OUTSIDE_SHARE = 1e-3  # of the simulation that lies outside of it by definition
ON_BOUND = 1e-9  # of the range: closer to a bound than this is on it
NEAR_BOUND = 2.0  # statistical errors from a bound
TEMPLATE_MARGIN = 0.51  # gaps beyond the outermost template; the paper's grid has 0.5 beside it
PRIOR_SHIFT = 0.3  # errors by which an implied prior may move an estimate
LARGE_LOG_Q = 0.5  # units of log likelihood: a correction this large is not exact
COLLAPSED_LOG_Q = 0.1  # units of log likelihood between templates and halfway between them
LEAST_GAIN = 3.0  # units of log likelihood on held-out events


class EstimateWarning(NamedTuple):
    """A reason to doubt an estimate.

    Attributes
    ----------
    name : str
        One of those in docs/warnings.md.
    text : str
        What it means for this estimate.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> estimate = example.likelihood(example.quantiles(0.4, 10)).maximum()
    >>> [warning.name for warning in estimate.warnings]
    ['near_bound', 'near_bound']
    """

    name: str
    text: str


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
        f"a bound is within {NEAR_BOUND:g} statistical errors",
        "a 95 percent interval will be cut",
        serious=False,
    ),
    Rule(
        "extrapolated",
        "the value lies more than half a gap beyond the outermost template",
        "simulate there; nothing was learnt that far out",
    ),
    Rule(
        "no_information",
        f"the held-out events gain less than {LEAST_GAIN:g} units of log likelihood",
        "the observables say nothing about the parameters, or training failed: add observables, "
        "widen the range, or train longer",
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
        f"than {1 - OUTSIDE_SHARE:.1%} of the widest template",
        "compare the distributions of data and templates; cut, or simulate what is missing",
    ),
    Rule(
        "bad_fit",
        "the events do not fill the space of the observables as the simulation at the estimate "
        f"does (p < {SMALL_P_VALUE:g}), in a channel or in all together",
        "the model does not describe the data; do not use the estimate before it does",
    ),
    Rule(
        "no_simulation_error",
        "some channels of a sum have an uncertainty from simulation and others have none",
        "fit the models of the others with replicas: theirs is missing from the error",
        serious=False,
    ),
)


def rule_of(name: str) -> Rule:
    """The row of a warning in the table."""
    return next(rule for rule in WARNINGS if rule.name == name)


def markdown_table() -> str:
    """The table as it stands in docs/warnings.md."""
    rows = [f"| `{rule.name}` | {rule.when} | {rule.cure} |" for rule in WARNINGS]
    return "\n".join(["| name | when | what to do |", "|---|---|---|", *rows])


def bound_warnings(
    name: str, value: float, bounds: Sequence[float], cut: Sequence[bool], stat: float
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
        elif abs(value - bound) < NEAR_BOUND * stat:
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


def outside_warnings(outside: int, events: int) -> list[EstimateWarning]:
    """outside_simulation: `outside` of so many events lie outside of the simulation."""
    expected = max(OUTSIDE_SHARE * events, 1e-9)
    # The Poisson probability of at least as many.
    if outside == 0 or pdtrc(outside - 1, expected) >= SMALL_P_VALUE:
        return []
    text = (
        f"{outside / events:.2%} of the events lie outside of the simulation, where "
        f"{OUTSIDE_SHARE:.1%} are expected; compare the distributions of data and templates"
    )
    return [EstimateWarning("outside_simulation", text)]


def fit_warnings(p_value: float) -> list[EstimateWarning]:
    """bad_fit: the events are not distributed as the simulation at the estimate."""
    if not p_value < SMALL_P_VALUE:
        return []
    text = (
        f"the events do not look like the simulation at the estimate (p = {p_value:.2g}); "
        "compare their distributions, add what the templates lack"
    )
    return [EstimateWarning("bad_fit", text)]


def prior_warnings(names: Sequence[str], shifts: Array) -> list[EstimateWarning]:
    """implied_prior of prior="flat": q moves the parameters by `shifts` errors."""
    if not shifts.max() > PRIOR_SHIFT:
        return []
    worst = int(shifts.argmax())
    text = (
        f"q is not flat, which moves {names[worst]} by about {shifts[worst]:.1f} errors; "
        'fit with prior="divide"'
    )
    return [EstimateWarning("implied_prior", text)]


def source_warnings(source: str, without: Sequence[str]) -> list[EstimateWarning]:
    """no_simulation_error: the channels `without` a source of uncertainty that others have."""
    if not without:
        return []
    text = f"{', '.join(without)}: no uncertainty from {source}, which the error therefore lacks"
    return [EstimateWarning("no_simulation_error", text)]


def model_warnings(
    gain: float, dip: float, max_log_q: float, divided: bool
) -> tuple[EstimateWarning, ...]:
    """no_information, collapsed, implied_prior: what speaks against every estimate with a model.

    Parameters
    ----------
    gain : float
        Log likelihood that held-out events gain over a model that knows nothing.
    dip : float
        log q halfway between templates less that at them.
    max_log_q : float
        The largest abs(log q) in the range.
    divided : bool
        Whether the likelihood is divided by q.
    """
    found = []
    if gain < LEAST_GAIN:
        text = (
            "the network can hardly distinguish parameter values (held-out log likelihood "
            f"{gain:+.1f}, below {LEAST_GAIN:g}); add observables, or train longer"
        )
        found.append(EstimateWarning("no_information", text))
    if abs(dip) > COLLAPSED_LOG_Q:
        text = (
            f"log q between templates differs by {dip:+.2f} from log q at them: components "
            "have collapsed onto templates; use fewer, or a larger floor of their width"
        )
        found.append(EstimateWarning("collapsed", text))
    if divided and max_log_q > LARGE_LOG_Q:
        text = (
            f"max |log q| = {max_log_q:.2f} is a large correction; "
            'fit with objective="template", or train longer'
        )
        found.append(EstimateWarning("implied_prior", text))
    return tuple(found)
