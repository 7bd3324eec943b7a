"""`gridless measure`: from observed events to an estimate."""

from pathlib import Path

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    check_model_first,
    check_places,
    check_restrictions,
    executor_options,
    likelihood_options,
    model_file,
    output_file,
    print_json,
    weight,
    where,
)


@click.command()
@model_file
@click.argument("data", nargs=-1, required=True)
@likelihood_options
@output_file("--scan", "Write the likelihood curve to a CSV file.")
@weight
@where
@executor_options
@as_json
def measure(
    model: Path,
    data: tuple[str, ...],
    level: float | None,
    constrain: dict[str, tuple[float, float]],
    fix: dict[str, float],
    scan: Path | None,
    weight: str | None,
    where: str | None,
    dask: str | None,
    workers: int | None,
    machine: bool,
) -> None:
    """Estimate the parameters of observed events, with their uncertainties and every warning.

    Example: gridless measure top.safetensors data.root:events --level 0.95
    """
    check_model_first(model, data)
    check_places([scan], [model, *data])
    from gridless.likelihood.restrict import restricted
    from gridless.parallel import cluster

    trained = gl.load(model)
    check_restrictions(trained, constrain, fix)
    with cluster(dask, workers) as executor:
        likelihood = gl.read_likelihood(trained, data, weight, where, executor)
    likelihood = restricted(likelihood, constrain, fix)
    estimate = likelihood.maximum()
    wider = {}
    if level is not None:
        wider = {name: likelihood.interval(level, name) for name in estimate.parameters}
    if scan is not None:
        gl.write_curve(scan, likelihood, "csv")
    if machine:
        content = estimate.to_dict()
        for name, (low, high) in wider.items():
            content["parameters"][name]["interval"] = {"level": level, "low": low, "high": high}
        print_json(content)
        return
    click.echo(str(estimate))
    for name, (low, high) in wider.items():
        click.echo(f"  {name}: {low:.6g} to {high:.6g} at {level:.0%}")
