"""Does the score check tell a biased fit? `python -m benchmarks.score_check --seeds 3`.

Networks that are taken at their word (calibrate=False) over objectives and priors: the bias of each
against the exact likelihood, in errors of the observed number of events, and whether an estimate
from that many events is warned of.
"""

import argparse
import itertools
from typing import NamedTuple

import numpy as np
import torch

import gridless as gl
from benchmarks.zoo import PROBLEMS, Problem, exact_estimates

NAMES = ("one", "two", "unequal", "share", "small", "width", "heavy", "cut")
OPTIONS = tuple(itertools.product(("posterior", "template"), ("flat", "divide")))
POOL = 20  # times the observed events, for the bias


class Case(NamedTuple):
    """One fit at one true value."""

    problem: str
    objective: str
    prior: str
    bias: float
    told: bool


def cases(problem: Problem, seed: int, objective: str, prior: str) -> list[Case]:
    """The bias of a fit at each true value, and whether an estimate there is warned of."""
    options = {"objective": objective, "prior": prior, "calibrate": False, "replicas": 0}
    model = gl.fit(problem.templates(seed), seed=seed, **options)
    found = []
    for i, truth in enumerate(problem.truths):
        x = problem.example.sample(truth, POOL * problem.observed, 1000 * seed + i)
        exact, error = exact_estimates(problem, x, truth)[0]
        bias = (model.likelihood(x).maximum().value - exact) / (error * POOL**0.5)
        estimate = model.likelihood(x[: problem.observed]).maximum()
        told = any(warning.name == "score_check" for warning in estimate.warnings)
        found.append(Case(problem.name, objective, prior, abs(bias), told))
    return found


def table(found: list[Case]) -> str:
    """How many were told, by how large the bias is, in Markdown."""
    lines = ["| bias in errors | fits and values | told |", "|---|---|---|"]
    for low, high in itertools.pairwise((0.0, 0.2, 0.5, 1.0, 2.0, np.inf)):
        own = [case.told for case in found if low <= case.bias < high]
        share = f"{np.mean(own):.1%}" if own else ""
        lines.append(f"| {low:g} to {high:g} | {len(own)} | {share} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=NAMES)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    found: list[Case] = []
    for problem in PROBLEMS:
        if problem.name in chosen.only:
            for seed in range(chosen.first, chosen.first + chosen.seeds):
                for objective, prior in OPTIONS:
                    found += cases(problem, seed, objective, prior)
            print(problem.name, len(found), flush=True)
    print(table(found))
    for case in found:
        if (case.bias > 1 and not case.told) or (case.bias < 0.2 and case.told):
            print(case)


if __name__ == "__main__":
    main()
