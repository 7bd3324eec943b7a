"""The card at the top of a report: the result, its parts, and whether to trust it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gridless import strict_json
from gridless.errors import counted
from gridless.likelihood.agreement import p_value
from gridless.likelihood.warnings import SMALL_P_VALUE, rule_of
from gridless.report.subject import Subject
from gridless.report.typeset import (
    budget_html,
    data_address,
    interval_html,
    prose,
    symbol_html,
    value_html,
)
from gridless.results.labels import unit_of
from gridless.templates.query import used_of

GOOD, CAREFUL, BAD = "good", "careful", "bad"


@dataclass(frozen=True)
class Line:
    """The result of one parameter: symbol and value as HTML, sources with their sizes, and the
    interval at a level."""

    symbol: Any
    value: Any
    budget: list[tuple[str, Any]]
    unit: str
    wider: Any


@dataclass(frozen=True)
class Check:
    """Something that was looked at: what it is called, what was found, and whether it is `good`,
    asks to be `careful`, or is `bad`; and what to do about it."""

    name: str
    text: Any
    verdict: str
    cure: Any = ""


@dataclass(frozen=True)
class Card:
    """What a reader sees first."""

    lines: list[Line]
    events: str
    level: str
    verdict: str
    sentence: str
    checks: list[Check] = field(default_factory=list)
    json: str = ""


def agreement(subject: Subject) -> list[Check]:
    """Whether the data look like the simulation at the estimate."""
    estimate = subject.estimate
    if estimate is None or estimate.p_value is None or estimate.p_value < SMALL_P_VALUE:
        return []  # a small one is a warning
    text = f"Data look like the simulation at the estimate (p-value {estimate.p_value:.2g})."
    return [Check("Data and simulation", text, GOOD)]


def consistency(subject: Subject) -> list[Check]:
    """Whether the channels give the same values."""
    likelihood = subject.likelihood
    if likelihood is None or len(likelihood.channels) < 2:
        return []
    groups = likelihood.by()
    text = f"The channels agree (χ²/dof = {groups.chi2:.1f}/{groups.dof}, p-value "
    text += f"{groups.p_value:.2g})."
    if groups.p_value >= SMALL_P_VALUE:
        return [Check("Channels", text, GOOD)]
    text = text.replace("agree", "do not agree")
    return [Check("Channels", text, BAD, "find out what differs before combining them")]


def closure(subject: Subject) -> list[Check]:
    """Whether samples of known theta are estimated rightly."""
    table = subject.closure
    if table is None:
        text = "There was no closure test."
        return [Check("Closure", text, CAREFUL, "give samples of known parameters: --closure")]
    if not table.dof:
        text = "Every estimate of the closure test lies at a bound: it tests nothing."
        return [Check("Closure", text, CAREFUL, "close on samples farther inside the bounds")]
    p = p_value(table.chi2, table.dof)
    slopes = [table[name].slope for name in table]
    slope = ", ".join(f"{one:.3f}" for one in slopes if one is not None)
    text = f"{counted(len(table.truth), 'sample')} of known parameters: χ²/dof = "
    text += f"{table.chi2:.1f}/{table.dof}"
    text += f" (p-value {p:.2g})" + (f", slope {slope}." if slope else ".")
    if p >= SMALL_P_VALUE:
        return [Check("Closure", text, GOOD)]
    cure = "the method does not give back what was put in; see the pulls below"
    return [Check("Closure", text, BAD, cure)]


def scores(subject: Subject) -> list[Check]:
    """Whether the calibration holds at every template."""
    found = [m.check for m in subject.channels.values()]
    if any(one.failed or one.suspects for one in found):
        return []  # those that failed are warnings
    least = min(one.p_value for one in found)
    return [
        Check("Score check", f"Every template gives back its value (p-value {least:.2g}).", GOOD)
    ]


def audit(subject: Subject) -> list[Check]:
    """Whether the templates are what the fit needs."""
    audits = {n: m.summary.audit for n, m in subject.channels.items()}
    wrong = [(n, one) for n, audit in audits.items() for one in audit.findings if not one.met]
    if not wrong:
        return [Check("Templates", "The audit of the templates asks for no change.", GOOD)]
    if any(one.name == "audit" for one in subject.warnings):
        return []  # told already
    return [
        Check(f"Templates: {f'{n}: ' if n else ''}{one.demand}", _sentence(one.text), CAREFUL)
        for n, one in wrong
    ]


def warned(subject: Subject) -> list[Check]:
    """Every warning, with what to do."""
    checks = []
    for one in subject.warnings:
        rule = rule_of(one.name)
        verdict = BAD if rule.serious else CAREFUL
        checks.append(Check(one.name, _sentence(one.text), verdict, prose(rule.cure)))
    return checks


# In the order of the card; a further check is a function and a line.
CHECKS: list[Callable[[Subject], list[Check]]] = [
    *(warned, agreement, consistency, closure, scores, audit),
]


def make_card(subject: Subject) -> Card:
    """The card of a report."""
    checks = [check for make in CHECKS for check in make(subject)]
    found = {check.verdict for check in checks}
    verdict = BAD if BAD in found else CAREFUL if CAREFUL in found else GOOD
    estimate, likelihood = subject.estimate, subject.likelihood
    if estimate is None or likelihood is None:
        sentence = {
            GOOD: "Nothing speaks against this model.",
            CAREFUL: "Use this model with care: see below.",
            BAD: "Do not measure with this model yet: see below.",
        }[verdict]
        return Card([], "", "", verdict, sentence, checks)
    lines = []
    for name in estimate.parameters:
        one = estimate[name]
        unit = unit_of(one.label)
        low, high = likelihood.interval(subject.level, name)
        wider = interval_html(low, high, one.error, unit)
        lines.append(
            Line(symbol_html(name, one.label), value_html(one), budget_html(one), unit, wider)
        )
    sentence = {
        GOOD: "No reason was found to doubt this result.",
        CAREFUL: "The result stands, with remarks: see below.",
        BAD: "Do not use this result yet: see below.",
    }[verdict]
    content = strict_json.dumps(estimate.to_dict(), indent=1)
    return Card(
        lines,
        used_of(estimate.events, estimate.offered),
        f"{subject.level:.0%}",
        verdict,
        sentence,
        checks,
        data_address(content, "application/json"),
    )


def _sentence(text: str) -> Any:
    """A text with a full stop at its end, and names in backticks set as code."""
    return prose(text if text.endswith(".") else f"{text}.")
