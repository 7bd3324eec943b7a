"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, get_args

import click

from gridless.model.record import FitOptions

Command = Callable[..., Any]
as_json = click.option("--json", "machine", is_flag=True, help="Print JSON for machines.")
where = click.option(
    "--where", metavar="EXPRESSION", help="Use only these events, in this command alone."
)
weight = click.option("--weight", metavar="EXPRESSION", help="Weight of an event.")


def cluster_options(command: Command) -> Command:
    """Where to work, if not in this process."""
    for option in (
        click.option(
            "--dask", metavar="ADDRESS", help="A dask scheduler, such as tcp://host:8786."
        ),
        click.option("--workers", type=int, help="So many processes on this machine."),
    )[::-1]:
        command = option(command)
    return command


def template_options(command: Command) -> Command:
    """What names the templates: an analysis file, or a pattern with flags."""
    for option in (
        click.argument("templates"),
        click.option(
            "--bounds",
            type=(str, float, float),
            multiple=True,
            metavar="NAME LOW HIGH",
            help="A parameter and its bounds; once for each.",
        ),
        click.option("-x", "--observables", help="Columns or expressions, with commas between."),
        weight,
        click.option(
            "--selection",
            metavar="EXPRESSION",
            help="Use only these events; the model will ask the same of data.",
        ),
        where,
    )[::-1]:
        command = option(command)
    return command


def fit_options(command: Command) -> Command:
    """Every option of a fit; those not given come from the analysis file, or are the defaults."""
    for name, field in reversed(FitOptions.model_fields.items()):
        kinds = [k for k in (int, float) if k in (field.annotation, *get_args(field.annotation))]
        # Several numbers, as of hidden, are text with commas.
        kind = str if name == "hidden" or not kinds else kinds[0]
        command = click.option(f"--{name}", type=kind, help=field.description)(command)
    return command
