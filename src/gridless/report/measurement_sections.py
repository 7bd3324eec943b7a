"""The section of a report on nuisance parameters."""

from gridless.likelihood.estimate import Estimate
from gridless.measurement.estimate import MeasurementEstimate
from gridless.measurement.tables import nuisance_head, nuisance_rows
from gridless.report.measurement_figures import draw_correlations, draw_impacts, draw_pulls
from gridless.report.page import Section
from gridless.report.typeset import Table


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
