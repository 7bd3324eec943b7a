"""The report of a model: a list of sections. A new one is a function and a line in `SECTIONS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gridless.files.write import write_whole
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.file import current_versions
from gridless.model.model import Model
from gridless.report.figures import draw_closure, draw_contours, draw_likelihood
from gridless.report.model_figures import draw_distributions, draw_history, draw_prior
from gridless.report.page import Section, render_report
from gridless.templates.query import FileRecord
from gridless.validation.closure import Closure


@dataclass(frozen=True)
class Subject:
    """What a report is about; sections take what they need of it.

    `estimate` is the maximum of `likelihood`, computed once. `level` is the confidence level of the
    wider interval, `command` what was typed to make the page, `data` the observed files.
    """

    model: Model
    likelihood: Likelihood | None = None
    estimate: Estimate | None = None
    closure: Closure | None = None
    level: float = 0.95
    command: str | None = None
    data: tuple[FileRecord, ...] = ()


def measurement(subject: Subject) -> Section | None:
    """The estimate with its uncertainties, and the curve or the contours."""
    likelihood, estimate = subject.likelihood, subject.estimate
    if likelihood is None or estimate is None:
        return None
    lines = [str(estimate)]
    for name in estimate.parameters:
        low, high = likelihood.interval(subject.level, name)
        lines.append(f"  {name}: {low:.6g} to {high:.6g} at {subject.level:.0%}")
    if estimate.outside is not None:
        lines.append(f"  events outside of the simulation: {estimate.outside:.2%}")
    if len(estimate.parameters) == 1:
        figure = draw_likelihood(likelihood)
    else:
        first, second, *_ = estimate.parameters
        figure = draw_contours(likelihood, first, second)
    return Section("The measurement", text="\n".join(lines), figure=figure)


def closure(subject: Subject) -> Section | None:
    """True and estimated values of the samples, and their pulls."""
    table = subject.closure
    if table is None:
        return None
    return Section("Closure", text=str(table), figure=draw_closure(table))


def grid(subject: Subject) -> Section | None:
    """The audit of the templates."""
    summary = subject.model.summary
    if summary is None:
        return None
    return Section("The templates and their audit", text=str(summary.audit))


def inputs(subject: Subject) -> Section | None:
    """The distribution of every observable in every template."""
    model = subject.model
    if model.summary is None:
        return None
    return Section("Observables in every template", figure=draw_distributions(model))


def training(subject: Subject) -> Section:
    """The model, its learning curve and its options."""
    model = subject.model
    return Section("Training", text=repr(model), figure=draw_history(model), table=_options(model))


def _options(model: Model) -> list[list[str]]:
    """Every option of the fit; where the default is None, what it came to."""
    record, query = model.record, model.query
    chosen = {"epochs": record.epochs, "batch": record.batch, "validation": record.validation}
    reading = {"selection": query.selection, "weight": query.weight, "where": record.where}
    options = model.options.to_dict() | chosen | reading
    rows = [[name, str(value)] for name, value in options.items() if value is not None]
    return [["option", "value"], *rows]


def prior(subject: Subject) -> Section | None:
    """The implied prior, if there is one parameter to draw it over."""
    model = subject.model
    if len(model.grid.parameters) > 1:
        return None
    divided = model.divided
    use = "every posterior is divided by q" if divided else "posteriors are not divided by q"
    text = f"max |log q| = {model.implied_prior.max_log:.3g}; {use}"
    return Section("The implied prior q", text=text, figure=draw_prior(model))


def provenance(subject: Subject) -> Section:
    """Commands, versions and files from which the page was made."""
    model = subject.model
    rows = [["what", "value"]]
    commands = {"this page": subject.command, "the model": model.record.command}
    rows += [[name, command] for name, command in commands.items() if command is not None]
    rows += [[f"observable {name}", text] for name, text in model.query.observables.items()]
    then = model.record.versions
    for name, now in current_versions().items():
        old = then.get(name, now)
        rows.append([name, now if now == old else f"{old} for the model, {now} for this page"])
    for file in (*subject.data, *model.files):
        checksum = f", SHA-256 {file.checksum[:16]}..." if file.checksum else ""
        rows.append([file.source, f"{file.events:,} events{checksum}"])
    return Section("Versions, files and commands", table=rows)


# In the order of the page. A section that has nothing to show is None.
SECTIONS: dict[str, Callable[[Subject], Section | None]] = {
    "measurement": measurement,
    "closure": closure,
    "grid": grid,
    "inputs": inputs,
    "training": training,
    "prior": prior,
    "provenance": provenance,
}


def write_report(
    path: str | Path,
    model: Model,
    likelihood: Likelihood | None = None,
    closure: Closure | None = None,
    *,
    level: float = 0.95,
    command: str | None = None,
    data: Sequence[FileRecord] = (),
) -> Path:
    """Write one self-contained HTML page about a model, a measurement and a closure test.

    Sections for which there is nothing to show are left out. Needs the extra `report`.

    Parameters
    ----------
    path : str or Path
        The page to write.
    model : Model
        The model; its audit, distributions, training and files are shown.
    likelihood : Likelihood, optional
        Of the observed events: adds the measurement.
    closure : Closure, optional
        Adds the table and the figure of the closure test.
    level : float
        Confidence level of the second interval.
    command : str, optional
        The command line that made the page, to be shown on it.
    data : sequence of FileRecord, optional
        The observed files, to be shown with their checksums.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(500, seed=1), hidden=3, epochs=2, replicas=4)
    >>> likelihood = model.likelihood(example.sample(0.4, 1_000, seed=2))
    >>> gl.write_report("report.html", model, likelihood).name
    'report.html'
    """
    estimate = None if likelihood is None else likelihood.maximum()
    subject = Subject(model, likelihood, estimate, closure, level, command, tuple(data))
    made = {name: section(subject) for name, section in SECTIONS.items()}
    warned = () if estimate is None else estimate.warnings
    page = render_report(
        f"gridless: {', '.join(model.grid.parameters)} from {', '.join(model.observables)}",
        f"A model trained on {len(model.grid)} templates of {model.grid.describe()}.",
        {name: section for name, section in made.items() if section is not None},
        notices=[f"Warning: {one.name}: {one.text}" for one in warned],
    )
    target = Path(path)
    write_whole(target, page.encode())
    return target
