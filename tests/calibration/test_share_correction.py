"""Shares of bins at any theta, right whatever the weights are worth."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, norm

from gridless.calibration.share_correction import Drawn, ShareCorrection

UNIT = np.linspace(0.05, 0.95, 7)[:, None]
EDGES = norm.ppf(np.linspace(0.02, 0.98, 13)) + 0.5
EVENTS, KEPT = 8_000, 2_000  # of each template


def exact(theta):
    return np.diff(norm.cdf(EDGES, theta))


def bins(x):
    found = np.searchsorted(EDGES, x) - 1
    return np.where((found < 0) | (found >= len(EDGES) - 1), len(EDGES) - 1, found)


def made(seed, wrong, events=EVENTS):
    """x ~ N(theta, 1), of which KEPT are kept; weights of N(wrong * theta, 1)."""
    random = np.random.default_rng(seed)
    x = random.normal(UNIT, 1, (len(UNIT), events))
    count = len(EDGES) - 1
    seen = np.array([np.bincount(bins(row), minlength=count + 1)[:-1] for row in x]) / events
    kept = x[:, :KEPT].ravel()

    def weights(theta):
        density = norm.pdf(kept, wrong * theta)
        w = density / norm.pdf(kept[:, None], wrong * UNIT[:, 0]).sum(axis=1)
        return w / w.sum()

    own = np.kron(np.eye(len(UNIT)), np.full(KEPT, 1 / events))
    left = np.full(len(UNIT), (1 - KEPT / events) / events)
    drawn = Drawn(np.array([weights(t) for t in UNIT[:, 0]]), own, left)
    return ShareCorrection(bins(kept), seen, drawn, UNIT), weights


def test_right_weights_are_left_alone_and_wrong_ones_are_not():
    alone = 1 / np.sqrt(EVENTS / len(EDGES))  # how well one template knows one bin: 4 percent
    assert max(made(seed, 1.0)[0].process.width for seed in range(3)) < 0.5 * alone
    assert min(made(seed, 0.0)[0].process.width for seed in range(3)) > 2 * alone


@pytest.mark.parametrize("events", [EVENTS, KEPT])  # of which some are kept, or all
@pytest.mark.parametrize("wrong", [1.0, 0.7, 0.0])
def test_shares_between_templates_are_right_whatever_the_weights(wrong, events):
    total, before = 0.0, 0.0
    for seed in range(8):
        correct, weights = made(seed, wrong, events)
        theta = (0.12, 0.43, 0.71, 0.88)[seed % 4]
        found = correct(np.array([theta]), weights(theta))
        root = (found.changes * found.shares[:, None])[:-1]
        rest = found.shares[:-1] - exact(theta)
        total += rest @ np.linalg.pinv(root @ root.T, hermitian=True) @ rest
        start = correct.content(weights(theta)) - exact(theta)
        before += (start**2 / exact(theta)).sum() * KEPT * len(UNIT)
    dof = 8 * (len(EDGES) - 1)
    assert 1e-3 < chi2.sf(total, dof) < 1 - 1e-3
    assert wrong == 1.0 or chi2.sf(before, dof) < 1e-6


def test_errors_of_weights_that_change_from_template_to_template_are_told():
    correct, _ = made(0, 1.0)
    assert not correct.erratic
    assert not made(0, 0.0)[0].erratic  # wrong by far, and smoothly
    sign = (-1.0) ** np.arange(len(UNIT))[:, None]
    seen = correct.seen * (1 + 0.2 * sign * np.sin(np.arange(correct.bins)))
    assert replace(correct, seen=seen).erratic


PROCESS = made(0, 0.7)[0].process


@settings(max_examples=6, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1.5), st.integers(0, 100))
def test_shares_and_what_changes_them_keep_their_sum(theta, wrong, seed):
    correct, weights = made(seed, wrong)
    object.__setattr__(correct, "process", PROCESS)  # not to look for it saves time
    found = correct(np.array([theta]), weights(theta))
    assert found.shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(found.shares @ found.changes, 0, atol=1e-9)


def test_events_that_are_all_in_one_bin_leave_nothing_to_correct():
    even = np.full((2, 140), 1 / 140)
    seen = np.zeros((2, 5))
    seen[:, 2] = 1
    made = ShareCorrection(
        np.full(140, 2), seen, Drawn(even, even, np.zeros(2)), np.array([[0.0], [1.0]])
    )
    found = made(np.array([0.5]), even[0]).shares
    np.testing.assert_allclose(found, [0, 0, 1, 0, 0, 0], atol=1e-9)
