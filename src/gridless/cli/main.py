"""The command line. Errors of the user's end with exit code 2 and a message, never a traceback."""

import sys
from pathlib import Path

import click
from rich.console import Console

from gridless import __version__
from gridless.cli import commands
from gridless.errors import InputError


class _Commands(click.Group):
    """A group whose commands turn InputError into a message on stderr and exit code 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except InputError as error:
            click.echo(f"gridless: {error}", err=True)
            sys.exit(2)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Continuous maximum-likelihood estimates from simulation on a grid."""


@main.command()
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
    from gridless.demo import run_demo

    run_demo(output, events, seed, Console())


@main.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("paper"),
    show_default=True,
    help="Folder for the report, figures, results and what is kept to continue.",
)
@click.option("--only", help="Make these items only, such as fig5,table1.")
@click.option("--quick", is_flag=True, help="Smaller samples: all of it in some minutes.")
def paper(output: Path, only: str | None, quick: bool) -> None:
    """Reproduce the paper: ten figures, a table, closure, and a report beside its statements.

    Interrupted, it keeps what is finished, and the same command continues.

    Example: gridless paper --quick -o paper
    """
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


for command in (
    commands.init,
    commands.audit,
    commands.fit,
    commands.measure,
    commands.closure,
    commands.report,
    commands.export,
):
    main.add_command(command)
