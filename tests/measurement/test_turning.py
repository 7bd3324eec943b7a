"""Systematics whose up and down move the events the same way."""

import numpy as np
import pytest

import gridless as gl


@pytest.fixture(scope="module")
def likelihood():
    random = np.random.default_rng(1)
    theta = np.repeat(gl.grid((0, 1), 6), 3000)
    x = random.normal(theta, 0.5)
    same = gl.Systematic("a", up=(x + 0.1, theta), down=(x + 0.05, theta))
    model = gl.fit(gl.Templates(x, theta, bounds=(0, 1)), hidden=2, seed=0, systematics=[same])
    return model.likelihood(np.random.default_rng(5).normal(0.4, 0.5, 2000))


def test_a_profile_is_the_least_value_on_either_side_of_the_turning_point(likelihood):
    values = [0.29, 0.32, 0.35]
    alpha = np.linspace(-3, 3, 1201)
    least = [min(likelihood(theta, a) for a in alpha) for theta in values]
    joint = likelihood.joint
    assert likelihood.profile("theta", values) == pytest.approx(
        np.array(least) - joint.floor, abs=2e-3
    )


def test_the_interval_ends_where_the_profile_has_risen_by_one_half(likelihood):
    interval = likelihood.maximum().interval
    assert interval == pytest.approx((0.305, 0.449), abs=2e-3)  # exact: 0.312 to 0.426
    assert likelihood.profile("theta", interval) == pytest.approx(0.5, abs=0.02)


def test_the_total_is_half_of_the_interval_and_the_budget_sums_to_it(likelihood):
    estimate = likelihood.maximum()
    low, high = estimate.interval
    assert estimate.error == pytest.approx((high - low) / 2)
    assert np.hypot.reduce(list(estimate.budget["theta"].values())) == pytest.approx(estimate.error)
    assert abs(estimate.impacts["theta"]["a"]) == estimate.budget["theta"]["a"]
    assert [w.name for w in estimate.warnings] == ["audit", "wide_gap"]


def test_pseudo_experiments_that_would_follow_one_side_only_are_refused(likelihood):
    with pytest.raises(gl.InputError, match="effect of a turns over"):
        likelihood.interval(0.68, method="feldman-cousins")
