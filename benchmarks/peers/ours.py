"""gridless itself, through its public face."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gridless as gl
from gridless.curves import chebyshev

Array = NDArray[Any]


def train(x: Array, theta: Array, seed: int, **options: Any) -> gl.Model:
    """`gl.fit` with its defaults but for `options`."""
    return gl.fit(gl.Templates(x, theta, bounds=(0, 1)), seed=seed, **options)


def log_density(trained: gl.Model, x: Array, values: Array) -> Array:
    """What each event adds to the log likelihood, up to a term without theta."""
    vectors, matrix, offset = trained.event_vectors(np.asarray(x, float))
    curves = np.array([chebyshev.evaluate(c, values[:, None]) for c in (*matrix, offset)])
    return np.asarray(vectors.numpy() @ curves[:-1] - curves[-1])


def curve(trained: gl.Model, x: Array, values: Array) -> Array:
    """The likelihood as a user makes it, with the uncertainty from simulation and the warnings."""
    likelihood = trained.likelihood(x)
    return np.array([likelihood(value) for value in values])


def estimate(trained: gl.Model, x: Array) -> float:
    """What gridless itself says."""
    return float(trained.likelihood(x).maximum().value)
