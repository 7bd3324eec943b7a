"""`gridless example`, `demo` and `paper`: verbs that bring a simulation of their own."""

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from gridless.cli.options import as_json, print_json


@click.command()
@click.argument(
    "directory", type=click.Path(path_type=Path), default=Path("gridless_example"), required=False
)
@click.option(
    "--events",
    type=int,
    default=6_000,
    show_default=True,
    help="Simulated events per template.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Fixes everything random.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@as_json
def example(directory: Path, events: int, seed: int, force: bool, machine: bool) -> None:
    """Write small files of a top-quark mass to DIRECTORY, and five commands to try on them.

    ROOT files where uproot is installed, else Parquet, else CSV.

    Example: gridless example
    """
    from gridless.example_files import write_example

    readme = write_example(directory, events, seed, force=force)
    if machine:
        files = sorted(str(path) for path in directory.iterdir())
        print_json({"directory": str(directory), "files": files})
        return
    lines = [line.strip() for line in readme.read_text().splitlines()]
    commands = [line for line in lines if line.startswith("gridless ")]
    click.echo(f"written to {directory}; next:\n")
    for line in [f"cd {directory}", *commands]:
        click.echo(f"  {line}")
    if find_spec("matplotlib") is None or find_spec("jinja2") is None:
        click.echo("\nThe report needs figures: pip install 'gridless[report]'")


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the figures and the model.",
)
@click.option(
    "--events",
    type=click.IntRange(1000, 1_000_000),
    default=100_000,
    show_default=True,
    help="Simulated events per template.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Fixes everything random.")
def demo(output: Path, events: int, seed: int) -> None:
    """Run the paper's two-observable example from simulation to a measurement.

    Example: gridless demo -o demo
    """
    from rich.console import Console

    from gridless.demo import run_demo

    run_demo(output, events, seed, Console())


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("paper"),
    show_default=True,
    help="Folder for the report, figures, results and what is kept to continue.",
)
@click.option("--only", help="Make these items only, such as fig5,table1.")
@click.option("--quick", is_flag=True, help="Use smaller samples; takes some minutes in all.")
def paper(output: Path, only: str | None, quick: bool) -> None:
    """Reproduce the paper: ten figures, a table, closure, and a report beside its statements.

    Interrupted, it keeps what is finished, and the same command continues.

    Example: gridless paper --quick -o paper
    """
    from rich.console import Console

    from gridless.paper.choices import FULL, QUICK
    from gridless.paper.run import choose_items, reproduce

    names = choose_items(only)
    console = Console()
    try:
        agree = reproduce(output, QUICK if quick else FULL, names, console)
    except KeyboardInterrupt:
        console.print("interrupted; what is finished is kept, and the same command continues")
        sys.exit(130)
    if not agree:
        sys.exit(1)
