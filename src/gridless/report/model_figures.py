"""Figures of a model: templates, training, score check, prior. Needs the extra `figures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.errors import InputError, check_kind
from gridless.model.model import Model
from gridless.report.style import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    drawing,
    experiment_label,
    few_ticks,
    new_figure,
    style,
    symbol,
)
from gridless.templates.arrays import Array
from gridless.templates.summary import Distribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Bins of a distribution that are merged into one for the ratio, whose errors are larger.
MERGED_BINS = 4
MOST_DRAWN = 7  # templates in a figure of distributions: more lines only hide each other
FULL_SHARE = 0.05  # of the fullest bin: a ratio in emptier ones is all fluctuation
COLOURS = "cividis"  # even to the eye, whatever its colour vision


def draw_history(model: Model, *, ax: Any = None, experiment: str | None = None) -> Figure:
    """Training and held-out cost after every epoch.

    Parameters
    ----------
    model : Model
        A model that knows how its training went.
    ax : matplotlib axes, optional
        Where to draw.
    experiment : str, optional
        Such as "Private work", to stand above the figure.

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
    check_kind(model, Model, "model")
    with drawing(ax, (5.2, 3.6), experiment) as (figure, axes):
        from matplotlib.ticker import MaxNLocator

        history = model.record.history
        step = np.arange(1, len(history) + 1)
        for key, name, color in (
            ("training", "training", BLUE),
            ("validation", "held out", ORANGE),
        ):
            values = [getattr(epoch, key) for epoch in history]
            axes.plot(step, values, "o-", ms=3, color=color, label=name)
        axes.set(xlabel="epoch (the last: Newton steps)", ylabel="cost per event")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        # The first epochs may be far off the scale of what is still to be gained.
        costs = np.array([(one.training, one.validation) for one in history])
        last = costs[len(step) // 4 :]
        low, high = np.nanmin(last), np.nanmax(last)
        reach = max(high - low, 1e-4)
        axes.set_ylim(low - 0.2 * reach, min(np.nanmax(costs), high + 3 * reach) + 0.2 * reach)
        axes.legend()
    return figure


def draw_check(
    model: Model,
    parameter: str | None = None,
    *,
    events: float | None = None,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """The score check: how far the mean score of each template would move an estimate at its value.

    A template that is not where the others predict it is red.

    Parameters
    ----------
    model : Model
        Any model.
    parameter : str, optional
        Which of its parameters; the first unless given.
    events : float, optional
        Show shifts in statistical errors of so many observed events.
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
    >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2)
    >>> gl.draw_check(model)
    <Figure size 520x320 with 1 Axes>
    """
    check_kind(model, Model, "model")
    check, grid = model.check, model.grid
    if parameter is not None and parameter not in grid.parameters:
        known = ", ".join(grid.parameters)
        raise InputError(f"there is no parameter {parameter!r}; there is {known}")
    k = 0 if parameter is None else grid.parameters.index(parameter)
    low, high = grid.bounds[k]
    unit = np.full(len(grid), 1 / (high - low))
    if events is not None:
        unit = check.event_error[:, k] / np.sqrt(events)
    at, shift, error = grid.values[:, k], check.shift[:, k] / unit, check.error[:, k] / unit
    suspect = np.isin(np.arange(len(at)), check.suspects)
    with drawing(ax, (5.2, 3.2), experiment) as (figure, axes):
        axes.axhline(0, color=GREY, lw=1)
        kinds = {"templates": (~suspect, BLUE), "not like the others": (suspect, RED)}
        for text, (these, color) in kinds.items():
            if these.any():
                y, bars = shift[these], error[these]
                axes.errorbar(at[these], y, bars, fmt="o", ms=4, color=color, label=text)
        shown = {**grid.labels, **(labels or {})}
        name = symbol(grid.parameters[k], shown)
        shift_of = (
            f"shift of {name}" if events is None else f"shift / error of {events:,.0f} events"
        )
        axes.set(xlabel=name, ylabel=shift_of, xlim=(low, high))
        axes.legend()
    return figure


def draw_prior(
    model: Model,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """The implied prior q(theta) over the range, with the templates marked.

    Parameters
    ----------
    model : Model
        A model of one parameter.
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
    >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> gl.draw_prior(model)
    <Figure size 520x320 with 1 Axes>
    """
    check_kind(model, Model, "model")
    low, high = model.grid.bounds[0]
    theta = np.linspace(low, high, 400)
    with drawing(ax, (5.2, 3.2), experiment) as (figure, axes):
        axes.axhline(1, color=GREY, lw=1)
        axes.plot(theta, model.implied_prior(theta), color=BLUE)
        at = model.grid.values[:, 0]
        axes.plot(at, model.implied_prior(at), "o", ms=4, color=BLUE, label="templates")
        reach = max(0.02, 1.3 * float(np.abs(model.implied_prior(theta) - 1).max()))
        name = symbol(model.grid.parameters[0], {**model.grid.labels, **(labels or {})})
        limits = {"xlim": (low, high), "ylim": (1 - reach, 1 + reach)}
        axes.set(xlabel=name, ylabel="implied prior q", **limits)
        axes.legend()
    return figure


def draw_distributions(
    model: Model,
    observable: str | None = None,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """Every observable, or one, in the templates, coloured by the (first) parameter.

    Below each is the ratio to the mean of the templates, in which the differences show. Of many
    templates seven are drawn.

    Parameters
    ----------
    model : Model
        A model that has a summary of its templates.
    observable : str, optional
        Draw this one only.
    ax : pair of matplotlib axes, optional
        Where to draw one observable: (upper, lower).
    labels : mapping from str to str, optional
        How to call parameters and observables; by default as the templates have it.
    experiment : str, optional
        Such as "Private work", to stand above the figure.

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
    chosen = chosen_distributions(model, observable)
    if ax is not None and (len(chosen) > 1 or not isinstance(ax, Sequence | np.ndarray)):
        first = chosen[0].observable
        raise InputError(
            f"ax: give one observable and two panels: draw_distributions(model, {first!r}, "
            "ax=(upper, lower))"
        )
    given = {**model.grid.labels, **model.query.labels, **(labels or {})}
    values = model.grid.values[:, 0]
    drawn = np.unique(np.linspace(0, len(values) - 1, min(MOST_DRAWN, len(values))).round())
    drawn = np.argsort(values)[drawn.astype(int)]
    with style(ax):
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        scale = Normalize(values.min(), values.max())
        # The palest yellow does not show on white.
        colors = [colormaps[COLOURS](0.88 * scale(value)) for value in values]
        figure, pairs = panel_grid(len(chosen)) if ax is None else (ax[0].get_figure(), [ax])
        for i, ((top, bottom), one) in enumerate(zip(pairs, chosen, strict=True)):
            _draw_observable(top, bottom, one, drawn, colors)
            bottom.set_xlabel(symbol(one.observable, given))
            if i % columns_of(len(chosen)) == 0:
                top.set_ylabel("share of events")
                bottom.set_ylabel("ratio\nto mean")
        experiment_label(pairs[0][0], experiment)
        if ax is None:
            figure.align_ylabels()
            shown = [axes for pair in pairs for axes in pair]
            shade = ScalarMappable(Normalize(values.min(), values.max()), _shortened(COLOURS))
            bar = figure.colorbar(shade, ax=shown, shrink=0.9, aspect=40)
            bar.set_label(symbol(model.grid.parameters[0], given))
        return figure


def _shortened(name: str) -> Any:
    """The colours of the templates as a map of their own."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps[name](np.linspace(0, 0.88, 256)))


def chosen_distributions(model: Model, observable: str | None) -> list[Distribution]:
    """The distributions of the templates in the model: all of them, or that of one observable."""
    check_kind(model, Model, "model")
    if observable is not None and observable not in model.observables:
        known = ", ".join(model.observables)
        raise InputError(f"observable: there is no {observable!r}; there is {known}")
    every = model.summary.distributions
    return [one for one in every if observable in (None, one.observable)]


def columns_of(count: int) -> int:
    """How many of so many panels stand beside each other."""
    return count if count <= 3 else 2 if count == 4 else 3


def panel_grid(count: int) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """A figure with a pair of panels, one above the other, for each of several observables."""
    columns = columns_of(count)
    rows = -(-count // columns)
    figure = new_figure((3.4 * columns + 0.8, 3.6 * rows))
    panels = figure.subplots(2 * rows, columns, squeeze=False, height_ratios=(3, 2) * rows)
    pairs = [(panels[2 * r, c], panels[2 * r + 1, c]) for r in range(rows) for c in range(columns)]
    for pair in pairs[count:]:
        for axes in pair:
            axes.remove()
    return figure, pairs[:count]


def _draw_observable(
    top: Axes, bottom: Axes, one: Distribution, drawn: Sequence[int], colors: list[Any]
) -> None:
    """One observable: the shares of events in bins and, in wider ones, their ratios to the mean."""
    shares: Array = np.array(one.shares)
    starts = np.arange(0, shares.shape[1], MERGED_BINS)
    wide = np.add.reduceat(shares, starts, axis=1)
    mean = wide.mean(axis=0)
    full = mean > FULL_SHARE * mean.max()
    ratio = np.where(full, wide / np.where(full, mean, 1), np.nan)
    edges = [*np.array(one.edges)[starts], one.edges[-1]]
    for k in drawn:
        top.stairs(shares[k], one.edges, color=colors[k], lw=0.9)
        bottom.stairs(ratio[k], edges, baseline=None, color=colors[k], lw=1.1)
    reach = 1.15 * float(np.nanmax(np.abs(ratio[list(drawn)] - 1)))
    limits = one.edges[0], one.edges[-1]
    top.set(ylim=(0, 1.05 * shares.max()), xlim=limits, xticklabels=[])
    # Shares of some percent without a power of ten, which would lie on the experiment's label.
    top.ticklabel_format(axis="y", scilimits=(-3, 3))
    bottom.set(xlim=limits, ylim=(1 - reach, 1 + reach))
    bottom.xaxis.set_major_locator(few_ticks())
