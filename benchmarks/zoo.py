"""Fits of every problem of the zoo with the defaults, judged by the exact likelihood.

python -m benchmarks.zoo --seeds 6 --first 100 [--only NAME ...] [--half choose|judge]

Half of the problems are for choosing settings, the others for judging them.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

import gridless as gl
from gridless import examples
from gridless.examples import Example

CHUNKS = 20  # pseudo-experiments at each value of theta


@dataclass(frozen=True)
class Problem:
    """An example with its templates, and how many events are observed."""

    name: str
    half: str
    example: Example
    events: int | tuple[int, ...] = 20_000
    at: tuple[float, ...] | int = 10
    observed: int = 10_000
    truths: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    negative: float = 0.0  # share of the templates' events with weight -1

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
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One fit at one true value; errors are in units of the exact error of the observed number."""

    problem: str
    seed: int
    truth: float
    bias: float
    simulation: float
    stat: float
    spread: float
    pulls: tuple[float, ...]
    p_values: tuple[float, ...]
    cpu: float
    warnings: tuple[str, ...]


def judge(problem: Problem, seed: int, fit: Callable[..., gl.Model] = gl.fit) -> list[Row]:
    """Fit a problem and judge it at its true values."""
    templates = problem.templates(seed)
    began = time.process_time()
    model = fit(templates, seed=seed)
    cpu = time.process_time() - began
    rows = []
    for i, truth in enumerate(problem.truths):
        pool = problem.example.sample(truth, CHUNKS * problem.observed, 1000 * seed + i)
        exact, ours, results = [], [], []
        for part in np.split(pool, CHUNKS):
            results.append(model.likelihood(part).maximum())
            ours.append(results[-1].value)
            exact.append(problem.example.likelihood(part).maximum())
        values = np.array([e.value for e in exact])
        sigma = float(np.mean([e.stat for e in exact]))
        at_bound = [r.simulation is None for r in results]
        simulation = float(np.mean([r.simulation or np.nan for r in results]))
        stat = float(np.mean([r.stat for r in results]))
        spread = float(np.std(ours) / np.std(values)) if not any(at_bound) else float("nan")
        pulls = tuple((r.value - truth) / r.error for r in results)
        rows.append(
            Row(
                problem.name, seed, truth, float(np.mean(np.array(ours) - values)) / sigma,
                simulation / sigma, stat / sigma, spread, pulls,
                tuple(r.p_value or np.nan for r in results), cpu,
                tuple(sorted({w.name for r in results for w in r.warnings})),
            )
        )  # fmt: skip
    return rows


def table(rows: list[Row]) -> str:
    """A line for each problem."""
    lines = [
        "| problem | rms bias | bias / simulation | simulation / scatter | stat / exact | spread / exact "
        "| 68 % | 95 % | bad p | CPU s | warnings |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row.problem for row in rows):
        own = [row for row in rows if row.problem == name]
        bias, sim = np.array([r.bias for r in own]), np.array([r.simulation for r in own])
        stat, spread = np.array([r.stat for r in own]), np.array([r.spread for r in own])
        pulls = np.abs(np.concatenate([r.pulls for r in own]))
        p = np.concatenate([r.p_values for r in own])
        scatter = []
        for truth in sorted({r.truth for r in own}):
            at = np.array([r.bias for r in own if r.truth == truth])
            claimed = np.array([r.simulation for r in own if r.truth == truth])
            if len(at) > 2:
                scatter.append((np.sqrt(np.nanmean(claimed**2)), at.std(ddof=1)))
        ratio = (
            np.sqrt(np.mean([s[0] ** 2 for s in scatter]) / np.mean([s[1] ** 2 for s in scatter]))
            if scatter
            else np.nan
        )
        warned = sorted({w for r in own for w in r.warnings})
        lines.append(
            f"| {name} | {np.sqrt(np.mean(bias**2)):.2f} | {np.sqrt(np.nanmean((bias / sim) ** 2)):.2f} "
            f"| {ratio:.2f} | {np.mean(stat):.3f} | {np.nanmean(spread):.3f} | {(pulls < 1).mean():.1%} "
            f"| {(pulls < 2).mean():.1%} | {np.mean(p < 1e-3):.1%} | {np.mean([r.cpu for r in own]):.1f} "
            f"| {', '.join(warned)} |"
        )
    pulls = np.abs(np.concatenate([r.pulls for r in rows]))
    lines.append(f"| all | | | | | | {(pulls < 1).mean():.1%} | {(pulls < 2).mean():.1%} | | | |")
    return "\n".join(lines)


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
