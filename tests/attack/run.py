"""Runs the attack: cases in a worker process with limits of time and memory; and counts them."""

import argparse
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

TIME_LIMIT = 10  # seconds of the processor for one case
WALL_LIMIT = 240  # seconds by the clock: a machine with other work gives a case little of its time
LOOK_AGAIN = 2  # seconds until a case that has waited for the processor is looked at again
GRACE = 5  # seconds more, after which a worker that does not hear its alarm is killed
MEMORY_LIMIT = 2 * 2**30  # bytes on top of what the worker has at its start
START_LIMIT = 300  # seconds for a worker to make its good files

REFUSED, TRACEBACK, HANG, MEMORY, CRASH = "refused", "traceback", "hang", "memory", "crash"
FAILURES = ("different", TRACEBACK, HANG, MEMORY, CRASH)
COLUMNS = ("same", "any", REFUSED, "warned", *FAILURES)


@dataclass(frozen=True)
class Outcome:
    """What came of a case; `place` tells failures of one cause from those of another."""

    case: int
    target: str
    kind: str
    place: str = ""
    detail: str = ""
    seconds: float = 0.0


# When the case began, by the clock and in time of the processor.
_BEGUN = [0.0, 0.0]


class Hang(BaseException):
    """A case took too long."""


def begin_call() -> None:
    """The limit of time counts from here: a case that makes several calls says when each begins."""
    _BEGUN[:] = time.monotonic(), time.process_time()


def run_case(ground: Any, seed: int, case: int, folder: Path) -> Outcome:
    """Make and try one case in an empty folder."""
    from tests.attack.targets import all_targets

    from gridless.errors import InputError

    targets = all_targets()
    target = targets[case % len(targets)]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT)
    begin_call()
    try:
        with warnings.catch_warnings():
            # NumPy's and torch's own warnings say that something was not checked before.
            warnings.simplefilter("ignore", DeprecationWarning)
            kind = target.attack(ground, np.random.default_rng([seed, case]), folder)
        outcome = Outcome(case, target.name, kind, "no warning" if kind == "different" else "")
    except InputError as error:
        outcome = Outcome(case, target.name, REFUSED, detail=str(error))
    except Hang:
        outcome = _failure(case, target.name, HANG, sys.exc_info()[1])
    except MemoryError as error:
        outcome = _failure(case, target.name, MEMORY, error)
    except Exception as error:
        kind = MEMORY if "allocate memory" in str(error) else TRACEBACK
        outcome = _failure(case, target.name, kind, error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if outcome.kind == "different" and not target.checked:
        outcome = Outcome(case, target.name, "unseen")
    return replace(outcome, seconds=time.process_time() - _BEGUN[1])


def _failure(case: int, target: str, kind: str, error: BaseException | None) -> Outcome:
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    own = [f for f in frames if "gridless" in f.filename] or frames[-1:]
    place = f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].name}" if own else ""
    detail = "".join(traceback.format_exception(error)) if error else ""
    return Outcome(case, target, kind, place, detail[-6000:])


def _work(seed: int, folder: Path, pipe: Connection) -> None:
    """The worker: makes the good files, then tries the cases that it is told."""
    import torch

    def alarm(*_: object) -> None:
        wall, processor = time.monotonic() - _BEGUN[0], time.process_time() - _BEGUN[1]
        if processor > TIME_LIMIT or wall > WALL_LIMIT:
            raise Hang
        signal.setitimer(signal.ITIMER_REAL, LOOK_AGAIN)

    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, alarm)
    with open(folder / "output.txt", "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    from tests.attack.ground import Ground

    good = folder / "good"
    shutil.rmtree(good, ignore_errors=True)
    good.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ground = Ground(good)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    pipe.send(None)
    while True:
        pipe.send(run_case(ground, seed, pipe.recv(), folder / "case"))


def attack(seed: int, cases: Iterable[int], seconds: float, folder: Path) -> Iterator[Outcome]:
    """Outcomes of the cases until the time is over; a worker that crashes or hangs is replaced."""
    from tests.attack.targets import all_targets

    targets = all_targets()
    context = multiprocessing.get_context("fork")
    end = time.monotonic() + seconds
    worker = pipe = None
    for case in cases:
        if time.monotonic() > end:
            break
        if worker is None or pipe is None:
            pipe, other = context.Pipe()
            worker = context.Process(target=_work, args=(seed, folder, other), daemon=True)
            worker.start()
            other.close()
            _await_start(pipe, folder)
        name = targets[case % len(targets)].name
        pipe.send(case)
        try:
            if pipe.poll(WALL_LIMIT + GRACE):
                yield pipe.recv()
                continue
            yield Outcome(case, name, HANG, "in C code")
        except EOFError:
            worker.join(GRACE)
            yield Outcome(case, name, CRASH, f"exit {worker.exitcode}")
        worker.kill()
        worker.join()
        worker = None
    if worker is not None:
        worker.kill()
        worker.join()


def _await_start(pipe: Connection, folder: Path) -> None:
    """Wait until the worker has made its good files; what it says if it cannot is no outcome."""
    try:
        if pipe.poll(START_LIMIT):
            pipe.recv()
            return
    except EOFError:
        pass
    said = (folder / "output.txt").read_text() if (folder / "output.txt").exists() else ""
    raise RuntimeError(f"the attack cannot start: {said[-3000:]}")


def keep(outcome: Outcome, seed: int, folder: Path, kept: Path) -> None:
    """Store the input of a failure."""
    place = kept / f"{outcome.target.replace(' ', '_')}-{seed}-{outcome.case}"
    shutil.rmtree(place, ignore_errors=True)
    if (folder / "case").exists():
        shutil.copytree(folder / "case", place)
    place.mkdir(parents=True, exist_ok=True)
    (place / "what.txt").write_text(f"{outcome.kind}: {outcome.place}\n\n{outcome.detail}")


def table(counts: Counter[tuple[str, str]], seconds: dict[str, float]) -> str:
    """Counts by target and outcome, and milliseconds of the processor per case. `unseen`: another
    result in a format that has no checksums."""
    columns = (*COLUMNS, "unseen")
    lines = [f"{'target':18}" + "".join(f"{c:>10}" for c in (*columns, "all", "ms"))]
    for name in [*sorted(seconds), "all"]:
        kept = {key: n for key, n in counts.items() if name in (key[0], "all")}
        row = [sum(n for (_, kind), n in kept.items() if kind == c) for c in columns]
        spent = sum(s for target, s in seconds.items() if name in (target, "all"))
        row += [sum(row), round(1000 * spent / max(1, sum(row)))]
        lines.append(f"{name:18}" + "".join(f"{n:>10,}" for n in row))
    return "\n".join(lines)


@dataclass
class Result:
    """Counts by target and outcome, seconds by target, and the failures."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: list[Outcome] = field(default_factory=list)

    def __str__(self) -> str:
        return table(self.counts, self.seconds)


def run(seconds: float, seed: int, cases: Iterable[int] | None = None, kept: Path | None = None,
        told: bool = False) -> Result:  # fmt: skip
    """Attack for that long, or with these cases."""
    result = Result()
    seen: Counter[tuple[str, str]] = Counter()
    cases = count() if cases is None else cases
    with tempfile.TemporaryDirectory(prefix="gridless-attack-") as name:
        folder = Path(name)
        for outcome in attack(seed, cases, seconds, folder):
            target = outcome.target
            result.counts[target, outcome.kind] += 1
            result.seconds[target] = result.seconds.get(target, 0.0) + outcome.seconds
            if outcome.kind not in FAILURES:
                continue
            result.failures.append(outcome)
            cause = target, outcome.place
            seen[cause] += 1
            # Ten inputs of one cause are enough.
            if kept is not None and seen[cause] <= 10:
                keep(outcome, seed, folder, kept)
            if told and seen[cause] == 1:
                print(f"case {outcome.case}: {target}: {outcome.kind}: {outcome.place}", flush=True)
    return result


def explain(failures: list[Outcome], seed: int) -> str:
    """Failures by cause, each with a case that shows it."""
    causes: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in failures:
        causes.setdefault((outcome.target, outcome.kind, outcome.place), []).append(outcome)
    lines = []
    for (target, kind, place), found in sorted(causes.items(), key=lambda item: -len(item[1])):
        again = f"python -m tests.attack --seed {seed} --case {found[0].case}"
        last = found[0].detail.strip().splitlines()[-1:] or [""]
        lines.append(
            f"{len(found):5} x {target}: {kind}: {place}: {last[0][:150]}\n        {again}"
        )
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--only", default="", help="targets or commands with this in their names")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--keep", type=Path, default=Path("build/attack"), help="a folder")
    parser.add_argument("--kill", type=int, nargs="?", const=10, help="kill commands")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if given.kill is not None:
        from tests.attack.kill import kill_commands

        sys.exit(not kill_commands(given.kill, given.seed, given.only))
    if given.case is not None:
        result = run(600, given.seed, [given.case], given.keep)
        print(next(iter(result.counts)))
        for outcome in result.failures:
            print(outcome.place, outcome.detail, f"its input is in {given.keep}", sep="\n")
        sys.exit(bool(result.failures))
    from tests.attack.targets import all_targets

    targets = all_targets()
    cases = (n for n in count(given.first) if given.only in targets[n % len(targets)].name)
    result = run(60 * given.minutes, given.seed, cases, given.keep, told=True)
    print(result)
    if result.failures:
        print(f"\n{explain(result.failures, given.seed)}\ninputs in {given.keep}")
    sys.exit(bool(result.failures))
