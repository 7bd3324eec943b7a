"""A top mass with five systematics and a background, from files: what held-out events say.

python -m benchmarks.measurement_files FOLDER [--folds 0 1 2 3] [--save rows.json]

FOLDER has mtop_{mass}.root and wjets.root with the trees events, jes_up, jes_down and so on. Of
every four events one is kept out of the fit and tested, four times over. Each test also draws the
centres of the constraints, as auxiliary measurements of a true value fluctuate: with all centres at
the truth, errors would be too large and p-values too high by construction.
"""

import argparse
import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from iminuit import Minuit
from scipy.stats import kstest, norm

import gridless as gl
from gridless.measurement.likelihood import MeasurementLikelihood
from gridless.templates.arrays import Array

OBSERVABLES = ("m_jjb", "m_jj", "m_lb_min", "m_lb_max", "r_bq", "pt_lep")
MOVED = ("jes", "bjes", "jer")  # systematics that are other trees
WEIGHTED = ("fsr", "isr")  # and other weights
SHARE = 0.06
SHARE_ERROR = 0.02
SPLIT = 60.0  # GeV of the lepton's transverse momentum, between the two channels
FOLDS = 4
SMALL = 450  # events of a pseudo-experiment of which the p-value is taken: 200 in all folds
CHANNELS = {"all": (0.0, np.inf), "soft": (0.0, SPLIT), "hard": (SPLIT, np.inf)}


class Tree(NamedTuple):
    """Events of one kind at all masses."""

    x: Array
    theta: Array
    number: Array
    weights: Mapping[str, Array]

    def where(self, keep: Array) -> "Tree":
        """Some of the events."""
        weights = {name: w[keep] for name, w in self.weights.items()}
        return Tree(self.x[keep], self.theta[keep], self.number[keep], weights)

    def channel(self, name: str) -> "Tree":
        """Those of a channel."""
        low, high = CHANNELS[name]
        return self.where((self.x[:, -1] >= low) & (self.x[:, -1] < high))


def read(folder: Path, pattern: str) -> dict[str, Tree]:
    """All trees of some files, by name."""
    import uproot

    parts: dict[str, list[Tree]] = {}
    for path in sorted(folder.glob(pattern)):
        mass = float(path.stem.split("_")[1]) if "_" in path.stem else 0.0
        with uproot.open(path) as file:
            for name in file.keys(cycle=False):
                content = file[name].arrays(library="np")
                x = np.stack([content[key] for key in OBSERVABLES], axis=1).astype(float)
                weights = {k: content[k] for k in content if k.startswith("w_")}
                one = Tree(x, np.full(len(x), mass), content["event"].astype(np.int64), weights)
                parts.setdefault(name, []).append(one)
    return {
        name: Tree(
            *(np.concatenate([getattr(tree, field) for tree in trees])
              for field in ("x", "theta", "number")),
            {k: np.concatenate([tree.weights[k] for tree in trees]) for k in trees[0].weights},
        )
        for name, trees in parts.items()
    }  # fmt: skip


def fit(signal: dict[str, Tree], wjets: dict[str, Tree], name: str, seed: int) -> gl.Model:
    """The model of one channel."""
    own = {tree: one.channel(name) for tree, one in signal.items()}
    other = {tree: one.channel(name) for tree, one in wjets.items()}
    kept = [len(o["events"].x) / len(w["events"].x) for o, w in ((own, signal), (other, wjets))]
    share = SHARE * kept[1] / (SHARE * kept[1] + (1 - SHARE) * kept[0])
    nominal, background = own["events"], other["events"]

    def moved(trees: dict[str, Tree], kind: str, theta: bool) -> gl.Systematic:
        sides = [trees[f"{kind}_{side}"] for side in ("up", "down")]
        numbers = (trees["events"].number, *(one.number for one in sides))
        values = [(one.x, one.theta if theta else None) for one in sides]
        return gl.Systematic(kind, *values, same_events=numbers)

    systematics = [moved(own, kind, True) for kind in MOVED]
    systematics += [
        gl.Systematic(kind, *(nominal.weights[f"w_{kind}_{side}"] for side in ("up", "down")))
        for kind in WEIGHTED
    ]
    of_background = [moved(other, kind, False) for kind in MOVED]
    return gl.fit(
        gl.Templates(
            nominal.x, nominal.theta, bounds=(165, 180), observables=OBSERVABLES,
            parameters=["mtop"],
        ),
        seed=seed,
        systematics=systematics,
        backgrounds=[
            gl.Background(
                "wjets", background.x, share, share * SHARE_ERROR / SHARE, systematics=of_background
            )
        ],
    )  # fmt: skip


def around(likelihood: MeasurementLikelihood, centres: Mapping[str, float | None]) -> Any:
    """The estimate with the constraints around other values than 0; None leaves one out."""
    joint = likelihood.joint
    joint.gaussians = [
        (joint.place(one.name), centres.get(one.name, 0.0), one.constraint)
        for one in joint.nuisances
        if centres.get(one.name, 0.0) is not None
    ]
    return likelihood.maximum()


def both(models: Mapping[str, gl.Model], x: Array) -> dict[str, MeasurementLikelihood]:
    """The likelihood of all events, and that of two channels."""
    soft = x[:, -1] < SPLIT
    return {
        "single": models["all"].likelihood(x),
        "channels": models["soft"].likelihood(x[soft]).named("soft")
        + models["hard"].likelihood(x[~soft]).named("hard"),
    }


def test_fold(folder: Path, fold: int) -> dict[str, Any]:
    """Fit three quarters of the events, estimate the fourth."""
    signal, wjets = read(folder, "mtop_*.root"), read(folder, "wjets.root")
    parts = [{n: t.where(t.number % FOLDS != fold) for n, t in s.items()} for s in (signal, wjets)]
    start = time.process_time()
    models = {name: fit(*parts, name, fold) for name in CHANNELS}
    seconds = time.process_time() - start
    random = np.random.default_rng(4000 + fold)
    held, other = (
        {n: t.where(t.number % FOLDS == fold) for n, t in s.items()} for s in (signal, wjets)
    )
    names = [*MOVED, *WEIGHTED, "wjets"]

    def mixed(tree: str, rows: Array) -> Array:
        x, back = held[tree].x[rows], other[tree if tree in other else "events"].x
        count = random.binomial(round(len(x) / (1 - SHARE)), SHARE)
        return np.concatenate([x, back[random.choice(len(back), count, replace=False)]])

    tests, small = [], []
    for mass in np.unique(held["events"].theta):
        for tree in ("events", "jes_up"):
            rows = np.flatnonzero(held[tree].theta == mass)
            x = mixed(tree, rows)
            truth = {"jes": 1.0 if tree == "jes_up" else 0.0}
            drawn = {name: truth.get(name, 0.0) + random.normal() for name in names}
            for what, centres in {"drawn": drawn, "zero": {}, "free": {"jes": None}}.items():
                for kind, likelihood in both(models, x).items():
                    one = around(likelihood, centres)
                    tests.append({
                        "fold": fold, "mass": mass, "tree": tree, "centres": what, "kind": kind,
                        "value": one.value, "error": one.error, "jes": one.pulls["jes"],
                        "budget": one.budget["mtop"], "p": one.p_value,
                        "impacts": one.impacts["mtop"]})  # fmt: skip
        rows = random.permutation(np.flatnonzero(held["events"].theta == mass))
        for begin in range(0, len(rows) - SMALL + 1, SMALL):
            x = mixed("events", rows[begin : begin + SMALL])
            drawn = {name: float(random.normal()) for name in names}
            for what, centres in {"drawn": drawn, "zero": {}}.items():
                for kind, likelihood in both(models, x).items():
                    one = around(likelihood, centres)
                    small.append({
                        "kind": kind, "centres": what, "p": one.p_value, "error": one.error,
                        "pull": (one.value - mass) / one.error, "chi2": one.chi2, "dof": one.dof,
                    })  # fmt: skip
    return {"tests": tests, "small": small, "cpu": seconds}


def line(columns: Array, y: Array, side: Array) -> tuple[Array, Array, float]:
    """The best coefficients of y = columns @ coefficients + noise, their errors, and the spread.

    Where `side` is -1 or +1, y is on a bound, and what it would be without lies at y or beyond: the
    likelihood has the probability of that. Leaving such values out would pull the ends inwards.
    """

    def cost(p: Array) -> float:
        *of, log_spread = p
        pull = (y - columns @ np.array(of)) / np.exp(log_spread)
        inside = -0.5 * pull**2 - log_spread
        return -float(np.where(side == 0, inside, norm.logcdf(-side * pull)).sum())

    first = np.linalg.lstsq(columns, y, rcond=None)[0]
    start = np.append(first, np.log((y - columns @ first).std()))
    found = Minuit(cost, start)
    found.errordef = Minuit.LIKELIHOOD
    found.migrad().hesse()
    *values, log_spread = found.values
    return np.array(values), np.array(found.errors)[:-1], float(np.exp(log_spread))


def summary(tests: list[dict[str, Any]], small: list[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of all folds. An estimate on a bound has no error of its own: it counts as one
    that lies there or beyond."""
    found: dict[str, Any] = {}
    for kind in ("single", "channels"):
        for tree in ("events", "jes_up"):
            for centres in ("drawn", "zero", "free"):
                own = [
                    t for t in tests
                    if (t["kind"], t["tree"], t["centres"]) == (kind, tree, centres)
                ]  # fmt: skip
                true, value, error = (
                    np.array([t[key] for t in own]) for key in ("mass", "value", "error")
                )
                inside = np.array(["simulation" in t["budget"] for t in own])
                side = np.where(inside, 0.0, np.sign(value - true))
                error = np.where(inside, error, np.median(error[inside]))
                off = true - true.mean()
                best, spread, _ = line(np.stack([1 + 0 * off, off], axis=1), value - true, side)
                centre, _, width = line(np.ones((len(own), 1)), (value - true) / error, side)
                found[f"{kind}, {tree}, {centres}"] = {
                    "slope": [float(1 + best[1]), float(spread[1])],
                    "mean_difference": [float(best[0]), float(spread[0])],
                    "pull_mean": float(centre[0]),
                    "pull_width": width,
                    "median_error": float(np.median(error)),
                    "jes": np.mean([t["jes"] for t in own], axis=0).tolist(),
                    "tests": len(own),
                    "on_a_bound": int((~inside).sum()),
                }
        for centres in ("drawn", "zero"):
            own = [t for t in small if (t["kind"], t["centres"]) == (kind, centres)]
            p = np.array([t["p"] for t in own])
            found[f"{kind}, p-values, {centres}"] = {
                "mean": float(p.mean()),
                "ks": float(kstest(p, "uniform").pvalue),
                "below_5_percent": float((p < 0.05).mean()),
                "chi2_over_dof": float(np.mean([t["chi2"] / t["dof"] for t in own])),
                "pull_width": float(np.std([t["pull"] for t in own])),
                "count": len(p),
            }
    # Both fits of the same events stand beside each other.
    tests = [t for t in tests if "simulation" in t["budget"]]
    pairs = [
        second["error"] / first["error"]
        for first, second in itertools.pairwise(tests)
        if (first["kind"], second["kind"]) == ("single", "channels")
        and all(first[key] == second[key] for key in ("fold", "mass", "tree", "centres"))
    ]
    found["error, channels over single"] = [float(np.median(pairs)), len(pairs)]
    own = [
        t for t in tests
        if (t["kind"], t["tree"], t["centres"]) == ("single", "events", "zero")
    ]  # fmt: skip
    found["budget"] = {k: float(np.median([t["budget"][k] for t in own])) for k in own[0]["budget"]}
    return found


def main() -> None:
    """Test the folds that are asked for, and print what they say together."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measurement_files")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--folds", type=int, nargs="+", default=list(range(FOLDS)))
    parser.add_argument("--save", type=Path, help="a file of single results; folds in it are kept")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: dict[str, Any] = {}
    if arguments.save and arguments.save.exists():
        rows = json.loads(arguments.save.read_text(encoding="utf-8"))
    for fold in arguments.folds:
        if str(fold) not in rows:
            rows[str(fold)] = test_fold(arguments.folder, fold)
        if arguments.save:
            arguments.save.write_text(json.dumps(rows), encoding="utf-8")
    parts = list(rows.values())
    tests, small = ([row for one in parts for row in one[key]] for key in ("tests", "small"))
    found = summary(tests, small)
    found["cpu_seconds_of_three_fits"] = [round(one["cpu"], 1) for one in parts]
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
