"""`gridless review`: what a statistics committee asks, answered on one page."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    check_model_first,
    command_line,
    load_one,
    model_file,
    output_file,
    print_json,
    weight,
    where,
)


@click.command()
@model_file
@click.argument("data", nargs=-1)
@click.option("--templates", metavar="PATTERN", help="The templates: adds fits of variants.")
@click.option("--by", metavar="EXPRESSION", help="Groups of events, such as run - run % 1000.")
@click.option("--events", type=float, default=10_000, help="Without DATA: events to be observed.")
@click.option("--toys", type=click.IntRange(100), default=2_000, help="Pseudo-experiments.")
@output_file("--output", "The page to write.", default=Path("review.html"))
@weight
@where
@as_json
def review(
    model: Path,
    data: tuple[str, ...],
    templates: str | None,
    by: str | None,
    events: float,
    toys: int,
    output: Path,
    weight: str | None,
    where: str | None,
    machine: bool,
) -> None:
    """Ask twelve questions of a model and, with DATA, of a measurement; write one page.

    An interrupted review goes on where it was. Example: gridless review top.safetensors
    data.root:events --templates 'mc_{mtop}.root:events'
    """
    check_model_first(model, data, [output], [templates])
    trained = load_one(model)
    x = weights = groups = None
    if data:
        x, weights, groups = _events(trained, data, weight, where, by)
    simulated = None
    if templates is not None:
        from gridless.model.stream import read_templates_like

        simulated = read_templates_like(trained, templates)
    state = output.with_name(f"{output.name}.state")
    found = gl.review(
        trained, x, weights, by=groups, templates=simulated, events=events, toys=toys, state=state
    )
    gl.write_review(output, found, command_line())
    state.unlink(missing_ok=True)
    if machine:
        print_json(found.to_dict() | {"page": str(output)})
    else:
        click.echo(f"{found}\nwritten to {output}")


def _events(
    model: "gl.Model", data: tuple[str, ...], weight: str | None, where: str | None, by: str | None
) -> tuple[Any, Any, Any]:
    """The observed events of all files, their weights and groups."""
    import numpy as np

    from gridless.files.read import Sample, read_query
    from gridless.files.table import check_distinct
    from gridless.model.stream import GROUP

    check_distinct(data)
    query = replace(model.query, weight=weight).where(where)
    wide = query if by is None else replace(query, observables=query.observables | {GROUP: by})
    parts = [read_query(source, wide) for source in data]
    x = np.concatenate([part.x for part in parts])
    weights = None
    if weight is not None:
        weights = np.concatenate([np.asarray(part.weights) for part in parts])
    groups = None if by is None else x[:, -1]
    table = x if by is None else x[:, :-1]
    return Sample(table, weights, query, ", ".join(data), None), None, groups
