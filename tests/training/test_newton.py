"""Newton steps: gradients event by event, and convergence of small problems."""

import pytest
import torch
from helpers import check_event_gradients, make_perceptrons

from gridless.density.gaussian import Gaussian
from gridless.training.newton import flatten, newton, restore


def make(hidden=(4, 3), members=2):
    network = make_perceptrons(2, Gaussian(), 2, hidden, "tanh", members)
    network.initialise(torch.Generator().manual_seed(1))
    return network


@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)])
def test_event_gradients_are_those_of_single_events(hidden):
    check_event_gradients(make(hidden))


def test_restore_sets_only_the_chosen_members():
    network = make()
    old = flatten(network.parameters())
    restore(network, old + 1, torch.tensor([False, True]))
    new = flatten(network.parameters())
    torch.testing.assert_close(new[0], old[0])
    torch.testing.assert_close(new[1], old[1] + 1, atol=1e-6, rtol=0)


def test_quadratic_objectives_are_solved_whatever_their_scale():
    network = make(hidden=())
    size = flatten(network.parameters()).shape[1]
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(2, size, size, generator=generator, dtype=torch.float64)
    matrix = root @ root.transpose(1, 2) * torch.tensor([1.0, 100.0])[:, None, None]
    target = torch.randn(2, size, generator=generator, dtype=torch.float64)

    def objective():
        d = flatten(network.parameters()) - target
        slope = (matrix @ d.unsqueeze(-1)).squeeze(-1)
        return 0.5 * (d * slope).sum(-1), slope

    value = newton(network, objective, lambda: matrix, tolerance=1e-12, steps=8)
    assert value.max() < 1e-6
    torch.testing.assert_close(objective()[0], value)


def test_a_misleading_curvature_does_no_harm():
    """With a matrix far too small the steps overshoot, and are taken back."""
    network = make(hidden=())

    def objective():
        here = flatten(network.parameters())
        return (here**4).sum(-1), 4 * here**3

    before, _ = objective()
    size = flatten(network.parameters()).shape[1]
    tiny = 1e-6 * torch.eye(size, dtype=torch.float64).expand(2, -1, -1)
    after = newton(network, objective, lambda: tiny, tolerance=0.0, steps=8)
    assert (after <= before).all()
    assert torch.isfinite(after).all()
    torch.testing.assert_close(objective()[0], after)
