"""Sections of a report on a measurement: data, likelihood, budget, nuisances, channels, closure."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gridless.likelihood.estimate import ParameterEstimate
from gridless.measurement.estimate import MeasurementEstimate, NuisanceEstimate
from gridless.measurement.measurement import Nuisance
from gridless.measurement.tables import nuisance_head, nuisance_rows
from gridless.report.comparison import Comparison, compare
from gridless.report.data_figures import draw_budget, draw_data
from gridless.report.figures import draw_closure, draw_contours, draw_likelihood
from gridless.report.measurement_figures import (
    draw_channels,
    draw_correlations,
    draw_impacts,
    draw_pulls,
)
from gridless.report.page import Section
from gridless.report.subject import Subject
from gridless.report.typeset import Table, interval_html, rounded_html, title_html, value_html

# What the value of a nuisance parameter means.
MEANING = (
    "A systematic at 1 is its variation. A background at 1 has its share before the fit plus the "
    "error of that; a free one twice that share."
)


def data(subject: Subject) -> Section | None:
    """Data against simulation at the best fit, for every observable."""
    model, likelihood = subject.model, subject.likelihood
    if likelihood is None or not _has_events(subject):
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
    tables = estimate_tables(subject)
    return Section("Likelihood", figure=figure, lead=lead, show=shows, tables=tables)


def estimate_tables(subject: Subject) -> list[Table]:
    """Value and intervals of every parameter, if there is an estimate."""
    likelihood, estimate = subject.likelihood, subject.estimate
    if likelihood is None or estimate is None:
        return []
    names, level = estimate.parameters, f"{subject.level:.0%}"
    columns, numbers = [], []
    content = estimate.to_dict()["parameters"]
    for name in names:
        one = estimate[name]
        stat = content[name]["stat_low"], content[name]["stat_high"]
        ends = (*one.interval, *stat, *likelihood.interval(subject.level, name))
        pairs = zip(ends[::2], ends[1::2], strict=True)
        shown = [interval_html(*pair, one.error) for pair in pairs]
        columns.append([value_html(one, with_unit=False), *shown])
        numbers.append([name, one.value, one.error, *ends])
    what = ["value", "68% interval", "statistical alone", f"{level} interval"]
    exact = ["parameter", "value", "error", "low", "high", "stat_low", "stat_high"]
    rows = [[first, *cells] for first, *cells in zip(what, *columns, strict=True)]
    if isinstance(estimate, MeasurementEstimate):
        del rows[2]  # the interval is one of all sources together
    titles = [title_html(name, estimate[name].label) for name in names]
    exact += [f"low_{level}", f"high_{level}"]
    return [Table(["quantity", *titles], rows, "Estimate with intervals", numbers, exact)]


def budget(subject: Subject) -> Section | None:
    """Where the uncertainty of each parameter comes from."""
    estimate, tables = subject.estimate, budget_tables(subject)
    if estimate is None or not tables:
        return None
    first = estimate.results[0]
    return Section(
        "Budget of uncertainties",
        figure=draw_budget(estimate, first.name, experiment=subject.experiment),
        lead="Sources add in quadrature to the total.",
        show=f"The uncertainty of {first.name} by source",
        tables=tables,
    )


def budget_tables(subject: Subject) -> list[Table]:
    """The uncertainty of every parameter by source, if there are several sources."""
    estimate = subject.estimate
    if estimate is None or len(estimate.results[0].budget) < 2:
        return []
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
    return [Table(head, rows, "Uncertainty by source", numbers)]


def nuisances(subject: Subject) -> Section | None:
    """What systematics and backgrounds are, with their pulls, impacts and correlations."""
    estimate, experiment = subject.estimate, subject.experiment
    title, tables = "Nuisance parameters", nuisance_tables(subject)
    if not isinstance(estimate, MeasurementEstimate) or not estimate.nuisances:
        return Section(title, lead=MEANING, tables=tables) if tables else None
    figures = []
    if estimate.pulls:
        figures.append(draw_pulls(estimate, experiment=experiment))
        figures += [
            draw_impacts(estimate, name, experiment=experiment) for name in estimate.parameters
        ]
    figures.append(draw_correlations(estimate, experiment=experiment))
    return Section(
        title,
        figures=figures,
        lead="Pulls are values after the fit in units of the constraint before it. An impact is "
        "how far the estimate goes if what a constraint is centred on moves by one standard "
        "deviation: the nuisance parameter's part of the budget, with its sign. " + MEANING,
        show=f"Pulls, impacts on {', '.join(estimate.parameters)}, and correlations after the fit",
        tables=tables,
    )


def nuisance_tables(subject: Subject) -> list[Table]:
    """Nuisance parameters after the fit, and what they are; of the latter alone without a fit."""
    estimate, tables = subject.estimate, []
    if isinstance(estimate, MeasurementEstimate) and estimate.nuisances:
        names, columns = estimate.parameters, nuisance_head(estimate)
        titles = [title_html(name, estimate[name].label) for name in names]
        head = [*columns[: -len(names)], *(Markup("impact on ") + title for title in titles)]
        numbers = [
            [one.name, one.value, one.error, one.constraint, *(one.impacts[name] for name in names)]
            for one in estimate.nuisances
        ]
        rows = nuisance_rows(estimate)
        tables.append(Table(head, rows, "Nuisance parameters", numbers, columns))
    return [*tables, *_meanings(subject)]


def _meanings(subject: Subject) -> list[Table]:
    """What each nuisance parameter is: its constraint, and of a background the share before and
    after the fit. A row has all channels in which it is the same."""
    found: dict[tuple[Nuisance, tuple[float, float] | None], list[str]] = {}
    for channel, model in subject.channels.items():
        known = model.measurement
        shares = {one.nuisance: (one.share, one.unit) for one in known.shares} if known else {}
        for place, nuisance in enumerate(known.nuisances if known else ()):
            found.setdefault((nuisance, shares.get(place)), []).append(channel)
    estimate = subject.estimate
    fitted = estimate.nuisances if isinstance(estimate, MeasurementEstimate) else ()
    after = {one.name: one for one in fitted}
    several = len(subject.channels) > 1
    head = ["nuisance", "what it is", *(["channel"] if several else []), "constraint"]
    rows, numbers = [], []
    for ((name, width), share), where in found.items():
        first = [name, "systematic" if share is None else "background"]
        first += [", ".join(where)] if several else []
        exact = [] if share is None else _shares(share, width, after.get(name))
        cells = [_share_html(*exact[:2]), _share_html(*exact[2:])] if exact else ["", ""]
        rows.append([*first, "free" if width is None else f"{width:g}", *cells])
        numbers.append([*first, width, *(exact or [None] * 4)])
    if not rows:
        return []
    columns = [*head, "share", "share_error", "share_after", "share_after_error"]
    head += ["share before the fit", "share after the fit"]
    return [Table(head, rows, "What nuisance parameters are", numbers, columns)]


def _shares(
    share: tuple[float, float], width: float | None, fitted: NuisanceEstimate | None
) -> list[float | None]:
    """The share of a background and its error before the fit, and after it; None for the error of a
    free one before, and for both where nothing was fitted."""
    middle, unit = share
    before = [middle, None if width is None else unit * width]
    if fitted is None:
        return [*before, None, None]
    return [*before, middle + unit * fitted.value, unit * fitted.error]


def _share_html(share: float | None, error: float | None) -> Markup | str:
    """`0.050 ± 0.020`, or `0.02, free` without an error; nothing for none."""
    if share is None:
        return ""
    if error is None:
        return f"{share:g}, free"
    return rounded_html(share, error) + " ± " + rounded_html(error, error)


def channels(subject: Subject) -> Section | None:
    """The estimate of each channel alone beside that of all, if there are several."""
    likelihood = subject.likelihood
    if likelihood is None or len(likelihood.channels) < 2:
        return None
    groups = likelihood.by()
    names = groups.together.parameters
    rows, numbers = [], []
    every = [*zip(groups.names, groups.estimates, strict=True), ("together", groups.together)]
    for name, estimate in every:
        found = {one.name: one for one in estimate.results}
        cells = [value_html(found[p], with_unit=False) if p in found else "" for p in names]
        chance = "" if estimate.p_value is None else f"{estimate.p_value:.2g}"
        rows.append([name, f"{estimate.events:,}", *cells, chance])
        exact = [number for p in names for number in _numbers(found.get(p))]
        numbers.append([name, estimate.events, *exact, estimate.p_value])
    titles = [title_html(p, groups.together[p].label) for p in names]
    head = ["channel", "events", *titles, "p-value"]
    columns = ["channel", "events", *(c for p in names for c in (p, f"{p}_error")), "p_value"]
    return Section(
        "Channels",
        figures=[draw_channels(likelihood, name, experiment=subject.experiment) for name in names],
        lead="Each channel was estimated alone. χ² takes what channels have in common, the "
        f"systematics of the same name, into account: χ²/dof = {groups.chi2:.1f}/{groups.dof}, "
        f"p-value {groups.p_value:.2g}.",
        show=f"Estimates of {', '.join(names)} in each channel, and of all",
        tables=[Table(head, rows, "Each channel alone", numbers, columns)],
    )


def _numbers(one: ParameterEstimate | None) -> tuple[float | None, float | None]:
    return (None, None) if one is None else (one.value, one.error)


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
        f"width 1 if the method is right: {'; '.join(table.notes())}.".replace(
            "chi2", "χ²"
        ).replace("+-", "±"),
        show="Estimated against true values, and pulls",
        tables=tables,
    )
