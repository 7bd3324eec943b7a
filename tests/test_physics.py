"""Slow: the paper's examples and those beyond it at full size, against the exact likelihood.

The claims for more seeds are measured in benchmarks/defaults.py and benchmarks/beyond.py; these
keep them from breaking.
"""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.examples import BackgroundShare, OneObservable, TwoObservables, TwoParameters

pytestmark = pytest.mark.slow

ONE = OneObservable()
VALUES = np.linspace(0.05, 0.95, 11)
# The network of the paper's first example.
GAUSSIAN = {"basis": "gaussian", "hidden": (5,)}


@pytest.fixture(scope="module")
def templates_1d():
    return ONE.templates(100_000, seed=1)


def estimates(model):
    """Bias and error at eleven values, on exact quantiles so that no statistics enter."""
    found = [model.likelihood(ONE.quantiles(t)).maximum() for t in VALUES]
    return np.array([e.value for e in found]) - VALUES, np.array([e.stat for e in found])


def test_uncorrected_training_is_biased_towards_the_middle(templates_1d):
    plain = {"objective": "posterior", "prior": "flat", "calibrate": False}
    model = gl.fit(templates_1d, **GAUSSIAN, **plain, seed=1)
    bias, _ = estimates(model)
    assert 0.10 < bias[0] < 0.12
    assert -0.12 < bias[-1] < -0.10
    network = model.network
    with torch.no_grad():
        mixture = network(network.standardise(torch.tensor([[0.5]])))
    mean, width = network.basis.mean_width(mixture.z)
    assert mean.item() == pytest.approx(0.5, abs=0.02)
    assert 0.85 < width.item() < 0.90


@pytest.mark.parametrize(
    ("objective", "prior"),
    [("penalty", "flat"), ("posterior", "divide"), ("template", "divide")],
)
def test_every_cure_removes_the_bias(templates_1d, objective, prior):
    cure = {"objective": objective, "prior": prior, "calibrate": False}
    model = gl.fit(templates_1d, **GAUSSIAN, **cure, seed=1)
    bias, error = estimates(model)
    assert np.abs(bias).max() < 0.006
    np.testing.assert_allclose(error, 0.01, rtol=0.03)


def test_half_trained_is_not_trained():
    """The default length reaches the same estimate as four times that, within 0.2 sigma."""
    templates = ONE.templates(30_000, seed=1)
    usual = gl.fit(templates, **GAUSSIAN, seed=1, replicas=0)
    longer = gl.fit(templates, **GAUSSIAN, seed=1, replicas=0, epochs=4 * usual.record.epochs)
    difference = estimates(usual)[0] - estimates(longer)[0]
    assert np.abs(difference).max() < 0.2 * 0.01


def test_two_observables_with_default_settings():
    toy = TwoObservables()
    model = gl.fit(toy.templates(100_000, seed=2), seed=2)
    for i, theta in enumerate((0.1, 0.3, 0.5, 0.7, 0.9)):
        x = toy.sample(theta, 200_000, seed=100 + i)
        ours, exact = model.likelihood(x).maximum(), toy.likelihood(x).maximum()
        assert ours.value == pytest.approx(exact.value, abs=0.005)
        assert ours.stat == pytest.approx(exact.error, rel=0.04)


def test_any_placement_and_any_sizes():
    values = (0, 0.03, 0.08, 0.15, 0.3, 0.5, 0.55, 0.8, 0.95, 1)
    sizes = [1000 * n for n in (20, 200, 50, 100, 30, 150, 20, 100, 60, 200)]
    model = gl.fit(ONE.templates(sizes, seed=3, at=values), seed=3)
    for theta in np.linspace(0.1, 0.9, 9):
        estimate = model.likelihood(ONE.quantiles(theta)).maximum()
        assert estimate.value == pytest.approx(theta, abs=0.5 * 0.01)
        assert estimate.stat == pytest.approx(0.01, rel=0.03)


def test_negative_weights():
    """30 percent of the events, of width 0.8, count -1, and others make up for them."""
    random = np.random.default_rng(4)
    theta = np.repeat(gl.grid((0, 1), 10), 100_000)
    minus = random.random(len(theta)) < 0.3
    narrow = minus | (random.random(len(theta)) < 0.3 / 0.7)
    x = random.normal(theta, np.where(narrow, 0.8, 1.0))
    templates = gl.Templates(x, theta, (0, 1), weights=np.where(minus, -1.0, 1.0))
    size = templates.audit(objective="template")["size"]
    assert size.value == pytest.approx(16_000, rel=0.05)
    assert "30% of the weights negative" in size.text
    model = gl.fit(templates, seed=4)
    for t in np.linspace(0.1, 0.9, 5):
        estimate = model.likelihood(ONE.quantiles(t)).maximum()
        # 0.01 / 0.4 is the error of 10,000 events of such weights.
        assert estimate.value == pytest.approx(t, abs=0.5 * 0.025)


def test_two_parameters_at_scattered_points():
    toy = TwoParameters()
    at = np.random.default_rng(5).random((40, 2))
    model = gl.fit(toy.templates(25_000, seed=5, at=at), seed=5)
    for i, point in enumerate([(0.3, 0.3), (0.7, 0.7), (0.5, 0.5), (0.3, 0.7), (0.7, 0.3)]):
        x = toy.sample(point, 100_000, seed=50 + i)
        ours, exact = model.likelihood(x).maximum(), toy.likelihood(x).maximum()
        assert (np.abs(ours.values - exact.values) < 0.5 * exact.errors * np.sqrt(10)).all()
        np.testing.assert_allclose([one.stat for one in ours.results], exact.errors, rtol=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("toy", [BackgroundShare(), TwoObservables()], ids=["share", "two"])
def test_the_total_interval_covers_over_resimulated_templates(toy):
    """With templates as small as the sample, the statistical interval alone would not."""
    pulls, stat_pulls = [], []
    for seed in range(20):
        model = gl.fit(toy.templates(300, seed=seed, templates=8), seed=seed)
        for i, theta in enumerate((0.25, 0.45, 0.7)):
            x = toy.sample(theta, 2_000, seed=1_000 * seed + i)
            estimate = model.likelihood(x).maximum()
            pulls.append((estimate.value - theta) / estimate.error)
            stat_pulls.append((estimate.value - theta) / estimate.stat)
    covered = np.mean(np.abs(pulls) < 1)
    assert 0.53 < covered < 0.83  # 60 intervals, three in a model: some 7 percent
    assert np.mean(np.abs(pulls) < 2) > 0.88
    assert np.mean(np.abs(stat_pulls) < 1) < covered


def test_a_share_is_measured_without_bias():
    """The exponential of a polynomial is biased by errors there; its calibration is not."""
    toy = BackgroundShare()
    model = gl.fit(toy.templates(10_000, seed=1, at=np.linspace(0, 1, 9)), seed=1)
    for i, share in enumerate((0.1, 0.3, 0.7)):
        x = toy.sample(share, 100_000, seed=10 + i)
        estimate = model.likelihood(x).maximum()
        assert abs(estimate.value - share) < 3 * estimate.error
