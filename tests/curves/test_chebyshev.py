"""Chebyshev series against the functions they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridless.curves import chebyshev


def test_points_run_from_bound_to_bound_and_are_nested():
    coarse, fine = chebyshev.points(17), chebyshev.points(33)
    assert coarse[0] == 0
    assert coarse[-1] == 1
    np.testing.assert_allclose(fine[::2], coarse, atol=1e-15)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=17))
def test_interpolates_polynomials_exactly(polynomial):
    def function(t):
        return np.polynomial.polynomial.polyval(t, polynomial)

    c = chebyshev.coefficients(function(chebyshev.points(17)))
    t = np.linspace(0, 1, 41)
    at = t[:, None]
    np.testing.assert_allclose(chebyshev.evaluate(c, at), function(t), atol=1e-10)
    slope = np.polynomial.polynomial.polyval(t, np.polynomial.polynomial.polyder(polynomial))
    np.testing.assert_allclose(chebyshev.evaluate(chebyshev.derivative(c), at), slope, atol=1e-8)


def test_approximate_uses_as_many_points_as_needed():
    easy = chebyshev.approximate(lambda t: np.exp(t[:, 0]), 1e-10)
    hard = chebyshev.approximate(lambda t: np.exp(-0.5 * ((t[:, 0] - 0.4) / 0.01) ** 2), 1e-10)
    assert len(easy) == 17
    assert len(hard) > 100
    assert chebyshev.evaluate(hard, np.array([0.41])) == pytest.approx(np.exp(-0.5), abs=1e-9)
    assert len(chebyshev.approximate(lambda t: np.exp(t[:, 0]), 1e-10, least=[65])) == 65


def test_differentiation_matrix():
    t = chebyshev.points(33)
    slope = chebyshev.differentiation(33) @ np.sin(3 * t)
    np.testing.assert_allclose(slope, 3 * np.cos(3 * t), atol=1e-10)


def test_add_pads_the_shorter():
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    assert chebyshev.add(a, b).tolist() == [4, 6, 5]


def smooth(t):
    """A function of two parameters that needs more points in the second."""
    return np.exp(t[..., 0]) * np.cos(9 * t[..., 1] + t[..., 0])


def test_two_parameters():
    c = chebyshev.approximate(smooth, 1e-9, parameters=2)
    assert c.shape[0] < c.shape[1]
    t = np.random.default_rng(1).random((30, 2))
    np.testing.assert_allclose(chebyshev.evaluate(c, t), smooth(t), atol=1e-8)
    slope = np.exp(t[:, 0]) * -9 * np.sin(9 * t[:, 1] + t[:, 0])
    np.testing.assert_allclose(chebyshev.evaluate(chebyshev.derivative(c, 1), t), slope, atol=1e-5)
    line = chebyshev.restrict(c, 0, 0.3)
    at = np.stack([np.full(30, 0.3), t[:, 1]], axis=-1)
    np.testing.assert_allclose(chebyshev.evaluate(line, t[:, 1:]), smooth(at), atol=1e-8)


def test_three_parameters():
    def function(t):
        return t[:, 0] * t[:, 1] ** 2 - t[:, 2]

    c = chebyshev.approximate(function, 1e-9, parameters=3)
    assert c.shape == (5, 5, 5)
    t = np.random.default_rng(2).random((10, 3))
    np.testing.assert_allclose(chebyshev.evaluate(c, t), function(t), atol=1e-12)
