"""The example with eight systematics: densities, samples and scores belong together."""

import numpy as np
import pytest

from gridless.examples import Nuisances

EXAMPLE = Nuisances()


def test_scores_have_mean_0_where_the_events_were_made():
    random = np.random.default_rng(1)
    p = np.concatenate([[0.4], 0.5 * random.normal(size=9)])
    x = EXAMPLE.observed(np.full(100_000, p[0]), p[1:], random)
    scores = EXAMPLE.scores(x, p)
    pulls = scores.mean(axis=0) / (scores.std(axis=0) / np.sqrt(len(x)))
    assert np.abs(pulls).max() < 4


def test_weights_make_the_varied_density():
    _, systematics, _ = EXAMPLE.simulate(20_000, seed=2, kind="weights", templates=2)
    templates, moved, _ = EXAMPLE.simulate(20_000, seed=2, templates=2)
    for by_weight, by_move in zip(systematics, moved, strict=True):
        for one, other in zip(by_weight.sides, by_move.sides, strict=True):
            assert one.weights.mean() == pytest.approx(1, abs=0.02)
            means = np.average(templates.x, axis=0, weights=one.weights)
            np.testing.assert_allclose(means, other.x.mean(axis=0), atol=0.05)


def test_the_exact_fit_finds_what_was_put_in():
    random = np.random.default_rng(3)
    alpha = np.array([1.0, -0.5, 0.5, 0.0, 0.3, -1.0, 0.0, 0.8, 0.5])
    x = EXAMPLE.observed(np.full(20_000, 0.6), alpha, random)
    exact = EXAMPLE.exact(x)
    errors = np.sqrt(np.diag(exact.covariance))
    assert np.all(np.abs(exact.values - [0.6, *alpha]) < 3.5 * errors)
    assert exact.impacts.shape == (9,)
