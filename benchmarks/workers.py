"""How long a likelihood and pseudo-experiments take with more workers, on this machine."""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import gridless as gl
from gridless.examples import TwoObservables
from gridless.parallel import cluster

WORKERS = (1, 2, 4)
FILES = 10
EVENTS = 2_000_000  # per file
SAMPLES = 8  # values of theta at which coverage is tested
TOYS = 5_000  # pseudo-experiments per value


def measure_workers(scale: int, workers: Sequence[int] = WORKERS) -> list[dict[str, float]]:
    """Seconds on the clock, by dask workers: of a likelihood of Parquet files, and of coverage.

    Starting the workers and what they import is not counted: a cluster is there already.
    """
    example = TwoObservables()
    model = gl.fit(example.templates(20_000 // scale, 1), seed=1)
    values = [0.1 * (i + 1) for i in range(SAMPLES)]
    samples = {value: example.sample(value, 100_000 // scale, i) for i, value in enumerate(values)}
    rows = []
    with tempfile.TemporaryDirectory() as name:
        files = [
            _write(example, Path(name) / f"{i}.parquet", EVENTS // scale, i) for i in range(FILES)
        ]
        for count in workers:
            with cluster(None, count) as client:
                few = {value: x[:1000] for value, x in samples.items()}
                gl.coverage(model, few, 10, 100, executor=client)
                gl.read_likelihood(model, files[:1], executor=client)
                likelihood = _seconds(lambda c=client: gl.read_likelihood(model, files, executor=c))
                toys = _seconds(
                    lambda c=client: gl.coverage(
                        model, samples, TOYS // scale, 10_000 // scale, executor=c
                    )
                )
            rows.append({"value": count, "likelihood": likelihood, "coverage": toys})
    return rows


def _write(example: TwoObservables, file: Path, events: int, seed: int) -> Path:
    x = example.sample(0.4, events, seed)
    columns = {f"x{i + 1}": column for i, column in enumerate(x.T)}
    pq.write_table(pa.table(columns), file, row_group_size=250_000)
    return file


def _seconds(action: Callable[[], object]) -> float:
    """The shorter of two runs."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return round(min(times), 3)
