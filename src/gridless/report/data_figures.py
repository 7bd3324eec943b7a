"""Figures that a reader looks at first: data against simulation, and the budget of uncertainties.

They need the extra `figures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.errors import InputError, check_kind
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.model import Model
from gridless.report.comparison import LEAST_EXPECTED, Comparison, compare
from gridless.report.model_figures import chosen_distributions, columns_of, panel_grid
from gridless.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SKY,
    drawing,
    experiment_label,
    few_ticks,
    legend_above,
    style,
    symbol,
    two_panels,
)
from gridless.results.by_name import chosen_parameter
from gridless.templates.arrays import Array
from gridless.templates.histograms import contents_and_edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_REACH = 1.0  # of the ratio to either side of 1


def draw_data(
    model: Model,
    likelihood: Likelihood,
    observable: str | None = None,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
    also: Mapping[str, Any] | None = None,
) -> Figure:
    """Observed events against the simulation at the estimate, for every observable or for one.

    The simulation at the estimate is interpolated between the templates, has the backgrounds in
    their shares, and is scaled to the number of observed events. Its band has the statistics of
    the simulation and what parameters and nuisance parameters may still move after the fit. With
    systematics or backgrounds there is a second band, hatched: nuisance parameters before the
    fit, with the spread of their constraints. Below are ratios to the simulation after the fit.

    Parameters
    ----------
    model : Model
        The model.
    likelihood : Likelihood
        Of the observed events.
    observable : str, optional
        Draw this one only.
    ax : matplotlib axes, or a pair of them, optional
        Where to draw one observable: the lower part of the axes is cut off for the ratio, or
        (upper, lower).
    labels : mapping from str to str, optional
        How to call observables; by default as the templates have it.
    experiment : str, optional
        Such as "Private work", to stand above the figure.
    also : mapping from str to histogram, optional
        Histograms of yours to draw with the one observable, by what to call them: of hist, uproot
        and others that follow UHI, or as `numpy.histogram` gives them. Numbers of events; bins of
        another width are scaled to those of the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> gl.draw_data(model, model.likelihood(example.sample(0.4, 1_000, seed=2)))
    <Figure size 420x360 with 2 Axes>
    """
    check_kind(likelihood, Likelihood, "likelihood")
    names = [one.observable for one in chosen_distributions(model, observable)]
    if ax is not None and len(names) > 1:
        raise InputError(f"ax: one place for {', '.join(names)}; say which: {names[0]!r}")
    if also and len(names) > 1:
        raise InputError(f"also: histograms of which of {', '.join(names)}? Say: {names[0]!r}")
    more = {name: contents_and_edges(histogram) for name, histogram in (also or {}).items()}
    found = compare(model, likelihood)
    given = {**model.query.labels, **(labels or {})}
    with style(ax):
        if ax is None:
            figure, pairs = panel_grid(len(names))
        else:
            figure, top, bottom = two_panels(ax, (4.2, 3.6))
            pairs = [(top, bottom)]
        for i, ((top, bottom), name) in enumerate(zip(pairs, names, strict=True)):
            _draw_comparison(top, bottom, found[name], symbol(name, given))
            _draw_also(top, found[name].observed.axes[0].edges, more)
            if i % columns_of(len(names)) == 0:
                top.set_ylabel("events")
                bottom.set_ylabel("data / sim.")
        if ax is not None:
            columns = (2 if found[names[0]].before is None else 3) + len(more)
            legend_above(pairs[0][0], columns)
            experiment_label(pairs[0][0], experiment, legend_columns=columns)
            return figure
        handles = pairs[0][0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper right", ncols=len(handles[0]), handlelength=1.6)
        experiment_label(pairs[0][0], experiment)
        figure.align_ylabels()
        return figure


def _draw_comparison(top: Axes, bottom: Axes, one: Comparison, name: str) -> None:
    edges = one.observed.axes[0].edges
    middle = 0.5 * (edges[1:] + edges[:-1])
    data, simulated = one.observed.values(), one.expected.values()
    spread = np.sqrt(one.expected.variances())
    fitted = "simulation at the estimate" if one.before is None else "after the fit"
    top.stairs(simulated, edges, color=BLUE, lw=1.2, label=fitted)
    _band(top, edges, simulated, spread)
    if one.before is not None:
        top.stairs(
            one.before.values(), edges, color=ORANGE, lw=1.2, ls="--", label="before the fit"
        )
    error = np.sqrt(one.observed.variances())
    points: dict[str, Any] = {"fmt": "o", "ms": 2.6, "lw": 0.9, "color": BLACK}
    top.errorbar(middle, data, error, label="data", **points)
    highest = float(np.max([data + error, simulated + spread]))
    top.set(ylim=(0, 1.3 * highest), xlim=(edges[0], edges[-1]), xticklabels=[])
    text = f"$\\chi^2$/bins = {one.chi2:.0f}/{one.bins}"
    top.text(0.97, 0.94, text, transform=top.transAxes, ha="right", va="top", fontsize="small")
    full = simulated > LEAST_EXPECTED
    scale = np.where(full, simulated, np.nan)
    bottom.axhline(1, color=GREY, lw=1)
    band = np.nan_to_num(spread / scale)
    reach = _reach(data / scale, error / scale)
    if one.before is not None:
        centre = np.nan_to_num(one.before.values() / scale, nan=1.0)
        wide = np.nan_to_num(np.sqrt(one.before.variances()) / scale)
        # Hatched, so that it is told from the other band without colours as well.
        bottom.stairs(
            centre + wide,
            edges,
            baseline=centre - wide,
            fill=True,
            facecolor="none",
            edgecolor=ORANGE,
            hatch="/////",
            lw=0,
        )
        bottom.stairs(centre, edges, color=ORANGE, lw=1, ls="--")
        reach = max(reach, _reach(centre[full], wide[full]))
    _band(bottom, edges, np.ones(len(band)), band)
    bottom.errorbar(middle, data / scale, error / scale, **points)
    limits: dict[str, Any] = {"xlim": (edges[0], edges[-1]), "ylim": (1 - reach, 1 + reach)}
    bottom.set(xlabel=name, **limits)
    bottom.xaxis.set_major_locator(few_ticks())


def _draw_also(top: Axes, edges: Array, more: Mapping[str, tuple[Array, Array]]) -> None:
    """Histograms as lines, in events per bin of the figure."""
    width = float(np.diff(edges).mean())
    highest = top.get_ylim()[1]
    for (name, (contents, own)), color in zip(
        more.items(), cycle((GREEN, RED, GREY)), strict=False
    ):
        heights = contents * width / np.diff(own)
        top.stairs(heights, own, color=color, lw=1.2, ls=":", label=name)
        highest = max(highest, 1.3 * float(heights.max()))
    top.set_ylim(0, highest)


def _band(axes: Axes, edges: Array, middle: Array, spread: Array) -> None:
    axes.stairs(middle + spread, edges, baseline=middle - spread, fill=True, color=SKY, alpha=0.5)


def _reach(ratio: Array, error: Array) -> float:
    """How far the ratio is shown to either side of 1: most points with their errors."""
    off = np.abs(ratio - 1) + error
    off = off[np.isfinite(off)]
    return float(np.clip(1.1 * np.quantile(off, 0.95), 0.05, MOST_REACH)) if len(off) else 0.5


def draw_budget(
    estimate: Estimate,
    parameter: str | None = None,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """Where the uncertainty of a parameter comes from: a bar for each source, largest first.

    Parameters
    ----------
    estimate : Estimate
        What `likelihood.maximum()` gives.
    parameter : str, optional
        Of which parameter; may be left out where there is only one.
    ax : matplotlib axes, optional
        Where to draw.
    labels : mapping from str to str, optional
        How to call parameters and sources; by default as the templates have it.
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
    >>> model = gl.fit(example.templates(500, seed=1), hidden=3, epochs=2, replicas=4)
    >>> gl.draw_budget(model.likelihood(example.sample(0.4, 1_000, seed=2)).maximum())
    <Figure size 520x190 with 1 Axes>
    """
    check_kind(estimate, Estimate, "estimate")
    one = estimate[chosen_parameter(estimate.parameters, parameter)]
    sources = sorted(one.budget.items(), key=lambda pair: pair[1])
    names = [symbol(source, labels) for source, _ in sources]
    sizes = [error for _, error in sources]
    with drawing(ax, (5.2, 0.9 + 0.25 * (len(sources) + 1)), experiment) as (figure, axes):
        axes.barh([*names, "total"], [*sizes, one.error], color=[BLUE] * len(sizes) + [GREY])
        for place, size in enumerate([*sizes, one.error]):
            text = f" {size:.2g}" if one.error <= 0 else f" {_digits(size, one.error)}"
            axes.text(size, place, text, va="center", fontsize="small")
        name = symbol(one.name, {one.name: one.label} | dict(labels or {}))
        axes.set(xlabel=f"uncertainty of {name}", xlim=(0, 1.18 * max(one.error, *sizes)))
        axes.xaxis.set_major_locator(few_ticks())
        axes.minorticks_off()
        axes.tick_params(axis="y", length=0)
    return figure


def _digits(size: float, total: float) -> str:
    """A size with two digits of the total."""
    places = max(0, 1 - int(np.floor(np.log10(total))))
    return f"{size:.{places}f}"
