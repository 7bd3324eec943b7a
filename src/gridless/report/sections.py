"""The report of a model: its templates, training, implied prior, closure and measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.likelihood.likelihood import Likelihood
from gridless.model.file import current_versions
from gridless.model.model import Model
from gridless.report.figures import (
    BLUE,
    GREY,
    ORANGE,
    draw_closure,
    draw_contours,
    draw_likelihood,
    style,
    symbol,
)
from gridless.report.page import Section, render_report
from gridless.templates.arrays import Array
from gridless.templates.query import FileRecord
from gridless.templates.summary import Distribution
from gridless.validation.closure import Closure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Bins of a distribution that are taken together for a ratio.
_MERGED = 4


@dataclass(frozen=True)
class Origin:
    """What a page was made from: its command, the versions that the model was saved with, and the
    source, number of events and checksum of every observed file."""

    command: str
    versions: dict[str, str]
    data: tuple[FileRecord, ...] = ()


def model_report(
    model: Model, likelihood: Likelihood | None, closure: Closure | None, origin: Origin
) -> str:
    """The page as text; sections for which there is nothing to show are left out."""
    sections: dict[str, Section] = {}
    if likelihood is not None:
        sections["measurement"] = _measurement(likelihood)
    if closure is not None:
        sections["closure"] = Section("Closure", text=str(closure), figure=draw_closure(closure))
    if model.summary is not None:
        sections["grid"] = Section("The templates and their audit", text=str(model.summary.audit))
        sections["inputs"] = Section(
            "Observables in every template",
            figure=draw_distributions(model.summary.distributions, model),
        )
    sections["training"] = Section(
        "Training", text=repr(model), figure=draw_history(model), table=_options(model)
    )
    if len(model.grid.parameters) == 1:
        sections["prior"] = Section(
            "The implied prior q",
            text=f"max |log q| = {model.implied_prior.max_log:.3g}; "
            + (
                "every posterior is divided by q"
                if model.options.prior == "divide"
                else "not divided by"
            ),
            figure=draw_prior(model),
        )
    sections["provenance"] = _provenance(model, origin)
    names = ", ".join(model.grid.parameters)
    warned = [f"{w.name}: {w.text}" for w in likelihood.maximum().warnings] if likelihood else []
    return render_report(
        f"gridless: {names} from {', '.join(model.observables)}",
        f"A model trained on {len(model.grid)} templates of {model.grid.describe()}.",
        sections,
        notice="Warnings. " + " ".join(warned) if warned else "",
    )


def _measurement(likelihood: Likelihood) -> Section:
    """The estimate with both uncertainties, and the curve or the contours."""
    estimate = likelihood.maximum()
    lines = [str(estimate)]
    for name in estimate.parameters:
        low, high = likelihood.interval(0.95, name)
        lines.append(f"  {name}: {low:.6g} to {high:.6g} at 95 %")
    if estimate.outside is not None:
        lines.append(f"  events outside of the simulation: {estimate.outside:.2%}")
    if len(estimate.parameters) == 1:
        figure = draw_likelihood(likelihood)
    else:
        figure = draw_contours(likelihood, estimate.parameters[0], estimate.parameters[1])
    return Section("The measurement", text="\n".join(lines), figure=figure)


def _options(model: Model) -> list[list[str]]:
    chosen = {"epochs": model.record.epochs, "batch": model.record.batch}
    options = model.options.to_dict() | chosen | {"validation": model.record.validation}
    options |= {"selection": model.query.selection, "weight": model.query.weight}
    shown = {k: v for k, v in (options | {"where": model.record.where}).items() if v is not None}
    return [["option", "value"], *([name, str(value)] for name, value in shown.items())]


def _provenance(model: Model, origin: Origin) -> Section:
    """What this page was made from, and with."""
    rows = [["what", "value"]]
    rows.append(["this page", origin.command])
    if model.record.command is not None:
        rows.append(["the model", model.record.command])
    for name, expression in model.query.observables.items():
        rows.append([f"observable {name}", expression])
    for name, ours in current_versions().items():
        then = origin.versions.get(name, ours)
        rows.append([name, ours if ours == then else f"{then} for the model, {ours} for this page"])
    for file in (*origin.data, *model.files):
        checksum = f", SHA-256 {file.checksum[:16]}..." if file.checksum else ""
        rows.append([file.source, f"{file.events:,} events{checksum}"])
    return Section("Versions, files and commands", table=rows)


def draw_history(model: Model) -> Figure:
    """Training and held-out cost after every epoch."""
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
    """q(theta) over the range, with the templates marked."""
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


def draw_distributions(distributions: tuple[Distribution, ...], model: Model) -> Figure:
    """Every observable in every template, coloured by the (first) parameter, and below each the
    ratio to the mean of the templates, in which the differences show."""
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
    starts = np.arange(0, shares.shape[1], _MERGED)
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
