"""Figures of results: likelihood, contours, closure. Needs the extra `figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.likelihood import Likelihood
from gridless.report.style import BLUE, GREY, RED, style, symbol
from gridless.validation.closure import Closure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_closure(closure: Closure) -> Figure:
    """Estimated against true theta, and the pulls below, for each parameter.

    The inner error bars are statistical; the outer ones are the total uncertainty.

    Parameters
    ----------
    closure : Closure
        What `closure` gives.

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
    with style():
        from matplotlib.figure import Figure

        count = len(closure.parameters)
        figure = Figure(figsize=(5.2 * count, 5.6))
        panels = figure.subplots(2, count, sharex="col", height_ratios=(3, 1), squeeze=False)
        total = f"$\\chi^2$/dof = {closure.chi2:.1f} / {closure.dof}"
        for p, (top, bottom) in enumerate(panels.T):
            one = closure[closure.parameters[p]]
            name, true, value = symbol(one.name), one.true, one.value
            results = [estimate[one.name] for estimate in closure.estimates]
            ends = np.array(results[0].bounds)
            errors = np.abs(np.array([r.stat_interval for r in results]).T - value)
            top.plot(ends, ends, color=GREY, lw=1, label="estimated = true")
            label = None
            if np.isfinite(one.simulation).any():
                both = np.hypot(errors, np.nan_to_num(one.simulation))
                top.errorbar(true, value, both, fmt="none", color=BLUE, lw=0.8)
                label = "inner bars: statistical"
            top.errorbar(true, value, errors, fmt="o", ms=4, color=BLUE, capsize=2, label=label)
            lines = [] if one.slope is None else [f"slope {one.slope:.3f}"]
            lines += [total] if p == 0 else []
            top.text(0.05, 0.93, "\n".join(lines), transform=top.transAxes, va="top")
            # A little room, or a point on a bound would be cut in half.
            room = 0.02 * (ends[1] - ends[0]) * np.array([-1, 1])
            top.set(ylabel=f"estimated {name}", xlim=ends + room, ylim=ends + room)
            top.legend(loc="lower right")
            bottom.axhspan(-1, 1, color=GREY, alpha=0.2, lw=0)
            bottom.axhline(0, color=GREY, lw=1)
            bottom.plot(true, one.pull, "o", ms=4, color=BLUE)
            reach = max(3.5, 1.15 * float(np.abs(one.pull[one.usable]).max(initial=0)))
            bottom.set(xlabel=f"true {name}", ylabel="pull", ylim=(-reach, reach))
        figure.align_ylabels()
        return figure


def draw_contours(
    likelihood: Likelihood, first: str, second: str, true: tuple[float, float] | None = None
) -> Figure:
    """The 68 and 95 percent contours of two parameters, others at their best.

    Parameters
    ----------
    likelihood : Likelihood
        Of the observed events.
    first, second : str
        The parameters on the horizontal and on the vertical axis.
    true : tuple of float, optional
        The true values, if they are known, to be marked.

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
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.2, 4.6))
        axes = figure.subplots()
        for level, label, alpha in ((0.95, "95 %", 0.15), (0.6827, "68 %", 0.3)):
            curve = likelihood.contour(first, second, level)
            axes.fill(*curve.T, color=BLUE, alpha=alpha, lw=0, label=label)
            axes.plot(*curve.T, color=BLUE, lw=1)
        estimate = likelihood.maximum()
        best = [estimate[name].value for name in (first, second)]
        axes.plot(*best, "+", ms=10, color=BLUE, label="estimate")
        if true is not None:
            axes.plot(*true, "*", ms=10, color=RED, label="true value")
        axes.set(xlabel=symbol(first), ylabel=symbol(second))
        # Above the panel: inside, it would lie on the contours whatever their shape.
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, columnspacing=1.2)
        return figure


def draw_likelihood(
    likelihood: Likelihood, parameter: str | None = None, *, true: float | None = None
) -> Figure:
    """The likelihood of one parameter around its minimum, with the 68 and 95 percent intervals.

    Other parameters are at their best for every value of it (the profile likelihood). The intervals
    are statistical: they end where the curve crosses 0.5 and 1.92.

    Parameters
    ----------
    likelihood : Likelihood
        Of the observed events.
    parameter : str, optional
        The one to draw; may be left out where there is only one.
    true : float, optional
        The true value, if it is known, to be marked.

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
    names = likelihood.grid.parameters
    if parameter is None and len(names) > 1:
        raise InputError(
            f"parameter: several, {', '.join(names)}; say which: draw_likelihood(likelihood, "
            f"{names[0]!r})"
        )
    name = names[0] if parameter is None else parameter
    if name not in names:
        raise InputError(f"parameter: there is no {name!r}; there is {', '.join(names)}")
    with style():
        from matplotlib.figure import Figure

        estimate = likelihood.maximum()[name]
        best, bounds = estimate.value, estimate.bounds
        outer = likelihood.interval(0.95, name, stat=True)
        reach = 1.9 * max(outer[1] - best, best - outer[0])
        low, high = max(bounds[0], best - reach), min(bounds[1], best + reach)
        # A profile is a minimisation per point; between 100 of them the eye sees no corners.
        theta = np.linspace(low, high, 400 if len(names) == 1 else 100)
        figure = Figure(figsize=(5.2, 4.0))
        axes = figure.subplots()
        for (left, right), label, alpha in (
            (outer, "95 %", 0.15),
            (estimate.stat_interval, "68 %", 0.3),
        ):
            axes.axvspan(left, right, color=BLUE, alpha=alpha, lw=0, label=label)
        axes.plot(theta, likelihood.profile(name, theta), color=BLUE)
        axes.axvline(best, color=BLUE, lw=1, ls="--", label="estimate")
        if true is not None:
            axes.axvline(true, color=RED, lw=1.5, label="true value")
        for rise in (0.5, 1.92):
            axes.axhline(rise, color=GREY, lw=0.8, ls=":")
        axes.set(xlabel=symbol(name), ylabel=r"$-\Delta\log L$", xlim=(low, high), ylim=(0, None))
        # Above the panel: inside, it would lie on the bands.
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, columnspacing=1.2)
        return figure
