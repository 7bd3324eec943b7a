"""Adam, the optimiser of the mini-batches.

torch has one too, but making it loads torch's compiler, which takes longer than many a training.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from gridless.training.checkpoint import State, numbered

MEAN_DECAY = 0.9  # share of the running mean of the gradient that a step keeps
SQUARE_DECAY = 0.99  # the same of its square; noisy batches are averaged over a hundred steps
MIN_ROOT = 1e-8  # keeps the step finite for a weight whose gradient has been 0


class Adam:
    """w <- w - rate m / (sqrt(s) + 1e-8), m and s running means of the gradient g and of g^2.

    To each gradient, decay times weight is added: `decays` are of the shapes of the `weights`.
    """

    def __init__(self, weights: Sequence[Tensor], decays: Sequence[Tensor]) -> None:
        self.weights, self.decays = list(weights), list(decays)
        self.mean = [torch.zeros_like(w) for w in self.weights]
        self.square = [torch.zeros_like(w) for w in self.weights]
        self.steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """Move the weights once."""
        self.steps += 1
        # Running means start from 0: these make up for it.
        first, second = 1 - MEAN_DECAY**self.steps, 1 - SQUARE_DECAY**self.steps
        rows = zip(self.weights, self.decays, gradients, self.mean, self.square, strict=True)
        for w, decay, g, mean, square in rows:
            slope = torch.addcmul(g, decay, w)
            mean.lerp_(slope, 1 - MEAN_DECAY)
            square.mul_(SQUARE_DECAY).addcmul_(slope, slope, value=1 - SQUARE_DECAY)
            w.addcdiv_(mean, (square / second).sqrt_().add_(MIN_ROOT), value=-rate / first)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return {
            "adam_steps": torch.tensor(self.steps),
            **numbered("adam_mean", self.mean),
            **numbered("adam_square", self.square),
        }

    def restore(self, state: State) -> None:
        """Go on from what `tensors` gave."""
        self.steps = int(state.tensors["adam_steps"])
        for own, kept in ((self.mean, "adam_mean"), (self.square, "adam_square")):
            own[:] = [value.to(w) for value, w in zip(state.under(kept), self.weights, strict=True)]
