"""Shares in cells between the templates, and how well they are known."""

import numpy as np
import pytest
from scipy.stats import norm

from gridless.calibration.shares import smooth_shares

POINTS = np.linspace(0.02, 0.98, 33)[:, None]


def truth(t):
    """Shares (cells, points) of 20 cells, which are no polynomials in t."""
    phase = np.linspace(0, 3, 20)[:, None]
    share = np.exp(np.cos(phase + 3 * t[:, 0]) + 1 / (0.4 + t[:, 0]) * np.sin(phase))
    return share / share.sum(axis=0)


def mixture(t):
    """Shares that are straight lines in t, one of which begins at 0."""
    signal, background = np.linspace(0, 1, 20)[:, None], np.linspace(1, 0.2, 20)[:, None]
    return (1 - t[:, 0]) * signal / signal.sum() + t[:, 0] * background / background.sum()


EDGES = [-np.inf, -2.4, -1.6, -0.8, 0.0, 0.5, 1.0, 1.8, 2.6, 3.4, np.inf]


def bins_of_a_normal_observable(t):
    """Shares of x ~ N(t, 1): those at the edges change most, and bend most."""
    return np.diff(norm.cdf(np.array(EDGES)[:, None], t[:, 0]), axis=0)


def templates(shares, count, events, seed, margin=0.5):
    unit = np.linspace(margin / count, 1 - margin / count, count)[:, None]
    random = np.random.default_rng(seed)
    seen = np.stack([random.multinomial(events, s) / events for s in shares(unit).T], axis=1)
    return seen, np.full(count, float(events)), unit


def pulls(shares, *made):
    found = smooth_shares(*made)
    return (found(POINTS) - shares(POINTS)) / np.sqrt(found.variances(POINTS))


@pytest.mark.parametrize("count", [3, 4, 6, 10, 20])
def test_shares_are_right_within_their_stated_error(count):
    found = [pulls(truth, *templates(truth, count, 10_000, seed, 0)) for seed in range(6)]
    assert 0.4 < np.sqrt(np.mean(np.square(found))) < 1.4


def test_shares_at_the_edges_of_a_distribution_are_right_within_their_stated_error():
    shares = bins_of_a_normal_observable
    found = [pulls(shares, *templates(shares, 10, 3_000, seed)) ** 2 for seed in range(60)]
    for cell in (1, 2, -2, -1):
        assert 0.4 < np.mean(found, axis=(0, 2))[cell] < 1.5


def test_the_share_of_a_background_is_a_straight_line_and_known_well():
    made = templates(mixture, 9, 20_000, 1, 0)
    found = smooth_shares(*made)
    assert np.sqrt(np.mean(pulls(mixture, *made) ** 2)) < 1.3
    # Nine templates of 20,000 events each: a line through them is worth several of them.
    inner = found.variances(POINTS)[:, 8:-8].sum(axis=0)
    assert inner.max() < 1 / 60_000


def test_more_events_are_worth_more():
    few, many = (
        smooth_shares(*templates(truth, 10, n, 1)).variances(POINTS) for n in (1_000, 100_000)
    )
    assert many.mean() < 0.1 * few.mean()


def test_a_cell_that_is_empty_in_most_templates_stays_finite():
    seen, events, unit = templates(truth, 6, 1_000, 3)
    seen = np.vstack([seen, np.zeros((1, 6)), np.zeros((1, 6))])
    seen[-1, 0] = 0.01
    found = smooth_shares(seen, events, unit)
    assert np.isfinite(found(POINTS)).all()
    assert (found.variances(POINTS) >= 0).all()
