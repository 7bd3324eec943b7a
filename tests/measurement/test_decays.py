"""The example of decays: densities, samples, weights and scores belong together."""

import numpy as np
import pytest

from gridless.examples import Decays

EXAMPLE = Decays()


def test_scores_have_mean_0_where_the_events_were_made():
    random = np.random.default_rng(1)
    p = np.concatenate([[0.4], 0.7 * random.normal(size=8)])
    x = EXAMPLE.observed(np.full(50_000, p[0]), p[1:], random)
    scores = EXAMPLE.scores(x, p)
    pulls = scores.mean(axis=0) / (scores.std(axis=0) / np.sqrt(len(x)))
    assert np.abs(pulls).max() < 4


def test_variations_of_the_simulation_change_means_as_observed_events_do():
    templates, systematics, backgrounds = EXAMPLE.simulate(20_000, seed=2, templates=2)
    random = np.random.default_rng(3)
    for one in systematics:
        alpha = np.zeros(len(EXAMPLE.nuisances))
        alpha[EXAMPLE.nuisances.index(one.name)] = 1.0
        alpha[-1] = -EXAMPLE.share / EXAMPLE.share_error
        x = EXAMPLE.observed(np.tile([0.25, 0.75], 25_000), alpha, random)
        side = one.sides[0]
        made = templates.x if side.x is None else side.x
        means = np.average(made, axis=0, weights=side.weights)
        np.testing.assert_allclose(means, x.mean(axis=0), atol=0.04)
    assert [one.name for one in backgrounds[0].systematics][-1] == "prompt"


def test_the_exact_fit_finds_what_was_put_in():
    random = np.random.default_rng(4)
    alpha = np.array([1.0, -0.5, 0.5, 1.0, 0.3, -1.0, 0.8, 0.5])
    exact = EXAMPLE.exact(EXAMPLE.observed(np.full(20_000, 0.6), alpha, random))
    errors = np.sqrt(np.diag(exact.covariance))
    assert np.all(np.abs(exact.values - [0.6, *alpha]) < 3.5 * errors)


def test_a_fit_comes_near_the_exact_one():
    x = EXAMPLE.sample(0.4, 4_000, seed=5)
    exact = EXAMPLE.exact(x)
    found = EXAMPLE.fit(3_000, seed=5, hidden=8, epochs=5).likelihood(x).maximum()
    assert abs(found.value - exact.value) < 1.5 * exact.error
    assert found.error / exact.error == pytest.approx(1.15, abs=0.35)
