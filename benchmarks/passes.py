"""The pass over a million events against its floor: one table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

import gridless as gl
from benchmarks.floors import least_cpu
from benchmarks.machine import describe, machine
from benchmarks.peers.table import write_page
from gridless.examples import TwoObservables

PAGE = Path(__file__).parents[1] / "docs" / "peers.md"
_SEED = 1
_CHUNK = 2**14  # events per pass of a floor
_ROUNDS = 7  # repetitions, of which the fastest counts
POOLS = (100_000, 1_000_000)
MODELS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "one Gaussian": {"basis": "gaussian"},
    "two Gaussians": {"basis": "gaussian", "components": 2},
    'two Gaussians, objective="posterior"': {
        "basis": "gaussian", "components": 2, "objective": "posterior",
    },
    "two exp_polynomials, two layers of 16": {"components": 2, "hidden": (16, 16)},
    "four Gaussians": {"basis": "gaussian", "components": 4},
}  # fmt: skip


class Pass(NamedTuple):
    """A model's values of theta and components, and both CPU times in ns per event."""

    name: str
    nodes: int
    components: int
    floor: float
    spent: float


def floor(model: gl.Model, nodes: int, events: int) -> Callable[[], None]:
    """A float32 exp of one number for every event, component and value of theta, and the products
    with the network's matrices; nothing is made of either."""
    values = torch.randn(_CHUNK, model.network.components * nodes)
    out = torch.empty_like(values)
    matrices = [w[0].detach() for w in model.network.conditioner.weights]
    inputs = [torch.randn(_CHUNK, len(w)) for w in matrices]

    def action() -> None:
        for _ in range(0, events, _CHUNK):
            torch.exp(values, out=out)
            for w, h in zip(matrices, inputs, strict=True):
                torch.mm(h, w)

    return action


def measure(name: str, scale: int) -> Pass:
    """Train on ten templates of 20,000 events and take turns with the floor, the least of each."""
    example = TwoObservables()
    model = gl.fit(example.templates(20_000 // scale, _SEED), seed=_SEED, **MODELS[name])
    x = example.sample(0.4, 1_000_000 // scale, 2)
    nodes = len(model.likelihood(x).coefficients)
    bare = floor(model, nodes, len(x))
    bare()
    times = [
        (least_cpu(bare, 1), least_cpu(lambda: model.likelihood(x), 1)) for _ in range(_ROUNDS)
    ]
    least, spent = (min(column) / len(x) * 1e9 for column in zip(*times, strict=True))
    return Pass(name, nodes, model.network.components, least, spent)


def experiments(pool: int, scale: int) -> float:
    """CPU time of 10,000 pseudo-experiments of 10,000 events, over that of a pass over their pool;
    in turns, the least of each."""
    example = TwoObservables()
    model = gl.fit(example.templates(20_000 // scale, _SEED), seed=_SEED)
    x = example.sample(0.4, pool // scale, 2)
    size = 10_000 // scale
    times = [
        (
            least_cpu(lambda: model.likelihood(x), 3),
            least_cpu(lambda: gl.coverage(model, [(0.4, x)], size, size), 1),
        )
        for _ in range(3)
    ]
    least, spent = (min(column) for column in zip(*times, strict=True))
    return spent / least


def run(quick: bool = False) -> list[Pass]:
    """Measure every model, print the tables and, unless `quick`, write them to the page."""
    torch.set_num_threads(1)
    scale = 20 if quick else 1
    found = []
    for name in MODELS:
        found.append(measure(name, scale))
        print(found[-1], flush=True)
    ratios = {pool: experiments(pool, scale) for pool in POOLS}
    text = f"{table(found)}\n\n{experiments_table(ratios)}"
    print(f"\n{text}")
    if not quick:
        write_page(PAGE, {"passes": f"{describe(machine())}\n\n{text}"})
    return found


def experiments_table(ratios: dict[int, float]) -> str:
    """The second table for the page."""
    lines = ["| 10,000 pseudo-experiments of 10,000 events from | passes over those |", "|---|---|"]
    return "\n".join([*lines, *(f"| {pool:,} | {ratio:.1f} |" for pool, ratio in ratios.items())])


def table(passes: list[Pass]) -> str:
    """The table for the page."""
    lines = [
        "| model | values of theta | components | floor, ns per event | likelihood | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for p in passes:
        lines.append(
            f"| {p.name} | {p.nodes} | {p.components} | {p.floor:.0f} | {p.spent:.0f} "
            f"| {p.spent / p.floor:.1f} |"
        )
    return "\n".join(lines)
