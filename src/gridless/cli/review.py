"""`gridless review`: what a statistics committee asks, answered on one page."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    channel_data,
    check_model_first,
    command_line,
    model_file,
    output_file,
    print_json,
    weight,
    where,
)


@click.command()
@model_file
@click.argument("data", nargs=-1)
@click.option(
    "--templates",
    multiple=True,
    metavar="PATTERN",
    help="The templates: adds fits of variants; soft=PATTERN where channels have their own.",
)
@click.option("--by", metavar="EXPRESSION", help="Groups of events, such as run - run % 1000.")
@click.option("--events", type=float, default=10_000, help="Events to expect, without DATA.")
@click.option("--toys", type=click.IntRange(100), default=2_000, help="Pseudo-experiments.")
@output_file("--output", "The page to write.", default=Path("review.html"))
@weight
@where
@as_json
def review(
    model: Path,
    data: tuple[str, ...],
    templates: tuple[str, ...],
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
    check_model_first(model, data, [output], templates)
    trained = gl.load(model)
    x: Any = None
    groups: Any = None
    simulated: Any = None
    if data:
        x, groups = _events(trained, data, weight, where, by)
    if templates:
        from gridless.model.stream import read_templates_like

        patterns = _by_channel(trained, templates, "--templates")
        simulated = {n: read_templates_like(one, patterns[n]) for n, one in _models(trained)}
    if not isinstance(trained, gl.Channels):
        x, groups, simulated = (one and one[""] for one in (x, groups, simulated))
    state = output.with_name(f"{output.name}.state")
    found = gl.review(
        trained, x, by=groups, templates=simulated, events=events, toys=toys, state=state
    )
    gl.write_review(output, found, command_line())
    state.unlink(missing_ok=True)
    if machine:
        print_json(found.to_dict() | {"page": str(output)})
    else:
        click.echo(f"{found}\nwritten to {output}")


def _models(trained: "gl.Model | gl.Channels") -> list[tuple[str, "gl.Model"]]:
    """The channels by name; a model has none."""
    return list(trained.items()) if isinstance(trained, gl.Channels) else [("", trained)]


def _by_channel(
    trained: "gl.Model | gl.Channels", given: tuple[str, ...], what: str
) -> dict[str, list[str]]:
    """The files of every channel: its own, or those that all of them divide."""
    found = channel_data(trained, given, what)
    return found if isinstance(found, dict) else {name: found for name, _ in _models(trained)}


def _events(
    trained: "gl.Model | gl.Channels",
    data: tuple[str, ...],
    weight: str | None,
    where: str | None,
    by: str | None,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The observed events of every channel with their weights, and their groups."""
    import numpy as np

    from gridless.files.read import Sample, read_query
    from gridless.files.table import check_distinct
    from gridless.model.stream import GROUP, divisions

    files = _by_channel(trained, data, "DATA")
    if isinstance(trained, gl.Channels):
        divisions(trained, dict(files), where)
    samples, groups = {}, {}
    for name, model in _models(trained):
        check_distinct(files[name])
        query = replace(model.query, weight=weight).where(where)
        wide = query if by is None else replace(query, observables=query.observables | {GROUP: by})
        parts = [read_query(source, wide) for source in files[name]]
        x = np.concatenate([part.x for part in parts])
        weights = None
        if weight is not None:
            weights = np.concatenate([np.asarray(part.weights) for part in parts])
        if by is not None:
            x, groups[name] = x[:, :-1], x[:, -1]
        samples[name] = Sample(x, weights, query, ", ".join(files[name]), None)
    return samples, groups or None
