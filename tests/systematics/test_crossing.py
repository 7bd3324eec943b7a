"""What two systematics do together."""

import numpy as np
import pytest

import gridless as gl
from gridless.systematics.crossing import crossings
from gridless.systematics.samples import signal_samples

THETA = np.repeat([1.0, 2.0, 3.0], 500)
X = np.random.default_rng(1).normal(THETA, 0.5)[:, None]


def moved(by):
    return gl.Systematic(f"s{by}", up=(X + by * X, THETA), down=(X - by * X, THETA))


def spread(by):
    off = X - THETA[:, None]
    return gl.Systematic("spread", up=(X + by * off, THETA), down=(X - by * off, THETA))


def found(*systematics):
    templates = gl.Templates(X, THETA, bounds=(0, 4))
    sample = signal_samples(templates, systematics)
    return crossings(sample, lambda x, key: x**3)


def test_the_mixed_difference_is_that_of_the_events_with_both_in_every_template():
    (one,) = found(moved(0.1), spread(0.2))
    a, b = 0.1 * X[:, 0], 0.2 * (X[:, 0] - THETA)
    each = 6 * X[:, 0] * a * b + 3 * a**2 * b + 3 * a * b**2
    wanted = [each[value == THETA].mean() for value in (1.0, 2.0, 3.0)]
    assert one.pair == (1, 0)
    assert one.points.tolist() == [0, 1, 2]
    assert one.differences[:, 0] == pytest.approx(wanted)
    errors = [each[value == THETA].std() / np.sqrt(500) for value in (1.0, 2.0, 3.0)]
    assert np.sqrt(one.variances[:, 0]) == pytest.approx(errors)
    assert one.seen


def test_shifts_of_a_linear_summary_do_nothing_more_together():
    templates = gl.Templates(X, THETA, bounds=(0, 4))
    sample = signal_samples(templates, (moved(0.1), spread(0.2)))
    (one,) = crossings(sample, lambda x, key: x)
    assert np.abs(one.differences).max() < 1e-12
    assert not one.seen


def test_two_sets_of_weights_do_not_tell():
    up = gl.Systematic("w", up=np.exp(0.1 * X[:, 0]), down=np.exp(-0.1 * X[:, 0]))
    other = gl.Systematic("v", up=np.exp(0.2 * X[:, 0]), down=np.exp(-0.2 * X[:, 0]))
    assert found(up, other) == []
