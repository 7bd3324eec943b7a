"""A channel without systematics as a part of a likelihood of named parameters."""

import numpy as np
from numpy.typing import NDArray

from gridless.likelihood.channel import Channel
from gridless.likelihood.curve import Curve
from gridless.likelihood.estimate import STAT
from gridless.templates.arrays import Array


class CurveTerm:
    """The likelihood of a channel that is a curve in its own parameters.

    Parameters
    ----------
    channel : Channel
        The events.
    places : array (own parameters,) of int
        Where the channel's parameters are among all.
    size : int
        Number of all parameters.
    """

    def __init__(self, channel: Channel, places: NDArray[np.int64], size: int) -> None:
        self.channel, self.places, self.size = channel, places, size
        axes = tuple(range(len(channel.parameters)))
        self.axes = axes
        self.curve = Curve(len(axes), ((axes, channel.total),))

    def slopes(self, p: Array, observed: bool = True) -> tuple[float, Array, Array]:  # noqa: ARG002
        """Minus the log likelihood, its gradient and second derivatives."""
        t, scale = self._own(p), self.channel.grid.range
        gradient, hessian = np.zeros(self.size), np.zeros((self.size, self.size))
        gradient[self.places] = self.curve.gradient(t) / scale
        hessian[np.ix_(self.places, self.places)] = self.curve.hessian(t) / np.outer(scale, scale)
        return self.curve.value(t), gradient, hessian

    def score_covariances(self, p: Array) -> dict[str, Array]:
        """The covariance of the gradient from every source of this channel."""
        channel, t = self.channel, self._own(p)
        if channel.scores is None:
            stat = self.curve.hessian(t)
        else:
            count = len(self.axes)
            rows = [[Curve(count, ((self.axes, c),)).value(t) for c in r] for r in channel.scores]
            stat = np.array(rows)
        found = {STAT: self._wide(stat)}
        for name, source in channel.sources.items():
            found[name] = self._wide(source.covariance(source.slopes(t)))
        return found

    def chi2(self, p: Array) -> tuple[float, int] | None:
        """How far the events are from the simulation, with the degrees of freedom, if known."""
        agreement = self.channel.agreement
        return None if agreement is None else agreement.chi2(self._own(p))

    def _own(self, p: Array) -> Array:
        return self.channel.grid.to_unit(p[self.places])

    def _wide(self, own: Array) -> Array:
        scale = self.channel.grid.range
        result = np.zeros((self.size, self.size))
        result[np.ix_(self.places, self.places)] = own / np.outer(scale, scale)
        return result
