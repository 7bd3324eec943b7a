"""The smooth shift of a systematic: what it recovers, and how much noise it has."""

import numpy as np

from gridless.measurement.process import bent
from gridless.measurement.shift import fit_shift, shift_powers, shift_terms
from gridless.systematics.statistics import combined, sample_mean

T = np.linspace(0.05, 0.95, 10)[:, None]


def at(shift, t):
    return shift_terms(np.array([t]), shift_powers(1)) @ shift.coefficients


def test_a_linear_change_with_theta_is_found_where_it_is_significant():
    differences = np.stack([0.3 + 0.2 * T[:, 0], np.full(10, 0.1)], axis=1)
    shift = fit_shift(T, differences, np.tile(1e-8 * np.eye(2), (10, 1, 1)), free_constant=True)
    np.testing.assert_allclose(at(shift, 0.2), [0.34, 0.1], atol=1e-3)


def test_the_noise_is_that_of_the_fit_of_a_constant():
    random = np.random.default_rng(3)
    found, quoted = [], []
    for _ in range(200):
        noise = random.normal(0, 0.01, (10, 1))
        shift = fit_shift(T, 0.2 + noise, np.full((10, 1, 1), 1e-4), free_constant=True)
        found.append(at(shift, 0.5)[0] - 0.2)
        quoted.append(shift.noise(shift_terms(np.array([0.5]), shift_powers(1)))[0, 0])
    assert 0.7 < np.std(found) / np.sqrt(np.mean(quoted)) < 1.3
    assert np.std(found) < 2 * 0.01 / np.sqrt(10)


def test_a_square_that_is_noise_is_held_back():
    random = np.random.default_rng(4)
    noise = random.normal(0, 0.01, (10, 30))
    shift = fit_shift(T, noise, np.tile(1e-4 * np.eye(30), (10, 1, 1)), free_constant=False)
    assert np.std(at(shift, 0.5)) < 0.7 * 0.01 / np.sqrt(10)


def test_one_point_gives_a_constant():
    shift = fit_shift(np.array([[0.5]]), np.array([[0.2]]), np.array([[[1e-6]]]), True)
    np.testing.assert_allclose([at(shift, 0.1), at(shift, 0.9)], 0.2, rtol=1e-6)


def test_common_noise_of_the_same_events_cancels():
    random = np.random.default_rng(5)
    y, key = random.normal(size=(1000, 2)), np.arange(1000)
    nominal = sample_mean(y, np.ones(1000), key, key % 2, "x")
    up = sample_mean(y + 0.1, np.ones(1000), key, key % 2, "x")
    mean, covariance = combined([(1.0, up), (-1.0, nominal)])
    np.testing.assert_allclose(mean, 0.1)
    np.testing.assert_allclose(covariance, 0, atol=1e-12)
    apart = sample_mean(y[::-1] + 0.1, np.ones(1000), key + 1000, key % 2, "x")
    _, covariance = combined([(1.0, apart), (-1.0, nominal)])
    np.testing.assert_allclose(np.diag(covariance), 2 / 1000, rtol=0.15)
    # Nine tenths of the events are in both samples.
    some = sample_mean(y[:900] + 0.1, np.ones(900), key[:900], key[:900] % 2, "x")
    _, covariance = combined([(1.0, some), (-1.0, nominal)])
    np.testing.assert_allclose(np.diag(covariance), 1 / 900 - 1 / 1000, rtol=0.3)


def open_at(shift, t):
    return np.sqrt(shift.left_open(shift_terms(np.array([t]), shift_powers(1))))


def test_one_point_leaves_its_slope_open():
    slope = np.array([[0.3, 0.0]])
    values, covariance = np.array([[0.2, 0.1]]), 1e-6 * np.eye(2)[None]
    shift = fit_shift(np.array([[0.25]]), values, covariance, True, slope)
    np.testing.assert_allclose(at(shift, 0.9), [0.2, 0.1], rtol=1e-5)
    np.testing.assert_allclose(open_at(shift, 0.25), 0, atol=1e-5)
    np.testing.assert_allclose(open_at(shift, 1.0), [0.3 * 0.75, 0], rtol=1e-5, atol=1e-5)


def test_what_is_held_back_stays_open():
    # Slopes of which four points with this noise tell half: it is within what is stated.
    random = np.random.default_rng(6)
    t, pulls = np.linspace(0, 1, 4)[:, None], []
    for _ in range(100):
        slopes = random.normal(0, 0.02, 20)
        values = slopes * (t - 0.5) + random.normal(0, 0.01, (4, 20))
        shift = fit_shift(t, values, np.tile(1e-4 * np.eye(20), (4, 1, 1)), True)
        noise = np.diag(shift.noise(shift_terms(np.array([1.0]), shift_powers(1))))
        pulls.append((at(shift, 1.0) - 0.5 * slopes) / np.sqrt(noise + open_at(shift, 1.0) ** 2))
    assert 0.9 < np.std(pulls) < 1.1


def test_points_leave_open_what_bends_more_than_they_can_tell():
    # Each term is half of the one before.
    random = np.random.default_rng(7)
    t, pulls = np.array([[0.0], [0.5], [1.0]]), []
    for _ in range(50):
        beta = random.normal(0, 0.1 * 0.5 ** np.arange(len(shift_powers(1)))[:, None], (11, 20))
        values = np.array([shift_terms(one, shift_powers(1)) for one in t]) @ beta
        shift = fit_shift(t, values, np.tile(1e-8 * np.eye(20), (3, 1, 1)), True)
        truth = shift_terms(np.array([0.2]), shift_powers(1)) @ beta
        pulls.append((at(shift, 0.2) - truth) / open_at(shift, 0.2))
    assert 0.5 < np.std(pulls) < 1.5


def test_a_change_that_turns_over_is_described():
    # What moves a sharp observable through an edge. A cubic is off by ten times the noise.
    def true(t):
        return 0.2 * np.exp(-0.5 * ((t - np.array([0.2, 0.5])) / 0.15) ** 2)

    t = np.linspace(0, 1, 9)[:, None]
    values = true(t) + np.random.default_rng(8).normal(0, 0.005, (9, 2))
    shift = fit_shift(t, values, np.tile(2.5e-5 * np.eye(2), (9, 1, 1)), free_constant=True)
    between, pulls = np.linspace(0.05, 0.95, 19), []
    for one in between:
        noise = np.diag(shift.noise(shift_terms(np.array([one]), shift_powers(1))))
        pulls.append((at(shift, one) - true(one)) / np.sqrt(noise + open_at(shift, one) ** 2))
    assert np.sqrt(np.mean(np.square(pulls))) < 1.5


def test_the_square_goes_on_to_two_variations_and_is_straight_beyond():
    value, slope = bent(np.array([-3.0, -2.0, 0.5, 2.0, 4.0]))
    np.testing.assert_allclose(value, [8.0, 4.0, 0.25, 4.0, 12.0])
    np.testing.assert_allclose(slope, [-4.0, -4.0, 1.0, 4.0, 4.0])
