"""The page of a review: twelve questions, each with its number, figure, verdict and cure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from gridless import strict_json
from gridless.files.sources import as_path
from gridless.files.write import write_whole
from gridless.likelihood.likelihood import Likelihood
from gridless.report.card import BAD, CAREFUL, GOOD, Card, Check, warned
from gridless.report.data_figures import draw_budget, draw_data
from gridless.report.measurement_sections import budget_tables, estimate_tables, nuisance_tables
from gridless.report.page import Section, render_report
from gridless.report.style import BLACK, BLUE, GREY, RED, SKY, new_figure, style, symbol
from gridless.report.subject import Subject as Reported
from gridless.report.typeset import (
    data_address,
    ranges_html,
    symbol_html,
    symbols_html,
    value_html,
)
from gridless.results import printing
from gridless.results.labels import symbol_of, unit_of
from gridless.validation.review.answer import OPEN, Answer, Subject
from gridless.validation.review.run import Review

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (5.2, 3.4)  # inches
ROW = 0.28  # inches of a row of points
# How the page calls the questions.
TITLES = {
    "bias": "Bias",
    "coverage": "Coverage",
    "bounds": "Bounds and few events",
    "simulation": "Statistics of the simulation",
    "data": "Data against simulation",
    "templates": "Templates against each other",
    "probabilities": "Probabilities of single events",
    "stability": "Stability",
    "groups": "Groups of the data",
    "expected": "Expected error",
    "binned": "A check without the network",
    "reproducible": "Reproduction and combination",
}
# Questions that are asked of all channels together, not of each.
OF_THE_SUM = ("coverage", "bounds", "simulation", "expected")
VERDICTS = {GOOD: "Good", CAREFUL: "With care", BAD: "Bad", OPEN: "Not asked"}
SENTENCES = {
    GOOD: "Nothing was found that speaks against it.",
    CAREFUL: "It stands, with remarks: see below.",
    BAD: "Not ready yet: see below.",
}


def write_review(path: str | Path, review: Review, command: str | None = None) -> Path:
    """Write one self-contained HTML page of a review, to hand to a committee.

    Needs the extra `report`.

    Parameters
    ----------
    path : str or Path
        The page to write.
    review : Review
        As `gl.review` made it.
    command : str, optional
        The command line that made it, to be shown on the page.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(1_000, seed=1), hidden=3, seed=1)
    >>> gl.write_review("review.html", gl.review(model, events=1_000, toys=200)).name
    'review.html'
    """
    subject = review.subject
    models = {name: one.model for name, one in subject.channels.items()}
    first, *_ = models.values()
    whole = Reported(first, subject.likelihood, subject.estimate, channels=models)
    checks = warned(whole)
    checks += [replace(_check(answer), name=TITLES[n]) for n, answer in review.answers.items()]
    content = strict_json.dumps(review.to_dict(), indent=1)
    sentence = SENTENCES[review.verdict]
    unasked = sum(answer.verdict == OPEN for answer in review.answers.values())
    if unasked:
        sentence += f" Not asked: {unasked} of {len(review.answers)} questions."
    card = Card([], "", "", review.verdict, sentence, checks,
                data_address(content, "application/json"))  # fmt: skip
    tables = [*estimate_tables(whole), *budget_tables(whole), *nuisance_tables(whole)]
    sections = {"estimate": Section("The result", lead=_result(subject), tables=tables)}
    for number, (name, answer) in enumerate(review.answers.items(), start=1):
        sections[name] = Section(
            f"{number}. {answer.question}",
            check=_check(answer),
            label=TITLES[name],
            figures=_figures(name, answer, subject),
            show=answer.question,
            numbers=answer.numbers,
        )
    parts = subject.channels.values()
    events = "without data"
    if subject.x is not None:
        events = f"{sum(len(one.x) for one in parts):,} observed events"
    grid = subject.model.grid
    made_of = f"A model of {len(grid)} templates"
    if len(subject.channels) > 1:
        made_of = f"The channels {', '.join(subject.channels)}"
    if command:
        sections["made"] = Section("How this page was made", text=command)
    page = render_report(
        Markup("Review of ") + symbols_html(grid),
        escape(f"{made_of} of ") + ranges_html(grid) + f", {events}.",
        sections,
        card=card,
    )
    target = as_path(path)
    write_whole(target, page)
    return target


def _result(subject: Subject) -> Markup:
    """The estimate of every parameter with its unit, and what it was made from."""
    estimate = subject.estimate
    values = [
        symbol_html(one.name, one.label) + " = " + value_html(one) for one in estimate.results
    ]
    start = Markup("" if subject.x is not None else "Expected: ")
    return start + Markup(", ").join(values) + f"; {estimate.summary()}."


def _sentence(text: str) -> str:
    shown = text.replace("chi2", "χ²")
    return f"{shown[0].upper()}{shown[1:]}" + ("" if text.endswith(".") else ".")


def _check(answer: Answer) -> Check:
    """Verdict with the number, what was found, and the cure of what is not good."""
    words = VERDICTS[answer.verdict] + (f": {answer.number}" if answer.number else "")
    verdict = CAREFUL if answer.verdict == OPEN else answer.verdict
    return Check(words, _sentence(answer.text), verdict, "" if verdict == GOOD else answer.cure)


def _figures(name: str, answer: Answer, subject: Subject) -> list[Figure]:
    """The figures of an answer; of several channels those of each."""
    parts = {"": (answer.numbers, subject)}
    if len(subject.channels) > 1 and name not in OF_THE_SUM:
        parts = {
            channel: (numbers, subject.channels.get(channel, subject))
            for channel, numbers in answer.numbers.items()
        }
    found = []
    for channel, (numbers, own) in parts.items():
        # Numbers of what could not be asked are empty.
        for figure in _of_channel(name, numbers, own, subject.likelihood) if numbers else ():
            if channel:
                figure.axes[0].set_title(channel)
            found.append(figure)
    return found


def _of_channel(
    name: str, numbers: dict[str, Any], subject: Subject, whole: Likelihood
) -> list[Figure]:
    """The figures of one channel; data and simulation at the estimate of the whole."""
    if name == "data":
        return [draw_data(subject.model, whole, one) for one in subject.model.observables]
    draw = FIGURES.get(name)
    with style():
        figure = None if draw is None else draw(numbers, subject)
    return [] if figure is None else [figure]


def _symbol(name: str, subject: Subject) -> str:
    """How a figure calls a parameter."""
    return symbol(name, subject.model.grid.labels)


def _points(
    rows: Sequence[tuple[str, float, float | tuple[float, float]]],
    across: str,
    band: tuple[float, float] | None = None,
    legend: tuple[str, str] | None = None,
) -> Figure:
    """Points with errors, downwards and upwards where there are two, one row for each, about a
    band; a legend says what the errors and the band are."""
    figure = new_figure((SIZE[0], max(1.6, 0.9 + ROW * len(rows))))
    axes = figure.subplots()
    places = np.arange(len(rows))[::-1]
    drawn: list[Any] = []
    if band is not None:
        middle, half = band
        drawn.append(axes.axvspan(middle - half, middle + half, color=SKY, alpha=0.4, lw=0))
        axes.axvline(middle, color=GREY, lw=1)
    values = [row[1] for row in rows]
    errors = np.array([np.broadcast_to(row[2], 2) for row in rows]).T
    drawn.insert(0, axes.errorbar(values, places, xerr=errors, fmt="o", color=BLACK, ms=4))
    if legend is not None:
        figure.legend(drawn, legend, loc="outside lower center", ncols=2, fontsize="small")
    axes.set_yticks(places, [row[0] for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.minorticks_off()
    axes.set_xlabel(across)
    return figure


def _bias(numbers: dict[str, Any], subject: Subject) -> Figure | None:
    if "true" not in numbers:  # too few templates to leave one out
        return None
    names = subject.model.grid.parameters
    figure = new_figure(SIZE)
    axes = figure.subplots()
    axes.axhspan(-1, 1, color=SKY, alpha=0.4, lw=0)
    true, largest = np.array(numbers["true"]), 2.0
    for p, name in enumerate(names):
        pulls = np.array([np.nan if v is None else v for v in numbers["pulls"][p]], float)
        colour, called = (BLACK, BLUE, RED)[p], _symbol(name, subject)
        axes.plot(true[:, p], pulls, "os^"[p], color=colour, label=called)
        largest = np.nanmax([largest, *np.abs(pulls)])
    axes.axhline(0, color=BLACK, lw=0.8)
    axes.set_ylim(-1.15 * largest, 1.15 * largest)
    axes.set_xlabel(", ".join(_symbol(name, subject) for name in names))
    axes.set_ylabel("pull without the template")
    if len(names) > 1:
        axes.legend()
    return figure


def _coverage(numbers: dict[str, Any], subject: Subject) -> Figure:
    figure = new_figure(SIZE)
    axes = figure.subplots()
    for name, one in numbers["parameters"].items():
        edges = np.array(one["edges"])
        axes.stairs(
            one["pulls"],
            edges,
            label=f"{symbol_of(_symbol(name, subject))}: width {one['width']:.2f}",
        )
    middle = np.linspace(-4, 4, 200)
    normal = np.exp(-0.5 * middle**2) / np.sqrt(2 * np.pi)
    axes.plot(middle, numbers["toys"] * (edges[1] - edges[0]) * normal, color=GREY, ls="--")
    axes.set_xlabel("(estimate - truth) / total error")
    axes.set_ylabel("pseudo-experiments")
    axes.legend()
    return figure


def _bounds(numbers: dict[str, Any], subject: Subject) -> Figure:
    best = {name: subject.estimate[name].value for name in numbers}
    rows = [
        (f"{name if len(numbers) > 1 else ''} {one['level']:.0%} {label}".strip(),
         best[name], (max(best[name] - low, 0.0), max(high - best[name], 0.0)))
        for name, levels in numbers.items()
        for one in levels
        for label, (low, high) in (
            ("Wilks", one["wilks"]),
            ("Feldman-Cousins", one["feldman_cousins"]),
        )
    ]  # fmt: skip
    return _points(rows, ", ".join(_symbol(name, subject) for name in numbers))


def _simulation(numbers: dict[str, Any], subject: Subject) -> Figure:
    figure = new_figure(SIZE)
    axes = figure.subplots()
    events = np.array(numbers["factors"]) * numbers["simulated"]
    for key, colour in (("total", BLACK), ("simulation", RED), ("stat", BLUE)):
        axes.plot(events, [row[key] for row in numbers["errors"]], color=colour, label=key)
    axes.axvline(numbers["simulated"], color=GREY, lw=1, ls="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("simulated events")
    axes.set_ylabel(f"error of {_symbol(numbers['parameter'], subject)}")
    axes.legend()
    return figure


def _templates(numbers: dict[str, Any], _subject: Subject) -> Figure:
    figure = new_figure(SIZE)
    axes = figure.subplots()
    values = np.array([[np.nan if v is None else v for v in row] for row in numbers["p_values"]])
    ordered = np.sort(values[np.isfinite(values)])
    share = (np.arange(len(ordered)) + 0.5) / max(1, len(ordered))
    axes.plot([0, 1], [0, 1], color=GREY, ls="--")
    axes.plot(ordered, share, color=BLUE, drawstyle="steps-mid")
    axes.set_xlabel("p-value of a template and observable")
    axes.set_ylabel("share of p-values below")
    return figure


def _probabilities(numbers: dict[str, Any], _subject: Subject) -> Figure:
    figure = new_figure(SIZE)
    axes = figure.subplots()
    predicted = np.array(numbers["predicted"])
    difference = np.array(numbers["found"]) - predicted
    axes.axhline(0, color=GREY, ls="--")
    axes.errorbar(predicted, difference, yerr=numbers["error"], fmt="o", color=BLACK, ms=4)
    axes.set_xlabel("predicted probability of a template")
    axes.set_ylabel("found - predicted")
    return figure


def _stability(numbers: dict[str, Any], subject: Subject) -> Figure:
    fits = [(one["name"], one) for one in numbers["variants"]]
    return _differences(fits, numbers["parameters"], subject)


def _differences(fits: list[tuple[str, Any]], names: list[str], subject: Subject) -> Figure:
    """What other fits differ by from the result, in every parameter and in units of what is
    expected: a fit without the best observable may differ by a hundred times more than others."""
    rows = []
    for fit, one in fits:
        for p, name in enumerate(names):
            difference, spread = one["difference"][p], one["spread"][p]
            _, up, _, shown = printing.rounded(0.0, spread, spread, abs(difference))
            unit = unit_of(_symbol(name, subject))
            whose = f" ({symbol_of(_symbol(name, subject))})" if len(names) > 1 else ""
            sign = "-" if difference < 0 else "+"
            text = f"{fit}{whose}: {sign}{shown} ± {up} {unit}".rstrip()
            rows.append((text, difference / spread if spread > 0 else 0.0, 0.0))
    return _points(rows, "difference / expected spread", (0.0, 1.0))


def _groups(numbers: dict[str, Any], subject: Subject) -> Figure:
    name = subject.model.grid.parameters[0]
    one = subject.estimate[name]
    rows = [
        (group, found[name]["value"], found[name]["stat"] or 0.0)
        for group, found in numbers["groups"].items()
    ]
    legend = "statistical error", "all together, statistical error"
    return _points(rows, _symbol(name, subject), (one.value, one.stat), legend)


def _binned(numbers: dict[str, Any], subject: Subject) -> Figure:
    fits = [(f"{fit['bins']} bins", fit) for fit in numbers["fits"]]
    return _differences(fits, numbers["parameters"], subject)


def _expected(_numbers: dict[str, Any], subject: Subject) -> Figure:
    return draw_budget(subject.estimate)


FIGURES: dict[str, Callable[[dict[str, Any], Subject], Figure | None]] = {
    "bias": _bias,
    "coverage": _coverage,
    "bounds": _bounds,
    "simulation": _simulation,
    "templates": _templates,
    "probabilities": _probabilities,
    "stability": _stability,
    "groups": _groups,
    "expected": _expected,
    "binned": _binned,
}
