"""What several tests share: small samples and small models made once."""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.grid import Grid
from gridless.likelihood import Likelihood
from gridless.toys import OneObservable, TwoObservables

# The tests run in parallel processes; threads of their own would only get in each other's way.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def templates():
    """Ten small templates of the one-observable example."""
    return OneObservable().templates(2_000, seed=5)


@pytest.fixture(scope="session")
def model(templates):
    """A quickly trained model of `templates`."""
    return gl.fit(templates, "gaussian", hidden=(4,), epochs=4, seed=3)


@pytest.fixture(scope="session")
def model_2d():
    """A quickly trained ensemble of two on the two-observable example."""
    templates = TwoObservables().templates(2_000, seed=6)
    return gl.fit(templates, "gaussian", components=2, hidden=(8,), ensemble=2, epochs=3, seed=4)


def parabola(best: float, width: float, bounds=(0.0, 1.0), events: int = 100) -> Likelihood:
    """The likelihood ((theta - best) / width)^2 / 2 on the given bounds."""
    grid = Grid(np.zeros((0, 1)), np.array([bounds], float), ("theta",))
    low, high = bounds
    unit = (high - low) / width
    middle = (best - low) / (high - low)
    # (t - m)^2 in Chebyshev polynomials of 2t - 1.
    u = np.polynomial.chebyshev.poly2cheb([(0.5 - middle) ** 2, 0.5 - middle, 0.25])
    return Likelihood(0.5 * unit**2 * u, grid, events)
