"""Measurements that nobody chose: `python -m benchmarks.random_measurements --first 100`.

Each seed draws a signal of one to five observables, one to six systematics, none to two
backgrounds, how the variations are given, and the numbers of templates and of events. Every problem
is fitted once with the defaults, and judged beside the exact profiled likelihood. Nuisance
parameters of the pseudo-experiments are drawn from their constraints.
"""

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

import gridless as gl
from benchmarks.measurement_problems import TRUTHS, RandomMeasurement

PARTS = ("simulation", "model")  # of the budget


@dataclass(frozen=True)
class Row:
    """One problem. Differences are in units of the exact error."""

    seed: int
    difference: float  # rms to the exact estimates
    mean_difference: float
    error: float  # median ratio to the exact one
    beyond: float  # simulation and model in the budget, in exact errors
    covered: float  # share of the 68 percent intervals that contain the truth
    covered_95: float  # share of estimates within two errors
    exact_covered: float
    pull_width: float
    p_low: float  # share of p-values below 0.05
    bad_fits: float  # below 0.001
    cpu: float  # seconds of the fit
    cpu_each: float  # of an estimate
    toys: int
    warnings: dict[str, float]  # share of estimates with each
    values: tuple[tuple[float, ...], ...]  # truth, estimate, error, exact estimate, exact error, p


def judge(problem: RandomMeasurement, toys: int) -> Row:
    """Fit a problem, and judge it with pseudo-experiments."""
    templates, systematics, backgrounds = problem.simulate()
    began = time.process_time()
    model = gl.fit(templates, systematics=systematics, backgrounds=backgrounds, seed=problem.seed)
    fitted = time.process_time() - began
    random = np.random.default_rng([problem.seed, 29])
    rows, budgets, inside, warned, each = [], [], [], {}, 0.0  # type: ignore[var-annotated]
    for toy in range(toys):
        p = np.array([TRUTHS[toy % len(TRUTHS)], *problem.draw_alpha(random)])
        y = problem.observed_events(p, random)
        right, covariance = problem.exact(y, p)
        began = time.process_time()
        ours = model.likelihood(problem.seen(y)).maximum()
        each += (time.process_time() - began) / toys
        rows.append(
            (p[0], ours.value, ours.error, right[0], math.sqrt(covariance[0, 0]), ours.p_value)
        )
        budgets.append(math.hypot(*(ours.budget["theta"].get(name, 0.0) for name in PARTS)))
        inside.append(ours.interval[0] <= p[0] <= ours.interval[1])
        for name in {w.name for w in ours.warnings}:
            warned[name] = warned.get(name, 0.0) + 1 / toys
    true, value, error, best, bound, p_value = np.array(rows).T
    best = best.clip(0, 1)
    scale = float(np.median(bound))
    pulls = (value - true) / error
    return Row(
        problem.seed,
        float(np.sqrt(np.mean((value - best) ** 2))) / scale,
        float(np.mean(value - best)) / scale,
        float(np.median(error / bound)),
        float(np.median(budgets / bound)),
        float(np.mean(inside)),
        float(np.mean(np.abs(pulls) < 2)),
        float(np.mean(np.abs(best - true) < bound)),
        float(np.sqrt(np.mean(pulls**2))),
        float(np.mean(p_value < 0.05)),
        float(np.mean(p_value < 1e-3)),
        fitted,
        each,
        toys,
        {name: round(share, 3) for name, share in sorted(warned.items())},
        tuple(tuple(row) for row in rows),
    )


COLUMNS = (
    "seed", "difference", "mean", "error ratio", "simulation", "68 %", "95 %", "exact 68 %",
    "pulls", "p < 0.05", "p < 0.001", "CPU s", "warnings",
)  # fmt: skip


def line(row: Row) -> str:
    """A problem in a row of a table."""
    warned = ", ".join(f"{name} {share:.2f}" for name, share in row.warnings.items())
    cells = (
        str(row.seed), f"{row.difference:.2f}", f"{row.mean_difference:+.2f}", f"{row.error:.2f}",
        f"{row.beyond:.2f}", f"{row.covered:.1%}", f"{row.covered_95:.1%}",
        f"{row.exact_covered:.1%}", f"{row.pull_width:.2f}", f"{row.p_low:.1%}",
        f"{row.bad_fits:.1%}", f"{row.cpu:.0f}", warned,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def summary(rows: list[Row]) -> str:
    """All problems together."""

    def pooled(name: str) -> float:
        return float(np.mean([getattr(row, name) for row in rows]))

    worst = max(rows, key=lambda row: row.difference)
    return (
        f"{len(rows)} problems: 68 % {pooled('covered'):.1%} (exact "
        f"{pooled('exact_covered'):.1%}), lowest {min(row.covered for row in rows):.1%}; 95 % "
        f"{pooled('covered_95'):.1%}; difference, median "
        f"{np.median([row.difference for row in rows]):.2f}, worst {worst.difference:.2f} (seed "
        f"{worst.seed}); error ratio {np.median([row.error for row in rows]):.2f}, "
        f"{min(row.error for row in rows):.2f} to {max(row.error for row in rows):.2f}; p below "
        f"0.05 {pooled('p_low'):.1%}, below 0.001 {pooled('bad_fits'):.2%}; CPU of a fit "
        f"{pooled('cpu'):.0f} s"
    )


def main() -> None:
    """Judge the problems of some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--toys", type=int, default=100)
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    rows: list[Row] = []
    for seed in range(chosen.first, chosen.first + chosen.count):
        problem = RandomMeasurement(seed)
        if not problem.is_measurement():
            continue
        rows.append(judge(problem, chosen.toys))
        print(line(rows[-1]), problem, flush=True)
        if chosen.output:
            chosen.output.write_text(json.dumps([asdict(row) for row in rows]))
    if rows:
        print(summary(rows))


if __name__ == "__main__":
    main()
