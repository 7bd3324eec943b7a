"""`gridless report`: one page about a model and a measurement."""

from functools import reduce
from operator import add
from pathlib import Path

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    check_model_first,
    check_places,
    check_restrictions,
    command_line,
    likelihood_options,
    model_file,
    output_file,
    print_json,
    weight,
    where,
)


@click.command()
@model_file
@click.argument("data", nargs=-1)
@click.option("--closure", "samples", metavar="PATTERN", help="Samples of known parameters.")
@click.option(
    "--closure-where",
    metavar="EXPRESSION",
    help="Use only these events of the samples; by default those of --where.",
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
    check_model_first(model, data)
    check_places([output], [model, *data, *([] if samples is None else [samples])])
    from gridless.files.read import checksum
    from gridless.files.table import check_distinct
    from gridless.likelihood.derived import restricted

    trained = gl.load(model)
    check_restrictions(trained, constrain, fix)
    check_distinct(data)
    table = None
    if samples is not None:
        known = gl.read_samples(trained, samples, where=closure_where or where)
        table = gl.closure(trained, known, constrain=constrain, fix=fix)
    parts = [gl.read_likelihood(trained, source, weight, where) for source in data]
    files = [
        gl.FileRecord(source, part.events, checksum(source), part.offered)
        for source, part in zip(data, parts, strict=True)
    ]
    likelihood = restricted(reduce(add, parts), constrain, fix) if parts else None
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
