"""How the cost of a fit and of a likelihood grows with what it is given: one table, one figure."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import gridless as gl
from benchmarks.floors import least_cpu
from benchmarks.machine import describe, machine
from benchmarks.peers.table import write_page
from benchmarks.workers import measure_workers
from gridless.examples import TwoObservables
from gridless.templates.arrays import Array

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "growth.json"
FIGURE = ROOT / "docs" / "growth.png"
PAGE = ROOT / "docs" / "peers.md"
_SEED = 1
_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Point(NamedTuple):
    """One size of a problem: templates to fit with `options`, observed events to judge."""

    value: int
    templates: gl.Templates
    observed: Array
    options: dict[str, Any]


def events(scale: int) -> Iterator[Point]:
    """Ten templates of the two-observable example, as many observed events as simulated ones."""
    example = TwoObservables()
    for count in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        size = count // scale
        templates = example.templates(size // 10, _SEED)
        yield Point(size, templates, example.sample(0.4, size, 2), {})


def observables(scale: int) -> Iterator[Point]:
    """Independent Gaussian observables that share the sensitivity of one."""
    for count in (1, 2, 4, 8, 16, 32):
        yield _gaussian(count, count, 1, 10, 200_000 // scale)


def templates(scale: int) -> Iterator[Point]:
    """The same number of events, at more values of theta."""
    for count in (5, 10, 20, 40, 80):
        yield _gaussian(count, 2, 1, count, 200_000 // scale)


def components(scale: int) -> Iterator[Point]:
    """Gaussian components of the posterior."""
    example = TwoObservables()
    sample = example.templates(20_000 // scale, _SEED)
    observed = example.sample(0.4, 200_000 // scale, 2)
    for count in (1, 2, 4, 8):
        yield Point(count, sample, observed, {"basis": "gaussian", "components": count})


def parameters(scale: int) -> Iterator[Point]:
    """Forty templates, scattered for two and three parameters; three observables."""
    for count in (1, 2, 3):
        yield _gaussian(count, 3, count, 40, 200_000 // scale)


AXES: dict[str, Callable[[int], Iterator[Point]]] = {
    axis.__name__: axis for axis in (events, observables, templates, components, parameters)
}
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "without the uncertainty from simulation": {"replicas": 0},
    "two Gaussian components": {"basis": "gaussian", "components": 2},
    "two layers of 16": {"hidden": (16, 16)},
    'objective="posterior"': {"objective": "posterior"},
    'objective="penalty"': {"objective": "penalty", "prior": "flat"},
    "ensemble of 4": {"ensemble": 4},
}


def _gaussian(value: int, columns: int, count: int, grid: int, total: int) -> Point:
    """x_j ~ N(theta_(j mod P) / sqrt(observables / P), 1)."""
    random = np.random.default_rng(_SEED)
    share = np.sqrt(count / columns)
    at = gl.grid((0, 1), grid)[:, None] if count == 1 else random.random((grid, count))

    def draw(theta: Array) -> Array:
        return np.asarray(random.normal(share * theta[:, np.arange(columns) % count]))

    theta = np.repeat(at, total // grid, axis=0)
    sample = gl.Templates(draw(theta), theta, bounds=[(0, 1)] * count)
    return Point(value, sample, draw(np.full((total, count), 0.4)), {})


def measure(point: Point) -> dict[str, float]:
    """CPU seconds of the fit and of the likelihood of the observed events."""
    models: list[gl.Model] = []
    fit = least_cpu(lambda: models.append(gl.fit(point.templates, seed=_SEED, **point.options)), 1)
    likelihood = least_cpu(lambda: models[0].likelihood(point.observed))
    return {"value": point.value, "fit": round(fit, 3), "likelihood": round(likelihood, 4)}


def settings(scale: int) -> dict[str, float]:
    """CPU seconds of fits that differ in one setting."""
    sample = TwoObservables().templates(20_000 // scale, _SEED)
    return {
        name: round(least_cpu(lambda o=options: gl.fit(sample, seed=_SEED, **o), 1), 3)  # type: ignore[misc]
        for name, options in SETTINGS.items()
    }


def run(quick: bool = False) -> dict[str, Any]:
    """Measure along every axis, print tables and, unless `quick`, write page and figure."""
    torch.set_num_threads(1)
    scale = 20 if quick else 1
    gl.fit(TwoObservables().templates(500, _SEED), epochs=1)  # what only the first fit pays for
    results: dict[str, Any] = {"machine": machine(), "axes": {}}
    for name, axis in AXES.items():
        rows = []
        for point in axis(scale):
            rows.append(measure(point))
            print(f"{name} {point.value:,}: {rows[-1]}", flush=True)
        results["axes"][name] = rows
    results["settings"] = settings(scale)
    results["workers"] = measure_workers(scale)
    parts = page_parts(results)
    for part in parts.values():
        print(f"\n{part}")
    if not quick:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        draw(results, FIGURE)
        write_page(PAGE, parts)
    return results


def page_parts(results: dict[str, Any]) -> dict[str, str]:
    """The tables for the page."""
    lines = [
        describe(results["machine"]),
        "",
        "| | | fit, CPU s | ratio | likelihood, CPU s | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, rows in results["axes"].items():
        first = rows[0]
        for row in rows:
            fit, likelihood = row["fit"] / first["fit"], row["likelihood"] / first["likelihood"]
            lines.append(
                f"| {name} | {row['value']:,} | {row['fit']:.1f} | {fit:.2f} "
                f"| {row['likelihood']:.3f} | {likelihood:.2f} |"
            )
    lines += ["", "| fit of 10 x 20,000 events | CPU s | ratio |", "|---|---|---|"]
    base = results["settings"]["defaults"]
    for name, seconds in results["settings"].items():
        lines.append(f"| {name} | {seconds:.1f} | {seconds / base:.2f} |")
    first = results["workers"][0]
    lines += [
        "",
        "| workers | likelihood of 20 million events, s | ratio "
        "| 40,000 pseudo-experiments, s | ratio |",
        "|---|---|---|---|---|",
    ]
    for row in results["workers"]:
        likelihood, toys = row["likelihood"], row["coverage"]
        lines.append(
            f"| {row['value']} | {likelihood:.1f} | {likelihood / first['likelihood']:.2f} "
            f"| {toys:.1f} | {toys / first['coverage']:.2f} |"
        )
    return {"growth": "\n".join(lines)}


def draw(results: dict[str, Any], file: Path) -> None:
    """One panel per axis: both costs against the first point's, with a line of equal growth."""
    from matplotlib.figure import Figure

    from gridless.report.style import BLUE, GREY, ORANGE, style

    axes = results["axes"]
    with style():
        figure = Figure(figsize=(10, 6), layout="constrained")
        panels = figure.subplots(2, 3).ravel()
        for panel, (name, rows) in zip(panels, axes.items(), strict=False):
            value = np.array([row["value"] for row in rows], float)
            panel.plot(value, value / value[0], color=GREY, linestyle="--", label="proportional")
            for cost, marker, colour in (("fit", "o", BLUE), ("likelihood", "s", ORANGE)):
                spent = np.array([row[cost] for row in rows])
                panel.plot(value, spent / spent[0], marker=marker, color=colour, label=cost)
            panel.set(xscale="log", yscale="log", xlabel=name, ylabel="CPU time, ratio to first")
            panel.set_xticks(value, [_short(v) for v in value])
            low, high = panel.get_ylim()
            ticks = [tick for tick in _TICKS if low <= tick <= high]
            panel.set_yticks(ticks, [_short(tick) for tick in ticks])
            panel.minorticks_off()
        panels[0].legend(frameon=False)
        draw_workers(panels[len(axes)], results["workers"])
        figure.savefig(file)


def draw_workers(panel: Any, rows: list[dict[str, float]]) -> None:
    """Time on the clock against that of one worker."""
    from gridless.report.style import GREEN, GREY, ORANGE

    value = np.array([row["value"] for row in rows], float)
    panel.plot(value, 1 / value, color=GREY, linestyle="--", label="shared out")
    for cost, marker, colour in (("likelihood", "s", ORANGE), ("coverage", "^", GREEN)):
        spent = np.array([row[cost] for row in rows])
        panel.plot(value, spent / spent[0], marker=marker, color=colour, label=cost)
    panel.set(xscale="log", yscale="log", xlabel="workers", ylabel="time, ratio to first")
    panel.set_xticks(value, [_short(v) for v in value])
    panel.set_yticks([0.25, 0.5, 1], ["0.25", "0.5", "1"])
    panel.minorticks_off()
    panel.legend(frameon=False)


def _short(value: float) -> str:
    """A number that fits under an axis: 30k, 1M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"
