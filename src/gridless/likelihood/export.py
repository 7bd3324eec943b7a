"""Likelihood curves for machines: JSON, CSV and HEPData."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import yaml

from gridless.likelihood import minimum
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.arrays import Array

POINTS = 201  # values of a parameter in a scan, both bounds included


def curve(likelihood: Likelihood) -> dict[str, Any]:
    """The likelihood for machines: its Chebyshev coefficients and the profile of each parameter."""
    estimate = likelihood.maximum()
    profiles = {
        name: {"value": values.tolist(), "delta_log_likelihood": rises.tolist()}
        for name, values, rises in _profiles(likelihood)
    }
    return {
        "parameters": list(likelihood.grid.parameters),
        "bounds": likelihood.grid.bounds.tolist(),
        "events": likelihood.events,
        "best": estimate.values.tolist(),
        "coefficients": likelihood.coefficients.tolist(),
        "convention": "-log L = sum c[k, l, ...] T_k(2 t_1 - 1) T_l(2 t_2 - 1) ..., "
        "t = (theta - low) / (high - low)",
        "lowest": minimum.value(likelihood.coefficients, likelihood.grid.to_unit(estimate.values)),
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
