"""The implied prior q(theta): what the network believes of theta before it sees an event."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gridless import chebyshev
from gridless.arrays import Array
from gridless.evaluation import approximate_sum
from gridless.grid import Grid
from gridless.network import Network


@dataclass(frozen=True)
class ImpliedPrior:
    """q(theta) = mean over training events of p(theta | x), in units of the range: 1 where flat.

    The likelihood that the network has learnt is p(theta | x) / q(theta) up to a factor of x alone,
    since p(x | theta) = p(theta | x) p(x) / q(theta) is what integrates to 1 over x at every theta.
    """

    log_q: Array
    grid: Grid

    def __call__(self, theta: ArrayLike) -> Array:
        """q(theta)."""
        t = self.grid.to_unit(np.asarray(theta, float)[..., None])[..., 0]
        return np.asarray(np.exp(chebyshev.evaluate(self.log_q, t)))

    @property
    def max_log(self) -> float:
        """max |log q| over the range: 0 when nothing is biased."""
        return float(np.abs(chebyshev.evaluate(self.log_q, np.linspace(0, 1, 1001))).max())

    def __repr__(self) -> str:
        return f"ImpliedPrior of {self.grid.parameters[0]}: max |log q| = {self.max_log:.3g}"


def implied_prior(network: Network, x: Array, weights: Array, grid: Grid) -> ImpliedPrior:
    """q(theta) of a network over the events x."""
    log_q = approximate_sum(network, x, weights, np.exp, np.log, tolerance=1e-8)
    log_q[0] -= np.log(weights.sum())
    return ImpliedPrior(log_q, grid)
