"""`gridless example`: small files to try everything on."""

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
