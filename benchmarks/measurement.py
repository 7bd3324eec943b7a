"""Whole measurements with known answers: how close gridless comes.

python -m benchmarks.measurement [exact|mass|many|intervals ...] [--events 100000] [--toys 40]

exact: eight systematics and a background, beside the exact profiled likelihood, with variations
made of the same events, of weights and of independent events. mass: a top mass with an in-situ jet
energy scale, whose unbinned bound is known. many: the time of a fit with fifty nuisance parameters.
intervals: coverage of Feldman-Cousins beside that of Wilks, near a bound and far from it.
"""

import argparse
import json
import pickle
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.stats import norm

import gridless as gl
from gridless.examples import Nuisances
from gridless.templates.arrays import Array

WINDOW = ((60.0, 100.0), (130.0, 210.0))  # GeV, of the W and the top mass
SIGNAL = 10_000  # events expected before the window
BACKGROUND = 1_000
JES = 0.02  # one standard deviation of the jet energy scale
LEVELS = (0.683, 0.954)
BELT_TOYS = 1_000  # pseudo-experiments that an interval by construction is asked of
PARTS = ("statistics", "simulation", "model")


def exact(
    events: int, toys: int, seeds: Sequence[int], kinds: tuple[str, ...], observed: int
) -> dict[str, Any]:
    """Pseudo-experiments with nuisance parameters from their constraints, beside the exact fit."""
    example, found = Nuisances(), {}
    for kind in kinds:
        rows, impacts, truths = [], [], []
        start = time.perf_counter()
        for seed in seeds:
            model = example.fit(events, seed, kind)
            random = np.random.default_rng(1000 + seed)
            for _ in range(toys):
                theta, alpha = random.uniform(0.2, 0.8), random.normal(size=9)
                x = example.observed(np.full(observed, theta), alpha, random)
                ours = model.likelihood(x).maximum()
                right = example.exact(x, np.concatenate([[theta], alpha]))
                rows.append((ours.value, ours.error, right.value, right.error, theta, ours.p_value))
                impacts.append([abs(ours.impacts["theta"][name]) for name in example.nuisances])
                truths.append(np.abs(right.impacts))
        value, error, best, bound, theta, p = np.array(rows).T
        scale = np.median(bound)
        found[kind] = {
            "bias_rms": float(np.sqrt(np.mean((value - best) ** 2)) / scale),
            "bias_mean": float(np.mean(value - best) / scale),
            "error_ratio": float(np.median(error / bound)),
            "coverage": float(np.mean(np.abs(value - theta) < error)),
            "exact_coverage": float(np.mean(np.abs(best - theta) < bound)),
            "pull_width": float(np.std((value - theta) / error)),
            "exact_pull_width": float(np.std((best - theta) / bound)),
            "impacts": (np.median(impacts, axis=0) / scale).round(3).tolist(),
            "exact_impacts": (np.median(truths, axis=0) / scale).round(3).tolist(),
            "p_below_5_percent": float(np.mean(p < 0.05)),
            "seconds": time.perf_counter() - start,
        }
    return found


def intervals(events: int, toys: int, seeds: Sequence[int], observed: int) -> dict[str, Any]:
    """Coverage of Feldman-Cousins and of Wilks at 68.3 and 95.4 percent: at a bound, half an error
    from it, and far away, with nuisance parameters from their constraints."""
    example, found = Nuisances(), {}
    for seed in seeds:
        model = example.fit(events, seed)
        error = model.expected(0.5, observed).maximum().error
        for name, theta in (("bound", 0.0), ("half", 0.5 * error), ("far", 0.5)):
            random = np.random.default_rng((seed, observed, round(1e6 * theta)))
            for number in range(toys):
                x = example.observed(np.full(observed, theta), random.normal(size=9), random)
                row = _contained(model.likelihood(x), theta, number)
                found.setdefault(name, []).append(row)
    return {
        name: {
            "feldman_cousins": np.mean(rows, axis=0)[:2].tolist(),
            "wilks": np.mean(rows, axis=0)[2:].tolist(),
            "pseudo_experiments": len(rows),
        }
        for name, rows in found.items()
    }


def _contained(likelihood: gl.Likelihood, theta: float, seed: int) -> list[bool]:
    """Whether theta is in the intervals by construction, then in those of Wilks."""
    experiments = likelihood.experiments()
    place, rise = experiments.profile(0)(theta)
    lattice = experiments.lattice(place, 0)
    vectors = experiments.draw(place, BELT_TOYS, (seed, 0, 1))
    rises, _ = lattice.rises(experiments.curves(place, lattice.points)(vectors))
    ends = [likelihood.interval(level) for level in LEVELS]
    return [rise <= np.quantile(rises, level) for level in LEVELS] + [
        low <= theta <= high for low, high in ends
    ]


def _made(mass: Any, jes: float, events: int, random: np.random.Generator) -> Array:
    w = random.normal(80.4, 8.0, events)
    return np.stack([w, random.normal(mass, 15.0, events)], axis=1) * jes


def _other(jes: float, events: int, random: np.random.Generator) -> Array:
    return (
        np.stack([random.uniform(40, 120, events), random.uniform(120, 220, events)], axis=1) * jes
    )


def _inside(x: Array) -> Array:
    (a, b), (c, d) = WINDOW
    return np.asarray((x[:, 0] > a) & (x[:, 0] < b) & (x[:, 1] > c) & (x[:, 1] < d))


def mass_model(seed: int, factor: int = 10) -> gl.Model:
    """The model of the top mass with its jet energy scale and a background."""
    random = np.random.default_rng(seed)
    theta = np.repeat([170.0, 173.0, 176.0], factor * SIGNAL)
    raw, other = _made(theta, 1.0, len(theta), random), _other(1.0, factor * BACKGROUND, random)

    def sample(x: Array, scale: float) -> tuple[Array, Array]:
        kept = np.flatnonzero(_inside(scale * x))
        return scale * x[kept], kept

    nominal, numbers = sample(raw, 1.0)
    nominal_other, other_numbers = sample(other, 1.0)
    sides = [sample(raw, 1 + sign * JES) for sign in (1, -1)]
    others = [sample(other, 1 + sign * JES) for sign in (1, -1)]
    share = len(nominal_other) / (len(nominal_other) + len(nominal) / 3)
    templates = gl.Templates(
        nominal, theta[numbers], bounds=(170, 176), observables=["m_w", "m_t"], parameters=["mtop"]
    )
    of_other = gl.Systematic(
        "jes",
        *((x, None) for x, _ in others),
        same_events=(other_numbers, *(n for _, n in others)),
    )
    return gl.fit(
        templates,
        seed=seed,
        systematics=[
            gl.Systematic(
                "jes",
                *((x, theta[n]) for x, n in sides),
                same_events=(numbers, *(n for _, n in sides)),
            )
        ],
        backgrounds=[
            gl.Background("background", nominal_other, share, 0.1 * share, systematics=[of_other])
        ],
    )


def mass_bound(
    mass: float = 174.0, jes: float = 1.01, events: int = 400_000
) -> tuple[float, float]:
    """The least errors of mass (GeV) and jet energy scale of any unbinned fit."""
    random = np.random.default_rng(1)
    share = BACKGROUND / (BACKGROUND + SIGNAL)
    signal = _made(mass, jes, round((1 - share) * events), random)
    x = np.concatenate([signal, _other(jes, round(share * events), random)])
    x = x[_inside(x)]

    def log_p(m: float, scale: float, factor: float) -> Array:
        (a, b), (c, d) = WINDOW
        first = norm.pdf(x[:, 0], 80.4 * scale, 8 * scale)
        second = norm.pdf(x[:, 1], m * scale, 15 * scale)
        kept = np.prod(
            [
                norm.cdf(high, centre * scale, width * scale)
                - norm.cdf(low, centre * scale, width * scale)
                for (low, high), centre, width in (((a, b), 80.4, 8.0), ((c, d), m, 15.0))
            ]
        )
        other = BACKGROUND * factor * (b - a) * (d - c) / (80 * 100 * scale**2)
        total = SIGNAL * kept + other
        return np.log((SIGNAL * first * second + other / ((b - a) * (d - c))) / total)

    point, steps = np.array([mass, jes, 1.0]), np.array([1e-2, 1e-5, 1e-3])
    scores = [
        (log_p(*(point + steps * unit)) - log_p(*(point - steps * unit))) / (2 * step)
        for step, unit in zip(steps, np.eye(3), strict=True)
    ]
    observed = (SIGNAL + BACKGROUND) * len(x) / events
    information = np.cov(np.array(scores)) * observed + np.diag([0, 1 / JES**2, 1 / 0.1**2])
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    return float(errors[0]), float(errors[1])


def mass(toys: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Pseudo-experiments of the top mass at 174 GeV and a jet energy scale of 1.01."""
    rows, seconds = [], []
    for seed in seeds:
        start = time.process_time()
        model = mass_model(seed)
        seconds.append(time.process_time() - start)
        random = np.random.default_rng(500 + seed)
        for _ in range(toys):
            x = np.concatenate(
                [
                    _made(174.0, 1.01, random.poisson(SIGNAL), random),
                    _other(1.01, random.poisson(BACKGROUND), random),
                ]
            )
            one = model.likelihood(x[_inside(x)]).maximum()
            rows.append([
                *_parts(one["mtop"].value, one["mtop"].budget),
                *_parts(JES * one["jes"].value, one["jes"].budget, JES), one.p_value,
            ])  # fmt: skip
    table = np.array(rows).T
    found: dict[str, Any] = {"bound": mass_bound(), "pseudo_experiments": table.shape[1]}
    for name, truth, own in (("mass", 174.0, table[:5]), ("jes", 0.01, table[5:10])):
        value, error, *parts = own
        pulls = (value - truth) / error
        found[name] = {
            "mean": float(value.mean()),
            "error_of_the_mean": float(value.std() / np.sqrt(len(value))),
            "spread": float(value.std()),
            "error": float(np.median(error)),
            **dict(zip(PARTS, np.median(parts, axis=1).tolist(), strict=True)),
            "pull_mean": float(pulls.mean()),
            "pull_width": float(pulls.std()),
        }
    found["p_below_5_percent"] = float(np.mean(table[-1] < 0.05))
    found["seconds_of_a_fit"] = float(np.mean(seconds))
    return found


def _parts(value: float, budget: dict[str, float], unit: float = 1.0) -> list[float]:
    """Value, error, and its parts: observed events with constraints, simulation, and model."""
    simulation, model = budget["simulation"], budget["model"]
    total = sum(part**2 for part in budget.values())
    statistics = np.sqrt(total - simulation**2 - model**2)
    return [value, *(unit * x for x in (np.sqrt(total), statistics, simulation, model))]


def many(numbers: tuple[int, ...], events: int = 2_000) -> list[dict[str, float]]:
    """CPU time of an estimate with all impacts, and memory, by the number of nuisance parameters
    and of events."""
    example, found = Nuisances(), []
    templates, systematics, backgrounds = example.simulate(events, 1)
    for number in numbers:
        copies = []
        for k in range(number - 1):
            one = systematics[k % len(systematics)]
            size = 0.5 + 0.02 * k
            sides = [
                (templates.x + size * (side.x - templates.x), side.theta) for side in one.sides
            ]
            copies.append(gl.Systematic(f"{one.name}_{k}", *sides))
        start = time.process_time()
        model = gl.fit(templates, systematics=copies, backgrounds=[
            gl.Background("background", backgrounds[0].x, 0.1, 0.03)], seed=1)  # fmt: skip
        fit = time.process_time() - start
        for observed in (10_000, 100_000, 1_000_000):
            x = example.sample(0.4, observed, seed=2)
            start = time.process_time()
            likelihood = model.likelihood(x)
            sums = time.process_time() - start
            size = len(pickle.dumps(likelihood))
            start = time.process_time()
            likelihood.maximum()
            found.append({"nuisances": number, "events": observed, "fit": fit, "sums": sums,
                          "estimate_and_impacts": time.process_time() - start,
                          "likelihood_kB": size / 1000})  # fmt: skip
    return found


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measurement", description=__doc__)
    parser.add_argument("parts", nargs="*", default=["exact", "mass", "many"])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--observed", type=int, default=10_000)
    parser.add_argument("--toys", type=int, default=40)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--kinds", nargs="+", default=["same", "weights", "independent"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if "exact" in arguments.parts:
        for kind in arguments.kinds:
            made = exact(
                arguments.events, arguments.toys, arguments.seeds, (kind,), arguments.observed
            )
            print(json.dumps(made, indent=1), flush=True)
    if "intervals" in arguments.parts:
        made = intervals(arguments.events, arguments.toys, arguments.seeds, arguments.observed)
        print(json.dumps(made, indent=1), flush=True)
    if "mass" in arguments.parts:
        print(json.dumps(mass(arguments.toys, arguments.seeds), indent=1), flush=True)
    if "many" in arguments.parts:
        print(json.dumps(many((10, 25, 50)), indent=1), flush=True)


if __name__ == "__main__":
    main()
