"""Slow: the paper's examples at their full size, against the exact likelihood.

The claims for more seeds are measured in benchmarks/bias.py; these keep them from breaking.
"""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.toys import OneObservable, TwoObservables

pytestmark = pytest.mark.slow

ONE = OneObservable()
VALUES = np.linspace(0.05, 0.95, 11)


@pytest.fixture(scope="module")
def templates_1d():
    return ONE.templates(100_000, seed=1)


def estimates(model):
    """Bias and error at eleven values, on exact quantiles so that no statistics enter."""
    found = [model.likelihood(ONE.quantiles(t)).maximum() for t in VALUES]
    return np.array([e.value for e in found]) - VALUES, np.array([e.error for e in found])


def test_uncorrected_training_is_biased_towards_the_middle(templates_1d):
    model = gl.fit(templates_1d, hidden=(5,), objective="posterior", prior="flat", seed=1)
    bias, _ = estimates(model)
    assert 0.10 < bias[0] < 0.12
    assert -0.12 < bias[-1] < -0.10
    network = model.network
    with torch.no_grad():
        _, z = network(network.standardise(torch.tensor([[0.5]])))
    mean, width = network.basis.mean_width(z)
    assert mean.item() == pytest.approx(0.5, abs=0.02)
    assert 0.85 < width.item() < 0.90


@pytest.mark.parametrize(
    ("objective", "prior"),
    [("penalty", "flat"), ("posterior", "divide"), ("template", "divide")],
)
def test_every_cure_removes_the_bias(templates_1d, objective, prior):
    model = gl.fit(templates_1d, hidden=(5,), objective=objective, prior=prior, seed=1)
    bias, error = estimates(model)
    assert np.abs(bias).max() < 0.006
    np.testing.assert_allclose(error, 0.01, rtol=0.03)


def test_half_trained_is_not_trained(templates_1d):
    """The default length reaches the same estimate as four times that, within 0.2 sigma."""
    usual = gl.fit(templates_1d, hidden=(5,), seed=1)
    longer = gl.fit(templates_1d, hidden=(5,), seed=1, epochs=4 * usual.options["epochs"])
    difference = estimates(usual)[0] - estimates(longer)[0]
    assert np.abs(difference).max() < 0.2 * 0.01


def test_two_observables_with_default_settings():
    toy = TwoObservables()
    model = gl.fit(toy.templates(100_000, seed=2), components=2, hidden=(16, 16), seed=2)
    for i, theta in enumerate((0.1, 0.3, 0.5, 0.7, 0.9)):
        x = toy.sample(theta, 200_000, seed=100 + i)
        ours, exact = model.likelihood(x).maximum(), toy.likelihood(x).maximum()
        assert ours.value == pytest.approx(exact.value, abs=0.005)
        assert ours.error == pytest.approx(exact.error, rel=0.04)
