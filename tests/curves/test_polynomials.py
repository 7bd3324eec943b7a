"""Polynomials of a total degree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridless.curves import chebyshev
from gridless.curves.polynomials import as_tensor, powers_up_to, slopes, terms


@pytest.mark.parametrize(("degree", "parameters", "count"), [(3, 1, 4), (2, 2, 6), (2, 3, 10)])
def test_number_of_terms(degree, parameters, count):
    assert len(powers_up_to(degree, parameters)) == count


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_slopes_are_differences(seed, parameters):
    random = np.random.default_rng(seed)
    powers = powers_up_to(3, parameters)
    t = random.uniform(0.1, 0.9, (4, parameters))
    for p in range(parameters):
        step = np.eye(parameters)[p] * 1e-6
        numeric = (terms(t + step, powers) - terms(t - step, powers)) / 2e-6
        np.testing.assert_allclose(slopes(t, powers)[:, p], numeric, atol=1e-6)


def test_a_tensor_has_the_same_values():
    random = np.random.default_rng(1)
    powers = powers_up_to(3, 2)
    c, t = random.normal(size=len(powers)), random.random((5, 2))
    np.testing.assert_allclose(chebyshev.evaluate(as_tensor(c, powers), t), terms(t, powers) @ c)
