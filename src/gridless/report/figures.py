"""Figures of results: likelihood, contours, closure. Needs the extra `figures`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless import strict_json
from gridless.errors import InputError, check_kind
from gridless.likelihood.likelihood import Likelihood
from gridless.report.style import (
    BLUE,
    GREY,
    RED,
    SKY,
    drawing,
    experiment_label,
    few_ticks,
    legend_above,
    new_figure,
    style,
    symbol,
    two_panels,
)
from gridless.results.by_name import chosen_parameter
from gridless.templates.arrays import Array
from gridless.validation.closure import Closure, ParameterClosure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HALF = 0.5  # rise of -log L at the ends of a 68 percent interval
HALF_95 = 1.92  # the same at 95 percent
VISIBLE = 0.005  # of an axis: bars that differ by less look like one
REACH = 1.9  # half of a likelihood's range in the figure, in units of the 95 percent interval


def draw_closure(
    closure: Closure,
    parameter: str | None = None,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """Estimated against true theta, and the pulls below, for each parameter or for one.

    The inner error bars are statistical; the outer ones are the total uncertainty.

    Parameters
    ----------
    closure : Closure
        What `closure` gives.
    parameter : str, optional
        Draw this one only.
    ax : matplotlib axes, or a pair of them, optional
        Where to draw: the lower part of the axes is cut off for the pulls, or (upper, lower).
    labels : mapping from str to str, optional
        How to call parameters, {"mtop": "$m_t$ [GeV]"}; by default as the templates have it.
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
    >>> samples = {theta: example.sample(theta, 1_000, seed=2) for theta in (0.3, 0.7)}
    >>> gl.draw_closure(gl.closure(model, samples))
    <Figure size 520x560 with 2 Axes>
    """
    check_kind(closure, Closure, "closure")
    names = closure.parameters if parameter is None else (closure[parameter].name,)
    if ax is not None and len(names) > 1:
        raise InputError(f"ax: one place for {', '.join(names)}; say which: parameter={names[0]!r}")
    given = {one.name: one.label for one in closure.estimates[0].results if one.label}
    given |= labels or {}
    with style(ax):
        figure, pairs = _closure_panels(ax, len(names))
        for p, (top, bottom) in enumerate(pairs):
            _draw_closure(closure, closure[names[p]], top, bottom, symbol(names[p], given))
        experiment_label(pairs[0][0], experiment)
        if ax is None:
            figure.align_ylabels()
        return figure


def _closure_panels(ax: Any, count: int) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """A pair of panels for each parameter."""
    if ax is not None or count == 1:
        figure, top, bottom = two_panels(ax, (5.2, 5.6))
        return figure, [(top, bottom)]
    figure = new_figure((5.2 * count, 5.6))
    panels = figure.subplots(2, count, sharex="col", height_ratios=(3, 1))
    return figure, [(top, bottom) for top, bottom in panels.T]


def _draw_closure(
    closure: Closure, one: ParameterClosure, top: Axes, bottom: Axes, name: str
) -> None:
    true, value = one.true, one.value
    results = [estimate[one.name] for estimate in closure.estimates]
    # With systematics the likelihood has every uncertainty; `to_dict` has the share of the events.
    spelt = strict_json.plain(one.name)
    told = [estimate.to_dict()["parameters"][spelt] for estimate in closure.estimates]
    inner = np.array([(row["stat_low"], row["stat_high"]) for row in told], float).T
    errors = np.abs(inner - value)
    both = np.maximum(np.abs(np.array([r.interval for r in results]).T - value), errors)
    ends = _ends(np.array([true, value - both[0], value + both[1]]), np.array(results[0].bounds))
    top.plot(ends, ends, color=GREY, lw=1, label="estimated = true")
    label = None
    if (both > errors).any():
        top.errorbar(true, value, both, fmt="none", color=BLUE, lw=0.8)
        seen = (both - errors).max() > VISIBLE * (ends[1] - ends[0])
        label = "inner bars: statistical" if seen else "bars: every uncertainty"
    top.errorbar(true, value, errors, fmt="o", ms=4, color=BLUE, capsize=2, label=label)
    lines = [] if one.slope is None else [f"slope {one.slope:.3f}"]
    lines += [f"$\\chi^2$/dof = {closure.chi2:.1f} / {closure.dof}"]
    top.text(0.05, 0.93, "\n".join(lines), transform=top.transAxes, va="top")
    top.set(ylabel=f"estimated {name}", xlim=ends, ylim=ends)
    top.legend(loc="lower right")
    bottom.axhspan(-1, 1, color=GREY, alpha=0.2, lw=0)
    bottom.axhline(0, color=GREY, lw=1)
    bottom.plot(true, one.pull, "o", ms=4, color=BLUE)
    reach = max(3.5, 1.15 * float(np.abs(one.pull[one.usable]).max(initial=0)))
    bottom.set(xlabel=f"true {name}", ylabel="pull", ylim=(-reach, reach))
    for axis in (top.xaxis, top.yaxis, bottom.xaxis):
        axis.set_major_locator(few_ticks())


def _ends(values: Array, bounds: Array) -> Array:
    """The range of values with some room, not beyond the bounds by more than a little."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.08 * (high - low)
    margin = 0.02 * (bounds[1] - bounds[0])
    return np.array([max(low - room, bounds[0] - margin), min(high + room, bounds[1] + margin)])


def draw_contours(
    likelihood: Likelihood,
    first: str,
    second: str,
    true: tuple[float, float] | None = None,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """The 68 and 95 percent contours of two parameters, others at their best.

    Where a bound cuts a contour, it is drawn along the bound, which is marked by a dashed line.

    Parameters
    ----------
    likelihood : Likelihood
        Of the observed events.
    first, second : str
        The parameters on the horizontal and on the vertical axis.
    true : tuple of float, optional
        The true values, if they are known, to be marked.
    ax : matplotlib axes, optional
        Where to draw.
    labels : mapping from str to str, optional
        How to call parameters; by default as the templates have it.
    experiment : str, optional
        Such as "Private work", to stand above the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import TwoParameters
    >>> example = TwoParameters()
    >>> likelihood = example.likelihood(example.sample((0.4, 0.6), 5_000, seed=1))
    >>> gl.draw_contours(likelihood, "t1", "t2", true=(0.4, 0.6))
    <Figure size 520x460 with 1 Axes>
    """
    check_kind(likelihood, Likelihood, "likelihood")
    given = {**likelihood.grid.labels, **(labels or {})}
    estimate = likelihood.maximum()
    with drawing(ax, (5.2, 4.6), experiment, legend_columns=4) as (figure, axes):
        for level, label, alpha in ((0.95, "95 %", 0.15), (0.6827, "68 %", 0.3)):
            curve = likelihood.contour(first, second, level, points=128)
            axes.fill(*curve.T, color=BLUE, alpha=alpha, lw=0, label=label)
            axes.plot(*curve.T, color=BLUE, lw=1)
        axes.plot(*(estimate[n].value for n in (first, second)), "+", ms=10, color=BLUE)
        axes.plot([], [], "+", ms=10, color=BLUE, label="estimate")
        if true is not None:
            axes.plot(*true, "*", ms=10, color=RED, label="true value")
        _mark_bounds(axes, estimate[first].bounds, estimate[second].bounds)
        axes.set(xlabel=symbol(first, given), ylabel=symbol(second, given))
        legend_above(axes, 4)
    return figure


def _mark_bounds(axes: Axes, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Dashed lines at the bounds that lie inside the panel."""
    limits = axes.get_xlim(), axes.get_ylim()
    for bound in across:
        if limits[0][0] <= bound <= limits[0][1]:
            axes.axvline(bound, color=GREY, lw=1, ls="--")
    for bound in up:
        if limits[1][0] <= bound <= limits[1][1]:
            axes.axhline(bound, color=GREY, lw=1, ls="--")
    axes.set(xlim=limits[0], ylim=limits[1])


def draw_likelihood(
    likelihood: Likelihood,
    parameter: str | None = None,
    *,
    true: float | None = None,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """The likelihood of one parameter around its minimum, with the 68 and 95 percent intervals.

    Other parameters are at their best for every value of it (the profile likelihood). The solid
    curve and the bands have every uncertainty: what is not in the likelihood, such as that from
    simulation, widens it by sqrt(d^2 + 2 r m^2) at distance d and rise r, m its size. The dashed
    curve is statistical alone. Intervals end where a curve crosses 0.5 and 1.92.

    Parameters
    ----------
    likelihood : Likelihood
        Of the observed events.
    parameter : str, optional
        The one to draw; may be left out where there is only one.
    true : float, optional
        The true value, if it is known, to be marked.
    ax : matplotlib axes, optional
        Where to draw.
    labels : mapping from str to str, optional
        How to call the parameter; by default as the templates have it.
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
    >>> likelihood = example.likelihood(example.sample(0.4, 1_000, seed=1))
    >>> gl.draw_likelihood(likelihood, true=0.4)
    <Figure size 520x400 with 1 Axes>
    """
    check_kind(likelihood, Likelihood, "likelihood")
    names = likelihood.grid.parameters
    name = chosen_parameter(names, parameter)
    estimate = likelihood.maximum()[name]
    best, bounds = estimate.value, estimate.bounds
    outer = likelihood.interval(0.95, name)
    reach = REACH * max(outer[1] - best, best - outer[0])
    low, high = max(bounds[0], best - reach), min(bounds[1], best + reach)
    # A profile is a minimisation per point; between 100 of them the eye sees no corners.
    theta = np.linspace(low, high, 400 if len(names) == 1 else 100)
    rise = likelihood.profile(name, theta)
    with drawing(ax, (5.2, 4.0), experiment, legend_columns=3) as (figure, axes):
        for (left, right), label, color, alpha in (
            (outer, "95 %", SKY, 0.25),
            (estimate.interval, "68 %", SKY, 0.5),
        ):
            axes.axvspan(left, right, color=color, alpha=alpha, lw=0, label=label)
        if estimate.beyond > 0:
            stretched = best + np.sign(theta - best) * np.hypot(
                theta - best, estimate.beyond * np.sqrt(2 * rise.clip(min=0))
            )
            axes.plot(theta, rise, color=BLUE, lw=1.2, ls="--", label="statistical")
            axes.plot(stretched, rise, color=BLUE, label="total")
        else:
            # With nuisance parameters the curve has every source in it already.
            every = len(estimate.budget) > 1
            axes.plot(theta, rise, color=BLUE, label="total" if every else "statistical")
        axes.axvline(best, color=BLUE, lw=1, ls=":", label="estimate")
        if true is not None:
            axes.axvline(true, color=RED, lw=1.5, label="true value")
        for height in (HALF, HALF_95):
            axes.axhline(height, color=GREY, lw=0.8, ls=":")
        top = 1.05 * max(2 * HALF_95, float(np.interp([low, high], theta, rise).min()))
        shown = symbol(name, {**likelihood.grid.labels, **(labels or {})})
        axes.set(xlabel=shown, ylabel=r"$-\Delta\log L$", xlim=(low, high), ylim=(0, top))
        axes.xaxis.set_major_locator(few_ticks())
        legend_above(axes, 3)
    return figure
