"""Minima of a quasi-likelihood that the mean of the events tells apart."""

import numpy as np
import pytest

from gridless.calibration.calibration import Calibration, calibrate
from gridless.calibration.distance import MeanDistance
from gridless.calibration.moments import Moments
from gridless.likelihood.likelihood import Likelihood
from gridless.model.observed import channel_of_sum
from gridless.templates.grid import Grid

EVENTS = 10_000


def turning(t):
    """A mean that goes to and fro, and slowly ahead."""
    return np.stack([np.cos(2 * np.pi * t), 0.3 * t], axis=-1)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    t = np.linspace(0, 1, 11)
    # Events know more at one end: the integral of the score does not come back to where it was.
    covariance = np.exp(-3 * t)[:, None, None] * np.eye(2)
    return calibrate(Moments(t[:, None], turning(t), covariance, covariance / 50_000))


def summed(calibration, t):
    return EVENTS * calibration.whitened(turning(np.array([t])))[0]


@pytest.mark.parametrize("truth", [0.2, 0.35, 0.65, 0.8])
def test_the_minimum_is_the_one_where_the_mean_is(calibration, truth):
    grid = Grid(np.linspace(0, 1, 11)[:, None], np.array([[0.0, 1.0]]), ("theta",))
    channel = channel_of_sum(calibration, grid, summed(calibration, truth), EVENTS, EVENTS)
    assert Likelihood([channel]).maximum().value == pytest.approx(truth, abs=0.01)


def test_the_integral_of_the_score_alone_may_be_lower_elsewhere(calibration):
    grid = Grid(np.linspace(0, 1, 11)[:, None], np.array([[0.0, 1.0]]), ("theta",))
    found = []
    for truth in (0.2, 0.35, 0.65, 0.8):
        y = summed(calibration, truth)
        curve = Likelihood([channel_of_sum(calibration, grid, y, EVENTS, EVENTS)]).curve
        scan = curve(np.linspace(0, 1, 2001)[:, None])
        found.append(abs(scan.argmin() / 2000 - truth) > 0.1)
    assert any(found)


def test_distances_of_parts_are_those_of_all_events(calibration):
    y, t = summed(calibration, 0.3), np.linspace(0, 1, 7)[:, None]
    whole = MeanDistance(calibration, y, EVENTS)
    parts = MeanDistance(calibration, 0.4 * y, 0.4 * EVENTS) + MeanDistance(
        calibration, 0.6 * y, 0.6 * EVENTS
    )
    np.testing.assert_allclose(parts(t), whole(t))
    assert whole.restrict(0, 0.5)(np.zeros((1, 0))) == pytest.approx(whole(np.array([[0.5]])))


def test_no_events_are_equally_near_everywhere(calibration):
    assert not MeanDistance(calibration, np.zeros(2), 0.0)(np.array([[0.2], [0.7]])).any()
