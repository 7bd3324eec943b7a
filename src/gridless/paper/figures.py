"""The ten figures of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from gridless.density.gaussian import Gaussian
from gridless.examples import OneObservable, TwoObservables
from gridless.model.evaluation import mixture_of
from gridless.model.model import Model
from gridless.paper.functional_fit import WIDTH, exact_density, implied_prior, log_posterior
from gridless.report.style import BLUE, GREEN, GREY, ORANGE, RED, style
from gridless.templates.arrays import Array
from gridless.templates.grid import grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

THETA = r"$\theta$"
_FOUR = (0, 3, 6, 9)
_FOUR_COLOURS = (BLUE, GREEN, ORANGE, RED)


def _figure(width: float = 5.2, height: float = 4.0, columns: int = 1) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.subplots(1, columns, squeeze=False)
    return figure, list(axes[0])


def template_positions() -> Figure:
    """Figure 1: ten templates at the centres of ten equal bins."""
    with style():
        figure, (axes,) = _figure(height=1.9)
        for edge in np.linspace(0, 1, 11):
            axes.axvline(edge, ymin=0.3, ymax=0.7, color=GREY, lw=1)
        axes.axhline(0, color=GREY, lw=1)
        axes.plot(grid((0, 1), 10), np.zeros(10), "o", color=RED, ms=8, label="template")
        axes.set(xlim=(-0.06, 1.06), ylim=(-1, 1), yticks=[], xlabel=THETA)
        axes.tick_params(axis="y", which="both", left=False, right=False)
        axes.set_xticks(np.linspace(0, 1, 11))
        axes.legend(loc="upper right")
        return figure


def template_overlap(narrow: float, broad: float) -> Figure:
    """Figure 2: templates that are easy and hard to tell apart."""
    with style():
        figure, panels = _figure(9.0, 3.6, columns=2)
        for axes, width, title in zip(
            panels, (narrow, broad), ("distinguishable", "hard to distinguish"), strict=True
        ):
            example, reach = OneObservable(width), max(3.2 * width, 0.1)
            x = np.linspace(-reach, 1 + reach, 800)
            for k, colour in zip(_FOUR, _FOUR_COLOURS, strict=True):
                theta = grid((0, 1), 10)[k]
                density = np.exp(example.log_density(x[:, None], theta))
                axes.plot(x, density, color=colour, label=f"{THETA} = {theta:.2f}")
            axes.set(xlabel="$x$", ylabel=r"$p(x\,|\,\theta)$", title=title, xlim=x[[0, -1]])
            axes.set_ylim(0, axes.get_ylim()[1] * (1.35 if width < 1 else 1.05))
            axes.legend(ncols=2 if width < 1 else 1, loc="upper right", fontsize=9)
        return figure


def joint_density(fits: dict[str, Array]) -> Figure:
    """Figure 3: the joint density of the functional fit, and the implied prior it integrates to."""
    looks = {
        "true": ("black", "-"),
        "uncorrected": (BLUE, "-"),
        "constrained": (ORANGE, "--"),
    }
    with style():
        figure, (left, right) = _figure(9.0, 3.9, columns=2)
        theta, x = np.linspace(0, 1, 101), np.linspace(-5.5, 6.5, 201)
        p_x = np.mean(
            [np.exp(OneObservable(WIDTH).log_density(x[:, None], t)) for t in grid((0, 1), 10)],
            axis=0,
        )
        handles = []
        for name, (colour, line) in looks.items():
            mean, offset, width = fits[name]
            raw = torch.tensor([mean, offset, np.log(width)])
            log_p = log_posterior(raw, torch.tensor(x)[:, None], torch.tensor(theta)[None, :])
            joint = log_p.exp().numpy() * p_x[:, None]
            left.contour(
                theta,
                x,
                joint,
                levels=[0.05, 0.07, 0.085, 0.095, 0.0985],
                colors=[colour],
                linestyles=line,
            )
            handles += left.plot([], [], color=colour, ls=line, label=name)
            right.plot(
                theta,
                implied_prior(fits[name], exact_density(), theta),
                color=colour,
                ls=line,
                label=name,
            )
        left.set(xlabel=THETA, ylabel="$x$", title=r"joint density $p(x, \theta)$")
        left.legend(handles=handles, loc="upper left", fontsize=9, ncols=3)
        left.set_ylim(-5.5, 8)
        right.set(
            xlabel=THETA,
            ylabel=r"integral of $p(x, \theta)$ over $x$",
            title="its integral along vertical lines",
        )
        right.legend(loc="lower center", fontsize=9)
        return figure


def template_histograms(samples: dict[float, Array]) -> Figure:
    """Figure 4: four of the ten templates of the one-observable example."""
    with style():
        figure, (axes,) = _figure()
        bins = np.linspace(-4, 5, 61)
        for (theta, x), colour in zip(samples.items(), _FOUR_COLOURS, strict=True):
            axes.hist(
                x[:, 0],
                bins.tolist(),
                histtype="step",
                color=colour,
                label=f"{THETA} = {theta:.2f}",
            )
        axes.set(xlabel="$x$", ylabel=f"events / {bins[1] - bins[0]:.2f}", xlim=bins[[0, -1]])
        axes.legend(loc="upper right")
        return figure


def predicted_nodes(uncorrected: Model, corrected: Model) -> Figure:
    """Figure 5: predicted mean and width against x, with the expectation."""
    x = np.linspace(-1.5, 2.5, 101)
    with style():
        figure, panels = _figure(9.0, 3.8, columns=2)
        for model, colour, name in (
            (uncorrected, BLUE, "uncorrected"),
            (corrected, ORANGE, "corrected"),
        ):
            for axes, values in zip(panels, mean_and_width(model, x), strict=True):
                axes.plot(x, values, color=colour, lw=2, label=name)
        for axes, expected, label in zip(
            panels, (x, np.ones_like(x)), (r"mean $\mu$", r"width $\sigma$"), strict=True
        ):
            axes.plot(x, expected, color="black", ls=":", lw=2, label="expected")
            axes.set(xlabel="$x$", ylabel=f"predicted {label}", xlim=x[[0, -1]])
            axes.legend(loc="upper left")
        panels[1].set_ylim(0.75, 1.15)
        return figure


def mean_and_width(model: Model, x: Array) -> tuple[Array, Array]:
    """Mean and width of a single Gaussian component at each x."""
    basis = model.network.basis
    if not isinstance(basis, Gaussian):
        raise TypeError("only a Gaussian has a mean and a width")
    z = mixture_of(model.network.double_copy(), x[:, None]).z
    mean, width = basis.mean_width(z[:, 0])
    return mean.numpy(), width.numpy()


def single_events(model: Model, x: Array, true: float) -> Figure:
    """Figure 6: the likelihoods of three events and of their sum, with the interval."""
    theta = np.linspace(0, 1, 301)
    with style():
        figure, (axes,) = _figure()
        for event, colour in zip(x, (BLUE, GREEN, ORANGE), strict=True):
            curve = model.likelihood(event[None, :]).scan(theta)
            axes.plot(theta, curve, color=colour, ls="--", label=f"$x_i$ = {event[0]:.2f}")
        total = model.likelihood(x)
        estimate = total.maximum()
        axes.plot(theta, total.scan(theta), color="black", lw=2, label="sum of the three")
        low, high = estimate["theta"].stat_interval
        axes.axvspan(low, high, 0, 0.8, color=GREY, alpha=0.2, lw=0, label="68 % of the sum")
        axes.axvline(true, 0, 0.8, color=RED, lw=1.5, label=f"true {THETA} = {true:g}")
        axes.set(xlabel=THETA, ylabel=r"$-\Delta\log L$", xlim=(0, 1))
        axes.set_ylim(0, 1.25 * axes.get_ylim()[1])
        axes.legend(loc="upper center", fontsize=9, ncols=3)
        return figure


def two_dimensional_densities(seed: int) -> Figure:
    """Figure 8: the two-observable densities at the extreme values, with sample points."""
    example = TwoObservables()
    u, v = np.meshgrid(np.linspace(-2, 4, 161), np.linspace(-0.6, 4.8, 161))
    points = np.stack([u.ravel(), v.ravel()], axis=1)
    with style():
        figure, (axes,) = _figure(5.2, 4.6)
        handles = []
        for theta, colour in ((0.0, RED), (1.0, BLUE)):
            density = np.exp(example.log_density(points, theta)).reshape(u.shape)
            levels = density.max() * np.array([0.05, 0.2, 0.5, 0.8])
            axes.contour(u, v, density, levels=levels, colors=[colour])
            x = example.sample(theta, 400, seed)
            axes.plot(x[:, 0], x[:, 1], "o", ms=3, color=colour, alpha=0.25, mew=0)
            handles += axes.plot([], [], color=colour, label=f"{THETA} = {theta:g}")
        axes.set(xlabel="$x_1$", ylabel="$x_2$", xlim=(-2, 4), ylim=(-0.6, 4.8))
        axes.legend(handles=handles, loc="upper right")
        return figure


def three_posteriors(model: Model, events: Array) -> Figure:
    """Figure 9: posteriors of three observations, flat where x2 is large."""
    theta = np.linspace(0, 1, 301)
    with style():
        figure, (axes,) = _figure()
        for event, colour in zip(events, (BLUE, GREEN, ORANGE), strict=True):
            curve = model.likelihood(event[None, :]).scan(theta)
            label = f"$x_1$ = {event[0]:.1f}, $x_2$ = {event[1]:.1f}"
            axes.plot(theta, curve, color=colour, lw=2, label=label)
        axes.set(xlabel=THETA, ylabel=r"$-\Delta\log p(\theta\,|\,x_1, x_2)$", xlim=(0, 1))
        axes.set_ylim(-0.15, 1.45 * axes.get_ylim()[1])
        axes.legend(loc="upper center")
        return figure
