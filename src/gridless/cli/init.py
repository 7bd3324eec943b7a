"""`gridless init`: an analysis.yaml to begin from."""

from os.path import abspath, exists
from pathlib import Path

import click

from gridless.analysis.starting import TEMPLATE, starting_analysis
from gridless.cli.options import as_json, print_json
from gridless.errors import InputError
from gridless.files.write import write_whole


@click.command()
@click.argument("output", type=click.Path(path_type=Path), default=Path("analysis.yaml"))
@click.option(
    "--templates",
    metavar="PATTERN",
    help="Your simulated files, 'mtop_{mtop}.csv': parameters, bounds and columns are filled in.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@as_json
def init(output: Path, templates: str | None, force: bool, machine: bool) -> None:
    """Write an analysis.yaml with comments, to begin from.

    Example: gridless init --templates 'mtop_{mtop}.root:events'
    """
    if exists(output) and not force:
        raise InputError(f"{output}: already exists; give another name, or --force")
    text = starting_analysis(_from(output.parent, templates)) if templates else TEMPLATE
    write_whole(output, text)
    if machine:
        print_json({"analysis": str(output)})
    else:
        click.echo(f"written to {output}; edit it, then: gridless audit {output}")


def _from(folder: Path, pattern: str) -> str:
    """The pattern as it is found from the folder of the analysis file."""
    return pattern if folder.resolve() == Path.cwd() else abspath(pattern)
