"""Fits of every problem of the zoo with the defaults, judged by the exact likelihood.

python -m benchmarks.zoo --seeds 6 --first 100 [--only NAME ...] [--half choose|judge]

Half of the problems are for choosing settings, the others for judging them.
"""

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar

import gridless as gl
from gridless import examples
from gridless.examples import Example

CHUNKS = 20  # pseudo-experiments at each value of theta
TWO_SIGMA = 0.9545  # probability within two standard deviations


@dataclass(frozen=True)
class Problem:
    """An example with its templates, and how many events are observed."""

    name: str
    half: str
    example: Example
    events: int | tuple[int, ...] = 20_000
    at: tuple[float | tuple[float, ...], ...] | int = 10
    observed: int = 10_000
    truths: tuple[float | tuple[float, ...], ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    negative: float = 0.0  # share of the templates' events with weight -1
    window: float = 0.2  # around the truth, in which the only parameter's exact estimate is

    def templates(self, seed: int) -> gl.Templates:
        if isinstance(self.at, int):
            made = self.example.templates(self.events, seed, self.at)
        else:
            made = self.example.templates(self.events, seed, at=self.at)
        if not self.negative:
            return made
        signs = np.random.default_rng(seed + 1).random(len(made)) < self.negative
        return gl.Templates(made.x, made.theta, bounds=(0, 1), weights=np.where(signs, -1.0, 1.0))


UNEQUAL = (0.0, 0.03, 0.08, 0.15, 0.3, 0.5, 0.55, 0.8, 0.95, 1.0)
UNEQUAL_EVENTS = (20_000, 40_000, 20_000, 60_000, 30_000, 60_000, 20_000, 60_000, 20_000, 40_000)
PROBLEMS = (
    Problem("one", "choose", examples.OneObservable()),
    Problem("two", "choose", examples.TwoObservables(), 50_000),
    Problem("ten", "choose", examples.ManyObservables(), 40_000),
    Problem("unequal", "choose", examples.OneObservable(), UNEQUAL_EVENTS, UNEQUAL),
    Problem("negative", "choose", examples.OneObservable(), 50_000, negative=0.3),
    Problem("sharp", "choose", examples.SharpEdges(), 20_000, 15, 1_000),
    Problem("hard_to_tell", "choose", examples.HardToTell(), 20_000, 9),
    Problem("share", "choose", examples.BackgroundShare(), 20_000, tuple(np.linspace(0, 1, 9)),
            truths=(0.05, 0.3, 0.5, 0.7, 0.9)),
    Problem("small", "choose", examples.TwoObservables(), 2_000),
    Problem("two_solutions", "judge", examples.TwoSolutions(), truths=(0.1, 0.25, 0.75, 0.9)),
    Problem("width", "judge", examples.OnlyWidth()),
    Problem("tail", "judge", examples.OnlyTail(), 40_000),
    Problem("angle_count", "judge", examples.AngleAndCount()),
    Problem("heavy", "judge", examples.HeavyTails()),
    Problem("useless", "judge", examples.UselessObservables()),
    Problem("many", "judge", examples.TwoObservables(), 5_000, 40),
    Problem("few", "judge", examples.OneObservable(0.7), 50_000, 4),
    Problem("low_share", "judge", examples.BackgroundShare(), 20_000,
            tuple(np.linspace(0, 0.4, 9)), truths=(0.02, 0.05, 0.1, 0.2, 0.3)),
    Problem("small_ten", "judge", examples.ManyObservables(), 3_000),
    Problem("oscillation", "choose", examples.Oscillation(), 10_000, 11),
    Problem("resonance", "choose", examples.Resonance(), 15_000, 12, 2_000),
    Problem("three", "choose", examples.Lifetime(), 30_000, (0.0, 0.5, 1.0),
            truths=(0.15, 0.35, 0.6, 0.8)),
    Problem("tiny", "choose", examples.Lifetime(), 500, 8, 2_000, truths=(0.15, 0.35, 0.6, 0.8)),
    Problem("counts", "choose", examples.Counts(), 10_000, 7),
    Problem("interference", "choose", examples.Interference(), 20_000,
            (0.0, 0.25, 0.5, 0.75, 1.0)),
    Problem("correlation", "choose", examples.OnlyCorrelation(), 20_000, 9,
            truths=(0.2, 0.4, 0.6, 0.8)),
    Problem("more_data", "choose", examples.TwoObservables(), 20_000, 10, 100_000),
    Problem("missing_jet", "judge", examples.MissingJet(), 15_000, 9, truths=(0.15, 0.5, 0.85)),
    Problem("categories", "judge", examples.Categories(), 20_000, 9, truths=(0.15, 0.5, 0.85)),
    Problem("overflow", "judge", examples.Overflow(), 15_000, 8, truths=(0.15, 0.5, 0.85)),
    Problem("rare_signal", "judge", examples.RareSignal(), 50_000, 13, 50_000,
            (0.15, 0.5, 0.85)),
    Problem("three_solutions", "judge", examples.ThreeSolutions(), 20_000, 15,
            truths=(0.15, 0.42, 0.58, 0.85), window=0.08),
    Problem("mass_and_share", "judge", examples.MassAndShare(), 6_000,
            tuple(product(np.linspace(0, 1, 7), np.linspace(0, 1, 4))), 4_000,
            ((0.3, 0.3), (0.5, 0.5), (0.75, 0.6))),
    Problem("cut", "judge", examples.CutWindow(), 15_000, 8),
    Problem("ring", "judge", examples.Ring(), 15_000, 9),
    Problem("energy_loss", "judge", examples.EnergyLoss(), 8_000, 7, truths=(0.15, 0.4, 0.6, 0.85)),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One parameter of a fit at one true value. Errors are in units of the exact error of the
    observed number."""

    problem: str  # with the parameter, where there are several
    seed: int
    truth: float | tuple[float, ...]
    bias: float  # mean difference to the exact estimates of the same events
    beyond: float  # stated uncertainty from simulation and model
    stat: float  # stated statistical error
    spread: float  # of the estimates, over that of the exact ones
    pulls: tuple[float, ...]  # (estimate - truth) / total error, of each pseudo-experiment
    covered: float  # share of the 68 percent intervals that contain the truth
    covered_95: float  # share of those of two standard deviations
    bad_fits: float  # share of p-values below 0.001
    score_check: float  # p-value
    cpu: float  # seconds of the fit
    warnings: tuple[str, ...]


def exact_estimates(problem: Problem, x: np.ndarray, truth: Any) -> np.ndarray:
    """The exact maximum likelihood and its error (parameters, 2). Those of an only parameter are
    found without interpolation in theta."""
    if len(problem.example.parameters) > 1:
        found = problem.example.likelihood(x).maximum()
        return np.stack([found.values, found.errors], axis=1)

    def cost(theta: float) -> float:
        return -float(problem.example.log_density(x, theta).sum())

    window = max(1e-4, truth - problem.window), min(1 - 1e-4, truth + problem.window)
    best = minimize_scalar(cost, bounds=window, method="bounded", options={"xatol": 1e-7}).x
    step = min(2e-3, 0.3 * best, 0.3 * (1 - best))
    bend = (cost(best + step) + cost(best - step) - 2 * cost(best)) / step**2
    return np.array([[best, 1 / math.sqrt(max(bend, 1e-12))]])


def judge(problem: Problem, seed: int, **options: Any) -> list[Row]:
    """Fit a problem and judge it at its true values."""
    templates = problem.templates(seed)
    began = time.process_time()
    model = gl.fit(templates, seed=seed, **options)
    cpu = time.process_time() - began
    check = 1.0 if model.check is None else model.check.p_value
    names = problem.example.parameters
    rows = []
    for i, truth in enumerate(problem.truths):
        pool = problem.example.sample(truth, CHUNKS * problem.observed, 1000 * seed + i)
        parts = np.split(pool, CHUNKS)
        curves = [model.likelihood(part) for part in parts]
        ours = [curve.maximum() for curve in curves]
        exact = np.array([exact_estimates(problem, part, truth) for part in parts])
        bad = float(np.mean([(e.p_value or 1.0) < 1e-3 for e in ours]))
        warned = tuple(sorted({w.name for e in ours for w in e.warnings}))
        for p, (name, true) in enumerate(zip(names, np.atleast_1d(truth).tolist(), strict=True)):
            results, best = [e[name] for e in ours], exact[:, p, 0]
            values, sigma = np.array([r.value for r in results]), float(exact[:, p, 1].mean())
            wide = [curve.interval(TWO_SIGMA, name) for curve in curves]
            rows.append(
                Row(
                    problem.name if len(names) == 1 else f"{problem.name} {name}", seed, truth,
                    float(np.mean(values - best)) / sigma,
                    float(np.nanmean([r.beyond or math.nan for r in results])) / sigma,
                    float(np.mean([r.stat for r in results])) / sigma,
                    float(values.std() / best.std()),
                    tuple((r.value - true) / r.error for r in results),
                    float(np.mean([r.interval[0] <= true <= r.interval[1] for r in results])),
                    float(np.mean([low <= true <= high for low, high in wide])),
                    bad, check, cpu, warned,
                )
            )  # fmt: skip
    return rows


COLUMNS = (
    "problem", "rms bias", "bias / stated", "stated / scatter", "stat / exact", "spread / exact",
    "68 %", "95 %", "bad fits", "least check", "CPU s", "warnings",
)  # fmt: skip


def table(rows: list[Row]) -> str:
    """A line for each problem, in Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for name in dict.fromkeys(row.problem for row in rows):
        own = [row for row in rows if row.problem == name]
        bias, beyond = (np.array([getattr(r, f) for r in own]) for f in ("bias", "beyond"))
        warned = sorted({w for r in own for w in r.warnings})
        cells = [
            f"{np.sqrt(np.mean(bias**2)):.2f}",
            f"{np.sqrt(np.nanmean((bias / beyond) ** 2)):.2f}",
            f"{_stated_over_scatter(own):.2f}",
            f"{np.mean([r.stat for r in own]):.3f}",
            f"{np.mean([r.spread for r in own]):.3f}",
            f"{np.mean([r.covered for r in own]):.1%}",
            f"{np.mean([r.covered_95 for r in own]):.1%}",
            f"{np.mean([r.bad_fits for r in own]):.1%}",
            f"{min(r.score_check for r in own):.2g}",
            f"{np.mean([r.cpu for r in own]):.1f}",
            ", ".join(warned),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    blank = " | " * 5
    covered, wide = (np.mean([getattr(r, f) for r in rows]) for f in ("covered", "covered_95"))
    lines.append(f"| all |{blank}{covered:.1%} | {wide:.1%} |{' |' * 4}")
    return "\n".join(lines)


def _stated_over_scatter(rows: list[Row]) -> float:
    """The stated uncertainty over the scatter of re-simulations, both as rms over true values."""
    stated, scatter = [], []
    for truth in {row.truth for row in rows}:
        own = [row for row in rows if row.truth == truth]
        if len(own) > 2:
            stated.append(np.nanmean([row.beyond**2 for row in own]))
            scatter.append(np.var([row.bias for row in own], ddof=1))
    return math.sqrt(np.mean(stated) / np.mean(scatter)) if scatter else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--half", choices=("choose", "judge"))
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[Row] = []
    for problem in PROBLEMS:
        if (chosen.only and problem.name not in chosen.only) or chosen.half not in (
            None,
            problem.half,
        ):
            continue
        own = [
            row
            for seed in range(chosen.first, chosen.first + chosen.seeds)
            for row in judge(problem, seed)
        ]
        print(table(own).splitlines()[2], flush=True)
        rows += own
    print(table(rows))
    if chosen.output:
        chosen.output.write_text(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
