"""Chebyshev series against the functions they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridless import chebyshev


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
    np.testing.assert_allclose(chebyshev.evaluate(c, t), function(t), atol=1e-10)
    slope = np.polynomial.polynomial.polyval(t, np.polynomial.polynomial.polyder(polynomial))
    np.testing.assert_allclose(chebyshev.evaluate(chebyshev.derivative(c), t), slope, atol=1e-8)


def test_approximate_uses_as_many_points_as_needed():
    easy = chebyshev.approximate(np.exp, 1e-10)
    hard = chebyshev.approximate(lambda t: np.exp(-0.5 * ((t - 0.4) / 0.01) ** 2), 1e-10)
    assert len(easy) == 17
    assert len(hard) > 100
    assert chebyshev.evaluate(hard, 0.41) == pytest.approx(np.exp(-0.5), abs=1e-9)
    assert len(chebyshev.approximate(np.exp, 1e-10, least=65)) == 65


def test_differentiation_matrix():
    t = chebyshev.points(33)
    slope = chebyshev.differentiation(33) @ np.sin(3 * t)
    np.testing.assert_allclose(slope, 3 * np.cos(3 * t), atol=1e-10)


def test_add_pads_the_shorter():
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    assert chebyshev.add(a, b).tolist() == [4, 6, 5]
