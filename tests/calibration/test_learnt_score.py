"""The mean score of a density that is used as it is."""

import numpy as np
import pytest
from scipy.stats import kstest

import gridless as gl
from gridless.calibration.calibration import calibrate
from gridless.calibration.learnt_score import LearntScore
from gridless.calibration.moments import Moments
from gridless.curves import chebyshev
from gridless.examples import OneObservable

T = (np.arange(10) + 0.5)[:, None] / 10
POINTS = chebyshev.box_points((5,))[:, 0]


def score_of(mean, events, log_q):
    """That of the density x t - log_q(t), where x is normal with the means of the templates."""
    unit = np.ones((len(T), 1, 1))
    known = calibrate(Moments(T, mean[:, None], unit, unit / events))
    curves = chebyshev.coefficients(POINTS)[None]
    return LearntScore(known, 1.0, curves=curves, log_q=chebyshev.coefficients(log_q(POINTS)))


def test_the_p_value_of_an_exact_density_is_uniform():
    random, events = np.random.default_rng(1), 1_000
    found = [
        score_of(random.normal(T[:, 0], events**-0.5), events, lambda t: t**2 / 2).check().p_value
        for _ in range(200)
    ]
    assert kstest(found, "uniform").pvalue > 0.01


def test_a_wrong_density_is_off_by_what_is_missing():
    """x t alone, without its normalisation t^2 / 2 + 0.1 t: the score is off by 0.1."""
    score = score_of(T[:, 0], 1e6, lambda t: t**2 / 2 + 0.1 * t)
    assert score.check().shift[:, 0] == pytest.approx(-0.1, abs=1e-6)
    assert score.check().failed
    assert score.changes(np.array([0.3]))[0] == pytest.approx(-0.1, abs=1e-4)


def test_more_events_and_held_parameters_change_it_as_other_sources():
    score = score_of(T[:, 0], 1e6, lambda t: t**2 / 2 + 0.1 * t)
    assert (score + score).slopes(np.array([0.3]))[0] == pytest.approx(-0.2, abs=1e-4)


def test_a_summary_with_a_component_that_says_nothing_new_is_taken_back_whole():
    """c = (x, 30 x): whitening leaves one of two components, of very different sizes."""
    scale = np.array([1.0, 30.0])
    covariance = np.tile(np.outer(scale, scale), (len(T), 1, 1))
    known = calibrate(Moments(T, T * scale, covariance, covariance / 1e6))
    assert known.transform.shape == (2, 1)
    np.testing.assert_allclose(known.centre + known.mean(T) @ known.back, T * scale, atol=1e-4)


def test_a_linear_network_that_is_right_passes_the_score_check():
    """Its two coefficients are nearly the same function of the only observable."""
    example = OneObservable()
    options = {"hidden": (), "seed": 1, "calibrate": False, "replicas": 0}
    model = gl.fit(example.templates(3_000, seed=1), **options)
    assert model.known.transform.shape == (2, 1)
    assert not model.check.failed
    estimate = model.likelihood(example.sample(0.4, 3_000, seed=3)).maximum()
    assert "score_check" not in [warning.name for warning in estimate.warnings]


def test_a_biased_fit_is_told_and_a_good_one_is_not():
    example = OneObservable()
    templates, x = example.templates(5_000, seed=1), example.sample(0.2, 10_000, seed=2)
    options = {"hidden": 3, "seed": 1, "calibrate": False, "replicas": 0}

    def told(**more):
        estimate = gl.fit(templates, **options, **more).likelihood(x).maximum()
        return "score_check" in [warning.name for warning in estimate.warnings]

    assert told(objective="posterior", prior="flat")
    assert not told()


def test_a_density_that_pushes_to_a_bound_is_told():
    """Unequal gaps, and the posterior over all of the range: it has no minimum there."""
    example = OneObservable()
    at = (0.0, 0.03, 0.08, 0.15, 0.3, 0.5, 0.55, 0.8, 0.95, 1.0)
    options = {"seed": 1, "calibrate": False, "replicas": 0}
    model = gl.fit(
        example.templates(5_000, seed=1, at=at), objective="posterior", prior="flat", **options
    )
    estimate = model.likelihood(example.sample(0.5, 10_000, seed=2)).maximum()
    told = {warning.name: warning.text for warning in estimate.warnings}
    assert "at_bound" in told
    assert "pushed to a bound" in told["score_check"]
