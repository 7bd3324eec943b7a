"""What a systematic does at values of alpha that were not simulated."""

import numpy as np
import pytest

import gridless as gl
from gridless.systematics.course import NODES, SIMULATED, courses, knows_course, splines
from gridless.systematics.samples import signal_samples

THETA = np.repeat(gl.grid((0, 1), 4), 5_000)


def simulate(alpha, theta, seed):
    """A peak of width 1 at 10 + 2 theta under an energy scale of 10 percent, and a spectrum."""
    random = np.random.default_rng(seed)
    peak = (1 + 0.1 * alpha) * random.normal(10 + 2 * theta, 1)
    return np.stack([peak, random.exponential(1 + theta)], axis=1)


def scaled(x, alpha):
    return x * [1 + 0.1 * alpha, 1.0]


@pytest.fixture(scope="module")
def model():
    x = simulate(0, THETA, 1)
    scale = gl.Systematic("scale", up=(scaled(x, 1), THETA), down=(scaled(x, -1), THETA))
    return gl.fit(gl.Templates(x, THETA, (0, 1)), systematics=[scale], hidden=8, seed=1)


def test_splines_are_1_at_their_node_and_0_at_all_others():
    value, _, _ = splines(np.array([*NODES, *SIMULATED]))
    np.testing.assert_allclose(value, np.vstack([np.eye(len(NODES)), np.zeros((3, len(NODES)))]),
                               atol=1e-12)  # fmt: skip


def test_derivatives_of_splines_and_straight_lines_beyond():
    alpha, step = np.array([-3.0, -1.7, -0.2, 0.4, 1.1, 2.6]), 1e-5
    _, slope, curvature = splines(alpha)
    (up, up_slope, _), (down, down_slope, _) = splines(alpha + step), splines(alpha - step)
    np.testing.assert_allclose(slope, (up - down) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(curvature, (up_slope - down_slope) / (2 * step), atol=1e-8)
    assert not curvature[[0, -1]].any()


@pytest.mark.parametrize("alpha", [-2, -1.4, -0.6, 0.3, 0.7, 1.8])
@pytest.mark.parametrize("theta", [0.3, 0.7])
def test_the_mean_is_that_of_events_made_there(model, theta, alpha):
    known = model.measurement
    events = simulate(alpha, np.full(20_000, theta), seed=2)
    sums = model.likelihood(events).parts[0].sums
    spread = np.sqrt(np.diag(known.event_covariance(np.array([theta, alpha]))))
    off = (sums.mean - known.at(np.array([theta, alpha])).mean) / spread
    # The parabola alone is off by up to 1.
    assert np.abs(off).max() < 0.15
    variance = np.diag(sums.products / len(events) - np.outer(sums.mean, sums.mean))
    if abs(alpha) < 1:
        assert np.abs(np.log(np.sqrt(variance) / spread)).max() < np.log(1.7)


def test_estimates_between_the_variations_are_unbiased(model):
    pulls = []
    for alpha in (-0.6, 0.5):
        for seed in range(10):
            events = simulate(alpha, np.full(300, 0.4), 200 + seed)
            estimate = model.likelihood(events).maximum()
            pulls.append((estimate.value - 0.4) / estimate.error)
    assert np.sqrt(np.mean(np.square(pulls))) < 1.6  # 3 to 4 with the parabola alone
    assert abs(np.mean(pulls)) < 0.8


def test_events_that_jump_to_a_mark_are_mixtures():
    x = simulate(0, THETA, 3)
    up, down = scaled(x, 1), scaled(x, -1)
    x[:2_000, 0] = up[1_000:3_000, 0] = down[500:2_500, 0] = -999.0
    systematics = (gl.Systematic("scale", up=(up, THETA), down=(down, THETA)),)
    sample = signal_samples(gl.Templates(x, THETA, (0, 1)), systematics)
    seen = []
    courses(sample, lambda x, key: seen.append(x) or x)
    # Nothing lies between the mark and the others but what was simulated.
    places = np.concatenate([x[:, 0] for x in seen])
    assert ((places == -999) | (places > 0)).all()


def test_without_an_event_that_moves_smoothly_there_is_no_course():
    x = np.round(simulate(0, THETA, 3))  # ten common values
    shift = gl.Systematic("shift", up=(x + 1, THETA), down=(x - 1, THETA))
    model = gl.fit(gl.Templates(x, THETA, (0, 1)), systematics=[shift], hidden=2, epochs=2, seed=1)
    assert not len(model.measurement.processes[0].coursed)


@pytest.mark.parametrize(
    ("up", "down", "known"),
    [
        (lambda x: (x + 0.1, THETA), lambda x: (x - 0.1, THETA), True),
        (lambda x: (x + 0.1, THETA), lambda _: None, False),
        (lambda x: 1 + 0.1 * np.tanh(x[:, 0]), lambda _: None, True),
        (
            lambda x: (simulate(1, THETA, 8), THETA),
            lambda x: (simulate(-1, THETA, 9), THETA),
            False,
        ),
    ],
)
def test_whose_course_is_known(up, down, known):
    x = simulate(0, THETA, 4)
    one = gl.Systematic("one", up=up(x), down=down(x))
    assert knows_course(signal_samples(gl.Templates(x, THETA, (0, 1)), (one,)), 0) is known


def test_large_independent_variations_leave_open_what_lies_between():
    x = simulate(0, THETA, 1)
    apart = [(simulate(alpha, THETA, 10 + alpha), THETA) for alpha in (1, -1)]
    model = gl.fit(
        gl.Templates(x, THETA, (0, 1)), systematics=[gl.Systematic("scale", *apart)], hidden=8,
        seed=1,
    )  # fmt: skip
    estimates = [
        model.likelihood(simulate(0.5, np.full(300, 0.4), seed)).maximum() for seed in range(10)
    ]
    pulls = [(one.value - 0.4) / one.error for one in estimates]
    assert np.sqrt(np.mean(np.square(pulls))) < 1.6
