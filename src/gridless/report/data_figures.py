"""Figures that a reader looks at first: data against simulation, and the budget of uncertainties.

They need the extra `figures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.model import Model
from gridless.report.model_figures import chosen_distributions, columns_of, panel_grid
from gridless.report.style import (
    BLACK,
    BLUE,
    GREY,
    SKY,
    drawing,
    experiment_label,
    few_ticks,
    legend_above,
    style,
    symbol,
    two_panels,
)
from gridless.templates.arrays import Array
from gridless.templates.histograms import Histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_EXPECTED = 5.0  # events per bin that a ratio is drawn and a chi2 taken of
MOST_REACH = 1.0  # of the ratio to either side of 1
MERGE_BELOW = 25.0  # expected events per bin on average: with fewer, bins are merged in pairs


class Comparison(NamedTuple):
    """Observed events and the simulation at the estimate, in the same bins.

    Attributes
    ----------
    observed, expected : Histogram
        Numbers of events; those of the simulation are scaled to the total of the data.
    chi2 : float
        Sum of (observed - expected)^2 / (variance of both) over bins of at least five events.
    bins : int
        The number of these bins.
    """

    observed: Histogram
    expected: Histogram
    chi2: float
    bins: int


def compare(model: Model, likelihood: Likelihood) -> dict[str, Comparison]:
    """Data against simulation at the best fit, for every observable.

    Parameters
    ----------
    model : Model
        The model; it has distributions of its templates.
    likelihood : Likelihood
        Of observed events, made by this model alone or in a sum.

    Returns
    -------
    dict of str to Comparison

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(2_000, seed=1), hidden=3, replicas=0, seed=1)
    >>> found = gl.compare(model, model.likelihood(example.sample(0.4, 1_000, seed=2)))
    >>> found["x"].chi2 / found["x"].bins < 2
    True
    """
    own = [c for c in likelihood.channels if c.model == model.identity and c.observed is not None]
    if not own:
        raise InputError(
            "likelihood: it has no events of this model in bins; make it with "
            "model.likelihood(x) of a model that has a summary of its templates"
        )
    binned = own[0].observed
    for channel in own[1:]:
        binned = binned and channel.observed and binned + channel.observed
    assert binned is not None
    expected = model.histograms(_values(model, likelihood))
    found = {}
    for name, observed in binned.histograms().items():
        simulated = expected[name] * observed.total
        while len(observed.axes[0]) > 10 and observed.total / len(observed.axes[0]) < MERGE_BELOW:
            observed, simulated = observed.merged(2), simulated.merged(2)
        variance = simulated.values() * _spread(observed) + simulated.variances()
        use = simulated.values() > LEAST_EXPECTED
        off = (observed.values() - simulated.values())[use] ** 2 / variance[use]
        found[name] = Comparison(observed, simulated, float(off.sum()), int(use.sum()))
    return found


def _spread(observed: Histogram) -> float:
    """Variance of a weighted count over the count: 1 without weights."""
    total = float(observed.values().sum())
    return float(observed.variances().sum()) / total if total > 0 else 1.0


def _values(model: Model, likelihood: Likelihood) -> list[float]:
    """The estimate of each parameter of the model; of one that was fixed, the middle of its
    range."""
    estimate = likelihood.maximum()
    middle = model.grid.bounds.mean(axis=1)
    return [
        estimate[name].value if name in estimate.parameters else float(middle[p])
        for p, name in enumerate(model.grid.parameters)
    ]


def draw_data(
    model: Model,
    likelihood: Likelihood,
    observable: str | None = None,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
    experiment: str | None = None,
) -> Figure:
    """Observed events against the simulation at the estimate, for every observable or for one.

    The simulation at the estimate is interpolated between the templates and scaled to the number
    of observed events. Its band is the statistical uncertainty of the simulation. Below is the
    ratio of data to simulation.

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
    names = [one.observable for one in chosen_distributions(model, observable)]
    if ax is not None and len(names) > 1:
        raise InputError(f"ax: one place for {', '.join(names)}; say which: {names[0]!r}")
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
            if i % columns_of(len(names)) == 0:
                top.set_ylabel("events")
                bottom.set_ylabel("data / sim.")
        if ax is not None:
            legend_above(pairs[0][0], 2)
            experiment_label(pairs[0][0], experiment, legend_columns=2)
            return figure
        handles = pairs[0][0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper right", ncols=2, handlelength=1.6)
        experiment_label(pairs[0][0], experiment)
        figure.align_ylabels()
        return figure


def _draw_comparison(top: Axes, bottom: Axes, one: Comparison, name: str) -> None:
    edges = one.observed.axes[0].edges
    middle = 0.5 * (edges[1:] + edges[:-1])
    data, simulated = one.observed.values(), one.expected.values()
    spread = np.sqrt(one.expected.variances())
    top.stairs(simulated, edges, color=BLUE, lw=1.2, label="simulation at the estimate")
    top.stairs(
        simulated + spread, edges, baseline=simulated - spread, fill=True, color=SKY, alpha=0.5
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
    bottom.stairs(1 + band, edges, baseline=1 - band, fill=True, color=SKY, alpha=0.5)
    bottom.errorbar(middle, data / scale, error / scale, **points)
    reach = _reach(data / scale, error / scale)
    limits: dict[str, Any] = {"xlim": (edges[0], edges[-1]), "ylim": (1 - reach, 1 + reach)}
    bottom.set(xlabel=name, **limits)
    bottom.xaxis.set_major_locator(few_ticks())


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
    if parameter is None and len(estimate.parameters) > 1:
        first = estimate.parameters[0]
        raise InputError(f"parameter: several; say which: draw_budget(estimate, {first!r})")
    one = estimate[estimate.parameters[0] if parameter is None else parameter]
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
