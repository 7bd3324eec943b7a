"""From a likelihood to its estimate: the budget of uncertainties, p-values and warnings."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gridless.curves import minimum
from gridless.curves.curve import Curve
from gridless.curves.intervals import LEVEL
from gridless.likelihood import warnings
from gridless.likelihood.agreement import Agreement, p_value
from gridless.likelihood.channel import Channel, Place
from gridless.likelihood.estimate import MODEL, SIMULATION, STAT, Estimate, ParameterEstimate
from gridless.results.warning import EstimateWarning
from gridless.templates.arrays import Array

if TYPE_CHECKING:
    from gridless.likelihood.likelihood import Likelihood

Covariances = dict[str, Array]


def make_estimate(likelihood: "Likelihood") -> Estimate:
    """The estimate at the minimum of a likelihood."""
    grid, best = likelihood.grid, likelihood.unit_best
    inside = inside_covariances(likelihood)
    beyond = beyond_covariances(likelihood)
    shares = _shares(likelihood)
    pinned = minimum.at_bound(best)
    values = grid.from_unit(best)
    results = []
    for p, name in enumerate(grid.parameters):
        ends, cut = likelihood.unit_interval(p, LEVEL)
        low, high = (grid.bounds[p, 0] + ends * grid.range[p]).tolist()
        half = half_width(float(values[p]), (low, high), cut)
        budget = {source: half * float(share[p]) for source, share in shares.items()}
        others = {} if pinned[p] else beyond
        for source, matrix in others.items():
            budget[source] = float(np.sqrt(matrix[p, p]) * grid.range[p])
        bottom, top = grid.bounds[p].tolist()
        results.append(
            ParameterEstimate(
                name=name,
                value=float(values[p]),
                stat_interval=(low, high),
                budget=budget,
                bounds=(bottom, top),
                at_bound=bool(pinned[p]),
                stat_cut=(bool(cut[0]), bool(cut[1])),
                beyond=math.hypot(*(budget[source] for source in others)),
                label=grid.labels.get(name, ""),
            )
        )
    scale = np.outer(grid.range, grid.range)
    p_values, together = _p_values(likelihood)
    return Estimate(
        tuple(results),
        {name: matrix * scale for name, matrix in (inside | beyond).items()},
        likelihood.events,
        p_value=together,
        p_values=p_values,
        outside=share_outside(likelihood.channels),
        warnings=_warnings(likelihood, results, p_values, together),
        offered=likelihood.offered,
    )


def share_outside(channels: Sequence[Channel]) -> float | None:
    """The share of all events that lie outside of the simulation; None where it is not known."""
    filled = [c.agreement.filling for c in channels if c.agreement is not None]
    events = sum(filling.events for filling in filled)
    return sum(filling.outside for filling in filled) / events if events else None


def half_width(value: float, interval: tuple[float, float], cut: Sequence[bool] | Array) -> float:
    """Half of an interval; where a bound cuts one side, the length of the other."""
    down, up = value - interval[0], interval[1] - value
    if cut[0] != cut[1]:
        return up if cut[0] else down
    return 0.5 * (down + up)


def inside_covariances(likelihood: "Likelihood") -> Covariances:
    """Covariances of the minimum, in units of the range, from what is in the likelihood: the events
    and each constraint."""
    inverse = minimum.covariance(likelihood.curve, likelihood.unit_best)
    slopes = _slope_covariances(likelihood)
    if len(slopes) == 1 and not _weighted(likelihood):
        return {STAT: inverse}  # H^-1 H H^-1
    return {name: inverse @ matrix @ inverse for name, matrix in slopes.items()}


def _slope_covariances(likelihood: "Likelihood") -> Covariances:
    """The covariance of the slope of the likelihood at its minimum from the events and from each
    constraint.

    Events without weights give H, their second derivatives; those with weights the sum of
    w_i^2 s_i s_i^T. A constraint gives 1 / error^2.
    """
    grid, best = likelihood.grid, likelihood.unit_best
    count = len(best)
    found: Covariances = {STAT: np.zeros((count, count))}
    for constraint in likelihood.constraints:
        axis = grid.parameters.index(constraint.parameter)
        matrix = found.setdefault(constraint.source, np.zeros((count, count)))
        matrix[axis, axis] += (grid.range[axis] / constraint.error) ** 2
    if not _weighted(likelihood):
        found[STAT] = likelihood.curve.hessian(best) - sum(
            matrix for name, matrix in found.items() if name != STAT
        )
        return found
    for channel in likelihood.channels:
        place = Place(channel, grid)
        found[STAT] = found[STAT] + place.matrix(_score_covariance(channel, place.own(best)))
    return found


def _score_covariance(channel: Channel, t: Array) -> Array:
    """The covariance of the slope of one channel: that of its scores, or its second derivatives."""
    if channel.scores is not None:
        matrix = channel.scores.covariance(t)
        # Where a score hardly varies, what is interpolated may be negative: it is no variance.
        if np.linalg.eigvalsh(matrix).min() > 0:
            return matrix
    return Curve.of(channel.total).hessian(t)


def _shares(likelihood: "Likelihood") -> Covariances:
    """Of each parameter the share of the events and of each constraint in the error of the
    likelihood; their squares sum to 1."""
    slopes = _slope_covariances(likelihood)
    count = len(likelihood.unit_best)
    if len(slopes) == 1:
        return {STAT: np.ones(count)}
    response = minimum.response(likelihood.curve, likelihood.unit_best)
    if response is None:
        variances = {name: np.zeros(count) for name in slopes}
    else:
        variances = {
            name: np.diag(response @ matrix @ response).clip(min=0)
            for name, matrix in slopes.items()
        }
    total = np.sum(list(variances.values()), axis=0)
    # A parameter at a bound does not move: what there is to say is statistical.
    moves = total > 0
    variances[STAT] = np.where(moves, variances[STAT], 1.0)
    return {
        name: np.sqrt(variance / np.where(moves, total, 1.0))
        for name, variance in variances.items()
    }


def beyond_covariances(likelihood: "Likelihood") -> Covariances:
    """Covariances of the sources beyond the likelihood, by name.

    What moves parts of one model moves them together: their slopes add, change by change. Different
    models are independent: their covariances add.
    """
    best = likelihood.unit_best
    response = minimum.response(likelihood.curve, best)
    if response is None:
        return {}
    found: Covariances = {}
    slopes: dict[tuple[str, str], Array] = {}
    sources = {}
    for channel in likelihood.channels:
        place = Place(channel, likelihood.grid)
        for name, source in channel.sources.items():
            key = name, channel.model
            sources[key] = source
            slopes[key] = slopes.get(key, 0.0) + place.slopes(source.slopes(place.own(best)))
    for (name, model), source in sources.items():
        matrix = source.covariance(slopes[name, model] @ response)
        found[name] = found.get(name, 0.0) + matrix
    return found


def _weighted(likelihood: "Likelihood") -> bool:
    """Whether any events have weights."""
    return any(channel.scores is not None for channel in likelihood.channels)


def channel_labels(channels: Sequence[Channel]) -> list[str]:
    """A different name for every channel."""
    labels: list[str] = []
    for number, channel in enumerate(channels, start=1):
        label = channel.name or f"channel {number}"
        labels.append(f"{label} ({number})" if label in labels else label)
    return labels


def _p_values(likelihood: "Likelihood") -> tuple[dict[str, float], float | None]:
    """The p-value of every channel, and that of all: chi2 and degrees of freedom of different
    models add; groups of one model have one simulation, and are compared with it together."""
    each: dict[str, float] = {}
    models: dict[str, tuple[Agreement, Array]] = {}
    for label, channel in zip(
        channel_labels(likelihood.channels), likelihood.channels, strict=True
    ):
        if channel.agreement is not None:
            t, key = (
                Place(channel, likelihood.grid).own(likelihood.unit_best),
                channel.model or label,
            )
            each[label] = p_value(*channel.agreement.chi2(t))
            whole = models[key][0] + channel.agreement if key in models else channel.agreement
            models[key] = whole, t
    found = [agreement.chi2(t) for agreement, t in models.values()]
    chi2, dof = (sum(column) for column in zip(*found, strict=True)) if found else (0.0, 0.0)
    return each, p_value(chi2, dof) if each else None


def _warnings(
    likelihood: "Likelihood",
    results: list[ParameterEstimate],
    p_values: dict[str, float],
    together: float | None,
) -> tuple[EstimateWarning, ...]:
    """Every reason that speaks against the estimate, each once."""
    best = likelihood.unit_best
    found: list[EstimateWarning] = []
    for one in results:
        found += warnings.bound_warnings(one.name, one.value, one.bounds, one.cut, one.error)
    others = minimum.rivals(
        likelihood.curve, likelihood.unit_minima, likelihood.distance, warnings.RIVAL_RISE
    )
    rivals = [(likelihood.grid.from_unit(t), rise) for t, rise in others]
    found += warnings.rival_warnings(likelihood.parameters, rivals)
    labels, several = channel_labels(likelihood.channels), len(likelihood.channels) > 1
    values = likelihood.grid.from_unit(best)
    each: list[EstimateWarning] = []
    for label, channel in zip(labels, likelihood.channels, strict=True):
        place = Place(channel, likelihood.grid)
        own = warnings.extrapolation_warnings(values[place.axes], channel.grid)
        own += channel.warnings
        own += gap_warnings(channel, values[place.axes], [results[p] for p in place.axes])
        if channel.agreement is not None:
            own += event_warnings(channel.agreement, p_values[label], place.own(best))
            each += common_warnings(label, channel, place.own(best), labels, likelihood.channels)
        each += [w._replace(text=f"{label}: {w.text}") if several else w for w in own]
    found += each
    if together is not None and not any(w.name == "bad_fit" for w in each):
        found += warnings.fit_warnings(together)
    found += _prior_warnings(likelihood, results)
    found += _score_warnings(likelihood, results)
    for source in sorted({name for c in likelihood.channels for name in c.sources}):
        # A channel without a model is exact.
        without = [
            label
            for label, channel in zip(labels, likelihood.channels, strict=True)
            if channel.model and source not in channel.sources
        ]
        found += warnings.source_warnings(source, without)
    return tuple(dict.fromkeys(found))


def event_warnings(agreement: Agreement, p_value: float, t: Array) -> list[EstimateWarning]:
    """What the events of a channel say against its estimate t, in units of the channel's range."""
    filling, outside = agreement.filling, agreement.cells.share_outside(t)
    return [
        *warnings.far_warnings(filling.far, filling.rows, filling.named),
        *warnings.outside_warnings(filling.outside, filling.events, *outside),
        *warnings.fit_warnings(p_value),
        *warnings.copy_warnings(agreement.copied(t)),
    ]


def common_warnings(
    label: str, channel: Channel, t: Array, labels: Sequence[str], channels: Sequence[Channel]
) -> list[EstimateWarning]:
    """Whether earlier channels of other models have events of this one. Groups of the events of
    one model have none in common."""
    found = []
    for earlier, other in zip(labels[: labels.index(label)], channels, strict=False):
        if channel.agreement and other.agreement and other.model != channel.model:
            share = channel.agreement.common(other.agreement, t)
            found += warnings.common_warnings(label, earlier, share)
    return found


def gap_warnings(
    channel: Channel, values: Array, results: Sequence[ParameterEstimate]
) -> list[EstimateWarning]:
    """Whether the templates of a channel are too far apart around values of its parameters, of
    which `results` are estimated."""
    found: list[EstimateWarning] = []
    if MODEL not in channel.sources or len(channel.grid) < 2:
        return found
    grid = channel.grid
    ends = " and ".join(grid.label(k) for k in grid.around(values))
    what = f"{ends}; simulate a template there"
    for one in results:
        if MODEL in one.budget and one.stat > 0:
            sizes = one.budget[MODEL], one.stat, one.budget.get(SIMULATION, 0.0)
            found += warnings.gap_warnings(one.name, sizes, what)
    return found


def _score_warnings(
    likelihood: "Likelihood", results: list[ParameterEstimate]
) -> list[EstimateWarning]:
    """Whether the simulation says that densities that were taken at their word move the
    estimate."""
    best = likelihood.unit_best
    # Of an estimate at a bound as well, which the mean score may have pushed there.
    response = minimum.covariance(likelihood.curve, best)
    has_minimum = bool(np.isfinite(response).all())
    shift, variance = np.zeros(len(best)), np.zeros(len(best))
    for channel in likelihood.channels:
        if channel.mean_score is not None:
            place = Place(channel, likelihood.grid)
            moved = place.slopes(channel.mean_score.slopes(place.own(best)))
            moved = moved @ response if has_minimum else moved
            shift += moved[0]
            variance += (moved[1:] ** 2).sum(axis=0)
    shift, noise = np.abs(shift), np.sqrt(variance)
    stat = np.array([one.stat for one in results]) / likelihood.grid.range
    stat = np.where(stat > 0, stat, np.inf)
    if not has_minimum:
        shift = np.where(shift > warnings.BIASED_NOISE * noise, np.inf, 0.0)
        stat = np.ones_like(stat)
    return warnings.score_warnings(likelihood.parameters, shift / stat, noise / stat)


def _prior_warnings(
    likelihood: "Likelihood", results: list[ParameterEstimate]
) -> list[EstimateWarning]:
    """Whether implied priors that were not divided by move the estimate."""
    channels = [c for c in likelihood.channels if c.undivided is not None]
    if not channels:
        return []
    best = likelihood.unit_best
    slope = np.zeros(len(best))
    for channel in channels:
        assert channel.undivided is not None
        place = Place(channel, likelihood.grid)
        slope += place.slopes(Curve.of(channel.undivided).gradient(place.own(best)))
    halves = [0.5 * (one.stat_interval[1] - one.stat_interval[0]) for one in results]
    errors = halves / likelihood.grid.range
    shifts = np.abs(likelihood.unit_covariance @ slope / errors)
    return warnings.prior_warnings(likelihood.parameters, shifts)
