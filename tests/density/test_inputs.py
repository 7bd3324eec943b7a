"""Observables are standardised so that a network sees edges, tails and counts."""

import numpy as np
import pytest
import torch
from helpers import make_perceptrons
from hypothesis import given
from hypothesis import strategies as st

from gridless.density.gaussian import Gaussian
from gridless.density.inputs import standardisation

EVENTS = 20_000


def standard(x):
    """The observables as a network sees them, and what standardised them."""
    by = standardisation(x)
    y = (x - by.centre) / by.scale
    bend = np.where(by.bend > 0, by.bend, 1.0)
    return np.where(by.bend > 0, np.arcsinh(bend * y) / bend, y) - by.shift, by


@pytest.fixture
def normal():
    return np.random.default_rng(1).normal(size=(EVENTS, 1))


def test_what_has_no_tails_is_measured_from_its_mean_in_units_of_its_spread(normal):
    y, by = standard(5 + 2 * normal)
    assert (by.bend, by.shift) == (0, 0)
    np.testing.assert_allclose([y.mean(), y.std()], [0, 1], atol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("start", [0, 3, 1e6])
@pytest.mark.parametrize("unit", [1e-3, 1, 1e5])
def test_a_log_normal_observable_becomes_its_logarithm(normal, sign, start, unit):
    y, by = standard(sign * unit * (start + np.exp(2 * normal)))
    assert by.bend > 0
    line = np.polyfit(normal[:, 0], y[:, 0], 1)
    inner = np.abs(normal[:, 0]) < 2
    np.testing.assert_allclose(y[inner, 0], np.polyval(line, normal[inner, 0]), atol=0.15)
    assert np.quantile(y, 0.5) == pytest.approx(0, abs=0.05)
    assert np.diff(np.quantile(y, [0.1587, 0.8413])) == pytest.approx(2, rel=0.05)


def test_two_tails_are_bent_in_from_the_median():
    x = 7 + 3 * np.random.default_rng(2).standard_cauchy((EVENTS, 1))
    y, by = standard(x)
    assert (by.bend, by.shift) == (1, 0)
    assert by.centre == pytest.approx(7, abs=0.2)
    assert by.scale == pytest.approx(3 * 1.82, rel=0.1)  # tan(0.6827 pi / 2) = 1.82
    assert np.abs(y).max() < 15


def test_marks_of_missing_values_do_not_hide_the_others():
    random = np.random.default_rng(1)
    x = random.normal(5, 2, (EVENTS, 3))
    x[:7_000, 0] = -999.0  # no second jet
    x[:7_000, 1] = 0.0  # an edge that is not far
    x[:, 2] = random.random(EVENTS) < 0.3
    _, by = standard(x)
    assert by.bend.tolist() == [1, 0, 0]
    assert by.centre[0] == pytest.approx(5, abs=0.1)
    assert by.scale[0] == pytest.approx(2, abs=0.1)
    assert (by.centre[1:], by.scale[1:]) == (
        pytest.approx(x[:, 1:].mean(axis=0)),
        pytest.approx(x[:, 1:].std(axis=0)),
    )


def test_a_mark_does_not_hide_a_logarithm(normal):
    x = np.exp(2 * normal)
    alone, _ = standard(x)
    x[::3] = -999.0
    marked, _ = standard(x)
    assert marked[0] < -3  # far from all others
    others = np.arange(EVENTS) % 3 > 0
    np.testing.assert_allclose(marked[others], alone[others], atol=0.3)


@given(
    power=st.floats(0.1, 6),
    scale=st.floats(1e-6, 1e6),
    place=st.sampled_from([0.0, 1.0, -1e3]),
    seed=st.integers(0, 9),
)
def test_order_is_kept_and_all_is_finite(power, scale, place, seed):
    random = np.random.default_rng(seed)
    x = scale * (place + np.sort(random.standard_gamma(1, (2_000, 1)) ** power, axis=0))
    y, by = standard(x)
    assert np.isfinite(y).all()
    assert (np.diff(y, axis=0) >= 0).all()
    assert by.scale > 0
    assert by.bend >= 0


def test_the_network_standardises_by_it(normal):
    x = np.hstack([np.exp(2 * normal), normal, 100 + np.exp(3 * normal)])
    y, by = standard(x)
    network = make_perceptrons(3, Gaussian(), 1, (2,), "tanh", 1)
    network.set_inputs(*map(torch.as_tensor, by))
    np.testing.assert_allclose(network.unlimited(torch.as_tensor(x)).numpy(), y, atol=2e-6)
