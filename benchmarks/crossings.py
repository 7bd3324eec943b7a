"""How often a reader who follows one event turns to another file: `python -m benchmarks.crossings`.

Fit, measure and report run on small files under a profiler. A crossing is a call from a function in
one file of gridless to a function in another, each pair of functions counted once, however often
it is repeated for batches, epochs or steps.
"""

import os
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from click.testing import CliRunner

SOURCE = f"{os.sep}gridless{os.sep}"


class Crossings:
    """Collects the calls between files of gridless while it is entered."""

    def __init__(self) -> None:
        self.edges: set[tuple[str, str]] = set()

    def __enter__(self) -> "Crossings":
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not (callee := _place(frame)):
            return
        back = frame.f_back
        while back is not None and not _place(back):
            back = back.f_back
        caller = _place(back) if back is not None else ""
        if caller and caller.split(":")[0] != callee.split(":")[0]:
            self.edges.add((caller, callee))

    @property
    def files(self) -> set[str]:
        """Every file that was touched."""
        return {place.split(":")[0] for edge in self.edges for place in edge}


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
    from gridless.cli.main import main as gridless

    random = np.random.default_rng(1)
    for theta in (0.25, 0.5, 0.75):
        np.savez(
            folder / f"t_{theta}.npz", x=random.normal(theta, 1, 400), y=random.normal(0, 1, 400)
        )
    np.savez(folder / "data.npz", x=random.normal(0.4, 1, 200), y=random.normal(0, 1, 200))
    pattern, model = str(folder / "t_{theta}.npz"), str(folder / "m.safetensors")
    verbs = {
        "fit": [pattern, "--bounds", "theta", "0", "1", "-x", "x,y", "-o", model],
        "measure": [model, str(folder / "data.npz")],
        "report": [model, str(folder / "data.npz"), "--closure", pattern, "-o", f"{folder}/r.html"],
    }
    found = {}
    for verb, arguments in verbs.items():
        run = CliRunner()
        run.invoke(gridless, [verb, *arguments])  # Imports and caches are not counted.
        crossings = Crossings()
        with crossings:
            result = run.invoke(gridless, [verb, *arguments])
        if result.exit_code:
            raise SystemExit(f"{verb}: {result.output}")
        found[verb] = crossings
    return found


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        found = follow(Path(folder))
    print(f"{'verb':8} {'crossings':>9} {'files':>6}")
    for verb, crossings in found.items():
        print(f"{verb:8} {len(crossings.edges):9} {len(crossings.files):6}")
        if "--edges" in sys.argv:
            for caller, callee in sorted(crossings.edges):
                print(f"    {caller} -> {callee}")


if __name__ == "__main__":
    main()
