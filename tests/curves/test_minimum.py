"""Minima, profiles and crossings of known functions of one to three parameters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridless.curves import chebyshev, minimum
from gridless.curves.curve import Curve


def quadratic(best, matrix):
    """(t - best) matrix (t - best) / 2 as a curve."""
    best, matrix = np.asarray(best), np.asarray(matrix)
    c = chebyshev.approximate(
        lambda t: 0.5 * np.einsum("ni,ij,nj->n", t - best, matrix, t - best), 1e-9, len(best)
    )
    return Curve(len(best), ((tuple(range(len(best))), c),))


def of_number(function):
    return lambda t: function(np.array([t]))


MATRIX = np.array([[400.0, -150.0], [-150.0, 100.0]])


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_the_minimum_of_two_parameters(a, b):
    c = quadratic([a, b], MATRIX)
    best = minimum.lowest(c)
    np.testing.assert_allclose(best, [a, b], atol=1e-8)
    np.testing.assert_allclose(minimum.covariance(c, best), np.linalg.inv(MATRIX), rtol=1e-6)


def test_a_minimum_on_a_bound():
    best = minimum.lowest(quadratic([1.3, 0.5], MATRIX))
    # At t1 = 1 the second follows along its slope: 0.5 - 1.5 * (1 - 1.3) ... is below the minimum.
    assert best[0] == pytest.approx(1)
    assert best[1] == pytest.approx(0.5 + (-150 / 100) * (1.3 - 1), abs=1e-6)
    assert minimum.at_bound(best).tolist() == [True, False]


def test_no_covariance_without_a_minimum():
    c = quadratic([0.5], [[-4.0]])
    assert np.isnan(minimum.covariance(c, np.array([0.5]))).all()


def test_the_profile_has_the_larger_width():
    c = quadratic([0.5, 0.5], MATRIX)
    best = minimum.lowest(c)
    function = of_number(minimum.profile(c, [0], best))
    width = np.sqrt(np.linalg.inv(MATRIX)[0, 0])
    end, cut = minimum.crossing(function, 0.5, 0.5, 0.02)
    assert end == pytest.approx(0.5 + width, rel=1e-6)
    assert not cut
    assert minimum.crossing(function, 0.5, 1e9, 0.02) == (1.0, True)


def test_three_parameters_profile_two():
    matrix = np.diag([100.0, 400.0, 900.0])
    matrix[0, 2] = matrix[2, 0] = 120.0
    c = quadratic([0.4, 0.5, 0.6], matrix)
    best = minimum.lowest(c)
    np.testing.assert_allclose(best, [0.4, 0.5, 0.6], atol=1e-7)
    end, _ = minimum.crossing(of_number(minimum.profile(c, [0], best)), 0.4, 0.5, -0.02)
    assert end == pytest.approx(0.4 - np.sqrt(np.linalg.inv(matrix)[0, 0]), rel=1e-5)


def test_a_ray_ends_at_the_level_or_the_bound():
    c = quadratic([0.5, 0.5], np.eye(2) * 100)
    point = minimum.ray(c, [0, 1], np.array([0.5, 0.5]), np.array([0.1, 0.0]), 0.5)
    np.testing.assert_allclose(point, [0.6, 0.5], atol=1e-9)
    point = minimum.ray(c, [1, 0], np.array([0.5, 0.5]), np.array([0.1, 0.0]), 1e6)
    np.testing.assert_allclose(point, [1.0, 0.5], atol=1e-9)


@pytest.mark.parametrize("step", [1e-300, -1e-300, 0.0, float("nan")])
def test_the_way_to_a_crossing_ends_whatever_the_step(step):
    def flat(_):
        return 0.0

    assert minimum.crossing(flat, 0.5, 1.0, step) == (1.0 if step > 0 else 0.0, True)
    assert minimum.crossing(lambda t: abs(t - 0.5), 0.5, 0.2, 1e-9)[0] == pytest.approx(0.7)


def test_a_rise_that_is_lost_in_rounding_ends_where_it_begins():
    def steep(t):
        return 1e15 * (t - 0.3) ** 2 - 1.4e12

    assert minimum.crossing(steep, 0.3, -1.4e12 - 1e-3, 0.05) == (0.3, False)
