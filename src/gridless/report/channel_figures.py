"""The figure of several channels: do they agree? Needs the extra `figures`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.likelihood.likelihood import Likelihood
from gridless.report.style import (
    BLACK,
    BLUE,
    SKY,
    experiment_label,
    few_ticks,
    panel,
    style,
    symbol,
)
from gridless.results.by_name import chosen_parameter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 0.36  # inches that a channel takes


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
    groups = likelihood.by()
    together = groups.together
    name = chosen_parameter(together.parameters, parameter)
    pairs = zip(groups.names, groups.estimates, strict=True)
    found = [(channel, one[name]) for channel, one in pairs if name in one.parameters][::-1]
    rows = np.arange(len(found))
    with style(ax):
        figure, axes = panel(ax, (5.2, 1.2 + ROW * (len(found) + 1)))
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
        axes.set_title(text, fontsize="small", loc="right")
        experiment_label(axes, experiment)
        return figure
