"""The sections of a report on nuisance parameters and on channels."""

from gridless.likelihood.estimate import Estimate, ParameterEstimate
from gridless.likelihood.likelihood import Likelihood
from gridless.measurement.estimate import MeasurementEstimate
from gridless.measurement.tables import nuisance_head, nuisance_rows
from gridless.report.channel_figures import draw_channels
from gridless.report.measurement_figures import draw_correlations, draw_impacts, draw_pulls
from gridless.report.page import Section
from gridless.report.typeset import Table, title_html, value_html


def channel_section(likelihood: Likelihood | None, experiment: str | None) -> Section | None:
    """The estimate of each channel alone beside that of all; None without several channels."""
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
        figures=[draw_channels(likelihood, name, experiment=experiment) for name in names],
        lead="Each channel was estimated alone. χ² takes what channels have in common, the "
        f"systematics of the same name, into account: χ²/dof = {groups.chi2:.1f}/{groups.dof}, "
        f"p-value {groups.p_value:.2g}.",
        show=f"Estimates of {', '.join(names)} in each channel, and of all",
        tables=[Table(head, rows, "Each channel alone", numbers, columns)],
    )


def _numbers(one: ParameterEstimate | None) -> tuple[float | None, float | None]:
    return (None, None) if one is None else (one.value, one.error)


def nuisance_section(estimate: Estimate | None, experiment: str | None) -> Section | None:
    """Pulls, impacts and correlations; None without nuisance parameters."""
    if not isinstance(estimate, MeasurementEstimate) or not estimate.nuisances:
        return None
    figures = []
    if estimate.pulls:
        figures.append(draw_pulls(estimate, experiment=experiment))
        figures += [
            draw_impacts(estimate, name, experiment=experiment) for name in estimate.parameters
        ]
    figures.append(draw_correlations(estimate, experiment=experiment))
    names = estimate.parameters
    numbers = [
        [one.name, one.value, one.error, one.constraint, *(one.impacts[name] for name in names)]
        for one in estimate.nuisances
    ]
    return Section(
        "Nuisance parameters",
        figures=figures,
        lead="Pulls are values after the fit in units of the constraint before it. An impact is "
        "how far the estimate goes if what a constraint is centred on moves by one standard "
        "deviation: the nuisance parameter's part of the budget, with its sign.",
        show=f"Pulls, impacts on {', '.join(names)}, and correlations after the fit",
        tables=[
            Table(nuisance_head(estimate), nuisance_rows(estimate), "Nuisance parameters", numbers)
        ],
    )
