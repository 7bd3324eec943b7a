"""sbi's neural posterior and likelihood estimation with a mixture density network.

Runs in the environment of `requirements.txt`. Training is sbi's own, with all of its defaults:
batches of 200, Adam at 5e-4, a tenth held out, stopped after 20 epochs without improvement.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sbi.inference import NLE, NPE
from sbi.neural_nets import likelihood_nn, posterior_nn
from sbi.utils import BoxUniform

Array = NDArray[Any]
_CHUNK = 10_000


@dataclass(frozen=True)
class Trained:
    """sbi's density estimator, and which way round it is."""

    method: str
    density: Any
    notes: dict[str, Any] = field(default_factory=dict)


def train(
    x: Array,
    theta: Array,
    seed: int,
    method: str = "NLE",
    components: int = 10,
    limit: float = float("inf"),
) -> Trained:
    """Train until sbi calls it converged, or to the end of the epoch in which `limit` seconds of
    CPU time are over; the best epoch is kept either way, as sbi does."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # sbi uses it
    kind, network = (NLE, likelihood_nn) if method == "NLE" else (NPE, posterior_nn)
    end = time.process_time() + limit
    stopped = False

    class Limited(kind):  # type: ignore[misc, valid-type]
        """sbi's training, which ends when its time is over."""

        def _converged(self, epoch: int, stop_after_epochs: int) -> bool:
            nonlocal stopped
            if super()._converged(epoch, stop_after_epochs):
                return True
            stopped = time.process_time() > end
            if stopped:
                self._neural_net.load_state_dict(self._best_model_state_dict)
            return stopped

    inference = Limited(
        BoxUniform(torch.zeros(1), torch.ones(1)),
        network("mdn", num_components=components),
        show_progress_bars=False,
    )
    inference.append_simulations(
        torch.as_tensor(theta, dtype=torch.float32).unsqueeze(1),
        torch.as_tensor(x, dtype=torch.float32),
    )
    density = inference.train()
    notes = {
        "epochs": int(inference.summary["epochs_trained"][-1]),
        "stopped": stopped,
    }
    return Trained(method, density.eval(), notes)


@torch.no_grad()
def log_density(trained: Trained, x: Array, values: Array) -> Array:
    """log p(x | theta) or log p(theta | x).

    The latter is not normalised inside the bounds, which would not change with theta.
    """
    events = torch.as_tensor(x, dtype=torch.float32)
    theta = torch.as_tensor(values, dtype=torch.float32)
    if trained.method == "NLE":
        every = events.unsqueeze(1).expand(-1, len(theta), -1)
        return np.asarray(trained.density.log_prob(every, theta.unsqueeze(1)).double())
    every = theta[:, None, None].expand(-1, len(events), -1)
    return np.asarray(trained.density.log_prob(every, events).double().T)


def curve(trained: Trained, x: Array, values: Array) -> Array:
    """The sum over events, in chunks."""
    total = np.zeros(len(values))
    for start in range(0, len(x), _CHUNK):
        total -= log_density(trained, x[start : start + _CHUNK], values).sum(axis=0)
    return total
