"""Independent tasks: one after the other, on any executor, or on a dask cluster; and their bar."""

import importlib
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import resource_tracker
from typing import Any

from gridless.errors import InputError

Report = Callable[[str], None]

VERSION = version("gridless")

# Environment of our dask workers, instead of dask's own, which includes MALLOC_TRIM_THRESHOLD_:
# with that NumPy takes four times as long for large temporary arrays.
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # A worker would tell of each task that is cancelled, in the terminal of the user.
    "DASK_LOGGING__DISTRIBUTED": "critical",
}
# Times that dask repeats a task that fails, such as one on a file system that is away for a moment.
RETRIES = 3
# Seconds to wait for a scheduler to answer.
TIMEOUT = 10
# Seconds after which a cluster without results is asked whether it still has workers.
CHECK_SECONDS = 10
# Seconds without a worker after which no further one is waited for.
GIVE_UP_SECONDS = 60


def run(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], executor: Any, title: str
) -> list[Any]:
    """function(*task) of every task, in the order of the tasks.

    Parameters
    ----------
    function : callable
        Must be importable in the workers, as pickle asks.
    tasks : sequence of tuples
        The arguments of each call.
    executor : None, concurrent.futures.Executor or dask client
        Runs the tasks; None runs them in this process. dask repeats the tasks of a lost worker.
    title : str
        Stands before the progress bar.
    """
    with progress_bar(title, len(tasks)) as report:
        if executor is None:
            results = []
            for number, task in enumerate(tasks):
                results.append(function(*task))
                report(f"{number + 1} of {len(tasks)}")
            return results
        submit = _as_executor(executor).submit
        futures = [submit(_call, function, task, VERSION) for task in tasks]
        try:
            for number, future in enumerate(_completed(futures, executor)):
                _result(future)
                report(f"{number + 1} of {len(tasks)}")
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        return [_result(future) for future in futures]


def _completed(futures: "Sequence[Future[Any]]", executor: Any) -> "Iterator[Future[Any]]":
    """The futures as they end. A cluster without a worker for a while is given up."""
    left = set(futures)
    last_seen = time.monotonic()
    while left:
        done, left = wait(left, CHECK_SECONDS, FIRST_COMPLETED)
        yield from done
        if done or _has_workers(executor):
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > GIVE_UP_SECONDS:
            raise InputError(
                f"executor: no worker of the cluster has answered for {GIVE_UP_SECONDS} seconds; "
                "start it again, with more memory for each worker"
            )


def _has_workers(executor: Any) -> bool:
    """Whether a dask client has workers; other executors look after theirs."""
    if not hasattr(executor, "ncores"):
        return True
    try:
        return bool(executor.ncores())
    except Exception:  # whatever a lost connection raises
        return False


def _call(function: Callable[..., Any], task: tuple[Any, ...], asked_by: str) -> Any:
    """The result of a task, or the user's mistake as a value: a worker that raised it would log a
    traceback, and dask would repeat the task.

    dask waits for ever for a result that it cannot read, as of another version than `asked_by`.
    """
    if asked_by != VERSION:
        return InputError(
            f"executor: its workers have gridless {VERSION}, and {asked_by} asks them; install "
            "the same version on both"
        )
    try:
        return function(*task)
    except InputError as error:
        return error


def _result(future: Any) -> Any:
    """The result of a task, or an InputError if the user can do something about its failure."""
    try:
        result = future.result()
    except Exception as error:
        # dask's KilledWorker is known by its name: dask need not be installed.
        if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
            raise InputError(
                f"executor: a worker process died during its task ({error}); often it had too "
                "little memory: give fewer workers, or workers with more memory"
            ) from error
        raise
    if isinstance(result, InputError):
        raise result
    return result


def _as_executor(executor: Any) -> Executor:
    if hasattr(executor, "get_executor"):
        executor = executor.get_executor(pure=False, retries=RETRIES)
    if not hasattr(executor, "submit"):
        raise InputError(
            f"executor: {type(executor).__name__}; give a concurrent.futures.Executor or a dask "
            "client"
        )
    return executor  # type: ignore[no-any-return]


@contextmanager
def cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """A dask client for as long as the context lasts; None if neither argument is given.

    Parameters
    ----------
    address : str, optional
        Address of a running scheduler.
    workers : int, optional
        Number of worker processes to start on this machine.
    """
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
            "a cluster needs dask, which is not installed: pip install 'gridless[cluster]'"
        ) from error
    environment = {"distributed.nanny.pre-spawn-environ": WORKER_ENVIRONMENT}
    with dask.config.set(environment), _silent("distributed"), ExitStack() as held:
        if workers is not None:
            held.enter_context(_interrupts_held())
        try:
            client = (
                distributed.Client(address, timeout=TIMEOUT)
                if address is not None
                else distributed.Client(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0"
                )
            )
        except (OSError, RuntimeError, ValueError) as error:
            if address is None:
                raise InputError(
                    f"--workers: they cannot be started ({error}); give fewer, or make memory free"
                ) from error
            raise InputError(
                f"--dask: no scheduler answers at {address} ({error}); check the address and "
                "that it runs"
            ) from error
        with client:
            held.close()  # A Ctrl-C that has waited comes here, and the workers are ended in order.
            yield client


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait. It reaches every process of a terminal; workers that are started meanwhile
    never see it, and leave it to us to end them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Else it is started with the first worker, and lets Ctrl-C through to all of them.
    resource_tracker.ensure_running()
    waiting: list[int] = []
    # Other threads of this process do not hold it back: what they take is kept here.
    ours = threading.current_thread() is threading.main_thread()
    usual = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if ours:
            signal.signal(signal.SIGINT, usual)
        if waiting:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _silent(package: str) -> Iterator[None]:
    """Silence the log of a package; our own messages say what a user needs to know."""
    every = [package, *(n for n in logging.root.manager.loggerDict if n.startswith(f"{package}."))]
    loggers = [logging.getLogger(name) for name in every]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def progress_bar(title: str, steps: int) -> Iterator[Report]:
    """A function to call after each step with a short text; draws a bar on a terminal or in a
    notebook, and nothing into a pipe."""
    # Imported here, since rich takes long to load.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    # In a notebook rich needs ipywidgets.
    shown = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
    if not shown:
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=steps, text="")
        yield lambda text: bar.update(task, advance=1, text=text)
