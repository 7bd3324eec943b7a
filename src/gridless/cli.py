"""The command line. Errors of the user's end with exit code 2 and a message, never a traceback."""

import sys
from pathlib import Path

import click
from rich.console import Console

from gridless import __version__
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
