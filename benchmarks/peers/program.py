"""Runs peers on problems, each training in a process of its own, and keeps what came out."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.floors import measure_floors
from benchmarks.machine import machine
from benchmarks.peers.catalogue import PEERS, Peer
from benchmarks.peers.environment import ROOT, sbi_python, sbi_version
from benchmarks.peers.judge import judge
from benchmarks.peers.problems import PROBLEMS, VALUES, Problem
from benchmarks.peers.table import page_parts, write_page

RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
PAGE = ROOT / "docs" / "peers.md"


@dataclass(frozen=True)
class Plan:
    """What to measure: `only` these peers (all if empty), and with `keep` only what is not there
    yet; what is there of others stays. `limit` is the CPU time of one training by sbi on
    several observables."""

    seeds: int = 5
    first: int = 700
    only: tuple[str, ...] = ()
    keep: bool = False
    quick: bool = False
    limit: float = 900.0

    def seeds_of(self, peer: Peer) -> range:
        """The seeds of a peer's templates and trainings."""
        return range(self.first, self.first + min(self.seeds, peer.seeds or self.seeds))

    def wants(self, peer: Peer, there: bool) -> bool:
        """Whether to measure a training of which results are there, or not."""
        if self.only and peer.name not in self.only:
            return False
        return not (self.keep and there)


def run(plan: Plan) -> dict[str, Any]:
    """Measure as planned; after every training the results so far are saved."""
    if plan.quick:
        print("One training of each, without sbi; --full has all, and writes the page.")
    results: dict[str, Any] = {"sessions": {}, "runs": []}
    if not plan.quick and (plan.keep or plan.only) and RESULTS.exists():
        results = json.loads(RESULTS.read_text())
    session = datetime.now(UTC).isoformat(timespec="minutes")
    results["sessions"][session] = machine() | {"sbi": sbi_version()}
    runs = {_key(record): record for record in results["runs"]}
    for problem in PROBLEMS.values():
        given = problem.quick() if plan.quick else problem
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            given.write_observed(folder)
            for peer, seed in _turns(PEERS[problem.name], plan):
                key = (problem.name, peer.name, seed)
                if plan.wants(peer, key in runs):
                    record = train_and_judge(given, peer, seed, folder, plan.limit)
                    runs[key] = record | {"session": session}
                    results["runs"] = [runs[key] for key in sorted(runs)]
                    _say(record)
                    _save(results, plan)
    used = {record["session"] for record in results["runs"]} | {session}
    results["sessions"] = {name: results["sessions"][name] for name in sorted(used)}
    results["floors"] = measure_floors(quick=plan.quick)
    _save(results, plan)
    parts = page_parts(results)
    for part in parts.values():
        print(f"\n{part}")
    if not plan.quick:
        write_page(PAGE, parts)
    return results


def _turns(peers: Iterable[Peer], plan: Plan) -> list[tuple[Peer, int]]:
    """Seed by seed, so that whatever else the machine does at a time hits all peers alike."""
    return [
        (peer, seed)
        for seed in range(plan.first, plan.first + plan.seeds)
        for peer in peers
        if seed in plan.seeds_of(peer) and not (plan.quick and peer.foreign)
    ]


def train_and_judge(
    problem: Problem, peer: Peer, seed: int, folder: Path, limit: float
) -> dict[str, Any]:
    """One training in a process of its own: what it cost, and what the judge says of it."""
    problem.write_templates(folder, seed)
    options = dict(peer.options)
    if peer.foreign and problem.name != "one":
        options["limit"] = limit
    task = folder / "task.json"
    task.write_text(json.dumps({"module": peer.module, "options": options, "seed": seed}))
    python = sbi_python() if peer.foreign else sys.executable
    done = subprocess.run(
        [python, "-m", "benchmarks.peers.runner", task, folder],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{peer.name} on {problem.name} failed:\n{done.stderr}")
    with np.load(folder / "curves.npz") as file:
        found = {name: file[name] for name in file}
    exact_file = folder / "exact.npy"
    if peer.name == "exact":
        np.save(exact_file, found["curves"])
    elif not exact_file.exists():
        np.save(exact_file, _exact(problem, folder))
    verdict = judge(
        np.array(VALUES), problem.observed, found["curves"], found["toys"], np.load(exact_file)
    )
    if "own" in found:
        verdict["own"] = float(np.abs(found["own"] - verdict["estimates"]).max())
    cost = _short(json.loads(done.stdout)) | {"load": round(os.getloadavg()[0], 1)}
    return {"problem": problem.name, "peer": peer.name, "seed": seed} | cost | verdict


def _exact(problem: Problem, folder: Path) -> Any:
    """The exact curves, where the exact likelihood itself is not measured."""
    from benchmarks.peers.exact import curve
    from benchmarks.peers.runner import JUDGED, points

    with np.load(folder / "observed.npz") as file:
        return np.array([curve(problem.example, x, points(JUDGED)) for x in file["x"]])


def _key(record: dict[str, Any]) -> tuple[str, str, int]:
    return record["problem"], record["peer"], record["seed"]


def _short(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers as they are worth keeping."""
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in values.items()
    }


def _say(record: dict[str, Any]) -> None:
    bias = max(abs(b) for b in record["bias"])
    print(
        f"{record['problem']}, {record['peer']}, seed {record['seed']}: slope "
        f"{record['slope']:.3f}, largest bias {bias:.2f}, {record['train_cpu']:.1f} CPU s",
        flush=True,
    )


def _save(results: dict[str, Any], plan: Plan) -> None:
    """One line per training, so that a difference of two versions can be read."""
    if plan.quick:
        return
    runs = ",\n".join(f"  {json.dumps(record)}" for record in results["runs"])
    rest = {name: value for name, value in results.items() if name != "runs"}
    head = json.dumps(rest, indent=1)[2:-2]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(f'{{\n{head},\n "runs": [\n{runs}\n ]\n}}\n')
