"""`gridless measure`: from observed events to an estimate."""

from math import isnan
from pathlib import Path
from typing import Any

import click

import gridless as gl
from gridless import strict_json
from gridless.cli.options import (
    as_json,
    channel_data,
    check_model_first,
    check_restrictions,
    executor_options,
    likelihood_options,
    model_file,
    output_file,
    print_json,
    weight,
    where,
)
from gridless.errors import InputError
from gridless.likelihood.blinding import AT_BOUND, check_key
from gridless.results.printing import ends


@click.command()
@model_file
@click.argument("data", nargs=-1, required=True)
@likelihood_options
@output_file("--scan", "Write the likelihood curve to a CSV file.")
@click.option(
    "--by", metavar="EXPRESSION", help="Compare groups of events, such as run - run % 1000."
)
@click.option("--blind", metavar="KEY", help="Shift the value by a hidden offset of this key.")
@click.option(
    "--unblind", metavar="KEY", help="Show the value, and what --blind shows with this key."
)
@click.option(
    "--method",
    type=click.Choice(["wilks", "feldman-cousins", "upper"]),
    default="wilks",
    show_default=True,
    help="How intervals at --level are made; the last two by pseudo-experiments.",
)
@click.option("--toys", type=click.IntRange(2), help="Pseudo-experiments at each value.")
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
    by: str | None,
    blind: str | None,
    unblind: str | None,
    method: str,
    toys: int | None,
    weight: str | None,
    where: str | None,
    dask: str | None,
    workers: int | None,
    machine: bool,
) -> None:
    """Estimate the parameters of observed events, with their uncertainties and every warning.

    MODEL with several channels divides DATA by their selections; or each has its own,
    soft=FILE hard=FILE. MODEL:soft is one of them alone.

    Example: gridless measure top.safetensors data.root:events --level 0.95
    """
    check_model_first(model, data, [scan])
    _check_flags(blind, unblind, [scan, by], method, toys)
    from gridless.likelihood.derived import restricted
    from gridless.parallel import cluster

    trained = gl.load(model)
    check_restrictions(trained, constrain, fix)
    with cluster(dask, workers) as executor:
        sources = channel_data(trained, data)
        likelihood = gl.read_likelihood(trained, sources, weight, where, executor, by)
        likelihood = restricted(likelihood, constrain, fix)
        estimate = likelihood.maximum()
        chosen = level or 0.95
        wider = {}
        if level is not None or method != "wilks":
            wider = {
                name: _interval(likelihood, name, chosen, method, toys, executor)
                for name in estimate.parameters
            }
    if scan is not None:
        gl.write_curve(scan, likelihood, "csv")
    shown = estimate if blind is None else estimate.blinded(blind)
    content, lines = shown.to_dict(), [str(shown)]
    for name, known in wider.items():
        low, high = known if blind is None else estimate.blinded(blind).interval(name, known)
        found = {"level": chosen, "low": low, "high": high, "method": method}
        content["parameters"][strict_json.plain(name)]["interval"] = found
        if isnan(high) or (isnan(low) and method != "upper"):
            lines.append(f"  {name} at {chosen:.0%}: {AT_BOUND}")
            continue
        if method == "upper":
            lines.append(f"  {name} < {high:.6g} at {chosen:.0%} (upper limit, CLs)")
            continue
        how = "" if method == "wilks" else f" ({method})"
        lines.append(f"  {name}: {ends(low, high)} at {chosen:.0%}{how}")
    if unblind is not None:
        before = estimate.blinded(unblind)
        content["blind"] = {name: before.value(name) for name in estimate.parameters}
        lines += [
            f"  with this key {name} was {'hidden' if isnan(value) else f'shown as {value:.6g}'}"
            for name, value in content["blind"].items()
        ]
    if by is not None:
        groups = likelihood.by()
        content |= {"by": by, **groups.to_dict()}
        lines.append(f"\n{groups}")
    if isinstance(trained, gl.Channels) and blind is None:  # its parts would tell the value
        groups = likelihood.by()
        content["channels"] = groups.to_dict()
        lines.append(f"\neach channel alone:\n{groups}")
    if machine:
        print_json(content)
    else:
        click.echo("\n".join(lines))


def _check_flags(
    blind: str | None, unblind: str | None, telling: list[Any], method: str, toys: int | None
) -> None:
    for key in (blind, unblind):
        if key is not None:
            check_key(key)
    if blind is not None and any(flag is not None for flag in (unblind, *telling)):
        raise InputError("--blind: with --scan, --by or --unblind the value would be seen")
    if method == "wilks" and toys is not None:
        raise InputError("--toys: intervals of Wilks need none; give --method feldman-cousins")


def _interval(
    likelihood: Any, name: str, level: float, method: str, toys: int | None, executor: Any
) -> tuple[float, float]:
    if method == "wilks":
        exact: tuple[float, float] = likelihood.interval(level, name)
        return exact
    belt = likelihood.belt(name, method=method, toys=toys or 2000, executor=executor)
    found: tuple[float, float] = belt.interval(level)
    return found
