"""How often a reader who follows an event turns to another file: `python -m benchmarks.crossings`.

Fit, measure and report run on small files under a profiler. A crossing is a call from a function in
one file of gridless to a function in another, each pair of functions counted once, however often
it is repeated for batches, epochs or steps. It carries events if an argument, `self` or what is
returned is an array with a row per event, or holds one, or names the file that has them. It passes
them on if that is so without `self`: asking a table of events for its length does not count.

The fit runs with its defaults, and "by hand": its size given, without calibration, as version 0.1
did. `PYTHONPATH=OLD/src python benchmarks/crossings.py` counts those of another checkout.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from click.testing import CliRunner

SOURCE = f"{os.sep}gridless{os.sep}"
# Events of a file. No other axis has these lengths, and none is as long as a batch.
TEMPLATE = 4_001
DATA = 5_003
BATCH = 1_009
BY_HAND = ["--basis", "exp_polynomial", "--hidden", "16", "--ensemble", "1", "--batch", "1009"]
MAX_DEPTH = 3  # an array in an attribute of an attribute of an argument
MAX_LOOKS = 10  # calls of one function by another that are looked into for events
HOLDERS = (list, tuple, set, frozenset)


class Crossings:
    """Collects the calls between files of gridless while it is entered.

    Parameters
    ----------
    shortest : int
        Arrays with an axis that long hold events.
    lengths : collection of int
        If given, only arrays with an axis of one of these lengths do.
    """

    def __init__(self, shortest: int, lengths: Iterable[int] = ()) -> None:
        self.shortest = shortest
        self.lengths = frozenset(lengths)
        self.calls: Counter[tuple[str, str]] = Counter()
        self.with_events: set[tuple[str, str]] = set()
        self.passed_on: set[tuple[str, str]] = set()

    def __enter__(self) -> "Crossings":
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, returned: Any) -> None:
        if event not in ("call", "return") or not (callee := _place(frame)):
            return
        back = frame.f_back
        while back is not None and not _place(back):
            back = back.f_back
        caller = _place(back) if back is not None else ""
        if not caller or caller.split(":")[0] == callee.split(":")[0]:
            return
        edge = caller, callee
        self.calls[edge] += 1
        if edge in self.passed_on or self.calls[edge] > MAX_LOOKS:
            return
        seen = dict(frame.f_locals) if event == "call" else {"returned": returned}
        owner = seen.pop("self", None)
        if any(self.holds_events(one) for one in seen.values()):
            self.passed_on.add(edge)
            self.with_events.add(edge)
        elif edge not in self.with_events and self.holds_events(owner):
            self.with_events.add(edge)

    def holds_events(self, thing: Any, depth: int = MAX_DEPTH) -> bool:
        """Whether a thing is an array of events, has one, or is the name of their file."""
        if isinstance(thing, str | Path):
            return str(thing).endswith(".npz") and len(str(thing)) > len(".npz")
        if hasattr(type(thing), "shape") and hasattr(type(thing), "dtype"):
            if self.lengths:
                return not self.lengths.isdisjoint(thing.shape)
            return any(length >= self.shortest for length in thing.shape)
        if depth == 0:
            return False
        if isinstance(thing, HOLDERS):
            parts = list(thing)[:50]
        elif isinstance(thing, dict):
            parts = list(thing.values())[:50]
        # A model keeps simulated events of its own. Those are not the ones that are followed.
        elif type(thing).__module__.startswith("gridless") and type(thing).__name__ != "Model":
            parts = list(getattr(thing, "__dict__", {}).values())
        else:
            return False
        return any(self.holds_events(part, depth - 1) for part in parts)


def _place(frame: FrameType) -> str:
    """`folder/file.py:function` of a frame of gridless; empty for others and for imports."""
    path = frame.f_code.co_filename
    name = frame.f_code.co_qualname
    if SOURCE not in path or name == "<module>" or "benchmarks" in path:
        return ""
    # Comprehensions and inner functions belong to the function that has them.
    return f"{path.rsplit(SOURCE, 1)[1]}:{name.split('.<')[0]}"


def follow(folder: Path) -> dict[str, Crossings]:
    """The crossings of fit, measure and report on files in a folder."""
    try:
        from gridless.cli.main import main as gridless
    except ImportError:  # Version 0.1 had one file.
        from gridless.cli import main as gridless

    random = np.random.default_rng(1)
    for theta in (0.2, 0.4, 0.6, 0.8):
        x, y = random.normal(theta, 1, TEMPLATE), random.normal(0, 1, TEMPLATE)
        np.savez(folder / f"t_{theta}.npz", x=x, y=y)
    data = str(folder / "data.npz")
    np.savez(data, x=random.normal(0.4, 1, DATA), y=random.normal(0, 1, DATA))
    pattern, model = str(folder / "t_{theta}.npz"), str(folder / "m.safetensors")
    run, found = CliRunner(), {}
    flags = ["--bounds", "theta", "0", "1", "-x", "x,y", "-o", model]
    plain = run.invoke(gridless, ["fit", "--help"]).output
    uncalibrated = ["--calibrate", "false"] if "--calibrate" in plain else []
    for kind, options in (("by hand", BY_HAND + uncalibrated), ("defaults", ["--batch", "1009"])):
        verbs = {
            "fit": [pattern, *flags, *options],
            "measure": [model, data],
            "report": [model, data, "--closure", pattern, "-o", f"{folder}/r.html"],
        }
        for verb, arguments in verbs.items():
            lengths = () if verb == "fit" else (DATA, TEMPLATE)
            run.invoke(gridless, [verb, *arguments])  # Imports and caches are not counted.
            with Crossings(BATCH, lengths) as crossings:
                result = run.invoke(gridless, [verb, *arguments])
            if result.exit_code:
                raise SystemExit(f"{verb}: {result.output}{result.exception!r}")
            found[f"{verb}, {kind}"] = crossings
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edges", action="store_true", help="List calls: * carries, ** passes on.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = follow(Path(folder))
    print(f"{'calls (files)':18} {'pass events on':>15} {'carry events':>15} {'all':>15}")
    for verb, seen in found.items():
        kinds = (seen.passed_on, seen.with_events, seen.calls)
        print(f"{verb:18} " + " ".join(f"{f'{len(c)} ({files(c)})':>15}" for c in kinds))
        for edge in sorted(seen.calls) if chosen.edges else ():
            mark = "**" if edge in seen.passed_on else " *" if edge in seen.with_events else "  "
            print(f" {mark} {edge[0]} -> {edge[1]}")


def files(calls: Iterable[tuple[str, str]]) -> int:
    """How many files the calls touch."""
    return len({place.split(":")[0] for call in calls for place in call})


if __name__ == "__main__":
    main()
