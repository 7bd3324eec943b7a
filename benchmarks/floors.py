"""Physical floors: what no likelihood of so many events can be faster than."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import peak_memory

ROOT = Path(__file__).parents[1]
# Values of theta per event, and values at once: what fits in the cache of a processor.
_VALUES = 33  # values of theta per event
_BLOCK = 2**16  # events in memory at once
_REPEATS = 5


def least_cpu(action: Callable[[], object], repeats: int = _REPEATS) -> float:
    """The least CPU time of several runs: what the work costs when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def bare_exp(events: int) -> Callable[[], None]:
    """A float32 exp of one number for every event and value of theta, one component."""
    values, out = torch.rand(_BLOCK), torch.empty(_BLOCK)

    def action() -> None:
        for _ in range(0, events * _VALUES, _BLOCK):
            torch.exp(values, out=out)

    return action


def bare_reading(events: int, folder: Path) -> Callable[[], None]:
    """Reading two float64 columns from a Parquet file, without computing anything."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(1)
    columns = {name: random.normal(size=events) for name in ("x1", "x2")}
    file = folder / "events.parquet"
    pq.write_table(pa.table(columns), file)
    return lambda: pq.read_table(file, use_threads=False)


FLOORS = {
    "exp": f"a bare float32 exp at {_VALUES} values",
    "reading": "reading two columns from Parquet",
}


def measure(name: str, events: int) -> dict[str, float]:
    """CPU seconds per million events of one floor, and the memory of its process."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        floor = bare_exp(events) if name == "exp" else bare_reading(events, Path(folder))
        seconds = least_cpu(floor)
    return {
        "million_cpu": float(f"{seconds / events * 1e6:.3g}"),
        "memory_mb": round(peak_memory(), 1),
    }


def measure_floors(quick: bool = False) -> dict[str, Any]:
    """Both floors, each in a process of its own."""
    found = {}
    events = "100000" if quick else "1000000"
    for name in FLOORS:
        command = [sys.executable, "-m", "benchmarks.floors", name, events]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found[name] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
