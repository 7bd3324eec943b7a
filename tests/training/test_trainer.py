"""The training loop: its schedule and which epoch it keeps."""

import pytest
import torch
from helpers import make_perceptrons

from gridless.density.gaussian import Gaussian
from gridless.training.events import Events
from gridless.training.flatness import Term
from gridless.training.objectives import PosteriorObjective
from gridless.training.trainer import AdamStage, Schedule, Trainer, learning_rate_cycle


def make_trainer(training, validation, members=1):
    generator = torch.Generator().manual_seed(1)
    network = make_perceptrons(1, Gaussian(0.05), 2, (16,), "tanh", members)
    network.initialise(generator)
    objective, term = PosteriorObjective(), Term(members)
    return Trainer(network, training, validation, objective, term, 0.0, generator)


def make_events(count, seed, separation=1.0):
    generator = torch.Generator().manual_seed(seed)
    template = torch.randint(0, 2, (count,), generator=generator)
    x = separation * template[:, None] + torch.randn(count, 1, generator=generator)
    return Events(x, template, torch.ones(1, count), torch.tensor([[0.25], [0.75]]))


def nothing(_):
    """No progress bar."""


def test_the_rate_rises_and_ends_at_zero():
    assert learning_rate_cycle(0.0) == 0
    assert learning_rate_cycle(0.25) == pytest.approx(1)
    assert learning_rate_cycle(1.0) == pytest.approx(0)
    assert learning_rate_cycle(0.1) < learning_rate_cycle(0.2)
    assert learning_rate_cycle(0.4) > learning_rate_cycle(0.9)


def test_over_training_is_undone():
    """Sixty events without information: the best epoch on fresh events is an early one."""
    trainer = make_trainer(make_events(60, 1, 0.0), make_events(5000, 2, 0.0))
    history = AdamStage(trainer, Schedule(200, 60, 0.1), 1).run([], nothing)
    best = min(epoch.validation for epoch in history)
    assert history[-1].validation > best + 0.005
    assert trainer.mean_cost(trainer.held_out).item() == pytest.approx(best, abs=0.002)
    assert not history[-1].kept


def test_large_samples_keep_the_last_epoch():
    trainer = make_trainer(make_events(20_000, 1), make_events(2_000, 2))
    history = AdamStage(trainer, Schedule(6, 500, 0.02), 1).run([], nothing)
    assert history[-1].kept
    assert history[-1].training < history[0].training


def test_members_learn_as_if_alone():
    """The gradient of one member does not reach another."""
    both = make_trainer(make_events(500, 1), make_events(100, 2), members=2)
    both.cost(both.events)[0].backward()
    for parameter in both.network.parameters():
        assert (parameter.grad[1] == 0).all()
