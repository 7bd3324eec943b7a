"""The exact likelihood of a toy: what all others are measured against."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.problems import PROBLEMS
from gridless.examples import Toy

Array = NDArray[Any]


def train(x: Array, theta: Array, seed: int, problem: str) -> Toy:  # noqa: ARG001
    """Nothing to train."""
    return PROBLEMS[problem].toy


def log_density(trained: Toy, x: Array, values: Array) -> Array:
    """log p(x | theta) by SciPy."""
    return np.stack([trained.log_density(x, value) for value in values], axis=1)


def curve(trained: Toy, x: Array, values: Array) -> Array:
    """The sum over events."""
    return np.array([-trained.log_density(x, value).sum() for value in values])
