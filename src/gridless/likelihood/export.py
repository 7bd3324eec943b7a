"""Likelihood curves for machines: JSON, CSV and HEPData."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gridless import strict_json
from gridless.curves.intervals import LEVEL
from gridless.errors import InputError, check_kind
from gridless.files.sources import as_path
from gridless.files.write import write_whole
from gridless.likelihood.estimate import STAT, ParameterEstimate
from gridless.likelihood.likelihood import Likelihood
from gridless.results.labels import unit_of
from gridless.templates.arrays import Array

POINTS = 201  # values of a parameter in a scan, both bounds included


def curve(likelihood: Likelihood, level: float = LEVEL) -> dict[str, Any]:
    """The likelihood for machines: its Chebyshev coefficients and the profile of each parameter."""
    estimate, coefficients = likelihood.maximum(), likelihood.curve.coefficients
    intervals = {name: likelihood.interval(level, name) for name in estimate.parameters}
    profiles = {
        name: {
            "value": values.tolist(),
            "delta_log_likelihood": (0.0 - rises).tolist(),
            "negative_delta_log_likelihood": rises.tolist(),
        }
        for name, values, rises in _profiles(likelihood)
    }
    return {
        "parameters": list(likelihood.grid.parameters),
        "bounds": likelihood.grid.bounds.tolist(),
        "events": likelihood.events,
        "best": estimate.values.tolist(),
        "intervals": {
            name: dict(zip(("level", "low", "high"), (level, *ends), strict=True))
            for name, ends in intervals.items()
        },
        "coefficients": None if coefficients is None else coefficients.tolist(),
        "terms": [
            {
                "parameters": [likelihood.parameters[axis] for axis in axes],
                "coefficients": c.tolist(),
            }
            for axes, c in likelihood.curve.series
        ],
        "convention": "-log L = sum c[k, l, ...] T_k(2 t_1 - 1) T_l(2 t_2 - 1) ..., "
        "t = (theta - low) / (high - low); the sum of `terms`, which is `coefficients` if there is "
        "one over all parameters; delta_log_likelihood = log L - max log L",
        "lowest": float(likelihood.curve.value(likelihood.unit_best)),
        "profiles": profiles,
    }


def hepdata(likelihood: Likelihood) -> str:
    """The estimates, and the profile likelihood of each parameter, as HEPData tables in YAML: one
    document per table. Values are rounded to what a curve of 201 points can show."""
    estimate = likelihood.maximum()
    qualifiers = [{"name": "EVENTS", "value": likelihood.events}]
    tables = []
    for name, values, rises in _profiles(likelihood):
        unit = unit_of(likelihood.grid.labels.get(name, ""))
        header = {"name": name} | ({"units": unit} if unit else {})
        one, step = estimate[name], values[1] - values[0]
        tables.append(
            _table(
                {"name": "Quantity"},
                [name],
                header,
                [{"value": _rounded(one.value, step), "errors": _errors(one, step)}],
                qualifiers,
            )
        )
        rows = [{"value": round(float(rise), 4)} for rise in rises]
        points = [_rounded(value, step) for value in values]
        tables.append(_table(header, points, {"name": "-Delta log L"}, rows, qualifiers))
    return str(yaml.safe_dump_all(tables, sort_keys=False))


def _table(
    independent: dict[str, str],
    points: Sequence[Any],
    dependent: dict[str, str],
    rows: Sequence[dict[str, Any]],
    qualifiers: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """One table of HEPData with one column of either kind."""
    return {
        "independent_variables": [
            {"header": dict(independent), "values": [{"value": point} for point in points]}
        ],
        "dependent_variables": [
            {
                "header": dict(dependent),
                "qualifiers": [dict(qualifier) for qualifier in qualifiers],
                "values": list(rows),
            }
        ],
    }


def _errors(one: ParameterEstimate, step: float) -> list[dict[str, Any]]:
    """Every source of the budget; the statistical one has the two sides of the interval."""
    inside = math.sqrt(max(one.error**2 - one.beyond**2, 0.0))
    share = one.stat / inside if inside > 0 else 1.0
    low, high = one.stat_interval
    plus, minus = (_rounded(share * (end - one.value), step) for end in (high, low))
    found: list[dict[str, Any]] = [{"label": STAT, "asymerror": {"plus": plus, "minus": minus}}]
    found += [
        {"label": source, "symerror": _rounded(error, step)}
        for source, error in one.budget.items()
        if source != STAT
    ]
    return found


def _rounded(value: float, step: float) -> float:
    """The value with three digits more than a step of the scan."""
    return round(float(value), max(0, 3 - math.floor(math.log10(step))))


def scan_csv(likelihood: Likelihood) -> str:
    """The profile of every parameter as rows of `parameter,value,delta_log_likelihood`, the last of
    which is log L - max log L."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["parameter", "value", "delta_log_likelihood"])
    for name, values, rises in _profiles(likelihood):
        for value, rise in zip(values, rises, strict=True):
            rows.writerow([name, f"{value:.10g}", f"{0.0 - rise:.10g}"])
    return text.getvalue()


def _profiles(likelihood: Likelihood) -> Iterator[tuple[str, Array, Array]]:
    """Every parameter with values over its range and the profile likelihood there."""
    for name, (low, high) in zip(likelihood.grid.parameters, likelihood.grid.bounds, strict=True):
        values = np.linspace(low, high, POINTS)
        yield name, values, likelihood.profile(name, values)


ENDINGS = {".json": "json", ".csv": "csv", ".yaml": "hepdata"}  # kinds by the ending of the file


def write_curve(
    path: str | Path, likelihood: Likelihood, kind: str | None = None, *, level: float = LEVEL
) -> Path:
    """Write a likelihood for other programs.

    Parameters
    ----------
    path : str or Path
        The file to write.
    likelihood : Likelihood
        Of the observed events.
    kind : str, optional
        "json", the Chebyshev coefficients and the profile of each parameter; "csv", the profiles
        alone; "hepdata", the profiles as HEPData tables. By default what the ending of the file
        says: .json, .csv, .yaml.
    level : float
        Confidence level of the intervals in the JSON file.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> likelihood = example.likelihood(example.sample(0.4, 1_000, seed=1))
    >>> path = gl.write_curve("scan.csv", likelihood)
    >>> path.read_text().splitlines()[0]
    'parameter,value,delta_log_likelihood'
    """
    check_kind(likelihood, Likelihood, "likelihood")
    target = as_path(path)
    chosen = ENDINGS.get(target.suffix) if kind is None else kind
    if chosen == "json":
        text = strict_json.dumps(curve(likelihood, level), indent=1)
    elif chosen == "csv":
        text = scan_csv(likelihood)
    elif chosen == "hepdata":
        text = hepdata(likelihood)
    else:
        raise InputError(
            f"{target}: kind {chosen!r}; give kind='json', 'csv' or 'hepdata', or a name that ends "
            f"with {', '.join(ENDINGS)}"
        )
    write_whole(target, text)
    return target
