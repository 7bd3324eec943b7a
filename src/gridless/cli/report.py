"""`gridless report`: one page about a model and a measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    channel_data,
    check_model_first,
    check_restrictions,
    command_line,
    likelihood_options,
    model_file,
    output_file,
    print_json,
    weight,
    where,
)
from gridless.errors import InputError


@click.command()
@model_file
@click.argument("data", nargs=-1)
@click.option("--closure", "samples", metavar="PATTERN", help="Samples of known parameters.")
@click.option(
    "--closure-where",
    metavar="EXPRESSION",
    help="Use only these events of the samples; by default those of --where.",
)
@click.option(
    "--signal",
    is_flag=True,
    help="The samples of --closure have no background: hold all shares at 0 there.",
)
@likelihood_options
@output_file("--output", "The page to write.", default=Path("report.html"))
@weight
@where
@click.option("--label", metavar="TEXT", help="Stands above every figure: Private work.")
@as_json
def report(
    model: Path,
    data: tuple[str, ...],
    samples: str | None,
    closure_where: str | None,
    signal: bool,
    level: float | None,
    constrain: dict[str, tuple[float, float]],
    fix: dict[str, float],
    output: Path,
    weight: str | None,
    where: str | None,
    label: str | None,
    machine: bool,
) -> None:
    """Write one self-contained HTML page about a model and, with DATA, a measurement.

    Example: gridless report top.safetensors data.root:events --closure 'test_{mtop}.root:events'
    """
    check_model_first(model, data, [output], [samples])
    for flag, given in (("--signal", signal), ("--closure-where", closure_where is not None)):
        if given and samples is None:
            raise InputError(f"{flag}: for the samples of --closure; give these, or leave it out")
    from gridless.report.page import check_extra

    check_extra()
    from gridless.likelihood.derived import restricted
    from gridless.model.stream import read_observed

    trained = gl.load(model)
    check_restrictions(trained, constrain, fix)
    table = None
    if samples is not None:
        known = gl.read_samples(trained, samples, where=closure_where or where)
        table = gl.closure(trained, known, constrain=constrain, fix=fix, signal=signal)
    likelihood: Any = None
    files: Any = ()
    if data:
        likelihood, found = read_observed(trained, channel_data(trained, data), weight, where)
        files = found if isinstance(trained, gl.Channels) else found[""]
        likelihood = restricted(likelihood, constrain, fix)
    gl.write_report(
        *(output, trained, likelihood, table),
        level=level or 0.95,
        command=command_line(),
        data=files,
        experiment=label,
    )
    if machine:
        print_json({"report": str(output)})
    else:
        click.echo(f"written to {output}")
