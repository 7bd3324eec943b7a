"""`python -m benchmarks.bias`: bias and error of every cure over several seeds, full size."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import gridless as gl
from gridless.arrays import Array
from gridless.toys import OneObservable, Toy, TwoObservables

CURES = (
    ("posterior", "flat"),
    ("penalty", "flat"),
    ("posterior", "divide"),
    ("template", "divide"),
)


def study(
    title: str, toy: Toy, samples: Sequence[Array], options: dict[str, Any], seeds: range
) -> Table:
    """Every cure, trained on ten templates of 100,000, against the exact likelihood."""
    exact = [toy.likelihood(x).maximum() for x in samples]
    table = Table(title=f"{title}, seeds {seeds.start} to {seeds.stop - 1}")
    for column in ("objective", "prior", "largest |bias| per seed", "error / exact", "train s"):
        table.add_column(column)
    for objective, prior in CURES:
        worst, errors, seconds = [], [], []
        for seed in seeds:
            templates = toy.templates(100_000, seed)
            start = time.perf_counter()
            model = gl.fit(templates, objective=objective, prior=prior, seed=seed, **options)
            seconds.append(time.perf_counter() - start)
            found = [model.likelihood(x).maximum() for x in samples]
            pairs = list(zip(found, exact, strict=True))
            worst.append(max(abs(ours.value - true.value) for ours, true in pairs))
            errors += [ours.error / true.error for ours, true in pairs]
        table.add_row(
            objective,
            prior,
            " ".join(f"{w:.4f}" for w in worst),
            f"{min(errors):.3f} to {max(errors):.3f}",
            f"{np.mean(seconds):.0f}",
        )
    return table


def main() -> None:
    """One observable on exact quantiles at eleven values, two on 200,000 events at five."""
    console = Console(width=120)
    one, two = OneObservable(), TwoObservables()
    quantiles = [one.quantiles(t) for t in np.linspace(0.05, 0.95, 11)]
    title = "1-D, 10,000 quantiles at 11 values, one layer of 5, one Gaussian"
    console.print(study(title, one, quantiles, {"hidden": (5,)}, range(5)))
    samples = [two.sample(t, 200_000, 1000 + i) for i, t in enumerate((0.1, 0.3, 0.5, 0.7, 0.9))]
    title = "2-D, 200,000 events at 5 values, layers 16 x 16, two Gaussians"
    options = {"hidden": (16, 16), "components": 2}
    console.print(study(title, two, samples, options, range(3)))


if __name__ == "__main__":
    main()
