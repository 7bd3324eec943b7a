"""`gridless closure`: estimates of samples whose parameters are known."""

from pathlib import Path

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    check_model_first,
    check_restrictions,
    executor_options,
    likelihood_options,
    model_file,
    print_json,
    where,
)


@click.command()
@model_file
@click.argument("samples")
@click.option(
    "--weight", metavar="EXPRESSION", help="Weight of an event, if not that of the templates."
)
@where
@likelihood_options
@click.option("--toys", type=int, help="Pseudo-experiments per value, for the coverage.")
@click.option("--events", type=int, help="Events per pseudo-experiment.")
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes everything random.")
@executor_options
@as_json
def closure(
    model: Path,
    samples: str,
    weight: str | None,
    where: str | None,
    level: float | None,
    constrain: dict[str, tuple[float, float]],
    fix: dict[str, float],
    toys: int | None,
    events: int | None,
    seed: int,
    dask: str | None,
    workers: int | None,
    machine: bool,
) -> None:
    """Estimate samples whose parameters are known: pulls, slope, chi2/dof, coverage.

    Example: gridless closure top.safetensors 'test_{mtop}.root:events' --toys 1000
    """
    check_model_first(model, [samples])
    from gridless.parallel import cluster
    from gridless.validation.coverage import check_experiments

    check_experiments(2 if toys is None else toys, events, seed)

    trained = gl.load(model)
    check_restrictions(trained, constrain, fix)
    known = gl.read_samples(trained, samples, weight=weight, where=where)
    with cluster(dask, workers) as executor:
        table = gl.closure(trained, known, executor, constrain=constrain, fix=fix, level=level)
        content = table.to_dict()
        if not machine:
            click.echo(str(table))
        try:
            if toys is not None:
                tested = gl.coverage(trained, known, toys, events, seed, executor=executor)
                content |= {name: tested.to_dict()[name] for name in ("coverage", "pull_width")}
                if not machine:
                    click.echo(f"\n{tested}")
        finally:
            # Also if there can be no pseudo-experiments: the closure is made.
            if machine:
                print_json(content)
