"""Intervals by pseudo-experiments: near bounds, of few events, of several parameters."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import parabola

import gridless as gl
from gridless.curves.lattice import Lattice
from gridless.examples import OneObservable, TwoParameters
from gridless.likelihood.belt import Belt, Settings, make_belt

EXAMPLE = OneObservable()


@pytest.fixture(scope="module")
def good():
    return gl.fit(EXAMPLE.templates(5_000, seed=1), hidden=3, seed=1)


def exact_rises(model, theta, events, toys, seed):
    """l(theta) - min l of samples of the exact density."""
    pool = EXAMPLE.sample(theta, events * toys, seed)
    found = [model.likelihood(part) for part in np.split(pool, toys)]
    return np.array([one.scan([theta])[0] for one in found])


def test_far_from_bounds_it_is_that_of_wilks(good):
    likelihood = good.likelihood(EXAMPLE.sample(0.5, 5_000, seed=2))
    belt = likelihood.belt(toys=4_000, points=31)
    for level in (0.68, 0.95):
        want = likelihood.interval(level)
        got = likelihood.interval(level, method="feldman-cousins", belt=belt)
        np.testing.assert_allclose(got, want, atol=0.15 * (want[1] - want[0]))


@pytest.mark.parametrize("theta", [0.0, 0.1])
def test_near_a_bound_it_covers_where_wilks_does_not(good, theta):
    rises = exact_rises(good, theta, 20, 800, seed=3)
    likelihood = good.likelihood(EXAMPLE.sample(theta, 20, seed=4))
    belt = likelihood.belt(toys=4_000, points=41)
    at = int(np.argmin(np.abs(belt.theta - theta)))
    for level in (0.68, 0.95):
        critical = np.quantile(belt.rises[at], level)
        assert (rises <= critical).mean() == pytest.approx(level, abs=0.045)


def test_a_limit(good):
    likelihood = good.likelihood(EXAMPLE.sample(0.0, 100, seed=6))
    low, limit = likelihood.interval(0.95, method="upper")
    best, error = likelihood.maximum().value, 0.1
    assert low == 0
    # CLs of a normal distribution of that error.
    assert best + error < limit < best + 3 * error


def test_belts_add_up_go_on_and_are_saved(good, tmp_path):
    likelihood = good.likelihood(EXAMPLE.sample(0.4, 200, seed=2))
    first, second = (likelihood.belt(toys=100, points=9, seed=s) for s in (1, 2))
    both = first + second
    assert both.toys == 200
    assert "200 pseudo-experiments at each of 9" in repr(both)
    both.save(tmp_path / "belt.npz")
    again = Belt.load(tmp_path / "belt.npz")
    assert again.interval(0.68) == both.interval(0.68)
    with ThreadPoolExecutor(2) as executor:
        other = likelihood.belt(toys=100, points=9, seed=1, executor=executor)
    np.testing.assert_array_equal(other.rises, first.rises)
    with pytest.raises(gl.InputError, match="do not add"):
        first + likelihood.belt(toys=100, points=11, seed=1)
    with pytest.raises(gl.InputError, match="no belt"):
        Belt.load(tmp_path / "none.npz")
    with pytest.raises(gl.InputError, match="other observed events"):
        good.likelihood(EXAMPLE.sample(0.7, 50, seed=3)).interval(
            method="feldman-cousins", belt=first
        )


def test_several_parameters_and_a_constraint():
    two = TwoParameters()
    model = gl.fit(two.templates(1_000, seed=1, templates=5), hidden=6, seed=1)
    likelihood = model.likelihood(two.sample((0.5, 0.5), 2_000, seed=2))
    for one in (likelihood, likelihood.constrain("t2", 0.5, 0.05), likelihood.fix(t2=0.5)):
        belt = one.belt("t1", toys=1_000, points=15)
        want = one.interval(0.68, "t1")
        np.testing.assert_allclose(belt.interval(0.68), want, atol=0.25 * (want[1] - want[0]))


def test_sums_of_many_and_of_few_events_have_the_right_mean_and_width(good):
    source, t = good.reweighting, np.array([0.4])
    weights = source.at(t)
    mean = weights @ source.y
    covariance = ((source.y - mean) * weights[:, None]).T @ (source.y - mean)
    for events in (50, 500, 10_000):
        toys = good.expected(0.4, events).channels[0].toys
        drawn = toys.draw(t, 4_000, (1, 0), True)
        error = np.sqrt(events * np.diag(covariance))
        np.testing.assert_allclose((drawn.mean(axis=0) - events * mean) / error, 0, atol=0.07)
        np.testing.assert_allclose(drawn.std(axis=0) / error, 1, atol=0.05)


def test_minima_between_the_points_of_a_lattice():
    random = np.random.default_rng(1)
    centre = random.uniform(-0.2, 1.2, 300)
    lattice = Lattice(np.array([0.3]), np.array([0.1]), 0)
    values = 0.5 * ((lattice.points[:, 0] - centre[:, None]) / 0.1) ** 2
    rise, best = lattice.rises(values)
    inside = centre.clip(0, 1)
    np.testing.assert_allclose(best, inside, atol=1e-9)
    want = 50 * ((0.3 - centre) ** 2 - (inside - centre) ** 2)
    np.testing.assert_allclose(rise, want, atol=1e-9)


def test_what_cannot_be_made_is_refused(good):
    with pytest.raises(gl.InputError, match="no simulation"):
        parabola(0.4, 0.1).interval(method="feldman-cousins")
    likelihood = good.likelihood(EXAMPLE.sample(0.4, 200, seed=2))
    with pytest.raises(gl.InputError, match="give one of wilks, feldman-cousins, upper"):
        likelihood.interval(method="bayes")
    with pytest.raises(gl.InputError, match="give a whole number from"):
        make_belt(likelihood.experiments(), None, Settings(toys=1))
