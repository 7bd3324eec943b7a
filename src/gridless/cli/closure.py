"""`gridless closure`: estimates of samples whose parameters are known."""

from pathlib import Path
from typing import Any

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    check_model_first,
    check_restrictions,
    executor_options,
    likelihood_options,
    load_one,
    model_file,
    print_json,
    where,
)
from gridless.errors import InputError
from gridless.validation.limits import check_experiments


@click.command()
@model_file
@click.argument("samples", required=False)
@click.option(
    "--leave-one-out",
    is_flag=True,
    help="Estimate every inner template by a likelihood that does not know it; with SAMPLES, the "
    "templates, the network too is trained anew without it.",
)
@click.option(
    "--weight", metavar="EXPRESSION", help="Weight of an event, if not that of the templates."
)
@where
@likelihood_options
@click.option(
    "--signal", is_flag=True, help="The samples have no background: hold all shares at 0."
)
@click.option("--toys", type=int, help="Pseudo-experiments per value, for the coverage.")
@click.option(
    "--events",
    type=int,
    help="Events per pseudo-experiment; with --leave-one-out, observed events (10,000).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes everything random.")
@executor_options
@as_json
def closure(
    model: Path,
    samples: str | None,
    leave_one_out: bool,
    weight: str | None,
    where: str | None,
    level: float | None,
    constrain: dict[str, tuple[float, float]],
    fix: dict[str, float],
    signal: bool,
    toys: int | None,
    events: int | None,
    seed: int,
    dask: str | None,
    workers: int | None,
    machine: bool,
) -> None:
    """Estimate samples whose parameters are known: pulls, slope, chi2/dof, coverage.

    MODEL with several channels divides the samples by their selections. Of samples that a
    systematic has changed, the last lines say whether the fit finds its nuisance parameter.

    Example: gridless closure top.safetensors 'test_{mtop}.root:events' --toys 1000
    """
    check_model_first(model, [] if samples is None else [samples])
    if leave_one_out:
        if toys is not None or constrain or fix:
            raise InputError("--leave-one-out: takes no --toys, --constrain or --fix; leave them")
        table, between = _left_out(model, samples, weight, where, dask, workers, events)
        if machine:
            print_json(table.to_dict() | {"gaps": between.to_dict()})
        else:
            click.echo(f"{table}\n\n{between}")
        return
    if samples is None:
        raise InputError("SAMPLES: none; give samples of known parameters, or --leave-one-out")
    check_experiments(2 if toys is None else toys, events, seed)
    from gridless.parallel import cluster

    trained = load_one(model, "--toys") if toys is not None else gl.load(model)
    check_restrictions(trained, constrain, fix)
    known = gl.read_samples(trained, samples, weight=weight, where=where)
    with cluster(dask, workers) as executor:
        table = gl.closure(
            trained, known, executor, constrain=constrain, fix=fix, level=level, signal=signal
        )
        content = table.to_dict()
        if not machine:
            click.echo(str(table))
        try:
            if toys is not None:
                tested = gl.coverage(load_one(model), known, toys, events, seed, executor=executor)
                content |= {name: tested.to_dict()[name] for name in ("coverage", "pull_width")}
                if not machine:
                    click.echo(f"\n{tested}")
        finally:
            # Also if there can be no pseudo-experiments: the closure is made.
            if machine:
                print_json(content)


def _left_out(
    model: Path,
    templates: str | None,
    weight: str | None,
    where: str | None,
    dask: str | None,
    workers: int | None,
    observed: int | None,
) -> tuple[Any, Any]:
    """The closure of every inner template without itself, and what is open between them."""

    from gridless.model.stream import read_templates_like
    from gridless.parallel import cluster

    trained = load_one(model, "--leave-one-out")
    events = None
    if templates is not None:
        events = read_templates_like(trained, templates, weight=weight, where=where)
    with cluster(dask, workers) as executor:
        table = gl.leave_one_out(trained, events, executor)
    return table, gl.gaps(trained) if observed is None else gl.gaps(trained, observed)
