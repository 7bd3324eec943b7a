"""A process whose systematics do more together than the sum of both."""

import numpy as np
import pytest

import gridless as gl
from gridless.measurement.process import Process
from gridless.measurement.shift import Shift, shift_powers
from gridless.systematics.course import NODES

D, TERMS = 3, len(shift_powers(1))


@pytest.fixture(scope="module")
def process():
    random = np.random.default_rng(1)
    nothing = np.zeros((D, TERMS, 2)), np.zeros((2, D, D)), np.zeros((D, TERMS, TERMS))
    kinds = [
        tuple(Shift(random.normal(size=(TERMS, D)), *nothing) for _ in range(3)) for _ in range(2)
    ]
    return Process(
        np.array([[0.2], [0.8]]), np.array([[0], [1], [2]]), random.normal(size=(3, D)),
        np.zeros((3, D, 1)), np.zeros((3, D, 1)), np.tile(np.eye(D), (2, 1, 1)), np.full(2, 1e4),
        np.arange(3), *kinds, np.array([[1, 0], [2, 1]]), random.normal(size=(2, TERMS, D)),
        np.zeros((3, 3)), np.zeros(3), np.array([1]),
        random.normal(size=(1, len(NODES), TERMS, D)), np.zeros((3, 2, D, D)),
    )  # fmt: skip


T, ALPHA, STEP = np.array([0.4]), np.array([0.5, -0.7, 1.2]), 1e-6


def test_the_slopes_are_those_of_the_mean(process):
    found = process.at(T, ALPHA)
    by_t = (process.at(T + STEP, ALPHA).mean - process.at(T - STEP, ALPHA).mean) / (2 * STEP)
    assert found.by_t[0] == pytest.approx(by_t, rel=1e-6)
    for k, step in enumerate(STEP * np.eye(3)):
        slope = (process.at(T, ALPHA + step).mean - process.at(T, ALPHA - step).mean) / (2 * STEP)
        assert found.by_alpha[k] == pytest.approx(slope, rel=1e-6)


def test_the_second_derivatives_are_those_of_the_slopes(process):
    along = np.array([0.3, -1.0, 0.6])
    for k, step in enumerate(STEP * np.eye(3)):
        slopes = (process.at(T, ALPHA + step).by_alpha - process.at(T, ALPHA - step).by_alpha) / (
            2 * STEP
        )
        assert process.curvature(T, ALPHA, along)[k] == pytest.approx(slopes @ along, rel=1e-5)


def test_many_points_at_once_are_as_each_alone(process):
    t, alpha = np.array([[0.1], [0.5]]), np.array([ALPHA, -ALPHA])
    both = process.at(t, alpha)
    for k in range(2):
        for whole, alone in zip(both, process.at(t[k], alpha[k]), strict=True):
            assert whole[k] == pytest.approx(alone)


@pytest.mark.slow
def test_a_scale_that_looks_like_theta_is_not_measured_where_a_resolution_is_off():
    """x ~ N(m (1 + 0.003 scale), 1.6 (1 + 0.1 resolution)): the scale is never known better than by
    its constraint. The total was half of the exact one."""
    random = np.random.default_rng(3)
    theta = np.repeat(np.linspace(121, 129, 9), 4000)
    noise = random.normal(size=len(theta))

    def made(t, scale, resolution, u):
        return (t * (1 + 0.003 * scale) + 1.6 * (1 + 0.1 * resolution) * u)[:, None]

    systematics = [
        gl.Systematic("scale", *((made(theta, s, 0, noise), theta) for s in (1, -1))),
        gl.Systematic("resolution", *((made(theta, 0, s, noise), theta) for s in (1, -1))),
    ]
    templates = gl.Templates(made(theta, 0, 0, noise), theta, bounds=(121, 129))
    model = gl.fit(templates, hidden=4, seed=3, systematics=systematics)
    for resolution in (-1.0, 1.0):
        x = made(np.full(2400, 125.0), 0, resolution, random.normal(size=2400))
        estimate = model.likelihood(x).maximum()
        exact = np.hypot(0.003 * 125, 1.6 * (1 + 0.1 * resolution) / np.sqrt(2400))
        assert 0.85 < estimate.error / exact < 2
        assert abs(estimate.value - 125.0) < 2.5 * estimate.error
