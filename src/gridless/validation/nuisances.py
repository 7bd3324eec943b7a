"""Nuisance parameters of samples whose parameters are known: does the fit pull them back?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.estimate import Estimate
from gridless.measurement.estimate import MeasurementEstimate
from gridless.model.combined import Channels
from gridless.model.model import Model
from gridless.templates.arrays import Array

# Intervals have every uncertainty, so that a pull by their width would be another one.
PULLS = "pull = (estimated - true) / error without constraints: samples are taken to be nominal"


def nuisances_of(estimates: Sequence[Estimate]) -> list[dict[str, dict[str, Any]]]:
    """Of each estimate value, error, pull and impacts of every nuisance parameter, by name; empty
    without systematics."""
    return [
        {one.name: one.to_dict() for one in estimate.nuisances}
        for estimate in estimates
        if isinstance(estimate, MeasurementEstimate)
    ]


def varying_shares(estimates: Sequence[Estimate], parameter: str) -> Array:
    """The share (samples,) of a parameter's error that varies between samples made at the centres
    of all constraints: the root of 1 - sum of squared impacts / error^2; 1 without systematics."""
    found = np.ones(len(estimates))
    for number, estimate in enumerate(estimates):
        if isinstance(estimate, MeasurementEstimate):
            budget = estimate[parameter].budget
            total = sum(part**2 for part in budget.values())
            fixed = sum(budget.get(one.name, 0.0) ** 2 for one in estimate.nuisances)
            found[number] = np.sqrt(1 - fixed / total) if total > fixed else 1.0
    return found


def nuisance_notes(estimates: Sequence[Estimate]) -> list[str]:
    """What pulls are over, and a line for every nuisance parameter: its values in all samples, and
    their errors."""
    found = nuisances_of(estimates)
    lines = [PULLS] if found and found[0] else []
    for name in found[0] if found else ():
        value = np.array([one[name]["value"] for one in found])
        error = np.mean([one[name]["error"] for one in found])
        low, mean, high = (round(v, 2) + 0.0 for v in (value.min(), value.mean(), value.max()))
        spread = f", from {low:+.2f} to {high:+.2f}" if len(value) > 1 else ""
        lines.append(f"{name} = {mean:+.2f} +- {error:.2f}{spread}")
    return lines


def constrained_nuisances(model: Model) -> tuple[str, ...]:
    """The nuisance parameters of a model that have a constraint."""
    found = () if model.measurement is None else model.measurement.nuisances
    return tuple(one.name for one in found if one.constraint is not None)


def coverage_notes(constrained: Sequence[str]) -> list[str]:
    """What intervals with constraints cover, where nothing varies within these."""
    if not constrained:
        return []
    return [
        f"errors contain the constraints of {', '.join(constrained)}, which do not vary between "
        "pseudo-experiments: intervals cover more, and pulls are narrower, than in a measurement"
    ]


def held_notes(held: Sequence[str]) -> list[str]:
    """What intervals lack where nuisance parameters are held."""
    if not held:
        return []
    return [
        f"{', '.join(held)} held at 0, in samples and likelihoods: intervals lack these "
        "uncertainties, a measurement has them"
    ]


def without_backgrounds(model: Model | Channels) -> dict[str, float]:
    """Nuisance parameters of shares, at values where all of them vanish."""
    found: dict[str, float] = {}
    for one in model.values() if isinstance(model, Channels) else [model]:
        own = {} if one.measurement is None else one.measurement.without_backgrounds()
        for name, value in own.items():
            if not np.isclose(found.setdefault(name, value), value):
                raise InputError(
                    f"signal: the share of {name} does not vanish in all channels at once; give "
                    "the background a name of its own in each channel"
                )
    return found
