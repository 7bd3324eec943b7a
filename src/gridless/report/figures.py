"""Figures of results, drawn for print. Needs the extra `figures`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.likelihood import Likelihood
from gridless.validation.closure import Closure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by every kind of colour vision.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#666666"

# What we change in mplhep's ATLAS style: sizes for figures of one or two columns, and no rounding
# of axes to full numbers.
_STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 13,
    "axes.labelpad": 4,
    "axes.autolimit_mode": "data",
    "axes.xmargin": 0.05,
    "xaxis.labellocation": "center",
    "yaxis.labellocation": "center",
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "ytick.major.size": 5,
    "ytick.minor.size": 3,
    "lines.linewidth": 1.5,
    "legend.fontsize": 11,
    "legend.borderpad": 0.5,
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
}


@contextmanager
def style() -> Iterator[None]:
    """Our look for everything drawn inside."""
    try:
        import matplotlib as mpl
        import mplhep
    except ModuleNotFoundError as error:
        raise InputError(f"figures need {error.name}; pip install 'gridless[figures]'") from error
    with mpl.rc_context(mplhep.style.ATLAS | _STYLE):
        yield


def symbol(name: str) -> str:
    """A parameter's or observable's name as it is set in a figure: theta becomes a Greek letter."""
    return r"$\theta$" if name == "theta" else name


def draw_closure(closure: Closure) -> Figure:
    """Estimated against true theta, and the pulls below, for each parameter. The inner error bars
    are statistical; the outer ones have the uncertainty from simulation too."""
    with style():
        from matplotlib.figure import Figure

        count = len(closure.parameters)
        figure = Figure(figsize=(5.2 * count, 5.6))
        panels = figure.subplots(2, count, sharex="col", height_ratios=(3, 1), squeeze=False)
        shape = (len(closure.truth), count)
        values, pulls = closure.value.reshape(shape), closure.pull.reshape(shape)
        intervals = closure.interval.reshape(*shape, 2)
        total = f"$\\chi^2$/dof = {closure.chi2:.1f} / {closure.dof}"
        for p, (top, bottom) in enumerate(panels.T):
            name, true = symbol(closure.parameters[p]), closure.truth[:, p]
            ends = np.array(closure.estimates[0].results[p].bounds)
            errors = np.abs(intervals[:, p].T - values[:, p])
            top.plot(ends, ends, color=GREY, lw=1, label="estimated = true")
            label = None
            simulation = [e.results[p].simulation for e in closure.estimates]
            if any(s is not None for s in simulation):
                both = np.hypot(errors, [s or 0.0 for s in simulation])
                top.errorbar(true, values[:, p], both, fmt="none", color=BLUE, lw=0.8)
                label = "inner bars: statistical"
            top.errorbar(
                true, values[:, p], errors, fmt="o", ms=4, color=BLUE, capsize=2, label=label
            )
            text = f"slope {closure.lines[p][0]:.3f}" + (f"\n{total}" if p == 0 else "")
            top.text(0.05, 0.93, text, transform=top.transAxes, va="top")
            # A little room, or a point on a bound would be cut in half.
            room = 0.02 * (ends[1] - ends[0]) * np.array([-1, 1])
            top.set(ylabel=f"estimated {name}", xlim=ends + room, ylim=ends + room)
            top.legend(loc="lower right")
            bottom.axhspan(-1, 1, color=GREY, alpha=0.2, lw=0)
            bottom.axhline(0, color=GREY, lw=1)
            bottom.plot(true, pulls[:, p], "o", ms=4, color=BLUE)
            reach = max(3.5, 1.15 * float(np.abs(pulls[:, p]).max()))
            bottom.set(xlabel=f"true {name}", ylabel="pull", ylim=(-reach, reach))
        figure.align_ylabels()
        return figure


def draw_contours(
    likelihood: Likelihood, first: str, second: str, true: tuple[float, float] | None = None
) -> Figure:
    """The 68 and 95 percent contours of two parameters, others at their best."""
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


def draw_likelihood(likelihood: Likelihood, true: float | None = None) -> Figure:
    """The likelihood around its minimum, with the 68 and 95 percent intervals."""
    with style():
        from matplotlib.figure import Figure

        estimate = likelihood.maximum()
        name = symbol(estimate.parameters[0])
        outer = likelihood.interval(0.95)
        reach = 1.9 * max(outer[1] - estimate.value, estimate.value - outer[0])
        low = max(estimate.bounds[0], estimate.value - reach)
        high = min(estimate.bounds[1], estimate.value + reach)
        theta = np.linspace(low, high, 400)
        figure = Figure(figsize=(5.2, 4.0))
        axes = figure.subplots()
        for (left, right), label, alpha in (
            (outer, "95 %", 0.15),
            (estimate.interval, "68 %", 0.3),
        ):
            axes.axvspan(left, right, color=BLUE, alpha=alpha, lw=0, label=label)
        axes.plot(theta, likelihood.scan(theta), color=BLUE)
        axes.axvline(estimate.value, color=BLUE, lw=1, ls="--", label="estimate")
        if true is not None:
            axes.axvline(true, color=RED, lw=1.5, label="true value")
        for rise in (0.5, 1.92):
            axes.axhline(rise, color=GREY, lw=0.8, ls=":")
        axes.set(xlabel=name, ylabel=r"$-\Delta\log L$", xlim=(low, high), ylim=(0, None))
        # Above the panel: inside, it would lie on the bands.
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, columnspacing=1.2)
        return figure


def save_figure(figure: Figure, path: str | Path) -> list[Path]:
    """Write the figure as PDF and PNG beside each other; gives the two paths."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    paths = [path.with_suffix(suffix) for suffix in (".pdf", ".png")]
    with style():
        for target in paths:
            figure.savefig(target)
    return paths
