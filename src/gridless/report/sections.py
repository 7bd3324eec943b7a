"""The report of a model: a list of sections. A new one is a function and a line in `SECTIONS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.warnings import EstimateWarning
from gridless.measurement.estimate import MeasurementEstimate
from gridless.model.model import Model
from gridless.model.storage.file import current_versions
from gridless.report.comparison import Comparison, compare
from gridless.report.data_figures import draw_budget, draw_data
from gridless.report.figures import draw_closure, draw_contours, draw_likelihood
from gridless.report.measurement_sections import channel_section, nuisance_section
from gridless.report.model_figures import draw_check, draw_distributions, draw_history, draw_prior
from gridless.report.page import Section
from gridless.report.typeset import (
    Table,
    interval_html,
    rounded_html,
    title_html,
    titles_html,
    value_html,
)
from gridless.templates.query import FileRecord
from gridless.validation.closure import Closure

MOST_ROWS = 12  # of the table of templates


@dataclass(frozen=True)
class Subject:
    """What a report is about; sections take what they need of it.

    `channels` has the model of each channel by name, or the only one by ""; `model` is the one that
    a section of one channel is about. `estimate` is the maximum of `likelihood`, computed once.
    `level` is the confidence level of the wider interval, `command` what was typed to make the
    page, `data` the observed files, `experiment` a label for every figure, such as "Private work".
    """

    model: Model
    likelihood: Likelihood | None = None
    estimate: Estimate | None = None
    closure: Closure | None = None
    level: float = 0.95
    command: str | None = None
    data: tuple[FileRecord, ...] = ()
    experiment: str | None = None
    channels: Mapping[str, Model] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[EstimateWarning, ...]:
        """Those of the estimate, or of the models where there is none."""
        if self.estimate is not None:
            return self.estimate.warnings
        return tuple(
            one._replace(text=f"{name}: {one.text}") if name else one
            for name, model in self.channels.items()
            for one in model.warnings
        )


def data(subject: Subject) -> Section | None:
    """Data against simulation at the best fit, for every observable."""
    model, likelihood = subject.model, subject.likelihood
    if likelihood is None or model.summary is None or not _has_events(subject):
        return None
    found = compare(model, likelihood)
    figures = [draw_data(model, likelihood, name, experiment=subject.experiment) for name in found]
    labels = model.query.labels
    rows = [
        [title_html(name, labels.get(name, "")), f"{one.chi2:.1f}", f"{one.bins}"]
        for name, one in found.items()
    ]
    numbers = [[name, one.chi2, one.bins] for name, one in found.items()]
    bins = [[name, *row] for name, one in found.items() for row in _bins(one)]
    head = ["observable", "low", "high", "data", "simulation", "error of simulation"]
    if model.binned:
        head += ["before the fit", "error before the fit"]
    contents = Table(head, [], "Events in every bin", bins)
    return Section(
        "Data against simulation",
        figures=figures,
        lead="Points are the observed events. The line is the simulation at the estimate, "
        "interpolated between the templates and scaled to the number of events; its band has the "
        "statistics of the simulation and what parameters may move after the fit."
        + (" Hatched is what was expected before the fit." if model.binned else ""),
        show=f"Data and simulation at the estimate for {', '.join(found)}, with ratios",
        tables=[
            Table(
                ["observable", "χ²", "bins"],
                rows,
                "Agreement in each observable",
                numbers,
                ["observable", "chi2", "bins"],
            ),
            contents,
        ],
    )


def _bins(one: Comparison) -> list[list[float]]:
    """Low and high end of every bin, data, and the simulation after and before the fit with
    errors."""
    columns = [one.observed.values(), one.expected.values(), np.sqrt(one.expected.variances())]
    if one.before is not None:
        columns += [one.before.values(), np.sqrt(one.before.variances())]
    rows: list[list[float]] = np.column_stack(
        [np.array(list(one.observed.axes[0])), *columns]
    ).tolist()
    return rows


def _has_events(subject: Subject) -> bool:
    """Whether the likelihood has events of the model in bins."""
    channels = subject.likelihood.channels if subject.likelihood else ()
    return any(c.observed is not None and c.model == subject.model.identity for c in channels)


def measurement(subject: Subject) -> Section | None:
    """The likelihood: the curve of one parameter, or the contours of two, and all numbers."""
    likelihood, estimate = subject.likelihood, subject.estimate
    if likelihood is None or estimate is None:
        return None
    names = estimate.parameters
    if len(names) == 1:
        figure = draw_likelihood(likelihood, experiment=subject.experiment)
        two = "The solid curve has every uncertainty, the dashed one is statistical."
        one_curve = "The curve has every uncertainty: nuisance parameters are at their best."
        lead = one_curve if isinstance(estimate, MeasurementEstimate) else two
        lead += " The bands are the 68 and 95 percent intervals."
        shows = f"The likelihood as a function of {names[0]}, with its intervals"
    else:
        figure = draw_contours(likelihood, names[0], names[1], experiment=subject.experiment)
        lead = "Statistical contours; other parameters are at their best."
        shows = f"Contours of {names[0]} and {names[1]} at 68 and 95 percent"
    level = f"{subject.level:.0%}"
    columns, numbers = [], []
    for name in names:
        one = estimate[name]
        ends = (*one.interval, *one.stat_interval, *likelihood.interval(subject.level, name))
        pairs = zip(ends[::2], ends[1::2], strict=True)
        shown = [interval_html(*pair, one.error) for pair in pairs]
        columns.append([value_html(one, with_unit=False), *shown])
        numbers.append([name, one.value, one.error, *ends])
    what = ["value", "68% interval", "statistical alone", f"{level} interval"]
    exact = ["parameter", "value", "error", "low", "high", "stat_low", "stat_high"]
    rows = [[first, *cells] for first, *cells in zip(what, *columns, strict=True)]
    if isinstance(estimate, MeasurementEstimate):
        del rows[2]  # the interval is one of all sources together
    table = Table(
        ["quantity", *(title_html(name, estimate[name].label) for name in names)],
        rows,
        "Estimate with intervals",
        numbers,
        [*exact, f"low_{level}", f"high_{level}"],
    )
    return Section("Likelihood", figure=figure, lead=lead, show=shows, tables=[table])


def budget(subject: Subject) -> Section | None:
    """Where the uncertainty of each parameter comes from."""
    estimate = subject.estimate
    if estimate is None or len(estimate.results[0].budget) < 2:
        return None
    first = estimate.results[0]
    sources = list(first.budget)
    rows = []
    for source in sources:
        cells = [rounded_html(one.budget.get(source), one.error) for one in estimate.results]
        rows.append([source, *cells])
    rows.append(["total", *(rounded_html(one.error, one.error) for one in estimate.results)])
    numbers = [[s, *(one.budget.get(s) for one in estimate.results)] for s in sources]
    numbers.append(["total", *(one.error for one in estimate.results)])
    head = ["source", *(title_html(one.name, one.label) for one in estimate.results)]
    return Section(
        "Budget of uncertainties",
        figure=draw_budget(estimate, first.name, experiment=subject.experiment),
        lead="Sources add in quadrature to the total.",
        show=f"The uncertainty of {first.name} by source",
        tables=[Table(head, rows, "Uncertainty by source", numbers)],
    )


def nuisances(subject: Subject) -> Section | None:
    """Pulls, impacts and correlations of systematics and backgrounds."""
    return nuisance_section(subject.estimate, subject.experiment)


def closure(subject: Subject) -> Section | None:
    """True and estimated values of the samples, and their pulls."""
    table = subject.closure
    if table is None:
        return None
    tables = []
    for name in table:
        one = table[name]
        label = table.estimates[0][name].label
        head = ["true", "estimated", "interval", "pull"]
        columns = ["true", "estimated", "low", "high", "pull"]
        rows, numbers = [], []
        for i, estimate in enumerate(table.estimates):
            low, high = one.interval[i].tolist()
            pull = rounded_html(one.pull[i], 0.1) if one.usable[i] else "at a bound"
            ends = interval_html(low, high, estimate[name].error)
            value = value_html(estimate[name], with_unit=False)
            rows.append([f"{one.true[i]:g}", value, ends, pull])
            exact = float(one.pull[i]) if one.usable[i] else None
            numbers.append([float(one.true[i]), float(one.value[i]), low, high, exact])
        caption = "Closure of " + title_html(name, label)
        tables.append(Table(head, rows, caption, numbers, columns))
    return Section(
        "Closure",
        figure=draw_closure(table, experiment=subject.experiment),
        lead="Samples of known parameters, estimated as the data were. Pulls scatter about 0 with "
        f"width 1 if the method is right. {'. '.join(table.notes())}.".replace("chi2", "χ²"),
        show="Estimated against true values, and pulls",
        tables=tables,
    )


def check(subject: Subject) -> Section | None:
    """The score check of the calibration."""
    model, found = subject.model, subject.model.check
    if found is None:
        return None
    names = [model.grid.label(k) for k in found.suspects]
    told = f"{'; '.join(names)}: off that curve." if names else "All agree with it."
    head = ["template", "shift", "error", "p-value"]
    rows, numbers = [], []
    width = model.grid.bounds[:, 1] - model.grid.bounds[:, 0]
    for k, chance in enumerate(found.p_values.tolist()):
        shift, error = found.shift[k] * width, found.error[k] * width
        pairs = list(zip(shift.tolist(), error.tolist(), strict=True))
        moved = Markup(", ").join(rounded_html(s, e) for s, e in pairs)
        wide = Markup(", ").join(rounded_html(e, e) for _, e in pairs)
        at = ", ".join(f"{value:g}" for value in model.grid.values[k])
        rows.append([at, moved, wide, f"{chance:.2g}"])
        numbers.append([model.grid.label(k), *shift.tolist(), *error.tolist(), chance])
    caption = "Score check of " + titles_html(model.grid)
    if len(rows) > MOST_ROWS:
        order = np.argsort(found.p_values)[:MOST_ROWS]
        rows, caption = [rows[k] for k in order], caption + f": the {MOST_ROWS} least p-values"
    parameters = model.grid.parameters
    events = None if subject.likelihood is None else subject.likelihood.events
    exact = [f"{what}_{p}" for what in ("shift", "error") for p in parameters]
    return Section(
        "Score check",
        figure=draw_check(model, events=events, experiment=subject.experiment),
        lead="The mean score of every template at its own value: how far it would move an estimate "
        f"there. χ²/dof = {found.chi2:.1f}/{found.dof:.1f}, p-value {found.p_value:.2g}. Every "
        f"template is also compared with the curve through the others (p-value). {told}",
        show=f"The shift of {parameters[0]} at every template, with its error",
        tables=[Table(head, rows, caption, numbers, ["template", *exact, "p_value"])],
    )


def grid(subject: Subject) -> Section | None:
    """The audit of the templates."""
    summary = subject.model.summary
    if summary is None:
        return None
    audit = summary.audit
    rows = [["ok" if f.met else "CHANGE", f.demand, f.text] for f in audit.findings]
    table = Table(["verdict", "demand", "finding"], rows, audit.title, breaks=True)
    return Section("The templates and their audit", tables=[table], folded=True)


def inputs(subject: Subject) -> Section | None:
    """The distribution of every observable in every template."""
    model = subject.model
    if model.summary is None:
        return None
    label = subject.experiment
    return Section(
        "Observables in the templates",
        figures=[draw_distributions(model, n, experiment=label) for n in model.observables],
        show=f"Distributions of {', '.join(model.observables)} in the templates, with ratios",
        folded=True,
    )


def training(subject: Subject) -> Section:
    """The model, its learning curve and its options."""
    model = subject.model
    table = Table(["option", "value"], _options(model), "Options of the fit", breaks=True)
    return Section(
        "Training",
        text=repr(model),
        figure=draw_history(model),
        show="Cost per event after every epoch, of training and of held-out events",
        tables=[table],
        folded=True,
    )


def _options(model: Model) -> list[list[str]]:
    """Every option of the fit; of those that were not given, what the fit chose."""
    record, query, network = model.record, model.query, model.network
    shape = ", ".join(f"{name} {value:g}" for name, value in network.basis.options().items())
    own: dict[str, Any] = {
        "basis": f"{network.basis.name} ({shape})" if shape else network.basis.name,
        "hidden": network.conditioner.describe(),
        "ensemble": network.members,
        "ridge": next((one.ridge for one in record.sizes if one.chosen and one.hidden), None),
    }
    given = model.options.to_dict()
    chosen = {name: value for name, value in own.items() if given[name] is None}
    chosen |= {"epochs": record.epochs, "batch": record.batch, "validation": record.validation}
    reading = {"selection": query.selection, "weight": query.weight, "where": record.where}
    options = given | chosen | reading
    return [[name, str(value)] for name, value in options.items() if value is not None]


def prior(subject: Subject) -> Section | None:
    """The implied prior, if there is one parameter to draw it over."""
    model = subject.model
    if len(model.grid.parameters) > 1:
        return None
    use = "Every posterior is divided by q" if model.divided else "Posteriors are not divided by q"
    lead = f"{use}, which deviates from flat by up to |log q| = {model.implied_prior.max_log:.3g}."
    return Section(
        "The implied prior q",
        lead=lead,
        figure=draw_prior(model),
        show="The implied prior over the range, with the templates marked",
        folded=True,
    )


def provenance(subject: Subject) -> Section:
    """Commands, versions and files from which the page was made."""
    model = subject.model
    commands = {"this page": subject.command, "the model": model.record.command}
    rows = [[name, command] for name, command in commands.items() if command is not None]
    rows += [[f"observable {name}", text] for name, text in model.query.observables.items()]
    then = model.record.versions
    for name, now in current_versions().items():
        old = then.get(name, now)
        rows.append([name, now if now == old else f"{old} for the model, {now} for this page"])
    for file in (*subject.data, *model.files):
        checksum = f", SHA-256 {file.checksum[:16]}..." if file.checksum else ""
        rows.append([file.source, f"{file.describe()}{checksum}"])
    table = Table(["what", "value"], rows, "Provenance", breaks=True)
    return Section("Versions, files and commands", tables=[table], folded=True)


def channels(subject: Subject) -> Section | None:
    """The estimate of every channel alone, and whether they agree."""
    return channel_section(subject.likelihood, subject.experiment)


# Sections that every channel has of its own.
OF_A_CHANNEL = ("data", "check", "grid", "inputs", "training", "prior", "provenance")
# In the order of the page. A section that has nothing to show is None.
SECTIONS: dict[str, Callable[[Subject], Section | None]] = {
    "data": data,
    "measurement": measurement,
    "budget": budget,
    "nuisances": nuisances,
    "channels": channels,
    "closure": closure,
    "check": check,
    "grid": grid,
    "inputs": inputs,
    "training": training,
    "prior": prior,
    "provenance": provenance,
}


def make_sections(subject: Subject) -> dict[str, Section]:
    """The sections that have something to show, by name."""
    made: dict[str, Section | None] = {}
    for name, section in SECTIONS.items():
        if name not in OF_A_CHANNEL or len(subject.channels) == 1:
            made[name] = section(subject)
            continue
        for number, (channel, own) in enumerate(subject.channels.items()):
            found = section(replace(subject, model=own))
            if found is not None:
                found = replace(found, title=f"{found.title}: {channel}")
            made[f"{name}-{number}"] = found
    return {name: section for name, section in made.items() if section is not None}
