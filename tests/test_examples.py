"""The densities of the examples are what they sample, and their likelihoods are exact."""

import numpy as np
import pytest

from gridless import examples
from gridless.examples import (
    ManyObservables,
    MassAndShare,
    OneObservable,
    TopMass,
    TwoObservables,
    TwoParameters,
)


def test_the_exact_estimate_in_one_dimension_is_the_mean():
    example = OneObservable(width=0.7)
    x = example.sample(0.4, 5000, seed=1)
    estimate = example.likelihood(x).maximum()
    assert estimate.value == pytest.approx(x.mean(), abs=1e-9)
    assert estimate.error == pytest.approx(0.7 / np.sqrt(5000), rel=1e-6)


def test_quantiles_have_no_fluctuation():
    x = OneObservable().quantiles(0.3)
    assert x.mean() == pytest.approx(0.3, abs=1e-12)
    assert x.std() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("theta", [0.0, 0.6])
def test_two_observables_sample_their_density(theta):
    example = TwoObservables()
    u, v = np.meshgrid(np.linspace(-4, 8, 1201), np.linspace(-2, 6, 801), indexing="ij")
    density = np.exp(example.log_density(np.stack([u.ravel(), v.ravel()], 1), theta))
    cell = 0.01 * 0.01
    assert density.sum() * cell == pytest.approx(1, abs=1e-4)
    x = example.sample(theta, 200_000, seed=2)
    for column, axis in ((0, u), (1, v)):
        mean = (density * axis.ravel()).sum() * cell
        assert x[:, column].mean() == pytest.approx(mean, abs=0.01)
    correlation = (density * u.ravel() * v.ravel()).sum() * cell
    assert (x[:, 0] * x[:, 1]).mean() == pytest.approx(correlation, abs=0.03)


def test_sensitivity_is_only_where_x2_is_small():
    example = TwoObservables()
    sensitive, blind = np.array([[0.2, 1.0]]), np.array([[0.2, 3.5]])
    assert example.log_density(sensitive, 0.2) - example.log_density(sensitive, 1.0) > 1
    assert abs(example.log_density(blind, 0.2) - example.log_density(blind, 1.0)) < 1e-3


def test_seeds():
    example = TwoObservables()
    assert (example.sample(0.5, 10, seed=1) == example.sample(0.5, 10, seed=1)).all()
    assert (example.templates(10, seed=1).x != example.templates(10, seed=2).x).any()


def test_many_observables_in_their_own_scales():
    example = ManyObservables()
    x = example.sample(0.7, 100_000, seed=1)
    y = np.log(x[:, 5:]) / 1.5
    np.testing.assert_allclose(y.mean(axis=0), 0.7 * 0.25 * np.array([-1, 1, -1, 1, -1]), atol=0.02)
    assert np.corrcoef(y.T)[0, 1] == pytest.approx(0.3, abs=0.01)
    assert x[:, 4].std() == pytest.approx(100, rel=0.01)
    estimate = example.likelihood(x).maximum()
    assert estimate.value == pytest.approx(0.7, abs=4 * estimate.error)
    # The information of one event is a Sigma^-1 a = 10 x 0.25^2 / 0.7 for alternating shifts.
    assert estimate.error == pytest.approx((100_000 * 0.625 / 0.7) ** -0.5, rel=0.01)


def test_two_parameters():
    example = TwoParameters()
    x = example.sample((0.3, 0.6), 100_000, seed=2)
    estimate = example.likelihood(x).maximum()
    assert (np.abs(estimate.values - [0.3, 0.6]) < 4 * estimate.errors).all()
    templates = example.templates(10, seed=1, templates=3)
    assert len(templates.grid) == 9
    assert templates.grid.parameters == ("t1", "t2")


def test_a_mass_and_a_share_together():
    example = MassAndShare()
    x = example.sample((0.3, 0.6), 50_000, seed=2)
    estimate = example.likelihood(x).maximum()
    assert (np.abs(estimate.values - [0.3, 0.6]) < 4 * estimate.errors).all()
    points = np.linspace(-2, 10, 12_001)
    density = np.exp(example.log_density(points[:, None], np.array([0.3, 0.6])))
    assert np.trapezoid(density, points) == pytest.approx(1, abs=1e-3)


def test_templates_anywhere_of_any_size():
    templates = OneObservable().templates([10, 20], seed=1, at=[0.1, 0.9])
    assert np.bincount(templates.template).tolist() == [10, 20]


@pytest.mark.parametrize("theta", [0.1, 0.8])
def test_the_top_mass_samples_its_density(theta):
    """The score of a right density has mean 0, and its variance is the mean curvature."""
    example, step = TopMass(), 1e-4
    x = example.sample(theta, 50_000, seed=1)
    low, middle, high = (example.log_density(x, theta + d) for d in (-step, 0, step))
    score = (high - low) / (2 * step)
    assert abs(score.mean()) < 4 * score.std() / np.sqrt(len(x))
    assert score.var() == pytest.approx(-(high - 2 * middle + low).mean() / step**2, rel=0.03)
    # 50,000 events know the mass, of a range of 15 GeV, to 50 MeV.
    assert 15 / np.sqrt(len(x) * score.var()) == pytest.approx(0.05, abs=0.005)


ONE_PARAMETER = [
    name
    for name in examples.__all__
    if name not in ("Decays", "Example", "MassAndShare", "Nuisances", "TwoParameters", "TopMass")
]


@pytest.mark.parametrize("name", ONE_PARAMETER)
@pytest.mark.parametrize("theta", [0.3, 0.8])
def test_the_mean_score_of_a_sample_vanishes_at_its_theta(name, theta):
    """d log p / d theta has mean 0 only where the density is the one that is sampled."""
    example = getattr(examples, name)()
    x = example.sample(theta, 40_000, seed=5)
    step = 1e-3
    score = (example.log_density(x, theta + step) - example.log_density(x, theta - step)) / step / 2
    assert abs(score.mean()) < 4 * score.std() / np.sqrt(len(x))
    # And its variance is its mean slope.
    middle = example.log_density(x, theta)
    bend = example.log_density(x, theta + step) + example.log_density(x, theta - step) - 2 * middle
    assert -bend.mean() / step**2 == pytest.approx(score.var(), rel=0.1)
