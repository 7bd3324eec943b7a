"""Goodness of fit of cells whose true shares are known."""

from dataclasses import replace

import numpy as np
import pytest

from gridless.calibration.shares import smooth_shares
from gridless.curves import chebyshev
from gridless.likelihood import agreement
from gridless.likelihood.agreement import Agreement, Cells, Filling, p_value

CELLS = 30
TEMPLATES = (np.arange(9)[:, None] + 0.5) / 9
CENTRES = np.linspace(-2, 2, CELLS)[:, None]


def alike(t):
    """Cells whose shares hardly depend on theta: slopes are noise."""
    share = np.exp(0.02 * t[:, 0] * CENTRES)
    return share / share.sum(axis=0)


def normal(t):
    """x ~ N(theta, 1)."""
    share = np.exp(-0.5 * (CENTRES - t[:, 0]) ** 2)
    return share / share.sum(axis=0)


def cells_of(shares, events, seed):
    """Cells as the templates make them."""
    random = np.random.default_rng(seed)
    seen = np.array([random.multinomial(events, s) / events for s in shares(TEMPLATES).T]).T
    smooth = smooth_shares(seen, np.full(len(TEMPLATES), float(events)), TEMPLATES)
    sizes = (2 * int(smooth.powers.max()) + 1,)
    t = chebyshev.box_points(sizes)
    share, variance = (
        np.array([chebyshev.coefficients(row) for row in rows])
        for rows in (smooth(t), smooth.variances(t))
    )
    return Cells(CENTRES, 1.0, share, np.zeros(sizes), variance, np.zeros((2, *sizes)))


def p_of(cells, content, t):
    events = int(content.sum())
    filling = Filling(content.astype(float), float(events), 0, events, events, None)
    return p_value(*Agreement(cells, filling).chi2(np.array([t])))


@pytest.mark.parametrize("shares", [alike, normal])
@pytest.mark.parametrize("ratio", [0.1, 1, 10])
@pytest.mark.parametrize("t", [0.06, 0.4])
def test_p_values_are_near_uniform_however_many_events_are_observed(shares, ratio, t):
    simulated = 2_000
    observed = int(ratio * simulated * len(TEMPLATES))
    random, true = np.random.default_rng(7), shares(np.array([[t]]))[:, 0]
    found = [
        p_of(cells_of(shares, simulated, seed), random.multinomial(observed, true), t)
        for seed in range(60)
    ]
    assert 0.35 < np.mean(found) < 0.65  # half, known to 0.04; a little cautious is allowed
    assert sum(p < 1e-3 for p in found) <= 1


def test_a_smooth_fault_is_seen_better_together_with_the_neighbours(monkeypatch):
    cells, true = cells_of(normal, 20_000, 1), normal(np.array([[0.4]]))[:, 0]
    wave = true * (1 + 0.15 * np.cos(3 * CENTRES[:, 0]))
    samples = np.random.default_rng(3).multinomial(3_000, wave / wave.sum(), 40)
    together = np.array([p_of(cells, one, 0.4) for one in samples])
    monkeypatch.setattr(agreement, "SMOOTHING", 1e-3)
    alone = np.array([p_of(cells, one, 0.4) for one in samples])
    assert np.median(np.log(together / alone)) < -1


def test_a_share_outside_is_a_share_whatever_a_file_says():
    cells = cells_of(normal, 1_000, 1)
    absurd = replace(cells, outside=np.full((2, 3), 1e200))
    share, variance = absurd.share_outside(np.array([1.0]))
    assert 0 < share < 2
    assert 0 < variance < 2
