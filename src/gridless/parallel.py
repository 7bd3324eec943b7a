"""Independent tasks: one after the other, on any executor, or on a dask cluster."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager
from typing import Any

from gridless.errors import InputError
from gridless.progress import progress_bar

# What dask gives its workers by default includes a setting of malloc with which NumPy takes four
# times as long for large temporary arrays.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_RETRIES = 3


def run(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], executor: Any, title: str
) -> list[Any]:
    """function(*task) of every task, in the order of the tasks.

    `executor` is None, any `concurrent.futures.Executor`, or a dask client, which repeats the tasks
    of a lost worker.
    """
    with progress_bar(title, len(tasks)) as report:
        if executor is None:
            results = []
            for number, task in enumerate(tasks):
                results.append(function(*task))
                report(f"{number + 1} of {len(tasks)}")
            return results
        submit = _executor(executor).submit
        futures = [submit(function, *task) for task in tasks]
        try:
            for number, future in enumerate(as_completed(futures)):
                future.result()
                report(f"{number + 1} of {len(tasks)}")
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        return [future.result() for future in futures]


def _executor(executor: Any) -> Executor:
    if hasattr(executor, "get_executor"):
        executor = executor.get_executor(pure=False, retries=_RETRIES)
    if not hasattr(executor, "submit"):
        raise InputError(
            f"executor: {type(executor).__name__}; give a concurrent.futures.Executor or a dask "
            "client"
        )
    return executor  # type: ignore[no-any-return]


@contextmanager
def cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """A dask client of the scheduler at `address`, or of `workers` processes on this machine, for
    as long as the context lasts; None for neither."""
    if address is not None and workers is not None:
        raise InputError("--dask and --workers: a cluster has its own workers; give one of the two")
    if address is None and workers is None:
        yield None
        return
    if workers is not None and workers < 1:
        raise InputError(f"--workers: {workers}; give at least 1")
    try:
        dask, distributed = (importlib.import_module(name) for name in ("dask", "distributed"))
    except ImportError as error:
        raise InputError(
            "a cluster needs dask, which is not here: pip install 'gridless[cluster]'"
        ) from error
    with dask.config.set({"distributed.nanny.pre-spawn-environ": _ENVIRONMENT}):
        try:
            client = (
                distributed.Client(address, timeout=10)
                if address is not None
                else distributed.Client(
                    n_workers=workers, threads_per_worker=1, dashboard_address=None
                )
            )
        except (OSError, ValueError) as error:
            raise InputError(
                f"--dask: no scheduler answers at {address} ({error}); check the address and "
                "that it runs"
            ) from error
        with client:
            yield client
