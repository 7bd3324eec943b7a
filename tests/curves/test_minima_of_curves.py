"""Many curves at once give what each gives alone."""

import numpy as np
import pytest
from helpers import parabola
from hypothesis import given
from hypothesis import strategies as st

from gridless.curves import chebyshev
from gridless.curves.minimum import minima_of_curves
from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.grid import Grid


@given(st.lists(st.tuples(st.floats(-0.2, 1.2), st.floats(-2.5, 0)), min_size=1, max_size=20))
def test_parabolas(rows):
    alone = [parabola(best, 10.0**width).maximum() for best, width in rows]
    curves = np.array([parabola(best, 10.0**width).coefficients for best, width in rows])
    values, ends = minima_of_curves(curves, 0.5)
    np.testing.assert_allclose(values, [e.value for e in alone], atol=1e-9)
    np.testing.assert_allclose(ends, [e.interval for e in alone], atol=1e-7)


def test_curves_with_structure():
    grid = Grid(np.array([[0.25], [0.75]]), np.array([[0.0, 1.0]]), ("theta",))
    random = np.random.default_rng(1)
    t = chebyshev.points(33)
    shapes = [
        80 * (t - best) ** 2 + height * np.cos(9 * t + phase)
        for best, height, phase in random.uniform([0.1, 0, 0], [0.9, 3, 6], (50, 3))
    ]
    curves = np.array([chebyshev.coefficients(shape) for shape in shapes])
    values, ends = minima_of_curves(curves, 0.5)
    for c, value, (low, high) in zip(curves, values, ends, strict=True):
        alone = Likelihood([Channel(c, grid, 100)]).maximum()
        assert value == pytest.approx(alone.value, abs=1e-8)
        assert (low, high) == pytest.approx(alone.interval, abs=1e-5)
