"""`gridless demo`: the paper's example, from simulation to a measurement."""

from pathlib import Path

import click


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
