"""Likelihood curves for machines: JSON, CSV and HEPData."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gridless.errors import InputError
from gridless.files.write import write_whole
from gridless.likelihood.intervals import LEVEL
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.arrays import Array

POINTS = 201  # values of a parameter in a scan, both bounds included


def curve(likelihood: Likelihood, level: float = LEVEL) -> dict[str, Any]:
    """The likelihood for machines: its Chebyshev coefficients and the profile of each parameter."""
    estimate = likelihood.maximum()
    intervals = {name: likelihood.interval(level, name) for name in estimate.parameters}
    profiles = {
        name: {"value": values.tolist(), "delta_log_likelihood": rises.tolist()}
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
        "coefficients": likelihood.coefficients.tolist(),
        "convention": "-log L = sum c[k, l, ...] T_k(2 t_1 - 1) T_l(2 t_2 - 1) ..., "
        "t = (theta - low) / (high - low)",
        "lowest": likelihood(*estimate.values),
        "profiles": profiles,
    }


def hepdata(likelihood: Likelihood) -> str:
    """The profile likelihood of each parameter as a HEPData table in YAML."""
    tables = []
    for name, values, rises in _profiles(likelihood):
        tables.append(
            {
                "independent_variables": [
                    {"header": {"name": name}, "values": [{"value": float(v)} for v in values]}
                ],
                "dependent_variables": [
                    {
                        "header": {"name": "-Delta log L"},
                        "qualifiers": [{"name": "EVENTS", "value": likelihood.events}],
                        "values": [{"value": float(rise)} for rise in rises],
                    }
                ],
            }
        )
    return str(yaml.safe_dump_all(tables, sort_keys=False))


def scan_csv(likelihood: Likelihood) -> str:
    """The profile of every parameter as lines of `parameter,value,delta_log_likelihood`."""
    lines = ["parameter,value,delta_log_likelihood"]
    for name, values, rises in _profiles(likelihood):
        lines += [f"{name},{v:.10g},{rise:.10g}" for v, rise in zip(values, rises, strict=True)]
    return "\n".join(lines) + "\n"


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
    target = Path(path)
    chosen = ENDINGS.get(target.suffix) if kind is None else kind
    if chosen == "json":
        text = json.dumps(curve(likelihood, level), indent=1)
    elif chosen == "csv":
        text = scan_csv(likelihood)
    elif chosen == "hepdata":
        text = hepdata(likelihood)
    else:
        raise InputError(
            f"{target}: kind {chosen!r}; give kind='json', 'csv' or 'hepdata', or a name that ends "
            f"with {', '.join(ENDINGS)}"
        )
    write_whole(target, text.encode())
    return target
