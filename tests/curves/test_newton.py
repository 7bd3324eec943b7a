"""Minima by Newton steps, and what the second derivatives say of errors there."""

import numpy as np

from gridless.curves.newton import inverse_on


def test_a_matrix_that_rounding_has_made_asymmetric_has_positive_variances():
    """Two parameters that the events hardly tell apart; a general inverse has a negative one."""
    hessian = np.array([[4.0, 2.0 * (1 + 1e-11)], [2.0 * (1 - 5e-12), 1.0]])
    assert (np.diag(np.linalg.inv(hessian)) < 0).any()
    inverse = inverse_on(hessian, np.array([True, True]))
    assert (np.diag(inverse) > 0).all()
    np.testing.assert_array_equal(inverse, inverse.T)


def test_held_parameters_have_no_variance():
    hessian = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 4.0]])
    inverse = inverse_on(hessian, np.array([True, False, True]))
    np.testing.assert_allclose(
        inverse[np.ix_([0, 2], [0, 2])] @ hessian[np.ix_([0, 2], [0, 2])], np.eye(2), atol=1e-12
    )
    assert not inverse[1].any()
    assert inverse_on(-hessian, np.array([True, True, True])) is None
