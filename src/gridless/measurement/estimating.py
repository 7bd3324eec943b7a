"""From the likelihood of a measurement to its estimate."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gridless.curves.intervals import LEVEL
from gridless.curves.newton import inverse_on
from gridless.likelihood import warnings
from gridless.likelihood.agreement import p_value
from gridless.likelihood.estimate import MODEL, STAT, ParameterEstimate, read_only
from gridless.likelihood.estimating import (
    channel_labels,
    common_warnings,
    event_warnings,
    gap_warnings,
    half_width,
    share_outside,
)
from gridless.measurement.estimate import MeasurementEstimate, NuisanceEstimate
from gridless.results.warning import EstimateWarning
from gridless.templates.arrays import Array

if TYPE_CHECKING:
    from gridless.measurement.likelihood import MeasurementLikelihood

NAMED = 3  # systematics that one warning names


def make_estimate(likelihood: "MeasurementLikelihood") -> MeasurementEstimate:
    """The estimate at the minimum of a likelihood."""
    covariances = likelihood.joint.covariances
    total = likelihood.joint.covariance
    names = likelihood.joint.names
    interest = [names.index(name) for name in likelihood.interest]
    results = [_parameter(likelihood, place, profile=True) for place in interest]
    rest = [
        place
        for place in range(len(names))
        if place not in interest and names[place] not in likelihood.held
    ]
    kept = [*interest, *rest]
    p_values, chi2, dof = _agreement(likelihood)
    together: float | None = p_value(chi2, dof)
    if any(part.sums.average for part in likelihood.parts):
        p_values, together = {}, None  # Asimov data agree by construction
    return MeasurementEstimate(
        tuple(results),
        {name: c[np.ix_(interest, interest)] for name, c in covariances.items()},
        likelihood.events,
        p_value=together,
        p_values=p_values,
        outside=share_outside(likelihood.channels),
        warnings=_warnings(likelihood, results, p_values, together),
        offered=likelihood.offered,
        nuisances=tuple(
            _nuisance(likelihood, one.name, one.constraint, results)
            for one in likelihood.nuisances
            if one.name not in likelihood.held
        ),
        nuisance_results=tuple(_parameter(likelihood, place, profile=False) for place in rest),
        names=tuple(names[place] for place in kept),
        full_covariance=read_only(total[np.ix_(kept, kept)]),
        chi2=chi2,
        dof=dof,
    )


def _parameter(likelihood: "MeasurementLikelihood", place: int, profile: bool) -> ParameterEstimate:
    """The estimate of one parameter, its interval by its profile or by its error."""
    value = float(likelihood.joint.best[place])
    low, high = float(likelihood.joint.low[place]), float(likelihood.joint.high[place])
    budget = {
        source: float(np.sqrt(max(c[place, place], 0.0)))
        for source, c in likelihood.joint.covariances.items()
    }
    pinned = bool(likelihood.joint.at_bound[place])
    error = float(np.sqrt(sum(part**2 for part in budget.values())))
    ends, cut = (value - error, value + error), (False, False)
    if profile:
        (left, cut_left), (right, cut_right) = likelihood.joint.crossings(place, LEVEL)
        ends, cut = (left, right), (cut_left, cut_right)
    half = half_width(value, ends, cut)
    if pinned or not np.isfinite(error):
        budget = {STAT: half}
    elif error > 0:
        # The total is that of the interval, also where the likelihood is no parabola.
        budget = {source: part * half / error for source, part in budget.items()}
    return ParameterEstimate(
        name=likelihood.joint.names[place],
        value=value,
        stat_interval=ends,
        budget=budget,
        bounds=(low, high),
        at_bound=pinned,
        stat_cut=cut,
        label=likelihood.grid.labels.get(likelihood.joint.names[place], ""),
    )


def _nuisance(
    likelihood: "MeasurementLikelihood",
    name: str,
    constraint: float | None,
    results: list[ParameterEstimate],
) -> NuisanceEstimate:
    joint, place = likelihood.joint, likelihood.joint.place(name)
    impacts = {}
    for one in results:
        own = joint.covariances.get(name)
        sign = 0.0 if own is None else own[joint.place(one.name), place]
        impacts[one.name] = float(np.copysign(one.budget.get(name, 0.0), sign))
    return NuisanceEstimate(name, float(joint.best[place]), joint.error(place), constraint, impacts)


def _agreement(likelihood: "MeasurementLikelihood") -> tuple[dict[str, float], float, float]:
    """The p-value of every channel, fitted alone, and chi2 with degrees of freedom of all."""
    chi2, dof, of_curves = _chi2(likelihood)
    labels = channel_labels(likelihood.channels)
    if len(labels) == 1:
        return {labels[0]: p_value(chi2, dof)}, chi2, dof
    each: dict[str, float] = {}
    for number, label in enumerate(labels):
        if number < len(likelihood.parts):
            each[label] = p_value(*_chi2(likelihood.channel_alone(number))[:2])
        elif (found := of_curves[number - len(likelihood.parts)]) is not None:
            each[label] = p_value(*found)
    return each, chi2, dof


def _chi2(
    likelihood: "MeasurementLikelihood",
) -> tuple[float, float, list[tuple[float, float] | None]]:
    """chi2 and degrees of freedom, and those of every channel without systematics.

    Every number of a summary and every constraint counts one, every parameter takes one away.
    """
    joint = likelihood.joint
    best, (terms, curves) = joint.best, joint.terms
    chi2 = sum(term.chi2(best) for term in terms)
    chi2 += sum(((best[place] - centre) / error) ** 2 for place, centre, error in joint.gaussians)
    dof: float = sum(term.components for term in terms) + len(joint.gaussians)
    dof -= int(joint.free.sum())
    of_curves = [curve.chi2(best) for curve in curves]
    for curve, found in zip(curves, of_curves, strict=True):
        if found is not None:
            chi2 += found[0]
            dof += found[1] + len(curve.places)
    return float(chi2), dof, of_curves


def _warnings(
    likelihood: "MeasurementLikelihood",
    results: list[ParameterEstimate],
    p_values: dict[str, float],
    together: float | None,
) -> tuple[EstimateWarning, ...]:
    """Every reason that speaks against the estimate, each once."""
    found: list[EstimateWarning] = []
    for one in results:
        found += warnings.bound_warnings(one.name, one.value, one.bounds, one.cut, one.error)
    channels = likelihood.channels
    labels = channel_labels(channels)
    for number, (label, channel) in enumerate(zip(labels, channels, strict=True)):
        grid = channel.grid
        values = likelihood.joint.best[[likelihood.joint.place(name) for name in grid.parameters]]
        own = [*warnings.extrapolation_warnings(values, grid), *channel.warnings]
        own += _gap_warnings(likelihood, number, values, results)
        if channel.agreement is not None:
            p = p_values.get(label, np.nan)
            t = channel.grid.to_unit(values)
            own += event_warnings(channel.agreement, p, t)
            found += common_warnings(label, channel, t, labels, channels)
        elif label in p_values:
            own += warnings.fit_warnings(p_values[label])
        several = len(channels) > 1
        found += [w._replace(text=f"{label}: {w.text}") if several else w for w in own]
    if together is not None and not any(w.name == "bad_fit" for w in found):
        found += warnings.fit_warnings(together)
    # Shares of backgrounds are linear in alpha at any distance: nothing is extrapolated.
    shares = {name for part in likelihood.parts for name in part.measurement.without_backgrounds()}
    for nuisance in likelihood.nuisances:
        if nuisance.name in likelihood.held:
            continue
        place = likelihood.joint.place(nuisance.name)
        if nuisance.name not in shares:
            found += warnings.variation_warnings(nuisance.name, float(likelihood.joint.best[place]))
        if nuisance.constraint is None:
            continue
        error = likelihood.joint.error(place)
        pull = float(likelihood.joint.best[place] / nuisance.constraint)
        # A constraint that the user adds is no knowledge of the events.
        added = any(one.parameter == nuisance.name for one in likelihood.constraints)
        constrained = np.inf if added else float(error / nuisance.constraint)
        found += warnings.nuisance_warnings(nuisance.name, pull, constrained)
    return tuple(dict.fromkeys(found))


def _gap_warnings(
    likelihood: "MeasurementLikelihood",
    number: int,
    values: Array,
    results: list[ParameterEstimate],
) -> list[EstimateWarning]:
    """Whether the templates or the variations of a channel are too far apart for its events."""
    channel, joint = likelihood.channels[number], likelihood.joint
    own = [one for one in results if one.name in channel.grid.parameters]
    terms = joint.terms[0]
    if number >= len(terms):
        return gap_warnings(channel, values, own)
    response = inverse_on(joint.slopes(joint.best)[2], joint.free & ~joint.at_bound)
    found: list[EstimateWarning] = []
    for one in own:
        if response is None or MODEL not in one.budget or not one.stat > 0:
            continue
        place = joint.place(one.name)
        # In units of the budget, whose total is that of the interval.
        row = response[place] * one.error / joint.error(place)
        left, each = terms[number].left_open(joint.best, row)
        alone = replace(one, budget={**one.budget, MODEL: left})
        found += gap_warnings(channel, values, [alone])
        wide = {name: size for name, size in each.items() if warnings.is_wide(size, one.stat, 0.0)}
        if wide:
            order = sorted(wide, key=lambda name: -wide[name])
            more = f" and {len(order) - NAMED} others" if len(order) > NAMED else ""
            what = f"the values of theta and of {', '.join(order[:NAMED])}{more} that are simulated"
            sizes = float(np.hypot.reduce(list(wide.values()))), one.stat, 0.0
            found += warnings.gap_warnings(one.name, sizes, f"{what}; add some")
    return found
