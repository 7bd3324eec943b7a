"""`gridless review`: what a statistics committee asks, answered on one page."""

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
from gridless.errors import InputError


@click.command()
@model_file
@click.argument("data", nargs=-1)
@click.option(
    "--templates",
    multiple=True,
    metavar="PATTERN",
    help="The templates: adds fits of variants, of models without systematics and backgrounds; "
    "soft=PATTERN where channels have their own.",
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
    from gridless.model.combined import models_of
    from gridless.model.stream import by_channel, observed_events, read_templates_like

    trained = gl.load(model)
    x: Any = None
    groups: Any = None
    simulated: Any = None
    if data:
        x, groups = observed_events(trained, channel_data(trained, data), weight, where, by)
    if templates:
        patterns = by_channel(trained, channel_data(trained, templates, "--templates"))
        if any(len(given) > 1 for given in patterns.values()):
            raise InputError(f"--templates: {', '.join(templates)}; give one pattern per channel")
        simulated = {
            name: read_templates_like(one, *patterns[name])
            for name, one in models_of(trained).items()
        }
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
