"""gridless itself, through its public face."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gridless as gl

Array = NDArray[Any]


def train(x: Array, theta: Array, seed: int, **options: Any) -> gl.Model:
    """`gl.fit` with its defaults but for `options`."""
    return gl.fit(gl.Templates(x, theta, bounds=(0, 1)), seed=seed, **options)


def log_density(trained: gl.Model, x: Array, values: Array) -> Array:
    """log p(theta | x)."""
    return np.asarray(trained.posterior(x).log_prob(values[:, None]).T)


def curve(trained: gl.Model, x: Array, values: Array) -> Array:
    """The likelihood as a user makes it, with the uncertainty from simulation and the warnings."""
    likelihood = trained.likelihood(x)
    return np.array([likelihood(value) for value in values])


def estimate(trained: gl.Model, x: Array) -> float:
    """What gridless itself says."""
    return float(trained.likelihood(x).maximum().value)
