"""A progress bar on a terminal, nothing in a pipe."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

Report = Callable[[str], None]


@contextmanager
def progress_bar(title: str, steps: int) -> Iterator[Report]:
    """Gives a function to call after each step with a short text; draws only on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
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
