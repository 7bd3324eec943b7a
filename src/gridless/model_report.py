"""The report of a model: its templates, training, implied prior, closure and measurement."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from gridless.closure import Closure
from gridless.figures import (
    BLUE,
    GREY,
    ORANGE,
    draw_closure,
    draw_contours,
    draw_likelihood,
    style,
    symbol,
)
from gridless.likelihood import Likelihood
from gridless.model import Model
from gridless.report import Section, render_report
from gridless.summary import Distribution

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def model_report(
    model: Model, likelihood: Likelihood | None, closure: Closure | None, command: str
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
            + ("every posterior is divided by q" if model.prior == "divide" else "not divided by"),
            figure=draw_prior(model),
        )
    sections["provenance"] = _provenance(model, command)
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
    wider = np.reshape(likelihood.interval(0.95), (-1, 2))
    for name, (low, high) in zip(estimate.parameters, wider, strict=True):
        lines.append(f"  {name}: {low:.6g} to {high:.6g} at 95 %")
    if estimate.p_value is not None and estimate.outside is not None:
        lines.append(f"  p-value of the fit to the simulation: {estimate.p_value:.2g}")
        lines.append(f"  events outside of the simulation: {estimate.outside:.2%}")
    if len(estimate.parameters) == 1:
        figure = draw_likelihood(likelihood)
    else:
        figure = draw_contours(likelihood, estimate.parameters[0], estimate.parameters[1])
    return Section("The measurement", text="\n".join(lines), figure=figure)


def _options(model: Model) -> list[list[str]]:
    hidden = {"columns", "command", "gain"}
    shown = {k: v for k, v in model.options.items() if k not in hidden and v is not None}
    return [["option", "value"], *([name, str(value)] for name, value in shown.items())]


def _provenance(model: Model, command: str) -> Section:
    """What this page was made from, and with."""
    rows = [["what", "value"]]
    rows.append(["this page", command])
    if "command" in model.options:
        rows.append(["the model", str(model.options["command"])])
    for name, expression in (model.options.get("columns") or {}).items():
        rows.append([f"observable {name}", expression])
    packages = ("gridless", "torch", "numpy", "iminuit")
    rows += [[name, version(name)] for name in packages]
    rows.append(["Python", platform.python_version()])
    for file in model.data:
        checksum = f", sha256 {file['checksum'][:16]}" if file["checksum"] else ""
        rows.append([str(file["source"]), f"{file['events']:,} events{checksum}"])
    return Section("Versions, files and commands", table=rows)


def draw_history(model: Model) -> Figure:
    """Training and held-out cost after every epoch."""
    with style():
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=(5.2, 3.6))
        axes = figure.subplots()
        step = np.arange(1, len(model.history) + 1)
        for label, color in (("training", BLUE), ("validation", ORANGE)):
            values = [getattr(epoch, label) for epoch in model.history]
            name = "held out" if label == "validation" else label
            axes.plot(step, values, "o-", ms=3, color=color, label=name)
        axes.set(xlabel="epoch (the last: Newton steps)", ylabel="cost per event")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        # The first epochs are off the scale of what is still to be gained.
        tail = [v for e in model.history[len(step) // 4 :] for v in (e.training, e.validation)]
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
    """Every observable in every template, coloured by the (first) parameter."""
    with style():
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize
        from matplotlib.figure import Figure

        columns = min(3, len(distributions))
        rows = -(-len(distributions) // columns)
        figure = Figure(figsize=(3.4 * columns + 0.6, 2.7 * rows))
        panels = figure.subplots(rows, columns, squeeze=False)
        values = model.grid.values[:, 0]
        scale = Normalize(values.min(), values.max())
        for axes, one in zip(panels.flat, distributions, strict=False):
            for value, share in zip(values, one.shares, strict=True):
                axes.stairs(share, one.edges, color=colormaps["viridis"](scale(value)), lw=0.9)
            axes.set(xlabel=symbol(one.observable), yticks=[], ylim=(0, None))
            axes.margins(x=0)
        for axes in list(panels.flat)[len(distributions) :]:
            axes.set_axis_off()
        bar = figure.colorbar(ScalarMappable(scale, "viridis"), ax=panels, shrink=0.9)
        bar.set_label(symbol(model.grid.parameters[0]))
        return figure
