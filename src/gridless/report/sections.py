"""The sections of a report, in their order. A new one is a function and a line in `SECTIONS`.

Sections on a model are here, those on a measurement in `measurement_sections.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup

from gridless.model.model import Model
from gridless.model.storage.file import current_versions
from gridless.report.measurement_sections import (
    budget,
    channels,
    closure,
    data,
    measurement,
    nuisances,
)
from gridless.report.model_figures import draw_check, draw_distributions, draw_history, draw_prior
from gridless.report.page import Section
from gridless.report.subject import Subject
from gridless.report.typeset import Table, rounded_html, titles_html

MOST_ROWS = 12  # of the table of templates


def check(subject: Subject) -> Section:
    """The score check of the calibration."""
    model, found = subject.model, subject.model.check
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
    exact = [f"{what}_{p}" for what in ("shift", "error") for p in parameters]
    return Section(
        "Score check",
        figure=draw_check(model, events=subject.events, experiment=subject.experiment),
        lead="The mean score of every template at its own value: how far it would move an estimate "
        f"there. χ²/dof = {found.chi2:.1f}/{found.dof:.1f}, p-value {found.p_value:.2g}. Every "
        f"template is also compared with the curve through the others (p-value). {told}",
        show=f"The shift of {parameters[0]} at every template, with its error",
        tables=[Table(head, rows, caption, numbers, ["template", *exact, "p_value"])],
    )


def grid(subject: Subject) -> Section:
    """The audit of the templates."""
    audit = subject.model.summary.audit
    rows = [["ok" if f.met else "CHANGE", f.demand, f.text] for f in audit.findings]
    table = Table(["verdict", "demand", "finding"], rows, audit.title, breaks=True)
    return Section("The templates and their audit", tables=[table], folded=True)


def inputs(subject: Subject) -> Section:
    """The distribution of every observable in every template."""
    model = subject.model
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
    observed = [file for files in subject.data.values() for file in files]
    for file in (*observed, *model.files):
        checksum = f", SHA-256 {file.checksum[:16]}..." if file.checksum else ""
        rows.append([file.source, f"{file.describe()}{checksum}"])
    table = Table(["what", "value"], rows, "Provenance", breaks=True)
    return Section("Versions, files and commands", tables=[table], folded=True)


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
        for number, channel in enumerate(subject.channels):
            found = section(subject.of(channel))
            if found is not None:
                found = replace(found, title=f"{found.title}: {channel}")
            made[f"{name}-{number}"] = found
    return {name: section for name, section in made.items() if section is not None}
