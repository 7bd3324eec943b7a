"""Costs and penalty against what they must be by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import make_perceptrons

from gridless.density.gaussian import Gaussian
from gridless.density.mixture import Mixture
from gridless.errors import InputError
from gridless.registry import OBJECTIVES
from gridless.training.events import Events
from gridless.training.flatness import Flatness, histogram_density
from gridless.training.objectives import (
    Penalty,
    PosteriorObjective,
    TemplateObjective,
    find_objective,
    register_objective,
)

GRID = torch.tensor([[0.1], [0.5], [0.9]])
SHARE = torch.tensor([0.2, 0.5, 0.3])
posterior_cost, template_cost = PosteriorObjective().cost, TemplateObjective().cost


def make_network(members=2, templates=None, log_share=None, components=1):
    network = make_perceptrons(
        1, Gaussian(), components, (3,), members=members, templates=templates, log_share=log_share
    )
    network.initialise(torch.Generator().manual_seed(2))
    return network


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(40, 1, generator=generator)
    template = torch.randint(0, 3, (40,), generator=generator)
    weights = torch.rand(1, 40, generator=generator)
    return Events(x, template, weights, GRID)


def test_posterior_cost_is_the_summed_log_density(batch):
    mixture = make_network()(batch.x)
    cost = posterior_cost(mixture, batch)
    at, w = mixture.log_prob_at(GRID), batch.weights[0]
    by_hand = [-sum(w[i] * at[e, i, batch.template[i]] for i in range(40)) for e in range(2)]
    torch.testing.assert_close(cost, torch.stack(by_hand))


def test_flat_posteriors_cost_nothing(batch):
    z = make_network()(batch.x).z.detach().clone()
    z[..., 1] = 15.0
    flat = Mixture(Gaussian(), torch.zeros(2, 40, 1), z)
    assert posterior_cost(flat, batch).abs().max() < 1e-4
    flat = Mixture(Gaussian(), torch.zeros(2, 40, 1), z, False, GRID, torch.log(SHARE))
    assert template_cost(flat, batch).abs().max() < 1e-4


def test_template_cost_ignores_a_factor_of_x(batch):
    """Scaling p(theta | x) by any function of x leaves it, since it normalises over templates."""
    mixture = make_network(1, GRID, torch.log(SHARE), components=2)(batch.x)
    shifted = replace(mixture, log_c=mixture.log_c + torch.randn(1, 40, 1))
    torch.testing.assert_close(template_cost(mixture, batch), template_cost(shifted, batch))


@pytest.mark.parametrize("components", [1, 2])
def test_the_gradient_of_the_template_cost(batch, components):
    """Its own gradient against differences, with weights of either sign."""
    network = make_network(2, GRID, torch.log(SHARE), components).double()
    mixture = network(batch.x.double())
    log_c, z = (v.detach()[:, :8].requires_grad_() for v in (mixture.log_c, mixture.z))
    few = batch[slice(0, 8)]
    signed = replace(few, weights=few.weights.double() - 0.3)
    assert torch.autograd.gradcheck(
        lambda a, b: template_cost(replace(mixture, log_c=a, z=b), signed), (log_c, z)
    )


def test_template_cost_weighs_templates_by_their_share(batch):
    mixture = make_network(1, GRID, torch.log(SHARE))(batch.x)
    p = torch.exp(mixture.log_prob_at(GRID))[0]
    own = p[torch.arange(40), batch.template]
    by_hand = -(batch.weights[0] * torch.log(own / (p @ SHARE))).sum()
    torch.testing.assert_close(template_cost(mixture, batch)[0], by_hand)


def test_flatness_follows_all_events_from_its_anchor(batch):
    network = make_network()
    x, weights = batch.x, batch.weights
    at = torch.tensor([[0.0], [0.5], [1.0]])
    few = Flatness(at, (x[:10], weights[:, :10]), complete=False, members=2)
    whole = Flatness(at, (x, weights), complete=True, members=2)
    few.anchor(network, batch)
    torch.testing.assert_close(few.spread(network), whole.spread(network))
    q = whole.implied_prior(network, x, weights)
    torch.testing.assert_close(whole.spread(network), q.std(-1, correction=0))


def test_rounded_spread_has_no_kink_at_zero():
    flatness = Flatness(
        torch.tensor([[0.2], [0.8]]), (torch.zeros(1, 1), torch.ones(1, 1)), True, 1
    )
    network = make_network(members=1)
    with torch.no_grad():
        network.conditioner.biases[-1][..., 0] = 0.5
        for weight in network.conditioner.weights:
            weight.zero_()
    flatness.rounding = torch.tensor([0.1])
    flatness.strength = torch.tensor([3.0])
    s, term = flatness.value(network)
    assert s.item() < 1e-6
    assert term.item() == pytest.approx(0.3)
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
    z = torch.tensor([[[[0.5, math.log(0.2)]]]])
    mixture = Mixture(Gaussian(), torch.zeros(1, 1, 1), z)
    event = Events(torch.zeros(1, 1), torch.tensor([1]), torch.ones(1, 1), GRID)
    cost = posterior_cost(mixture, event)
    mass = math.erf(0.5 / 0.2 / math.sqrt(2))
    assert cost.item() == pytest.approx(math.log(0.2 * math.sqrt(2 * math.pi) * mass), rel=1e-5)


def test_objectives_by_name_with_settings_or_as_they_are():
    assert find_objective("posterior").needs_flat_grid
    assert find_objective({"penalty": {"strength": 2, "bins": 20}}) == Penalty(strength=2, bins=20)
    own = Penalty()
    assert find_objective(own) is own


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("likelihood", "known are .*penalty, .*posterior"),
        ({"penalty": {"strenght": 2}}, "penalty does not take"),
        ({"penalty": {}, "template": {}}, "give a name"),
        (3, "give a name"),
    ],
)
def test_bad_objectives(objective, message):
    with pytest.raises(InputError, match=message):
        find_objective(objective)


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(InputError, match="'template' is taken"):

        @register_objective
        class Another(PosteriorObjective):
            name = "template"

    assert OBJECTIVES.find("template") is TemplateObjective
