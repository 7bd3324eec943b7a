"""How a likelihood shows itself: as a line of text, as a small curve in a notebook, and as
histograms of its events."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.likelihood.channel import Channel, Constraint, add_offered
from gridless.results import printing
from gridless.results.labels import unit_of
from gridless.results.pictures import contour_picture, likelihood_picture
from gridless.templates.grid import Grid
from gridless.templates.histograms import Histogram
from gridless.templates.query import used_of

if TYPE_CHECKING:
    from gridless.likelihood.estimate import ParameterEstimate

POINTS = 49  # of a curve in a notebook
REACH = 3.0  # statistical errors to either side
CONTOURS = (0.68, 0.95)  # levels


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
        pictures = "".join([*curves, _contours(likelihood, estimate)])
        return printing.block(f"<p>{escape(repr(self))}</p>{pictures}{estimate.html()}")


def _curve(likelihood: Any, one: "ParameterEstimate") -> str:
    """A small picture of -Delta log L around the minimum, with the 68 percent interval."""
    down, up = (max(abs(end - one.value), 1e-12) for end in one.stat_interval)
    low = max(one.bounds[0], one.value - REACH * down)
    high = min(one.bounds[1], one.value + REACH * up)
    theta = np.linspace(low, high, POINTS)
    rise = likelihood.profile(one.name, theta)
    return likelihood_picture(_with_unit(one), theta, rise, one.value, one.interval)


def _contours(likelihood: Any, estimate: Any) -> str:
    """The 68 and 95 percent contours of the first two parameters; nothing if there is one."""
    if len(estimate.parameters) < 2:
        return ""
    two = [estimate[name] for name in estimate.parameters[:2]]
    names = [one.name for one in two]
    curves = {f"{level:.0%}": likelihood.contour(*names, level) for level in CONTOURS}
    return contour_picture([_with_unit(one) for one in two], curves, [one.value for one in two])


def _with_unit(one: "ParameterEstimate") -> str:
    unit = unit_of(one.label)
    return f"{one.name} [{unit}]" if unit else one.name
