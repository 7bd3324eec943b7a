"""The implied prior q(theta): what the network believes of theta before it sees an event."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike

from gridless import distributed
from gridless.curves import chebyshev
from gridless.density.network import Network
from gridless.model.evaluation import MAX_DOUBLE_EVENTS, approximate_curve, sum_of_densities
from gridless.templates.arrays import Array, as_numbers
from gridless.templates.grid import Grid

# Points along each parameter on which max |log q| is looked for, by the number of parameters.
FINE_POINTS = {1: 1001, 2: 101, 3: 33}
# Events that tell how many points in t the implied prior needs.
PROBE_EVENTS = 10_000
LEAST_PRIOR = 1e-12  # of its maximum: less is rounding


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
        values = as_numbers(theta, "theta")
        t = self.grid.to_unit(values[..., None] if len(self.grid.parameters) == 1 else values)
        return np.asarray(np.exp(chebyshev.evaluate(self.log_q, t)))

    @property
    def max_log(self) -> float:
        """max |log q| over the range: 0 when nothing is biased."""
        points = chebyshev.box_points([FINE_POINTS[self.log_q.ndim]] * self.log_q.ndim)
        return float(np.abs(chebyshev.evaluate(self.log_q, points)).max())

    def between_templates(self) -> float:
        """Mean of log q halfway between neighbouring templates, less that at the templates."""
        unit = self.grid.unit
        neighbour = unit[self.grid.nearest()]
        at, between = (chebyshev.evaluate(self.log_q, t) for t in (unit, 0.5 * (unit + neighbour)))
        return float(between.mean() - at.mean())

    def __repr__(self) -> str:
        names = ", ".join(self.grid.parameters)
        return f"ImpliedPrior of {names}: max |log q| = {self.max_log:.3g}"


def implied_prior(
    network: Network, samples: Sequence[tuple[Array, Array]], grid: Grid
) -> ImpliedPrior:
    """q(theta) of a network over events: for each of its members the (x, weights) to use.

    A member that has memorised its events is too sure of them: its q is better taken over events
    that it has not seen. For a single sample, all members use it.
    """
    if len(samples) == 1:
        members = [network]
    else:
        members = [network.member(e) for e in range(network.members)]

    def log_mean(t: Array, stride: int = 1) -> Array:
        q = np.zeros(len(t))
        for member, (x, weights) in zip(members, samples, strict=True):
            w = weights[::stride]
            sums = sum_of_densities(member, x[::stride], w, t), np.array([w.sum()])
            top, bottom = distributed.totals([torch.as_tensor(v) for v in sums])
            q += (top / bottom).numpy()
        # Weights of either sign may give less than nothing where the network is not right.
        return np.log(q.clip(min=LEAST_PRIOR * q.max()) / len(members))

    events = sum(len(x) for x, _ in samples)
    stride = max(1, events // PROBE_EVENTS)
    # log q itself is rounded to 1e-7 in float32.
    confirm = (
        1e-8 if -distributed.least(-max(len(x) for x, _ in samples)) <= MAX_DOUBLE_EVENTS else 1e-6
    )
    of_some = partial(log_mean, stride=stride)
    log_q = approximate_curve(of_some, log_mean, network.basis.parameters, 1e-8, confirm)
    return ImpliedPrior(log_q, grid)
