"""Estimates of two dozen fits, kept so that a rebuilt house gives the same numbers.

`python -m benchmarks.frozen` makes them again and prints the largest difference of each from
benchmarks/results/frozen.json; `--write` replaces that file. Numbers depend on the machine (the
order in which its libraries sum), so the file is for comparing two commits on one machine.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import gridless as gl

RESULTS = Path(__file__).parent / "results" / "frozen.json"
# What to simulate, and the arguments of fit(). `penalty` are settings of the penalty objective.
CASES: dict[str, dict[str, Any]] = {
    "1d defaults": {"example": "one", "events": 4000},
    "1d cubic": {"example": "one", "events": 21_000},
    "1d penalty flat gaussian": {
        "example": "one", "objective": "penalty", "prior": "flat", "basis": "gaussian"},
    "1d penalty flat": {"example": "one", "objective": "penalty", "prior": "flat"},
    "1d penalty histogram": {
        "example": "one", "objective": "penalty", "basis": "gaussian",
        "penalty": {"density": "histogram", "strength": 2.0, "at": (0.1, 0.5, 0.9)}},
    "1d posterior divide gaussian": {
        "example": "one", "objective": "posterior", "basis": "gaussian"},
    "1d posterior divide": {"example": "one", "objective": "posterior"},
    "1d posterior flat logistic": {
        "example": "one", "objective": "posterior", "prior": "flat", "basis": "logistic",
        "components": 2},
    "1d template flat": {"example": "one", "prior": "flat"},
    "1d template logistic": {
        "example": "one", "basis": "logistic", "components": 2, "hidden": (8, 8),
        "activation": "silu"},
    "1d linear, no replicas": {"example": "one", "replicas": 0, "hidden": ()},
    "1d unequal": {
        "example": "one", "events": [500, 4000, 1000, 3000, 2500, 600],
        "at": [0.05, 0.1, 0.35, 0.5, 0.8, 0.95]},
    "2d defaults": {"example": "two", "events": 4000},
    "2d two gaussians": {
        "example": "two", "events": 4000, "basis": "gaussian", "components": 2, "hidden": (16, 16)},
    "2d two exp_polynomials, posterior": {
        "example": "two", "components": 2, "objective": "posterior", "activation": "relu"},
    "2d ensemble": {"example": "two", "events": 2000, "ensemble": 3},
    "2d ensemble of gaussians": {
        "example": "two", "events": 2000, "ensemble": 2, "basis": "gaussian", "components": 2},
    "2d weights": {"example": "two", "weighted": True},
    "2d weights penalty": {
        "example": "two", "weighted": True, "objective": "penalty", "prior": "flat"},
    "2d heavy tails": {"example": "heavy", "events": 3000},
    "two parameters": {"example": "pair", "events": 1500},
    "two parameters gaussian": {"example": "pair", "events": 1500, "basis": "gaussian"},
    "two parameters penalty": {
        "example": "pair", "events": 1000, "objective": "penalty", "prior": "flat"},
    "three parameters": {"example": "triple", "events": 500},
    "ten observables": {"example": "ten", "events": 2000, "replicas": 8},
}  # fmt: skip


def simulate(example: str, theta: Any, random: np.random.Generator) -> Any:
    """Events of one of five simple simulations, one for each row of theta."""
    t = np.asarray(theta, float).reshape(len(theta), -1)
    first, noise = t[:, 0], random.normal(size=(len(t), 10))
    if example == "one":
        return first + noise[:, 0]
    if example in ("two", "heavy"):
        near = random.random(len(t)) < 0.5
        x = np.where(near, first + 0.5 * noise[:, 0], random.gamma(3, 0.5, len(t)) - 1)
        y = np.where(near, 1, 3) + 0.5 * noise[:, 1]
        return np.stack([x if example == "two" else np.sinh(3 * x), y], axis=1)
    if example == "pair":
        return np.stack([first + noise[:, 0], first / 2 + (1 + 0.4 * t[:, 1]) * noise[:, 1]], 1)
    if example == "triple":
        return t + noise[:, :3]
    return 0.25 * first[:, None] * (-1.0) ** np.arange(10) + noise


def run(name: str) -> dict[str, Any]:
    """The estimates of one case: unweighted and weighted events, a constraint, a closure."""
    case = dict(CASES[name])
    example, events = case.pop("example"), case.pop("events", 3000)
    at, weighted = case.pop("at", None), case.pop("weighted", False)
    parameters = {"pair": 2, "triple": 3}.get(example, 1)
    if at is None:
        axis = gl.grid((0, 1), {1: 10, 2: 4, 3: 3}[parameters])
        at = np.stack(np.meshgrid(*[axis] * parameters, indexing="ij"), -1).reshape(-1, parameters)
    random = np.random.default_rng(len(name))
    theta = np.repeat(np.asarray(at, float).reshape(len(at), -1), events, axis=0)
    x = simulate(example, theta, random)
    weights = np.where(random.random(len(x)) < 0.15, -1.0, 1.0) if weighted else None
    names = [f"t{p}" for p in range(parameters)]
    bounds = [(0, 1)] * parameters
    templates = gl.Templates(x, theta, bounds=bounds, weights=weights, parameters=names)
    penalty = case.pop("penalty", None)
    if penalty is not None:
        case |= penalty_arguments(penalty)
    model = gl.fit(templates, seed=7, **case)
    observed = simulate(example, np.full((3000, parameters), 0.42), random)
    likelihood = model.likelihood(observed)
    result = {"plain": flat(likelihood)}
    result["weighted"] = flat(model.likelihood(observed, weights=random.uniform(0.5, 1.5, 3000)))
    result["constrained"] = flat(likelihood.constrain("t0", 0.5, 0.05))
    if parameters > 1:
        result["fixed"] = flat(likelihood.fix(t1=0.4))
    posterior = model.posterior(observed[:5])
    result["posterior"] = {"mean": np.ravel(posterior.mean).tolist()}
    return result


def penalty_arguments(settings: dict[str, Any]) -> dict[str, Any]:
    """The arguments of fit() that give the penalty its settings."""
    return {"objective": gl.Penalty(**settings)}


def flat(likelihood: gl.Likelihood) -> dict[str, Any]:
    """Everything that an estimate says, in what JSON can hold."""
    estimate = likelihood.maximum()
    row = estimate.to_dict()
    found = row["parameters"].values()
    return {
        "value": [p["value"] for p in found],
        "interval": [[p["stat_low"], p["stat_high"]] for p in found],
        "simulation": [p["error_simulation"] for p in found],
        "p_value": row["p_value"],
        "outside": row["outside"],
        "warnings": [w["name"] for w in row["warnings"]],
    }


def difference(old: Any, new: Any) -> float:
    """The largest difference of two results; infinite where they are not of one shape."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return max((difference(old[k], new[k]) for k in old), default=0.0)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return max((difference(a, b) for a, b in zip(old, new, strict=True)), default=0.0)
    if isinstance(old, float | int) and isinstance(new, float | int):
        return abs(old - new)
    return 0.0 if old == new else float("inf")


def main() -> None:
    """Make every case and compare, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="Replace the frozen numbers.")
    parser.add_argument("--only", help="Cases whose names contain this.")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    frozen = {} if chosen.write else json.loads(RESULTS.read_text())
    made, worst = {}, 0.0
    for name in CASES:
        if chosen.only and chosen.only not in name:
            continue
        made[name] = run(name)
        if not chosen.write:
            off = difference(frozen[name], made[name])
            worst = max(worst, off)
            print(f"{off:8.1e}  {name}", flush=True)
    if chosen.write:
        RESULTS.write_text(json.dumps(made, indent=1) + "\n")
    else:
        print(f"largest difference {worst:.1e}")


if __name__ == "__main__":
    main()
