"""Costs and penalty against what they must be by hand."""

import math

import numpy as np
import pytest
import torch

from gridless.density.basis import Gaussian
from gridless.density.network import Network
from gridless.errors import InputError
from gridless.training.objectives import (
    Flatness,
    Penalty,
    histogram_density,
    log_prob_at,
    posterior_cost,
    template_cost,
)

GRID = torch.tensor([[0.1], [0.5], [0.9]])


def make_network(members=2, templates=None, log_share=None, components=1):
    network = Network(1, Gaussian(), components, (3,), "tanh", members, templates, log_share)
    network.initialise(torch.Generator().manual_seed(2))
    return network


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(40, 1, generator=generator)
    template = torch.randint(0, 3, (40,), generator=generator)
    weights = torch.rand(1, 40, generator=generator)
    return x, template, weights


def test_posterior_cost_is_the_summed_log_density(batch):
    x, template, weights = batch
    network = make_network()
    log_c, z = network(x)
    cost = posterior_cost(network, log_c, z, GRID[template], weights)
    every = log_prob_at(network, log_c, z, GRID)
    by_hand = [-sum(weights[0, i] * every[e, i, template[i]] for i in range(40)) for e in range(2)]
    torch.testing.assert_close(cost, torch.stack(by_hand))


def test_flat_posteriors_cost_nothing(batch):
    x, template, weights = batch
    network = make_network()
    _, z = network(x)
    z = z.detach().clone()
    z[..., 1] = 15.0
    zeros = torch.zeros(2, 40, 1)
    assert posterior_cost(network, zeros, z, GRID[template], weights).abs().max() < 1e-4
    network = make_network(templates=GRID)
    assert template_cost(network, zeros, z, template, weights).abs().max() < 1e-4


def test_template_cost_ignores_a_factor_of_x(batch):
    """Scaling p(theta | x) by any function of x leaves it, since it normalises over templates."""
    x, template, weights = batch
    network = make_network(1, GRID, torch.log(torch.tensor([0.2, 0.5, 0.3])), components=2)
    log_c, z = network(x)
    shift = torch.randn(1, 40, 1)
    plain = template_cost(network, log_c, z, template, weights)
    shifted = template_cost(network, log_c + shift, z, template, weights)
    torch.testing.assert_close(plain, shifted)


@pytest.mark.parametrize("components", [1, 2])
def test_the_gradient_of_the_template_cost(batch, components):
    """Its own gradient against differences, with weights of either sign."""
    x, template, weights = batch
    network = make_network(2, GRID, torch.log(torch.tensor([0.2, 0.5, 0.3])), components).double()
    log_c, z = (v.detach()[:, :8].requires_grad_() for v in network(x.double()))
    signed = weights.double()[:, :8] - 0.3
    assert torch.autograd.gradcheck(
        lambda a, b: template_cost(network, a, b, template[:8], signed), (log_c, z)
    )


def test_template_cost_weighs_templates_by_their_share(batch):
    x, template, weights = batch
    share = torch.tensor([0.2, 0.5, 0.3])
    network = make_network(1, GRID, torch.log(share))
    log_c, z = network(x)
    p = torch.exp(log_prob_at(network, log_c, z, GRID))[0]
    own = p[torch.arange(40), template]
    by_hand = -(weights[0] * torch.log(own / (p @ share))).sum()
    torch.testing.assert_close(template_cost(network, log_c, z, template, weights)[0], by_hand)


def test_flatness_follows_all_events_from_its_anchor(batch):
    x, _, weights = batch
    network = make_network()
    at = torch.tensor([[0.0], [0.5], [1.0]])
    few = Flatness(at, (x[:10], weights[:, :10]), complete=False, members=2)
    every = Flatness(at, (x, weights), complete=True, members=2)
    few.anchor(network, iter([(x[:25], weights[:, :25]), (x[25:], weights[:, 25:])]))
    torch.testing.assert_close(few.spread(network), every.spread(network))
    q = every.implied_prior(network, x, weights)
    torch.testing.assert_close(every.spread(network), q.std(-1, correction=0))


def test_rounded_spread_has_no_kink_at_zero():
    flatness = Flatness(
        torch.tensor([[0.2], [0.8]]), (torch.zeros(1, 1), torch.ones(1, 1)), True, 1
    )
    network = make_network(members=1)
    with torch.no_grad():
        network.biases[-1][..., 0] = 0.5
        for weight in network.weights:
            weight.zero_()
    flatness.rounding = torch.tensor([0.1])
    s, term = flatness.term(network)
    assert s.item() < 1e-6
    assert term.item() == pytest.approx(0.1)
    term.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


def test_histogram_stands_for_the_sample():
    random = np.random.default_rng(4)
    x = random.normal(size=(50_000, 2)) @ np.array([[1, 0.5], [0, 1]])
    weights = random.uniform(size=50_000)
    centres, content = histogram_density(x, weights, bins=30)
    assert len(content) <= 900
    assert content.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(content @ centres, weights @ x, rtol=1e-9)
    covariance = np.cov(centres.T, aweights=content)
    np.testing.assert_allclose(covariance, np.cov(x.T, aweights=weights), atol=0.03)


def test_penalty_takes_any_sequence():
    assert Penalty(at=np.array([0, 0.5, 1])).at == (0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": "kde"}, "events, histogram"),
        ({"at": [0.5]}, "at least two"),
        ({"strength": -1.0}, "positive"),
        ({"bins": 1}, "at least 2"),
    ],
)
def test_bad_penalties(options, message):
    with pytest.raises(InputError, match=message):
        Penalty(**options)


def test_cost_of_a_known_gaussian():
    network = Network(1, Gaussian(), 1, (), "tanh", 1)
    z = torch.tensor([[[[0.5, math.log(0.2)]]]])
    cost = posterior_cost(network, torch.zeros(1, 1, 1), z, torch.tensor([[0.5]]), torch.ones(1, 1))
    mass = math.erf(0.5 / 0.2 / math.sqrt(2))
    assert cost.item() == pytest.approx(math.log(0.2 * math.sqrt(2 * math.pi) * mass), rel=1e-5)
