"""Where uncertainty comes from: the scores of few events with weights."""

import numpy as np
import pytest

from gridless.likelihood.sources import ScoreSpread


@pytest.mark.parametrize(("shape", "within"), [(1.0, 0.1), (4.0, 0.05), (100.0, 0.05)])
def test_the_spread_of_few_events_knows_that_theta_is_fitted_to_them(shape, within):
    """Means of twelve events scatter as they say, by variances; n is rough if a few have all."""
    random = np.random.default_rng(1)
    truth, stated = 0.0, 0.0
    for _ in range(4_000):
        x, w = random.normal(size=12), random.gamma(shape, 1 / shape, 12)
        score = w * (x - w @ x / w.sum())
        coefficients = np.full((1, 1, 1), score @ score)
        spread = ScoreSpread(coefficients, float(w @ w), float((w**4).sum()))
        stated += float(spread.covariance(np.array([0.5]))[0, 0])
        truth += float(w @ w)
    assert stated == pytest.approx(truth, rel=within)
