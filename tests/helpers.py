"""What several tests call."""

import base64
import json
import re

import numpy as np

from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.grid import Grid
from gridless.validation.closure import Closure


def parabola(best: float, width: float, bounds=(0.0, 1.0), events: int = 100) -> Likelihood:
    """The likelihood ((theta - best) / width)^2 / 2 on the given bounds."""
    grid = Grid(np.zeros((0, 1)), np.array([bounds], float), ("theta",))
    low, high = bounds
    unit = (high - low) / width
    middle = (best - low) / (high - low)
    # (t - m)^2 in Chebyshev polynomials of 2t - 1.
    u = np.polynomial.chebyshev.poly2cheb([(0.5 - middle) ** 2, 0.5 - middle, 0.25])
    return Likelihood([Channel(0.5 * unit**2 * u, grid, events)])


def closure_of(values, true, width=0.01) -> Closure:
    """The closure of samples whose likelihoods are parabolas about the values."""
    estimates = tuple(parabola(value, width).maximum() for value in values)
    intervals = [[estimate.interval] for estimate in estimates]
    return Closure(np.array(true)[:, None], estimates, np.array(intervals))


def downloads(page: str) -> dict[str, list]:
    """The JSON files that a report holds, by their names."""
    found = re.findall(r'href="data:application/json;base64,([^"]+)" download="(\w+)', page)
    return {name: json.loads(base64.b64decode(content)) for content, name in found}
