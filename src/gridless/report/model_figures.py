"""Figures of a model: its templates, its training, its implied prior. Needs the extra `figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.errors import InputError
from gridless.model.model import Model
from gridless.report.style import BLUE, GREY, ORANGE, style, symbol
from gridless.templates.arrays import Array
from gridless.templates.summary import Distribution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Bins of a distribution that are merged into one for the ratio, whose errors are larger.
MERGED_BINS = 4


def draw_history(model: Model) -> Figure:
    """Training and held-out cost after every epoch.

    Parameters
    ----------
    model : Model
        A model that knows how its training went.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> gl.draw_history(model)
    <Figure size 520x360 with 1 Axes>
    """
    with style():
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=(5.2, 3.6))
        axes = figure.subplots()
        step = np.arange(1, len(model.record.history) + 1)
        for label, color in (("training", BLUE), ("validation", ORANGE)):
            values = [getattr(epoch, label) for epoch in model.record.history]
            name = "held out" if label == "validation" else label
            axes.plot(step, values, "o-", ms=3, color=color, label=name)
        axes.set(xlabel="epoch (the last: Newton steps)", ylabel="cost per event")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        # The first epochs are off the scale of what is still to be gained.
        tail = [
            v for e in model.record.history[len(step) // 4 :] for v in (e.training, e.validation)
        ]
        margin = max(0.3 * (max(tail) - min(tail)), 1e-4)
        axes.set_ylim(min(tail) - margin, max(tail) + margin)
        axes.legend()
        return figure


def draw_prior(model: Model) -> Figure:
    """The implied prior q(theta) over the range, with the templates marked.

    Parameters
    ----------
    model : Model
        A model of one parameter.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> gl.draw_prior(model)
    <Figure size 520x320 with 1 Axes>
    """
    with style():
        from matplotlib.figure import Figure

        low, high = model.grid.bounds[0]
        theta = np.linspace(low, high, 400)
        figure = Figure(figsize=(5.2, 3.2))
        axes = figure.subplots()
        axes.axhline(1, color=GREY, lw=1)
        axes.plot(theta, model.implied_prior(theta), color=BLUE)
        at = model.grid.values[:, 0]
        axes.plot(at, model.implied_prior(at), "o", ms=4, color=BLUE, label="templates")
        reach = max(0.02, 1.3 * float(np.abs(model.implied_prior(theta) - 1).max()))
        name = symbol(model.grid.parameters[0])
        axes.set(xlabel=name, ylabel=f"q({name})", xlim=(low, high), ylim=(1 - reach, 1 + reach))
        axes.legend()
        return figure


def draw_distributions(model: Model) -> Figure:
    """Every observable in every template, coloured by the (first) parameter.

    Below each is the ratio to the mean of the templates, in which the differences show.

    Parameters
    ----------
    model : Model
        A model that has a summary of its templates.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> gl.draw_distributions(model)
    <Figure size 420x360 with 3 Axes>
    """
    if model.summary is None:
        raise InputError("the model has no summary of its templates; fit it again, or load a newer")
    distributions = model.summary.distributions
    with style():
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize
        from matplotlib.figure import Figure

        columns = min(3, len(distributions))
        rows = -(-len(distributions) // columns)
        figure = Figure(figsize=(3.4 * columns + 0.8, 3.6 * rows))
        panels = figure.subplots(
            2 * rows, columns, squeeze=False, sharex=False, height_ratios=(3, 2) * rows
        )
        values = model.grid.values[:, 0]
        scale = Normalize(values.min(), values.max())
        colors = [colormaps["viridis"](scale(value)) for value in values]
        pairs = [
            (panels[2 * r, c], panels[2 * r + 1, c]) for r in range(rows) for c in range(columns)
        ]
        for i, (top, bottom) in enumerate(pairs):
            if i >= len(distributions):
                top.set_axis_off()
                bottom.set_axis_off()
                continue
            _draw_observable(top, bottom, distributions[i], colors)
            if i % columns == 0:
                top.set_ylabel("share of events")
                bottom.set_ylabel("ratio\nto mean")
        figure.align_ylabels()
        bar = figure.colorbar(ScalarMappable(scale, "viridis"), ax=panels, shrink=0.9, aspect=40)
        bar.set_label(symbol(model.grid.parameters[0]))
        return figure


def _draw_observable(top: Any, bottom: Any, one: Distribution, colors: list[Any]) -> None:
    """One observable: the shares of events in bins and, in wider ones, their ratios to the mean."""
    shares: Array = np.array(one.shares)
    starts = np.arange(0, shares.shape[1], MERGED_BINS)
    wide = np.add.reduceat(shares, starts, axis=1)
    mean = wide.mean(axis=0)
    # In bins that are nearly empty a ratio is all fluctuation.
    full = mean > 0.05 * mean.max()
    ratio = np.where(full, wide / np.where(full, mean, 1), np.nan)
    edges = [*np.array(one.edges)[starts], one.edges[-1]]
    for share, part, color in zip(shares, ratio, colors, strict=True):
        top.stairs(share, one.edges, color=color, lw=0.9)
        bottom.stairs(part, edges, baseline=None, color=color, lw=0.9)
    reach = 1.1 * float(np.nanmax(np.abs(ratio - 1)))
    limits = one.edges[0], one.edges[-1]
    top.set(yticks=[], ylim=(0, None), xlim=limits, xticklabels=[])
    bottom.set(xlabel=symbol(one.observable), xlim=limits, ylim=(1 - reach, 1 + reach))
