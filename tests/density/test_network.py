"""The network's shapes, start and independence of its members."""

import pytest
import torch

from gridless.density.basis import Gaussian
from gridless.density.network import Network
from gridless.errors import InputError


def make(members=1, components=3, hidden=(7, 5)):
    network = Network(2, Gaussian(), components, hidden, "tanh", members)
    network.initialise(torch.Generator().manual_seed(1))
    return network


def test_coefficients_sum_to_one_and_shapes():
    log_c, z = make(members=4)(torch.randn(11, 2))
    assert log_c.shape == (4, 11, 3)
    assert z.shape == (4, 11, 3, 2)
    torch.testing.assert_close(log_c.exp().sum(-1), torch.ones(4, 11))


def test_one_component_needs_two_outputs_only():
    network = make(components=1)
    log_c, _ = network(torch.randn(5, 2))
    assert network.biases[-1].shape == (1, 1, 2)
    assert (log_c == 0).all()


def test_members_are_independent():
    network = make(members=3)
    x = torch.randn(6, 2)
    _, before = network(x)
    with torch.no_grad():
        network.weights[0][1] += 1
    _, after = network(x)
    assert torch.equal(before[0], after[0])
    assert torch.equal(before[2], after[2])
    assert not torch.equal(before[1], after[1])
    assert not torch.equal(before[0], before[1])


def test_it_starts_near_the_basis_start():
    network = make()
    _, z = network(torch.zeros(1, 2))
    assert (z[0, 0] - network.basis.start(3)).abs().max() < 0.5


def test_no_hidden_layer_is_linear():
    network = make(hidden=())
    x = torch.randn(4, 2)
    _, z = network(x)
    _, doubled = network(2 * x)
    _, zero = network(0 * x)
    torch.testing.assert_close(doubled - zero, 2 * (z - zero))


def test_double_copy_leaves_the_original():
    network = make()
    assert network.double_copy().weights[0].dtype == torch.float64
    assert network.weights[0].dtype == torch.float32


def test_unknown_activation():
    with pytest.raises(InputError, match="known are silu, tanh, relu"):
        Network(1, Gaussian(), 1, (3,), "gelu")
