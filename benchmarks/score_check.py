"""Does the score check tell a biased fit? `python -m benchmarks.score_check --seeds 3`.

Networks that are taken at their word (calibrate=False) over objectives and priors: the bias of each
against the exact likelihood, in errors of the observed number of events, and whether an estimate
from that many events is warned of. Where one template knows the bias to no better than such an
error, they cannot tell; what they leave open is in the uncertainty from simulation.
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
CAN_TELL = 1.0  # errors of the observed events to which one template alone knows a bias


class Case(NamedTuple):
    """One fit at one true value."""

    problem: str
    objective: str
    prior: str
    bias: float
    told: bool
    noise: float  # to which the templates know it


def cases(problem: Problem, seed: int, objective: str, prior: str) -> list[Case]:
    """The bias of a fit at each true value, and whether an estimate there is warned of."""
    options = {"objective": objective, "prior": prior, "calibrate": False, "replicas": 0}
    model = gl.fit(problem.templates(seed), seed=seed, **options)
    assert model.check is not None
    known = model.check.error / model.check.event_error * problem.observed**0.5
    noise = float(np.median(known))
    found = []
    for i, truth in enumerate(problem.truths):
        x = problem.example.sample(truth, POOL * problem.observed, 1000 * seed + i)
        exact, error = exact_estimates(problem, x, truth)[0]
        bias = (model.likelihood(x).maximum().value - exact) / (error * POOL**0.5)
        estimate = model.likelihood(x[: problem.observed]).maximum()
        told = any(warning.name == "score_check" for warning in estimate.warnings)
        found.append(Case(problem.name, objective, prior, abs(bias), told, noise))
    return found


def table(found: list[Case]) -> str:
    """How many were told, by how large the bias is, in Markdown."""
    heads = ["bias in errors", "fits and values", "told", "where the templates can tell", "told"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    able = [case for case in found if case.noise < CAN_TELL]
    for low, high in (*itertools.pairwise((0.0, 0.2, 0.5, 1.0, 2.0, np.inf)), (1.0, np.inf)):
        cells = [f"{low:g} to {high:g}"]
        for these in (found, able):
            own = [case.told for case in these if low <= case.bias < high]
            cells += [str(len(own)), f"{np.mean(own):.1%}" if own else ""]
        lines.append(f"| {' | '.join(cells)} |")
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
