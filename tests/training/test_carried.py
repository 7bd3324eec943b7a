"""What two systematics do together, as far as one is like a change of theta."""

from types import SimpleNamespace

import numpy as np
import pytest

from gridless.measurement.shift import Shift, shift_powers, shift_terms
from gridless.training.carried import carried

T = np.linspace(0.1, 0.9, 9)[:, None]
POWERS = shift_powers(1)


def shift(first, second):
    """The shift (first(t), second(t)) of a summary of two numbers."""
    points = np.linspace(0, 1, 40)
    values = np.stack([first(points), second(points)], axis=1)
    coefficients = np.linalg.lstsq(shift_terms(points[:, None], POWERS), values)[0]
    nothing = np.zeros((1, 1, 1))
    return Shift(coefficients, nothing, nothing, nothing)


def mean(slope):
    return SimpleNamespace(slopes=lambda t: slope(t[:, 0])[:, None])


def test_a_shift_of_theta_moves_what_the_other_systematic_does():
    """mu = (t, 0); the first moves t by 0.3, the second is (0, t^2): together (0, 0.6 t)."""
    straight = mean(lambda t: np.stack([np.ones_like(t), np.zeros_like(t)], axis=1))
    linear = [shift(lambda t: 0.3 + 0 * t, lambda t: 0 * t), shift(lambda t: 0 * t, lambda t: t**2)]
    ((pair, x),) = carried(T, straight, linear, [(1, 0)])
    assert pair == (1, 0)
    found = shift_terms(T, POWERS) @ x
    assert found == pytest.approx(np.hstack([0 * T, 0.6 * T]), abs=1e-8)


def test_two_shifts_of_theta_move_it_twice():
    """mu = (t^2, t): shifts by a and b together add a b mu'' beyond their sum."""
    curved = mean(lambda t: np.stack([2 * t, np.ones_like(t)], axis=1))
    linear = [shift(lambda t, c=c: 2 * c * t, lambda t, c=c: c + 0 * t) for c in (0.2, 0.5)]
    ((_, x),) = carried(T, curved, linear, [(1, 0)])
    found = shift_terms(T, POWERS) @ x
    assert found == pytest.approx(np.tile([0.2 * 0.5 * 2, 0.0], (9, 1)), abs=1e-6)


def test_what_is_negligible_is_left_out():
    straight = mean(lambda t: np.stack([np.ones_like(t), np.zeros_like(t)], axis=1))
    linear = [shift(lambda t: 0.01 + 0 * t, lambda t: 0 * t)] * 2
    assert carried(T, straight, linear, [(1, 0)]) == []
