"""Draws from a pool of events: with replacement, and a Poisson number of times."""

import numpy as np
import pytest
import torch

from gridless.validation import pseudo_experiments as resampling
from gridless.validation.pseudo_experiments import Draws


def sums_of(vectors, events, seed, numbers, poisson=False):
    draws = Draws(vectors.numpy(), events, (seed, 0), poisson=poisson)
    rows = list(resampling.draw(vectors, draws, numbers))
    return torch.cat([s for s, _ in rows]).double().numpy(), torch.cat([n for _, n in rows]).numpy()


def test_experiments_that_share_random_numbers_are_as_good_as_independent(monkeypatch):
    """2,000 experiments in batches of ten: their sums have the variance and the lack of
    correlation of draws with replacement, also between those of the same numbers; and so has the
    mean over all of them, in 40 repetitions. The pool is sorted, which turning must not notice."""
    monkeypatch.setattr(resampling, "BATCH", 10)
    pool, events = 1_000, 100
    f = torch.as_tensor(np.random.default_rng(1).exponential(size=(pool, 1))).float()
    f = torch.sort(f - f.mean(), dim=0).values
    expected = float((f**2).mean()) * events
    means = []
    for seed in range(40):
        sums = sums_of(f, events, seed, range(2_000))[0][:, 0]
        assert np.mean(sums**2) == pytest.approx(expected, rel=0.2)
        # Row g of the eight batches that share numbers, against one another.
        groups = sums.reshape(-1, resampling.SHARED_BATCHES, 10)
        shared = np.mean(groups.sum(1) ** 2) / resampling.SHARED_BATCHES
        assert shared == pytest.approx(expected, rel=0.5)
        means.append(sums.mean())
    assert np.std(means) == pytest.approx((expected / 2_000) ** 0.5, rel=0.35)


def test_poisson_draws_count_every_event_independently():
    """With one unit vector for each event, sums are how often it was drawn."""
    counts, sizes = sums_of(torch.eye(5), 5, 1, range(4_000), poisson=True)
    np.testing.assert_array_equal(counts.sum(1), sizes)
    np.testing.assert_allclose(counts.mean(0), 1, atol=0.06)
    np.testing.assert_allclose(np.cov(counts.T), np.eye(5), atol=0.1)
    assert np.mean(counts == 0) == pytest.approx(np.exp(-1), abs=0.02)


@pytest.mark.parametrize("poisson", [False, True])
def test_experiments_have_numbers(poisson):
    f = torch.randn(50, 2, generator=torch.Generator().manual_seed(1))
    whole, sizes = sums_of(f, 20, 3, range(700), poisson)
    for some in (range(150), range(150, 390), range(390, 700)):
        part, own = sums_of(f, 20, 3, some, poisson)
        np.testing.assert_array_equal(part, whole[some.start : some.stop])
        np.testing.assert_array_equal(own, sizes[some.start : some.stop])
    assert np.abs(sums_of(f, 20, 4, range(700), poisson)[0] - whole).max() > 0.1
