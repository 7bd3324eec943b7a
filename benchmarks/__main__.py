"""`make bench`: where the time goes, as ratios measured side by side in one run."""

import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import gridless as gl
from gridless.toys import TwoObservables


def cpu(action: Callable[[], object], repeats: int) -> float:
    """The least CPU time of several runs: what the work costs when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def training() -> Table:
    toy = TwoObservables()
    templates = toy.templates(20_000, seed=1)
    options = {"components": 2, "hidden": (16, 16), "seed": 1}

    def fit(**more: object) -> Callable[[], object]:
        return lambda: gl.fit(templates, **options, **more)

    base = cpu(fit(objective="posterior"), 2)
    table = Table(title="CPU time of training on 10 x 20,000 events, against the plain cost")
    table.add_column("fit")
    table.add_column("ratio", justify="right")
    table.add_row("posterior", "1.00")
    for name, action in (
        ("template", fit(objective="template")),
        ("penalty, mean over events", fit(objective="penalty")),
        (
            "penalty, histogram",
            fit(objective="penalty", penalty=gl.Penalty(density="histogram")),
        ),
        ("posterior, ensemble of 4", fit(objective="posterior", ensemble=4)),
    ):
        table.add_row(name, f"{cpu(action, 1) / base:.2f}")
    return table


def evaluation() -> Table:
    toy = TwoObservables()
    model = gl.fit(toy.templates(2_000, seed=1), components=2, hidden=(16, 16), epochs=2)
    x = toy.sample(0.4, 200_000, seed=2)
    nodes = len(model.likelihood(x).coefficients)
    values = torch.rand(16_384, nodes, 2, dtype=torch.float64)

    def floor() -> None:
        for _ in range(0, len(x), len(values)):
            torch.exp(values)

    table = Table(title=f"One likelihood of 200,000 events on {nodes} points in theta")
    table.add_column("against")
    table.add_column("ratio", justify="right")
    ours = cpu(lambda: model.likelihood(x), 3)
    table.add_row(
        "a bare float64 exp over events x components x points", f"{ours / cpu(floor, 3):.1f}"
    )
    exact = cpu(
        lambda: np.array([toy.log_density(x, t).sum() for t in np.linspace(0, 1, nodes)]), 1
    )
    table.add_row("the exact density by SciPy at as many points", f"{ours / exact:.2f}")
    return table


def main() -> None:
    console = Console()
    console.print(training())
    console.print(evaluation())


main()
