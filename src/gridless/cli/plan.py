"""`gridless plan`: what to simulate next."""

from pathlib import Path

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    check_model_first,
    event_numbers,
    model_file,
    observed_events,
    print_result,
)
from gridless.errors import InputError


@click.command()
@model_file
@observed_events
@click.option("--simulated", type=float, help="Events to simulate next; as many as there are.")
@click.option(
    "--at",
    type=(str, float),
    multiple=True,
    metavar="NAME VALUE",
    help="The value of a parameter that is expected; by default the range of the templates.",
)
@click.option("--parameter", help="Whose error, where there are several.")
@as_json
def plan(
    model: Path,
    events: tuple[str, ...],
    simulated: float | None,
    at: tuple[tuple[str, float], ...],
    parameter: str | None,
    machine: bool,
) -> None:
    """Print the total error for more simulation, and the best shares of the next events.

    Example: gridless plan pilot.safetensors --events 10000 --simulated 1e6
    """
    check_model_first(model)
    trained = gl.load(model)
    numbers = event_numbers(trained, events)
    names, given = trained.grid.parameters, dict(at)
    if given and set(given) != set(names):
        raise InputError(f"--at: give it for each of {', '.join(names)}")
    theta = [given[name] for name in names] if given else None
    print_result(gl.plan(trained, numbers, simulated, theta, parameter), machine)
