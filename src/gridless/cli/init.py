"""`gridless init`: an analysis.yaml to begin from."""

import os
from pathlib import Path

import click

from gridless.analysis.analysis import TEMPLATE
from gridless.cli.options import as_json, print_json
from gridless.errors import InputError
from gridless.files.write import write_whole


@click.command()
@click.argument("output", type=click.Path(path_type=Path), default=Path("analysis.yaml"))
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@as_json
def init(output: Path, force: bool, machine: bool) -> None:
    """Write an analysis.yaml with comments, to begin from.

    Example: gridless init analysis.yaml
    """
    if os.path.exists(output) and not force:
        raise InputError(f"{output}: already exists; give another name, or --force")
    write_whole(output, TEMPLATE.encode())
    if machine:
        print_json({"analysis": str(output)})
    else:
        click.echo(f"written to {output}; edit it, then: gridless audit {output}")
