"""The network's shapes, start and independence of its members."""

import pytest
import torch
from helpers import make_perceptrons

from gridless.density.gaussian import Gaussian
from gridless.errors import InputError


def make(members=1, components=3, hidden=(7, 5)):
    network = make_perceptrons(2, Gaussian(), components, hidden, "tanh", members)
    network.initialise(torch.Generator().manual_seed(1))
    return network


def test_coefficients_sum_to_one_and_shapes():
    mixture = make(members=4)(torch.randn(11, 2))
    assert mixture.log_c.shape == (4, 11, 3)
    assert mixture.z.shape == (4, 11, 3, 2)
    torch.testing.assert_close(mixture.log_c.exp().sum(-1), torch.ones(4, 11))


def test_one_component_needs_two_outputs_only():
    network = make(components=1)
    assert network.conditioner.biases[-1].shape == (1, 1, 2)
    assert (network(torch.randn(5, 2)).log_c == 0).all()


def test_members_are_independent():
    network = make(members=3)
    x = torch.randn(6, 2)
    before = network(x).z
    with torch.no_grad():
        network.conditioner.weights[0][1] += 1
    after = network(x).z
    assert torch.equal(before[0], after[0])
    assert torch.equal(before[2], after[2])
    assert not torch.equal(before[1], after[1])
    assert not torch.equal(before[0], before[1])


def test_it_starts_near_the_basis_start():
    network = make()
    z = network(torch.zeros(1, 2)).z
    assert (z[0, 0] - network.basis.start(3)).abs().max() < 0.5


def test_no_hidden_layer_is_linear():
    network = make(hidden=())
    x = torch.randn(4, 2)
    z, doubled, zero = (network(factor * x).z for factor in (1, 2, 0))
    torch.testing.assert_close(doubled - zero, 2 * (z - zero))


def test_double_copy_leaves_the_original():
    network = make()
    assert network.double_copy().dtype == torch.float64
    assert network.dtype == torch.float32


def test_unknown_activation():
    with pytest.raises(InputError, match="known are silu, tanh, relu"):
        make_perceptrons(1, Gaussian(), 1, (3,), "gelu")


def test_repeated_members_follow_one_another():
    network = make(members=2)
    x = torch.randn(4, 2)
    z, repeated = network(x).z, network.repeated(3)(x).z
    assert repeated.shape[0] == 6
    for i in range(6):
        torch.testing.assert_close(repeated[i], z[i % 2])
    torch.testing.assert_close(network.member(1)(x).z[0], z[1])
    assert network.members == 2


def test_the_ridge_holds_the_layers_and_not_the_bypass():
    conditioner = make().conditioner
    held = dict(zip(dict(conditioner.named_parameters()), conditioner.ridged(), strict=True))
    layers = {f"weights.{i}": True for i in range(3)}
    assert held == layers | {"weights.3": False} | {f"biases.{i}": False for i in range(3)}
