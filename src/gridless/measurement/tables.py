"""Budget and nuisance parameters of a measurement as tables: in a terminal, in a notebook, and as
the tuples that cabinetry's plots take (cabinetry itself is not needed)."""

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gridless.results import printing
from gridless.results.cabinetry import FitResults, RankingResults

if TYPE_CHECKING:
    from gridless.measurement.estimate import MeasurementEstimate

SIGNIFICANT = 3  # digits of the total error that its parts are given with
SMALLEST_PLAIN = 1e-4  # errors that are read easily without a power of ten
LARGEST_PLAIN = 1e7
TOTAL = "total"  # the last row of a budget


def budget_rows(estimate: "MeasurementEstimate") -> list[list[str]]:
    """A row for every source with its part of each parameter's error, and the total."""
    sources = list(dict.fromkeys(s for one in estimate.results for s in one.budget))
    columns = []
    for one in estimate.results:
        parts = [one.budget.get(source, 0.0) for source in sources]
        columns.append([digits(part, one.error) for part in (*parts, one.error)])
    return [list(row) for row in zip([*sources, TOTAL], *columns, strict=True)]


def nuisance_rows(estimate: "MeasurementEstimate") -> list[list[str]]:
    """A row for every nuisance parameter: value, error, and its impact on each parameter."""
    rows = []
    for one in estimate.nuisances:
        # What no constraint is centred on has no impact; what it costs is in stat.
        impacts = [
            digits(one.impacts[name], estimate[name].error, "+") if one.constraint else "-"
            for name in estimate.parameters
        ]
        free = "free" if one.constraint is None else f"{one.constraint:g}"
        rows.append(
            [one.name, f"{round(one.value, 2) + 0.0:+.2f}", f"{one.error:.2f}", free, *impacts]
        )
    return rows


def nuisance_head(estimate: "MeasurementEstimate") -> list[str]:
    """The titles of `nuisance_rows`."""
    names = estimate.parameters
    return ["nuisance", "value", "error", "before", *(f"impact on {name}" for name in names)]


def lines(estimate: "MeasurementEstimate") -> list[str]:
    """Both tables as lines of text."""
    budget = aligned(["uncertainty", *estimate.parameters], budget_rows(estimate))
    if not estimate.nuisances:
        return budget
    return [*budget, *aligned(nuisance_head(estimate), nuisance_rows(estimate))]


def html(estimate: "MeasurementEstimate") -> str:
    """Both tables as HTML."""
    found = [(["uncertainty", *estimate.parameters], budget_rows(estimate))]
    if estimate.nuisances:
        found.append((nuisance_head(estimate), nuisance_rows(estimate)))
    return "".join(
        printing.table(head, [[escape(cell) for cell in row] for row in rows])
        for head, rows in found
    )


def aligned(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table of text: names to the left, numbers to the right.

    Examples
    --------
    >>> print("\\n".join(aligned(["uncertainty", "mtop"], [["stat", "0.30"], ["jes", "1.10"]])))
      uncertainty  mtop
      stat         0.30
      jes          1.10
    """
    every = [head, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(head))]
    return [
        "  " + "  ".join(
            f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in every
    ]  # fmt: skip


def digits(part: float, total: float, sign: str = "") -> str:
    """A part of an error with three digits of the total, so that small parts show.

    Examples
    --------
    >>> digits(0.0712, 0.312), digits(-0.0712, 0.312, "+"), digits(7.1e-7, 3.12e-6)
    ('0.071', '-0.071', '7.1e-07')
    """
    if not SMALLEST_PLAIN <= total < LARGEST_PLAIN:
        return f"{part:{sign}.2g}"
    places = max(0, SIGNIFICANT - 1 - math.floor(math.log10(total)))
    return f"{part:{sign}.{places}f}"


def fit_results(estimate: "MeasurementEstimate") -> FitResults:
    """Values, errors and correlations of all parameters, those of interest first."""
    every = [estimate[name] for name in estimate.names]
    units = {one.name: one.constraint for one in estimate.nuisances}
    unit = np.array([units.get(name) or 1.0 for name in estimate.names])
    return FitResults(
        np.array([one.value for one in every]) / unit,
        np.sqrt(np.diag(estimate.full_covariance)) / unit,
        list(estimate.names),
        np.asarray(estimate.full_correlation),
        estimate.chi2,
        -1 if estimate.p_value is None else estimate.p_value,
        {
            one.name: (one.interval[0] - one.value, one.interval[1] - one.value)
            for one in estimate.results
        },
    )


def ranking_results(estimate: "MeasurementEstimate", parameter: str) -> RankingResults:
    """Impacts on a parameter: its covariance with a nuisance parameter over the variance of that,
    times the error of the nuisance parameter; without free ones, which have no error before."""
    place = estimate.names.index(parameter)
    kept = [one for one in estimate.nuisances if one.constraint is not None]
    columns = [estimate.names.index(one.name) for one in kept]
    covariance = estimate.full_covariance
    slopes = covariance[place, columns] / np.diag(covariance)[columns]
    before = np.array([one.constraint for one in kept], float)
    after = np.array([one.error for one in kept], float)
    return RankingResults(
        np.array([one.value for one in kept], float) / before,
        after / before,
        [one.name for one in kept],
        slopes * before,
        -slopes * before,
        slopes * after,
        -slopes * after,
    )
