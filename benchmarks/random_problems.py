"""Problems that nobody chose: `python -m benchmarks.random_problems --first 100 --count 40`.

Each seed draws a density: one to three processes of one to six observables whose places, widths and
shares change with one parameter or with two (`--parameters 2`), seen through functions that make
edges and tails; and the numbers of templates and of events. Every problem is fitted once with the
defaults and judged as in the zoo.
"""

import argparse
import json
import math
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import logsumexp

from benchmarks.zoo import Problem, Row, judge, table
from gridless.examples.example import Example
from gridless.templates.arrays import Array

VIEWS = (
    lambda y: y,
    lambda y: np.exp(0.7 * y),  # a long tail
    lambda y: np.arctan(2 * y),  # edges
    lambda y: y**3 + 0.1 * y,  # a peak and two tails
)
TRUTHS: dict[int, tuple[Any, ...]] = {
    1: (0.15, 0.35, 0.6, 0.85),
    2: ((0.3, 0.3), (0.4, 0.7), (0.7, 0.5)),
}
LEAST_ERRORS = 8  # of the observed events within the range: fewer are not a measurement
MOST_ERRORS = 300


class RandomMixture(Example):
    """sum_j f_j(theta) prod_d Gauss(y_d; m_jd(theta), s_jd(theta)), each y seen as x = view(y)."""

    def __init__(self, seed: int, parameters: int = 1) -> None:
        random = np.random.default_rng([seed, 17] if parameters == 1 else [seed, 17, parameters])
        self.count = int(random.integers(1 if parameters == 1 else 2, 7))
        self.processes = int(random.integers(1, 4))
        self.observables = tuple(f"x{d}" for d in range(self.count))
        if parameters > 1:
            self.parameters = tuple(f"theta{p}" for p in range(parameters))
        shape = (self.processes, self.count)
        of_each = shape if parameters == 1 else (parameters, *shape)
        depends = random.random(of_each) < 0.5
        for p in range(parameters):
            depends.reshape(parameters, *shape)[p, 0, p] = True
        self.place = random.normal(0, 0.8, shape)
        self.moves = depends * random.normal(0, 1, of_each) * 10 ** random.uniform(-0.8, 0.5)
        self.bends = self.moves * random.uniform(-0.4, 0.4, of_each)
        self.log_width = random.normal(-0.2, 0.4, shape)
        self.grows = (random.random(of_each) < 0.3) * random.normal(0, 0.5, of_each)
        self.log_share = random.normal(0, 0.8, self.processes)
        of_share = self.processes if parameters == 1 else (parameters, self.processes)
        self.shares_move = random.normal(0, 1, of_share) * (random.random() < 0.4)
        self.views = random.integers(0, len(VIEWS), self.count)

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        shares = np.exp(self._log_shares(theta))
        process = (random.random(len(theta))[:, None] > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)
        places, log_widths = self._shape(theta)
        row = np.arange(len(theta)), process
        noise = random.normal(size=(len(theta), self.count))
        return self._seen(places[row] + np.exp(log_widths[row]) * noise)

    def log_density(self, x: Array, theta: Any) -> Array:
        """Up to the derivatives of the views, which do not depend on theta."""
        y = np.stack([_inverse(view, column) for view, column in zip(self.views, x.T, strict=True)])
        t = np.asarray(theta, float)[None]
        places, log_widths = self._shape(t)
        pulls = (y.T[:, None] - places) / np.exp(log_widths)
        of_process = -(0.5 * pulls**2 + log_widths).sum(axis=2) + self._log_shares(t)
        return np.asarray(logsumexp(of_process, axis=1))

    def _seen(self, y: Array) -> Array:
        return np.stack([VIEWS[v](c) for v, c in zip(self.views, y.T, strict=True)], axis=1)

    def _shape(self, theta: Array) -> tuple[Array, Array]:
        """Places and logs of widths (events, processes, observables)."""
        t = theta.reshape(len(theta), -1)
        moves, bends, grows = (
            one.reshape(t.shape[1], -1) for one in (self.moves, self.bends, self.grows)
        )
        shape = (-1, self.processes, self.count)
        places = self.place + (t @ moves + t**2 @ bends).reshape(shape)
        return places, self.log_width + (t @ grows).reshape(shape)

    def _log_shares(self, theta: Array) -> Array:
        t = theta.reshape(len(theta), -1)
        scores = self.log_share + t @ self.shares_move.reshape(t.shape[1], -1)
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))


def _inverse(view: int, x: Array) -> Array:
    """y of x = view(y)."""
    if view == 0:
        return x
    if view == 1:
        return np.asarray(np.log(x) / 0.7)
    if view == 2:
        return np.asarray(np.tan(x) / 2)
    # y^3 + p y = x has one root, by hyperbolic functions.
    p = 0.1
    return np.asarray(2 * math.sqrt(p / 3) * np.sinh(np.arcsinh(1.5 * x * math.sqrt(3 / p**3)) / 3))


def random_problem(seed: int, parameters: int = 1) -> Problem | None:
    """The problem of a seed; None where it is no measurement: nearly nothing to tell, or all."""
    random = np.random.default_rng([seed, 18])
    example = RandomMixture(seed, parameters)
    if parameters == 1:
        at: Any = int(random.integers(5, 21))
        templates = at
    else:
        axes = [np.linspace(0, 1, random.integers(4, 7)) for _ in range(parameters)]
        at = tuple(product(*axes))
        templates = len(at)
    events = int(10 ** random.uniform(3, 4.5 if parameters == 1 else 3.8))
    observed = int(events * templates * 10 ** random.uniform(-2, -0.5))
    truths = TRUTHS[parameters]
    if not LEAST_ERRORS < _errors_in_range(example, observed, truths) < MOST_ERRORS:
        return None
    return Problem(f"random {seed}", "judge", example, events, at, observed, truths)


def _errors_in_range(example: RandomMixture, observed: int, truths: tuple[Any, ...]) -> float:
    """How many statistical errors fit into the range, at the worst true value and parameter."""
    step, found = 0.01, []
    for truth in truths:
        x = example.sample(truth, 20_000, 1)
        slopes = []
        for p in range(len(example.parameters)):
            move = step * np.eye(len(example.parameters))[p].reshape(np.shape(truth))
            up, down = (example.log_density(x, truth + s * move) for s in (1, -1))
            slopes.append((up - down) / (2 * step))
        covariance = np.linalg.pinv(np.cov(slopes).reshape(len(slopes), -1))
        found.append(math.sqrt(observed / np.diag(covariance).max()))
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--parameters", type=int, choices=(1, 2), default=1)
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[Row] = []
    for seed in range(chosen.first, chosen.first + chosen.count):
        problem = random_problem(seed, chosen.parameters)
        if problem is None:
            continue
        own = judge(problem, seed)
        templates = problem.at if isinstance(problem.at, int) else len(problem.at)
        shape = f"{templates} x {problem.events}, {problem.observed} observed"
        for line in table(own).splitlines()[2:-1]:
            print(line, len(problem.example.observables), "observables,", shape, flush=True)
        rows += own
        if chosen.output:
            chosen.output.write_text(json.dumps([asdict(row) for row in rows]))
    print(table(rows).splitlines()[-1])


if __name__ == "__main__":
    main()
