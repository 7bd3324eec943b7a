"""`python -m benchmarks.defaults`: the study that decides the defaults of `fit`.

Objectives, priors, bases and ensembles on four problems with known likelihoods, several seeds each.
Prints rows of a Markdown table as they are finished; some 20 minutes on one core.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

import gridless as gl
from gridless.examples import Example, ManyObservables, OneObservable, TwoObservables
from gridless.templates.arrays import Array

VALUES = (0.1, 0.3, 0.5, 0.7, 0.9)
GAUSSIAN = {"basis": "gaussian"}
NO_OPTION = "no option"
# All but the first take the network's density at its word.
FITS: dict[str, dict[str, Any]] = {
    NO_OPTION: {"calibrate": True},
    "posterior, flat, 1 Gaussian": GAUSSIAN | {"objective": "posterior", "prior": "flat"},
    "penalty, flat, 1 Gaussian": GAUSSIAN | {"objective": "penalty", "prior": "flat"},
    "posterior, divide, 1 Gaussian": GAUSSIAN | {"objective": "posterior"},
    "template, flat, 1 Gaussian": GAUSSIAN | {"prior": "flat"},
    "template, divide, 1 Gaussian": GAUSSIAN,
    "template, divide, 2 Gaussians": GAUSSIAN | {"components": 2},
    "template, divide, 1 logistic": {"basis": "logistic"},
    "template, divide, exp of quadratic": {"basis": gl.ExpPolynomial(2, 0.05)},
    "template, divide, exp of cubic": {"basis": gl.ExpPolynomial(3, 0.05)},
    "template, divide, exp of quartic": {"basis": gl.ExpPolynomial(4, 0.05)},
    "template, divide, exp of cubic, ensemble of 4": {
        "basis": gl.ExpPolynomial(3, 0.05),
        "ensemble": 4,
    },
}


class Problem(NamedTuple):
    """Templates for a seed, samples of known theta, and the exact estimates of those."""

    example: Example
    events: int
    samples: list[Array]


def problems() -> dict[str, Callable[[], Problem]]:
    """What is measured, by name; samples are large so that the method's own errors show."""

    def sampled(example: Example, events: int) -> Problem:
        samples = [example.sample(t, 200_000, 1000 + i) for i, t in enumerate(VALUES)]
        return Problem(example, events, samples)

    one = OneObservable()
    return {
        "one": lambda: Problem(one, 100_000, [one.quantiles(t) for t in VALUES]),
        "two": lambda: sampled(TwoObservables(), 100_000),
        "ten": lambda: sampled(ManyObservables(), 100_000),
        "small": lambda: sampled(TwoObservables(), 5_000),
    }


def row(problem: Problem, options: dict[str, Any], seeds: range) -> str:
    """Bias in errors of 10,000 events, error over the exact one, slope and CPU seconds."""
    exact = [problem.example.likelihood(x).maximum() for x in problem.samples]
    sigma = [e.error * (e.events / 10_000) ** 0.5 for e in exact]
    bias, ratio, slopes, seconds = [], [], [], []
    for seed in seeds:
        templates = problem.example.templates(problem.events, seed)
        start = time.process_time()
        model = gl.fit(templates, seed=seed, replicas=0, **{"calibrate": False, **options})
        seconds.append(time.process_time() - start)
        found = [model.likelihood(x).maximum() for x in problem.samples]
        bias.append([(f.value - e.value) / s for f, e, s in zip(found, exact, sigma, strict=True)])
        ratio += [f.stat / e.error for f, e in zip(found, exact, strict=True)]
        slopes.append(np.polyfit(VALUES, [f.value for f in found], 1)[0])
    spread = np.array(bias)
    return (
        f"{np.sqrt((spread**2).mean()):.2f} | {np.abs(spread).max():.2f} | "
        f"{min(ratio):.3f} to {max(ratio):.3f} | {np.mean(slopes):.3f} | {np.mean(seconds):.0f}"
    )


def main() -> None:
    """Every fit on every problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=400, help="first seed")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--only", choices=list(FITS), help="one fit alone")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    print("| problem | fit | rms bias | largest | error / exact | slope | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name, make in problems().items():
        problem = make()
        for label, options in FITS.items():
            if arguments.only in (None, label):
                print(f"| {name} | {label} | {row(problem, options, seeds)} |", flush=True)


if __name__ == "__main__":
    main()
