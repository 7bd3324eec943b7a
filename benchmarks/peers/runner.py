"""One peer, trained once: `python -m benchmarks.peers.runner peer.json folder`.

Runs in a process of its own, so that CPU time and memory are the peer's alone. Reads
`templates.npz` and `observed.npz`, writes the peer's likelihoods to `curves.npz`, and prints one
line of JSON with what they cost.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import peak_memory

Array = NDArray[Any]
TIMED = 33  # values of theta at which a pass is timed
# Values of theta at which curves are judged. Every template is among them: a peer that has
# collapsed onto the templates has no likelihood to speak of in between.
JUDGED = 201  # for all events together
JUDGED_TOYS = 101  # for pseudo-experiments
TOYS = 200  # pseudo-experiments
TOY_EVENTS = 10_000  # events of each
_CHUNK = 10_000  # events per pass


def points(size: int) -> Array:
    """Values of theta from 0 to 1, both included."""
    return np.linspace(0, 1, size)


def cpu_seconds() -> float:
    """CPU time of this process, its threads and its finished children."""
    return time.process_time() + sum(os.times()[2:4])


def draws(events: int, toys: int, size: int, seed: int) -> Array:
    """How often each event is in each pseudo-experiment (toys, events), with replacement."""
    random = np.random.default_rng(seed)
    rows = [np.bincount(random.integers(0, events, size), minlength=events) for _ in range(toys)]
    return np.array(rows, np.float32)


def toy_curves(log_density: Callable[[Array], Array], x: Array, seed: int) -> Array:
    """Minus log likelihoods (toys, values) of pseudo-experiments drawn from the events."""
    drawn = draws(len(x), TOYS, min(TOY_EVENTS, len(x)), seed)
    total = np.zeros((TOYS, JUDGED_TOYS))
    for start in range(0, len(x), _CHUNK):
        part = slice(start, start + _CHUNK)
        total -= drawn[:, part] @ np.asarray(log_density(x[part]), float)
    return total


def _prepare_torch() -> None:
    """One thread; and the modules that torch imports with the first optimiser, which belong to
    starting it and not to training."""
    import torch

    torch.set_num_threads(1)
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])


def measure(module: str, options: dict[str, Any], seed: int, folder: Path) -> dict[str, Any]:
    """Train the peer, take its likelihoods of the observed samples, and say what that took."""
    peer = importlib.import_module(f"benchmarks.peers.{module}")
    if "torch" in sys.modules:
        _prepare_torch()
    with np.load(folder / "templates.npz") as file:
        x, theta = file["x"], file["theta"]
    with np.load(folder / "observed.npz") as file:
        observed = file["x"]
    before = peak_memory()

    start, wall = cpu_seconds(), time.perf_counter()
    trained = peer.train(x, theta, seed, **options)
    training, wall = cpu_seconds() - start, time.perf_counter() - wall

    start = cpu_seconds()
    for sample in observed:
        peer.curve(trained, sample, points(TIMED))
    million = (cpu_seconds() - start) / (len(observed) * len(observed[0])) * 1e6
    cost = {
        "train_cpu": training,
        "train_wall": wall,
        "million_cpu": million,
        "memory_mb": peak_memory(),
        "start_mb": before,
        "notes": getattr(trained, "notes", {}),
    }
    curves = np.array([peer.curve(trained, sample, points(JUDGED)) for sample in observed])
    # Where a peer has a minimiser of its own, what that finds is kept beside.
    own: Any = {}
    if hasattr(peer, "estimate"):
        own["own"] = np.array([peer.estimate(trained, sample) for sample in observed])
    at = points(JUDGED_TOYS)
    toys = np.array(
        [
            toy_curves(lambda part: peer.log_density(trained, part, at), sample, i)
            for i, sample in enumerate(observed)
        ]
    )
    np.savez(folder / "curves.npz", curves=curves, toys=toys, **own)
    return cost


def main() -> None:
    """Run as its own process."""
    file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    task = json.loads(file.read_text())
    # What a peer has to say about its training must not get between the lines of the answer.
    with redirect_stdout(sys.stderr):
        cost = measure(task["module"], task["options"], task["seed"], folder)
    print(json.dumps(cost))


if __name__ == "__main__":
    main()
