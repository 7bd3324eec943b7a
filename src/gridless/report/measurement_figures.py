"""Figures of a whole measurement: pulls, impacts, correlations, channels. Needs the extra
`figures`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.errors import InputError, check_kind
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.measurement.estimate import MeasurementEstimate
from gridless.report.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    SKY,
    drawing,
    few_ticks,
    legend_above,
    symbol,
)
from gridless.results.by_name import chosen_parameter
from gridless.results.labels import symbol_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.27  # inches that a nuisance parameter takes in a figure
CHANNEL_ROW = 0.36  # inches that a channel takes
MOST_NUMBERS = 14  # names up to which a correlation matrix has its numbers written in
DARK = 0.6  # absolute correlation from which numbers are white
COLOURS = (
    "PuOr_r"  # orange for positive, purple for negative: people see both with any colour vision
)


def draw_pulls(
    estimate: MeasurementEstimate,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """Each nuisance parameter after the fit, in units of the constraint that it had before.

    Value 0 and error 1 mean that the observed events say nothing of it. The bands are 1 and 2
    standard deviations of the constraint. Free parameters have no pull and are left out.

    Parameters
    ----------
    estimate : MeasurementEstimate
        What `likelihood.maximum()` gives for a model with systematics or backgrounds.
    ax : matplotlib axes, optional
        Where to draw.
    labels : mapping from str to str, optional
        How to call nuisance parameters: {"jes": "jet energy scale"}.
    experiment : str, optional
        Such as "Private work", to stand above the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import Nuisances
    >>> example = Nuisances()
    >>> model = example.fit(events=500, seed=1)
    >>> estimate = model.likelihood(example.sample(0.4, 2_000, seed=2)).maximum()
    >>> gl.draw_pulls(estimate)
    <Figure size 520x363 with 1 Axes>
    """
    _check(estimate)
    names = list(estimate.pulls)[::-1]
    if not names:
        raise InputError("estimate: no nuisance parameter has a constraint; there are no pulls")
    values, errors = np.array([estimate.pulls[name] for name in names]).T
    rows = np.arange(len(names))
    with drawing(ax, (5.2, 1.2 + ROW * len(names)), experiment) as (figure, axes):
        axes.axvspan(-2, 2, color=SKY, alpha=0.18, lw=0)
        axes.axvspan(-1, 1, color=SKY, alpha=0.35, lw=0)
        axes.axvline(0, color=GREY, lw=1, ls=":")
        axes.errorbar(values, rows, xerr=errors, fmt="o", ms=5, color=BLACK, capsize=2, lw=1.5)
        reach = max(2.4, 1.1 * float(np.max(np.abs(values) + errors)))
        axes.set(xlabel="pull", xlim=(-reach, reach))
        _rows(axes, [symbol(name, labels) for name in names])
    return figure


def draw_impacts(
    estimate: MeasurementEstimate,
    parameter: str | None = None,
    *,
    most: int = 20,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """How far each nuisance parameter moves a parameter of interest, the largest first (ranking).

    A bar ends where the estimate goes if what the constraint is centred on moves by one standard
    deviation up or down. The squares of the bars, with stat, simulation and model, sum to that of
    the total error. Free parameters have no constraint: what they cost is in stat.

    Parameters
    ----------
    estimate : MeasurementEstimate
        What `likelihood.maximum()` gives for a model with systematics or backgrounds.
    parameter : str, optional
        Of interest; may be left out where there is only one.
    most : int
        The largest so many are drawn.
    ax : matplotlib axes, optional
        Where to draw.
    labels : mapping from str to str, optional
        How to call parameters and nuisance parameters.
    experiment : str, optional
        Such as "Private work", to stand above the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import Nuisances
    >>> example = Nuisances()
    >>> model = example.fit(events=500, seed=1)
    >>> estimate = model.likelihood(example.sample(0.4, 2_000, seed=2)).maximum()
    >>> gl.draw_impacts(estimate, most=5)
    <Figure size 520x285 with 1 Axes>
    """
    _check(estimate)
    name = chosen_parameter(estimate.parameters, parameter)
    if most < 1:
        raise InputError(f"most: {most}; give at least 1")
    free = {one.name for one in estimate.nuisances if one.constraint is None}
    found = [pair for pair in estimate.impacts[name].items() if pair[0] not in free]
    if not found:
        raise InputError("estimate: no nuisance parameter has a constraint; there are no impacts")
    ranked = sorted(found, key=lambda pair: -abs(pair[1]))[:most][::-1]
    sizes, rows = np.array([impact for _, impact in ranked]), np.arange(len(ranked))
    shown = symbol(name, {name: estimate[name].label} | dict(labels or {}))
    size = (5.2, 1.5 + ROW * len(ranked))
    with drawing(ax, size, experiment, legend_columns=2) as (figure, axes):
        axes.barh(rows, sizes, 0.7, color=BLUE, label=r"$+1\sigma$")
        # Hatched, so that the two are told apart without colours as well.
        axes.barh(
            rows, -sizes, 0.7, color="none", edgecolor=ORANGE, hatch="////", label=r"$-1\sigma$"
        )
        axes.axvline(0, color=GREY, lw=1)
        reach = 1.15 * max(float(np.abs(sizes).max()), 1e-300)
        axes.set(xlabel=f"impact on {shown}", xlim=(-reach, reach))
        axes.xaxis.set_major_locator(few_ticks())
        _rows(axes, [symbol(one, labels) for one, _ in ranked])
        legend_above(axes, 2)
    return figure


def draw_correlations(
    estimate: MeasurementEstimate,
    *,
    least: float = 0.0,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """The correlations of all parameters after the fit, in percent.

    Parameters
    ----------
    estimate : MeasurementEstimate
        What `likelihood.maximum()` gives for a model with systematics or backgrounds.
    least : float
        Leave out nuisance parameters whose correlations are all smaller than this.
    ax : matplotlib axes, optional
        Where to draw.
    labels : mapping from str to str, optional
        How to call parameters and nuisance parameters.
    experiment : str, optional
        Such as "Private work", to stand above the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import Nuisances
    >>> example = Nuisances()
    >>> model = example.fit(events=500, seed=1)
    >>> estimate = model.likelihood(example.sample(0.4, 2_000, seed=2)).maximum()
    >>> gl.draw_correlations(estimate)
    <Figure size 570x480 with 2 Axes>
    """
    _check(estimate)
    if not 0 <= least < 1:
        raise InputError(f"least: {least}; give a correlation between 0 and 1")
    matrix = np.asarray(estimate.full_correlation)
    # Of a parameter at a bound no correlation is known: nan.
    others = np.nan_to_num(np.abs(matrix - np.eye(len(matrix))))
    kept = [
        i
        for i, name in enumerate(estimate.names)
        if name in estimate.parameters or not least or others[i].max() >= least
    ]
    matrix, names = 100 * matrix[np.ix_(kept, kept)], [estimate.names[i] for i in kept]
    given = {one.name: one.label for one in estimate.results if one.label} | dict(labels or {})
    shown = [symbol_of(symbol(name, given)) for name in names]
    side = max(3.2, 0.36 * len(names) + 1.2)
    with drawing(ax, (side + 0.9, side), experiment) as (figure, axes):
        # Cells that must be square would leave long names no room.
        image = axes.imshow(matrix, cmap=COLOURS, vmin=-100, vmax=100, aspect="auto")
        rows = np.arange(len(names))
        axes.set_xticks(rows, shown, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(rows, shown)
        axes.minorticks_off()
        axes.tick_params(length=0)
        if len(names) <= MOST_NUMBERS:
            for (i, j), value in np.ndenumerate(matrix):
                if np.isnan(value):
                    continue
                color = "white" if abs(value) > 100 * DARK else "black"
                place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "x-small"}
                axes.text(j, i, f"{round(value):d}", color=color, **place)
        figure.colorbar(image, ax=axes, label="correlation [%]", shrink=0.85)
    return figure


def draw_channels(
    likelihood: Likelihood,
    parameter: str | None = None,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """The estimate of each channel alone, and the band of all together.

    Thick bars are statistical, thin ones have every uncertainty. The p-value is that of channels
    which differ at least as much; it knows what they have in common.

    Parameters
    ----------
    likelihood : Likelihood
        A sum of several channels, or of groups of events (`model.likelihood(x, by=period)`).
    parameter : str, optional
        Of interest; may be left out where there is only one.
    ax : matplotlib axes, optional
        Where to draw.
    labels : mapping from str to str, optional
        How to call parameters and channels: {"soft": "lepton below 60 GeV"}.
    experiment : str, optional
        Such as "Private work", to stand above the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> runs = [example.likelihood(example.sample(0.4, 1_000, seed=run)) for run in range(3)]
    >>> gl.draw_channels(sum(one.named(f"run {i}") for i, one in enumerate(runs)))
    <Figure size 520x264 with 1 Axes>
    """
    check_kind(likelihood, Likelihood, "likelihood")
    groups = likelihood.by()
    together = groups.together
    name = chosen_parameter(together.parameters, parameter)
    pairs = zip(groups.names, groups.estimates, strict=True)
    found = [(channel, one[name]) for channel, one in pairs if name in one.parameters][::-1]
    rows = np.arange(len(found))
    with drawing(ax, (5.2, 1.2 + CHANNEL_ROW * (len(found) + 1)), experiment) as (figure, axes):
        low, high = together[name].interval
        axes.axvspan(low, high, color=SKY, alpha=0.35, lw=0)
        axes.axvline(together[name].value, color=BLUE, lw=1.2)
        for row, (_, one) in zip(rows, found, strict=True):
            axes.plot(one.interval, [row, row], color=BLACK, lw=1.2)
            axes.plot(
                [one.value - one.stat, one.value + one.stat],
                [row, row],
                color=BLACK,
                lw=3,
                solid_capstyle="butt",
            )
            axes.plot(one.value, row, "o", ms=5, color=BLACK)
        top = len(found)
        axes.plot((low, high), [top, top], color=BLUE, lw=1.2)
        axes.plot(together[name].value, top, "s", ms=5, color=BLUE)
        names = [symbol(channel, labels) for channel, _ in found]
        axes.set_yticks(np.arange(top + 1), [*names, "all channels"])
        axes.set_ylim(-0.6, top + 0.6)
        axes.minorticks_off()
        axes.tick_params(axis="y", length=0)
        shown = symbol(name, {name: together[name].label} | dict(labels or {}))
        axes.set_xlabel(shown)
        axes.xaxis.set_major_locator(few_ticks())
        text = f"$\\chi^2$/dof = {groups.chi2:.1f}/{groups.dof}, p = {groups.p_value:.2g}"
        text += "; thick: statistical"
        axes.set_title(text, fontsize="small", loc="right")
    return figure


def _rows(axes: Axes, names: list[str]) -> None:
    """A name for each row, from below."""
    axes.set_yticks(np.arange(len(names)), names)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.minorticks_off()
    axes.tick_params(axis="y", length=0)


def _check(estimate: Any) -> None:
    check_kind(estimate, Estimate, "estimate")
    if not isinstance(estimate, MeasurementEstimate) or not estimate.nuisances:
        raise InputError(
            "estimate: has no nuisance parameters; give that of a model with systematics or "
            "backgrounds, gl.fit(templates, systematics=[...])"
        )
