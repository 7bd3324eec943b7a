"""What several tests call."""

import numpy as np

from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.grid import Grid


def parabola(best: float, width: float, bounds=(0.0, 1.0), events: int = 100) -> Likelihood:
    """The likelihood ((theta - best) / width)^2 / 2 on the given bounds."""
    grid = Grid(np.zeros((0, 1)), np.array([bounds], float), ("theta",))
    low, high = bounds
    unit = (high - low) / width
    middle = (best - low) / (high - low)
    # (t - m)^2 in Chebyshev polynomials of 2t - 1.
    u = np.polynomial.chebyshev.poly2cheb([(0.5 - middle) ** 2, 0.5 - middle, 0.25])
    return Likelihood([Channel(0.5 * unit**2 * u, grid, events)])
