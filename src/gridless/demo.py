"""The paper's two-observable example from simulation to a measurement, told as it goes."""

from pathlib import Path

import numpy as np
from rich.console import Console

from gridless.examples import TwoObservables
from gridless.files.write import check_writable
from gridless.fitting import fit
from gridless.report.figures import draw_closure, draw_likelihood
from gridless.report.style import save_figure
from gridless.report.writing import write_report
from gridless.templates.grid import grid
from gridless.validation.closure import closure


def run_demo(output: Path, events: int, seed: int, console: Console) -> None:
    """Simulate, audit, fit, measure and close; figures, report and model go to `output`."""
    for name in ("model.safetensors", "report.html"):
        check_writable(output / name)  # before the work
    example = TwoObservables()
    console.rule("1  Simulate: ten templates between 0 and 1")
    templates = example.templates(events, seed)
    console.print(str(templates.audit()), highlight=False)

    console.rule("2  Fit: held-out events choose the network, the templates calibrate it")
    model = fit(templates, seed=seed)
    console.print(repr(model), highlight=False)

    console.rule("3  Measure 10,000 events of unknown theta")
    hidden_truth = float(np.random.default_rng(seed + 1).uniform(0.2, 0.8))
    observed = example.sample(hidden_truth, 10_000, seed + 2)
    likelihood = model.likelihood(observed)
    estimate, exact = likelihood.maximum(), example.likelihood(observed).maximum()
    low, high = likelihood.interval(0.95)
    console.print(
        f"{estimate}\n  95 % interval: {low:.4f} to {high:.4f}\n"
        f"  the truth was {hidden_truth:.4f}\n"
        f"  the exact likelihood gives {exact.value:.4f} ± {exact.error:.4f}",
        highlight=False,
    )

    console.rule("4  Closure: does it hold between the templates?")
    values = grid((0, 1), 11)[[0, 1, 2, 3, 4, 6, 7, 8, 9, 10]]
    samples = [(t, example.sample(t, 10_000, seed + 100 + i)) for i, t in enumerate(values)]
    table = closure(model, samples)
    console.print(str(table), highlight=False)

    curve, response = draw_likelihood(likelihood, true=hidden_truth), draw_closure(table)
    paths = save_figure(curve, output / "likelihood") + save_figure(response, output / "closure")
    model.save(output / "model.safetensors")
    page = write_report(output / "report.html", model, likelihood, table)
    console.rule("Written")
    for path in [*paths, output / "model.safetensors", page]:
        console.print(f"  {path}", highlight=False)
