"""What the checks of a result are worth, on problems whose density is known.

python -m benchmarks.proof virtual expected coverage leave binned untrained plan shares faults

Each part prints lines; the figures in docs/howto/review.md are from it.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.stats import chi2, kstest

import gridless as gl
from benchmarks.zoo import PROBLEMS, Problem
from gridless import examples
from gridless.model.simulating import _sums

LEVELS = (0.683, 0.954)
SIMULATIONS = 40  # made anew, of which coverage is the mean
SHARED = 20  # simulations in the shares of a plan, and as many in equal ones
BY_ZOO = {problem.name: problem for problem in PROBLEMS}
QUICK = ("one", "two", "hard_to_tell", "width", "angle_count")
# Templates too far apart for what changes between them.
FAR_APART = tuple(
    replace(
        BY_ZOO[name],
        name=f"{name}_{count}",
        events=20_000,
        at=tuple(np.linspace(0.05, 0.95, count)),
    )
    for name, count in (
        ("width", 3), ("width", 4), ("two_solutions", 3), ("two_solutions", 4), ("angle_count", 3),
        ("angle_count", 4), ("heavy", 3), ("two", 3), ("sharp", 4), ("sharp", 5),
    )
)  # fmt: skip
BY_NAME = BY_ZOO | {problem.name: problem for problem in FAR_APART}


@lru_cache(maxsize=2)
def model_of(name: str, seed: int) -> gl.Model:
    """The model of a problem with the defaults."""
    return gl.fit(BY_NAME[name].templates(seed), seed=seed)


def inside(model: gl.Model, count: int) -> np.ndarray:
    """Values of theta between the templates; of several parameters along a diagonal."""
    low, high = model.grid.values.min(axis=0), model.grid.values.max(axis=0)
    found = np.linspace(low, high, count + 2)[1:-1] + 1e-3
    return found if len(low) > 1 else found[:, 0]


def virtual(problem: Problem, seed: int) -> str:
    """Virtual templates at ten values between templates against exact simulation."""
    model = model_of(problem.name, seed)
    found, sizes = [], []
    for i, theta in enumerate(inside(model, 10)):
        at = model.at(theta)
        sizes.append(at.effective_size)
        fresh = problem.example.sample(theta, 50_000, seed=1_000 + i)
        found += [at.p_value(n, x) for n, x in zip(at.observables, fresh.T, strict=True)]
    uniform = kstest(found, "uniform").pvalue
    low = np.mean(np.array(found) < 0.05)
    return (
        f"{len(found)} p-values, least {min(found):.2g}, below 0.05 {low:.0%}, "
        f"uniform with p = {uniform:.2f}; effective size {min(sizes):,.0f} to {max(sizes):,.0f}"
    )


def expected(problem: Problem, seed: int) -> str:
    """Expected error and budget against the mean of 500 pseudo-experiments."""
    model, truth = model_of(problem.name, seed), problem.truths[len(problem.truths) // 2]
    events = problem.observed
    before = model.expected(truth, events).maximum()
    pool = problem.example.sample(truth, 500 * events, seed=11)
    found = [model.likelihood(part).maximum() for part in np.split(pool, 500)]
    found = [one for one in found if one.valid]
    ratio = before.error / np.mean([one.error for one in found])
    budget = before.simulation / np.mean([one.simulation for one in found])
    return f"error {ratio:.3f} of the mean, simulation {budget:.3f} ({len(found)} of 500 inside)"


def coverage(_problem: Problem, seed: int) -> str:
    """Feldman-Cousins and Wilks at a bound, half an error from it, and far away; with other
    simulation every time, whose fluctuations belong to the total. Observed events are drawn from
    exact quantiles: the mean of a random pool of 100,000 events is off by a third of the error of
    10,000 already, which looks like too little coverage."""
    example = examples.OneObservable()
    found: dict[tuple[int, str], list[list[float]]] = {}
    for number in range(seed, seed + SIMULATIONS):
        model = gl.fit(example.templates(20_000, number), hidden=3, epochs=3, seed=number)
        for events in (20, 10_000):
            error = 1 / np.sqrt(events)  # about that of one event
            for place, theta in (("bound", 0.0), ("half", min(0.5, 0.5 * error)), ("far", 0.5)):
                pool = example.quantiles(theta, 100_000)
                found.setdefault((events, place), []).append(
                    _covered(model, theta, events, pool, number)
                )
    lines = []
    for (events, place), rows in found.items():
        mean, error_of = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
        lines.append(
            f"\n    {events} events, {place}: {mean[0]:.3f} +- {error_of[0]:.3f}, {mean[1]:.3f} +- "
            f"{error_of[1]:.3f} (Wilks {mean[2]:.3f}, {mean[3]:.3f})"
        )
    return "".join(lines)


def _covered(
    model: gl.Model, theta: float, events: int, pool: np.ndarray, seed: int
) -> list[float]:
    """Shares of 2,000 samples of exact simulation whose intervals contain theta."""
    likelihood = model.expected(theta, events)
    experiments = likelihood.experiments()
    experiments.widths = np.array([0.02])
    t = likelihood.grid.to_unit([theta])
    lattice = experiments.lattice(t, 0)
    curves = experiments.curves(t, lattice.points)
    rises, _ = lattice.rises(curves(experiments.draw(t, 4_000, (0, 0, 1))))
    y = model.event_vectors(pool)[0].double().numpy()
    weights = np.full(len(y), 1 / len(y))
    vectors = _sums(y, weights, events, 2_000, np.random.default_rng(seed))
    observed, _ = lattice.rises(curves(vectors))
    middle = model.expected(0.5, events).maximum()
    wider = (middle.error / middle.stat) ** 2  # what the total adds to a rise of Wilks
    limits = [np.quantile(rises, level) for level in LEVELS]
    limits += [0.5 * wider * chi2.ppf(level, 1) for level in LEVELS]
    return [float((observed <= limit).mean()) for limit in limits]


def leave(problem: Problem, seed: int) -> str:
    """Leave one template out, and what is open between templates."""
    began = time.process_time()
    model = model_of(problem.name, seed)
    try:
        found = gl.leave_one_out(model)
        text = (
            f"chi2/dof {found.chi2:.1f}/{found.dof}, p {chi2.sf(found.chi2, max(1, found.dof)):.2g}"
        )
    except gl.InputError:
        text = "chi2 needs four templates"
    gap = gl.gaps(model, problem.observed).widest
    biases = []
    for i, truth in enumerate(inside(model, 8)):
        one = model.likelihood(problem.example.sample(truth, 200_000, seed=500 + i)).maximum()
        if one.valid:
            biases.append((one.values - truth) / one.errors)
    told = "too far apart" if gap.wide else "close enough"
    used = time.process_time() - began
    return (
        f"{told}: open {gap.ratio:.2f} of stat, {gap.left_open / gap.simulation:.2f} of "
        f"simulation; {text}; pulls of 200,000 events {np.sqrt(np.mean(np.square(biases))):.2f} "
        f"({len(biases)}), {used:.2f} s"
    )


def binned(problem: Problem, seed: int) -> str:
    """The binned check with a trained network."""
    return _binned(problem, model_of(problem.name, seed), seed)


def untrained(problem: Problem, seed: int) -> str:
    """The binned check with a network of a single epoch."""
    model = gl.fit(problem.templates(seed), seed=seed, epochs=1, hidden=4)
    return _binned(problem, model, seed)


def _binned(problem: Problem, model: gl.Model, seed: int) -> str:
    own, result, differences, ratios = [], [], [], []
    for i, truth in enumerate(problem.truths):
        for number in range(4):
            x = problem.example.sample(truth, problem.observed, seed=100 * seed + 10 * i + number)
            fit, one = gl.binned_check(model, x).fits[1], model.likelihood(x).maximum()
            own.append((fit.value - truth) / fit.error)
            result.append((one.values - truth) / one.errors)
            differences.append(fit.pull)
            if one.valid:
                ratios.append(fit.error / one.errors)
    rms = np.sqrt(np.mean(np.square(differences)))
    ratio = np.mean(ratios, axis=0).max()
    return (
        f"pull {np.mean(own):+.2f} +- {np.std(own):.2f} (result {np.mean(result):+.2f} +- "
        f"{np.std(result):.2f}), difference rms {rms:.2f}, error {ratio:.2f} of the result's"
    )


def plan(problem: Problem, seed: int) -> str:
    """The error of the full simulation, predicted from a tenth of it."""
    events = np.asarray(problem.events) // 10
    tenth = replace(problem, events=int(events) if events.ndim == 0 else tuple(events.tolist()))
    pilot = gl.plan(gl.fit(tenth.templates(seed + 1), seed=seed), problem.observed)
    full = gl.plan(model_of(problem.name, seed), problem.observed)
    predicted = pilot.errors[pilot.factors == 10.0][0, 2]
    found = full.errors[full.factors == 1.0][0, 2]
    rough = "".join(f", {word}: rough" for word in ("weak", "growing") if getattr(pilot, word))
    return (
        f"predicted {predicted:.4g}, found {found:.4g}, ratio {predicted / found:.3f}, known to "
        f"{pilot.uncertainty:.0%}{rough}"
    )


def shares(_problem: Problem, seed: int) -> str:
    """Simulating by the plan's shares against equal ones, measured by doing both."""
    example, truth, observed, at = (
        examples.OneObservable(0.7),
        0.05,
        20_000,
        (0.05, 0.35, 0.65, 0.95),
    )
    pilot = gl.fit(example.templates(2_000, seed, at=at), seed=seed)
    made = gl.plan(pilot, observed, simulated=80_000, theta=truth)
    spread = {}
    for name, numbers in (
        ("plan", [2_000 + round(80_000 * share) for share in made.shares]),
        ("equal", [22_000] * 4),
    ):
        values = []
        x = example.sample(truth, 10 * observed, seed=3)
        for number in range(SHARED):
            model = gl.fit(example.templates(numbers, 100 + number, at=at), hidden=4, seed=seed)
            values.append(model.likelihood(x).maximum().value)
        spread[name] = np.std(values, ddof=1)
    ratio = spread["plan"] / spread["equal"]
    stat = made.errors[made.factors == 10.0][0, 0]
    parts = [np.sqrt(total**2 - stat**2) for total in (made.shared_error, made.equal_error)]
    return (
        f"{made.advice}: shares {np.round(made.shares, 2)}, predicted "
        f"{made.shared_error / made.equal_error:.2f} of the total and {parts[0] / parts[1]:.2f} of "
        f"the part from simulation; its measured spread {ratio:.2f} +- "
        f"{ratio / np.sqrt(2 * (SHARED - 1)):.2f}"
    )


def faults(problem: Problem, seed: int) -> str:
    """Faults, and the questions of the review that tell them."""
    example = problem.example
    right = problem.templates(seed)
    theta, x, grid = right.theta[:, 0], right.x, right.grid.values[:, 0]
    number = right.template
    data = example.sample(0.4, 10_000, seed=3)
    random = np.random.default_rng(1)

    def fitted(x: np.ndarray, theta: np.ndarray, weights: np.ndarray | None = None) -> gl.Model:
        names = right.observables
        return gl.fit(gl.Templates(x, theta, (0, 1), weights, observables=names), seed=seed)

    swapped = theta.copy()
    swapped[number == 3], swapped[number == 6] = grid[6], grid[3]
    mixed, own = x.copy(), np.flatnonzero(number == 4)
    some = own[: len(own) // 5]
    mixed[some] = example.sample(grid[8], len(some), seed=9)
    weights = np.ones(len(x))
    weights[number == 5] = np.where(x[number == 5, 0] > np.median(x[number == 5, 0]), 1.3, 1.0)
    strange = data.copy()
    strange[:500] = strange[random.integers(0, len(data), 500)] * 0.3 + 1.5
    shifted = data.copy()
    shifted[:, -1] += 0.2 * data[:, -1].std()
    model = model_of(problem.name, seed)
    cases = {
        "none": (model, data),
        "contamination 5%": (model, strange),
        "templates swapped": (fitted(x, swapped), data),
        "a fifth of one template": (fitted(mixed, theta), data),
        "wrong weight": (fitted(x, theta, weights), data),
        "shift of 0.2 widths": (model, shifted),
    }
    lines = []
    for name, (one, events) in cases.items():
        found = gl.review(one, events, toys=500)
        told = [
            f"{n} ({a.verdict})"
            for n, a in found.answers.items()
            if a.verdict in ("bad", "careful") and n not in ("reproducible", "simulation")
        ]
        warned = sorted({w.name for w in one.likelihood(events).maximum().warnings})
        lines.append(f"\n    {name}: {', '.join(told) or 'nothing'}; warnings {', '.join(warned)}")
    return "".join(lines)


PARTS: dict[str, Callable[[Problem, int], str]] = {
    one.__name__: one
    for one in (virtual, expected, coverage, leave, binned, untrained, plan, shares, faults)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    parser.add_argument("--problems", nargs="+", default=QUICK, choices=list(BY_NAME))
    parser.add_argument("--seeds", nargs="+", type=int, default=[7])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", gl.GridlessWarning)
    # Parts of one problem use the same model.
    for name, seed, part in product(arguments.problems, arguments.seeds, arguments.parts):
        began = time.process_time()
        text = PARTS[part](BY_NAME[name], seed)
        used = time.process_time() - began
        print(f"{part:9} {name:13} seed {seed}: {text}  [{used:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
