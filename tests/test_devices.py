"""Devices: which there are, and that training keeps to the one it is given."""

import numpy as np
import pytest
import torch
from helpers import make_perceptrons
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import gridless as gl
from gridless.density.exp_polynomial import ExpPolynomial
from gridless.density.gaussian import Gaussian
from gridless.distributed import find_device
from gridless.errors import InputError
from gridless.examples import OneObservable
from gridless.training.events import Events
from gridless.training.flatness import Flatness, Term
from gridless.training.newton import event_gradients
from gridless.training.objectives import find_objective
from gridless.training.trainer import Adam, Trainer

META = torch.device("meta")
CARDS = [
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no cuda")),
    pytest.param(
        "mps", marks=pytest.mark.skipif(not torch.backends.mps.is_available(), reason="no mps")
    ),
]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpu", "there is no 'gpu'; give cpu, cuda"),
        ("", "there is no ''"),
        ("meta", "is not one that networks are trained on"),
    ],
)
def test_what_is_no_device_is_named(name, says):
    with pytest.raises(InputError, match=says):
        find_device(name)


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_what_this_machine_has_not_is_named_before_training(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(InputError, match=f"torch finds no {name} on this machine; give cpu"):
        gl.fit(OneObservable().templates(200, seed=1), device=name)


def test_ranks_share_out_the_cards(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    found = []
    for rank in range(3):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        found.append(str(find_device("cuda")))
    assert found == ["cuda:0", "cuda:1", "cuda:0"]
    assert str(find_device("cuda:1")) == "cuda:1"
    with pytest.raises(InputError, match="there are 2, counted from cuda:0"):
        find_device("cuda:2")


class OnDevice(TorchDispatchMode):
    """Every operation with a tensor on the device gives tensors there, and none in float64, which
    mps does not have."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given, made = (
            [v for v in tree_leaves(values) if isinstance(v, torch.Tensor)]
            for values in ((args, kwargs), result)
        )
        if any(v.device == META for v in given):
            numbers = [v for v in given if v.dim()]
            assert all(v.device == META for v in numbers), f"{func}: from two devices"
            assert all(v.device == META for v in made), f"{func}: leaves the device"
            assert all(v.dtype != torch.float64 for v in made), f"{func}: float64"
        return result


@pytest.mark.parametrize(
    ("objective", "basis", "components"),
    [
        ("template", ExpPolynomial(3, 0.05), 1),
        ("template", ExpPolynomial(2, 0.05), 2),
        ("template", Gaussian(0.05), 1),
        ("posterior", ExpPolynomial(2, 0.05), 1),
        ("posterior", ExpPolynomial(2, 0.05), 2),
    ],
    ids=["cubic", "two", "Gaussian", "posterior", "two posterior"],
)
def test_training_keeps_to_its_device(objective, basis, components, monkeypatch):
    """On a device that computes shapes only, which every machine has: cost, gradients, a step of
    Adam, the gradients of events for Newton's matrix, and the penalty. (The integral of a Gaussian
    is taken in one of two ways, by the numbers: it cannot be tried on shapes.)"""
    grid = torch.tensor([[0.25], [0.75]])
    target = find_objective(objective)
    templates = grid if target.normalises_over_templates else None
    network = make_perceptrons(2, basis, components, (4,), members=2, templates=templates)
    events = Events(torch.zeros(50, 2), torch.arange(50) % 2, torch.ones(2, 50), grid)
    term = Term(2)
    if objective == "posterior":
        term = Flatness(grid, (events.x[:9], events.weights[:, :9]), False, 2)
    trainer = Trainer(network, events, events, target, term, 1.0, torch.Generator())
    ridges = [ridge.to(META) for ridge in trainer.ridges()]
    trainer = trainer.to(META)
    assert trainer.device == META
    # What comes back to the processor has no numbers either; any will do.
    monkeypatch.setattr(torch.Tensor, "cpu", lambda v: torch.zeros(v.shape, dtype=v.dtype))
    parameters = list(network.parameters())
    adam = Adam(parameters, ridges)
    with OnDevice():
        cost = trainer.cost(trainer.events) + term.value(network)[1]
        adam.step(list(torch.autograd.grad(cost.sum(), parameters)), 0.1)
        rows = event_gradients(trainer, trainer.events)
        assert (rows @ rows.mT).device == META


@pytest.mark.parametrize("device", CARDS)
@pytest.mark.parametrize("objective", ["template", "penalty"])
def test_a_card_gives_what_the_processor_gives(device, objective):
    templates = OneObservable().templates(2_000, seed=1)
    x = OneObservable().sample(0.4, 10_000, seed=2)
    here, there = (
        gl.fit(templates, objective=objective, seed=1, device=where).likelihood(x).maximum()
        for where in ("cpu", device)
    )
    assert there.value == pytest.approx(here.value, abs=0.2 * here.stat)
    assert there.stat == pytest.approx(here.stat, rel=0.03)


def test_the_model_does_not_depend_on_the_device():
    """With the processor named, everything is as without; and no tensor is left elsewhere."""
    templates = OneObservable().templates(500, seed=1)
    plain, named = gl.fit(templates, seed=1), gl.fit(templates, seed=1, device="cpu")
    for a, b in zip(plain.network.parameters(), named.network.parameters(), strict=True):
        assert b.device.type == "cpu"
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
