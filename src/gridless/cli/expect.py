"""`gridless expect`: what a measurement will give, before any observed event is looked at."""

from pathlib import Path

import click

from gridless.cli.options import (
    as_json,
    check_model_first,
    check_restrictions,
    likelihood_options,
    load_one,
    model_file,
    print_json,
)
from gridless.errors import InputError


@click.command()
@model_file
@click.option("--events", type=float, required=True, help="Events that will be observed.")
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
    events: float,
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
    from gridless.likelihood.derived import restricted

    trained = load_one(model)
    check_restrictions(trained, constrain, fix)
    names = trained.grid.parameters
    for name, _ in at:
        if name not in names:
            raise InputError(f"--at: no parameter {name!r}; there is {', '.join(names)}")
    values = trained.grid.values
    middle = 0.5 * (values.min(axis=0) + values.max(axis=0))
    truth = [dict(at).get(name, middle[p]) for p, name in enumerate(names)]
    likelihood = restricted(trained.expected(truth, events), constrain, fix)
    estimate = likelihood.maximum()
    content = estimate.to_dict() | {"expected": True}
    if not machine:
        click.echo(f"expected of {events:,.0f} events:\n{estimate}")
    for name in estimate.parameters:
        if level is None:
            continue
        low, high = likelihood.interval(level, name)
        content["parameters"][name]["interval"] = {"level": level, "low": low, "high": high}
        if not machine:
            click.echo(f"  {name}: {low:.6g} to {high:.6g} at {level:.0%}")
    if machine:
        print_json(content)
