"""`gridless paper`: the figures, the table and the closure tests of the paper."""

import sys
from pathlib import Path

import click


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
