"""`gridless expect`: what a measurement will give, before any observed event is looked at."""

from pathlib import Path
from typing import Any

import click

from gridless import strict_json
from gridless.cli.options import (
    as_json,
    check_model_first,
    check_restrictions,
    event_numbers,
    likelihood_options,
    model_file,
    observed_events,
    print_json,
)
from gridless.errors import InputError
from gridless.results.printing import ends


@click.command()
@model_file
@observed_events
@click.option(
    "--at",
    type=(str, float),
    multiple=True,
    metavar="NAME VALUE",
    help="The true value of a parameter; repeat the flag. By default the middle of the templates.",
)
@likelihood_options
@as_json
def expect(
    model: Path,
    events: tuple[str, ...],
    at: tuple[tuple[str, float], ...],
    level: float | None,
    constrain: dict[str, tuple[float, float]],
    fix: dict[str, float],
    machine: bool,
) -> None:
    """Print the estimate to expect: value, error and its budget, without data.

    Example: gridless expect top.safetensors --events 10000 --at mtop 172.5
    """
    check_model_first(model)
    import gridless as gl
    from gridless.likelihood.derived import restricted

    trained = gl.load(model)
    numbers = event_numbers(trained, events)
    check_restrictions(trained, constrain, fix)
    names = trained.grid.parameters
    for name, _ in at:
        if name not in names:
            raise InputError(f"--at: no parameter {name!r}; there is {', '.join(names)}")
    middle = _middle(trained)
    truth = [dict(at).get(name, middle[p]) for p, name in enumerate(names)]
    likelihood = restricted(trained.expected(truth, numbers), constrain, fix)
    estimate = likelihood.maximum()
    content = estimate.to_dict() | {"expected": True}
    if not machine:
        total = sum(numbers.values()) if isinstance(numbers, dict) else numbers
        click.echo(f"expected of {total:,.0f} events:\n{estimate}")
    for name in estimate.parameters:
        if level is None:
            continue
        low, high = likelihood.interval(level, name)
        found = content["parameters"][strict_json.plain(name)]
        found["interval"] = {"level": level, "low": low, "high": high}
        if not machine:
            click.echo(f"  {name}: {ends(low, high)} at {level:.0%}")
    if machine:
        print_json(content)


def _middle(model: Any) -> Any:
    """The middle of the templates; of several channels that of the common bounds."""
    grid = model.grid
    edges = grid.values if len(grid.values) > 1 else grid.bounds.T
    return 0.5 * (edges.min(axis=0) + edges.max(axis=0))
