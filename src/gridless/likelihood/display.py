"""How a likelihood shows itself: as a line of text, as a small curve in a notebook, and as
histograms of its events."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.likelihood.channel import Channel, Constraint, add_offered
from gridless.results import printing
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid
from gridless.templates.histograms import Histogram
from gridless.templates.query import used_of

if TYPE_CHECKING:
    from gridless.likelihood.estimate import ParameterEstimate

WIDTH, HEIGHT = 360, 150  # pixels of a curve in a notebook
POINTS = 61  # of the curve
REACH = 3.0  # statistical errors to either side
HIGHEST = 4.5  # units of log likelihood: the rise at three errors


class Displayed:
    """How a likelihood prints and draws itself. `Likelihood` is the only subclass."""

    channels: tuple[Channel, ...]
    constraints: tuple[Constraint, ...]
    grid: Grid

    @property
    def events(self) -> int:
        """Number of observed events."""
        return sum(channel.events for channel in self.channels)

    @property
    def offered(self) -> int | None:
        """Number of observed events before the selection; None where there is none."""
        return add_offered(*self.channels)

    def histograms(self, channel: str | None = None) -> dict[str, Histogram]:
        """The observed events in histograms, one per observable, which mplhep and others draw.

        Parameters
        ----------
        channel : str, optional
            The name of a channel; by default the first.

        Returns
        -------
        dict of str to Histogram
            In the bins of `model.histograms`. Empty where the model has no distributions.

        Examples
        --------
        >>> import gridless as gl
        >>> from gridless.examples import OneObservable
        >>> example = OneObservable()
        >>> model = gl.fit(example.templates(500, seed=1), hidden=3, epochs=2, replicas=0)
        >>> list(model.likelihood(example.sample(0.4, 1_000, seed=2)).histograms())
        ['x']
        """
        chosen = [c for c in self.channels if channel in (None, c.name)]
        observed = chosen[0].observed if chosen else None
        return {} if observed is None else observed.histograms()

    def __repr__(self) -> str:
        text = f"Likelihood of {self.grid.describe()} from {used_of(self.events, self.offered)}"
        if len(self.channels) > 1:
            text += f" in {len(self.channels)} channels"
        for constraint in self.constraints:
            text += f", {constraint.parameter} = {constraint.value:g} +- {constraint.error:g}"
        return text

    def _repr_html_(self) -> str:
        likelihood: Any = self
        estimate = likelihood.maximum()
        curves = [_curve(likelihood, estimate[name]) for name in estimate.parameters]
        return printing.block(f"<p>{escape(repr(self))}</p>{''.join(curves)}{estimate.html()}")


def _curve(likelihood: Any, one: "ParameterEstimate") -> str:
    """A small picture of -Delta log L around the minimum, with the 68 percent interval."""
    down, up = (max(abs(end - one.value), 1e-12) for end in one.stat_interval)
    low = max(one.bounds[0], one.value - REACH * down)
    high = min(one.bounds[1], one.value + REACH * up)
    theta = np.linspace(low, high, POINTS)
    rise = likelihood.profile(one.name, theta)

    def across(values: Array | float) -> Array:
        return np.asarray(10 + (WIDTH - 20) * (np.asarray(values) - low) / (high - low))

    bottom = HEIGHT - 24
    heights = bottom * (1 - np.clip(rise, 0, HIGHEST) / HIGHEST)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across(theta), heights, strict=True))
    left, right = (float(across(np.clip(end, low, high))) for end in one.interval)
    best = float(across(one.value))
    name = escape(one.name)
    text = "fill='currentColor' font-size='11'"
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' role='img' "
        f"aria-label='likelihood of {name}'>"
        f"<rect x='{left:.1f}' width='{right - left:.1f}' y='0' height='{bottom}' "
        "fill='#56B4E9' fill-opacity='0.35'/>"
        f"<line x1='{best:.1f}' x2='{best:.1f}' y1='0' y2='{bottom}' stroke='#0072B2' "
        "stroke-dasharray='4 3'/>"
        f"<polyline points='{points}' fill='none' stroke='#0072B2' stroke-width='2'/>"
        f"<line x1='10' x2='{WIDTH - 10}' y1='{bottom}' y2='{bottom}' stroke='currentColor'/>"
        f"<text x='10' y='{HEIGHT - 8}' {text}>{low:.5g}</text>"
        f"<text x='{WIDTH / 2}' y='{HEIGHT - 8}' text-anchor='middle' {text}>{name}</text>"
        f"<text x='{WIDTH - 10}' y='{HEIGHT - 8}' text-anchor='end' {text}>{high:.5g}</text>"
        f"<text x='14' y='14' {text}>&minus;&Delta;log L, band: 68 %</text></svg>"
    )
