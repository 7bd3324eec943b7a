"""`python -m benchmarks.beyond [name ...]`: what gridless does beyond the paper, measured.

Bias is against the exact likelihood's estimate on the same events, in errors of 10,000 events.
"""

import argparse
import resource
from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import chi2, qmc

import gridless as gl
from gridless.examples import Example, ManyObservables, OneObservable, TwoObservables, TwoParameters
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.arrays import Array

UNEQUAL = (0, 0.03, 0.08, 0.15, 0.3, 0.5, 0.55, 0.8, 0.95, 1)
SIZES = tuple(1000 * n for n in (20, 200, 50, 100, 30, 150, 20, 100, 60, 200))
POINTS = ((0.3, 0.3), (0.7, 0.7), (0.5, 0.5), (0.3, 0.7), (0.7, 0.3))


def compare(example: Example, model: gl.Model, samples: list[Array]) -> tuple[Array, Array]:
    """Bias in errors of 10,000 events, and errors over the exact ones."""
    bias, ratio = [], []
    for x in samples:
        found, exact = model.likelihood(x).maximum(), example.likelihood(x).maximum()
        sigma = exact.errors * (exact.events / 10_000) ** 0.5
        bias.append((found.values - exact.values) / sigma)
        ratio.append([one.stat for one in found.results] / exact.errors)
    return np.array(bias), np.array(ratio)


def show(label: str, bias: Array, ratio: Array) -> None:
    """One line of figures."""
    print(
        f"{label}: largest |bias| {np.abs(bias).max():.2f}, rms {np.sqrt((bias**2).mean()):.2f}, "
        f"error {ratio.min():.3f} to {ratio.max():.3f}",
        flush=True,
    )


def unequal(first: int) -> None:
    """1-D, templates anywhere and of any size."""
    example = OneObservable()
    samples = [example.quantiles(t) for t in np.linspace(0.1, 0.9, 9)]
    for seed in range(first, first + 5):
        model = gl.fit(example.templates(SIZES, seed, at=UNEQUAL), seed=seed)
        show(f"unequal, seed {seed}", *compare(example, model, samples))


def ten(first: int) -> None:
    """Ten observables."""
    example = ManyObservables()
    samples = [
        example.sample(t, 100_000, 2000 + i) for i, t in enumerate((0.1, 0.3, 0.5, 0.7, 0.9))
    ]
    for seed in range(first, first + 3):
        model = gl.fit(example.templates(100_000, seed), seed=seed)
        show(f"ten observables, seed {seed}", *compare(example, model, samples))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"peak memory of the process: {peak:.2f} GB", flush=True)


def two_parameters(first: int) -> None:
    """Two parameters, on a grid and scattered, with the coverage of the 68 percent contour."""
    example = TwoParameters()
    samples = [example.sample(p, 200_000, 3000 + i) for i, p in enumerate(POINTS)]
    found: dict[str, list[Array]] = {}
    for seed in range(first, first + 5):
        scattered = qmc.LatinHypercube(2, rng=seed).random(40)
        kinds = {
            "grid 5 x 5": example.templates(40_000, seed, templates=5),
            "40 scattered": example.templates(40_000, seed, at=scattered),
        }
        for kind, templates in kinds.items():
            model = gl.fit(templates, seed=seed)
            bias, ratio = compare(example, model, samples)
            show(f"two parameters, {kind}, seed {seed}", bias, ratio)
            found.setdefault(kind, []).append(bias)
            covered = sum(
                inside(model.likelihood(example.sample(p, 2_000, 10_000 + 100 * i + j)), p)
                for i, p in enumerate(POINTS)
                for j in range(100)
            )
            print(f"  contour of 68 percent covers in {covered / 500:.1%} of 500", flush=True)
    for kind, biases in found.items():
        mean = np.abs(np.mean(biases, axis=0)).max()
        print(f"two parameters, {kind}: largest |mean bias| of {len(biases)} seeds {mean:.2f}")


def inside(likelihood: Likelihood, truth: tuple[float, ...]) -> bool:
    """Whether the 68.27 percent contour contains the truth."""
    return bool(2 * likelihood.scan(np.array(truth)) < chi2.ppf(0.6827, len(truth)))


def weights(first: int) -> None:
    """1-D with 30 percent of the weights equal to -1, and weighted observed events."""
    example = OneObservable()
    samples = [example.quantiles(t) for t in np.linspace(0.1, 0.9, 9)]
    for seed in range(first, first + 5):
        model = gl.fit(negative(100_000, seed), seed=seed)
        bias, ratio = compare(example, model, samples)
        # 10,000 events of which 30 percent count -1 are worth 10,000 x 0.4^2.
        show(f"negative weights, seed {seed}, effective statistics", 0.4 * bias, ratio)
    random = np.random.default_rng(first)
    covered = 0
    for _ in range(500):
        theta = random.uniform(0.25, 0.75)
        x = random.normal(theta, 1, (2_000, 1))
        low, high = (
            model.likelihood(x, random.exponential(1, 2_000)).maximum()["theta"].stat_interval
        )
        covered += low < theta < high
    print(f"weighted observed events: interval covers in {covered / 500:.1%} of 500", flush=True)


def negative(events: int, seed: int) -> gl.Templates:
    """Templates of x ~ N(theta, 1) in which 30 percent of the events, narrower ones, count -1.

    The other 70 percent are what makes up for them: 0.4 of N(theta, 1) and 0.3 of N(theta, 0.8).
    """
    random = np.random.default_rng(seed)
    theta = np.repeat(gl.grid((0, 1), 10), events)
    minus = random.random(len(theta)) < 0.3
    narrow = minus | (random.random(len(theta)) < 0.3 / 0.7)
    x = random.normal(theta, np.where(narrow, 0.8, 1.0))
    return gl.Templates(x, theta, (0, 1), weights=np.where(minus, -1.0, 1.0))


def small(first: int) -> None:
    """Ten templates of 5,000 in the 2-D example, ten trainings."""
    example = TwoObservables()
    values = np.linspace(0.1, 0.9, 9)
    slopes, both, statistical = [], [], []
    for seed in range(first, first + 10):
        model = gl.fit(example.templates(5_000, seed), basis="gaussian", components=2, seed=seed)
        table = gl.closure(
            model, [(t, example.sample(t, 20_000, 100 * seed + i)) for i, t in enumerate(values)]
        )
        slopes.append(table.slope)
        both.append(table.pull)
        errors = np.array([estimate.stat for estimate in table.estimates])
        statistical.append((table.value - table.true) / errors)
    widths = [np.sqrt((np.array(pulls) ** 2).mean()) for pulls in (both, statistical)]
    print(
        f"small samples, 10 trainings: slope {np.mean(slopes):.3f} (spread {np.std(slopes):.3f}), "
        f"pull width {widths[0]:.2f}, with the statistical error alone {widths[1]:.2f}",
        flush=True,
    )


def main() -> None:
    """The chosen checks, or all."""
    checks: dict[str, Callable[[int], None]] = {
        check.__name__: check for check in (unequal, ten, two_parameters, weights, small)
    }
    parser = argparse.ArgumentParser(description=__doc__)
    names = ", ".join(checks)
    parser.add_argument("checks", nargs="*", metavar="check", help=f"some of {names}; or all")
    parser.add_argument("--first", type=int, default=500, help="first seed")
    arguments = parser.parse_args()
    for name in arguments.checks:
        if name not in checks:
            parser.error(f"no check {name!r}; there are {names}")
    torch.set_num_threads(1)
    for name in arguments.checks or checks:
        checks[name](arguments.first)


if __name__ == "__main__":
    main()
