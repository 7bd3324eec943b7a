"""Our Adam takes the steps of torch's."""

import torch

from gridless.training.checkpoint import State
from gridless.training.trainer import Adam


def test_steps_of_torch():
    random = torch.Generator().manual_seed(1)
    ours = [torch.randn(3, 2, generator=random), torch.randn(4, generator=random)]
    theirs = [w.clone().requires_grad_() for w in ours]
    decays = [0.1, 0.0]
    groups = [{"params": [w], "weight_decay": d} for w, d in zip(theirs, decays, strict=True)]
    reference = torch.optim.Adam(groups, lr=0.01, betas=(0.9, 0.99))
    adam = Adam(ours, [torch.full_like(w, d) for w, d in zip(ours, decays, strict=True)])
    for _ in range(20):
        gradients = [torch.randn(w.shape, generator=random) for w in ours]
        adam.step(gradients, 0.01)
        for w, g in zip(theirs, gradients, strict=True):
            w.grad = g.clone()
        reference.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b.detach())


def test_it_goes_on_from_its_tensors():
    weights = [torch.ones(3)]
    adam = Adam(weights, [torch.zeros(3)])
    adam.step([torch.tensor([1.0, -2.0, 0.5])], 0.1)
    other = [weights[0].clone()]
    again = Adam(other, [torch.zeros(3)])
    again.restore(State(1, 1, [], {k: v.clone() for k, v in adam.tensors().items()}))
    for one in (adam, again):
        one.step([torch.tensor([0.3, 0.2, -1.0])], 0.1)
    torch.testing.assert_close(weights, other)
