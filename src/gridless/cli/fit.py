"""`gridless fit`: from templates to a model file."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

import gridless as gl
from gridless.analysis.analysis import Analysis
from gridless.analysis.fitting import channel_checkpoint
from gridless.analysis.loading import by_channel
from gridless.cli.analysis_flags import template_options
from gridless.cli.options import (
    Command,
    as_json,
    command_line,
    output_file,
    print_json,
    with_options,
)
from gridless.errors import InputError
from gridless.files.write import check_outputs
from gridless.model.record import FitOptions

# The flags of the penalty and the arguments of `gl.Penalty` that they give.
PENALTY = ("strength", "at", "density", "bins")


def _fit_options(command: Command) -> Command:
    """Every option of a fit; the verb gets those that were given as `options`."""

    @functools.wraps(command)
    def checked(**values: Any) -> Any:
        given = {name: values.pop(name) for name in FitOptions.model_fields}
        penalty = {name: values.pop(f"penalty_{name}") for name in PENALTY}
        options = {name: value for name, value in given.items() if value is not None}
        if "hidden" in options:
            options["hidden"] = _layers(options["hidden"])
        settings = {name: value for name, value in penalty.items() if value not in (None, ())}
        if settings:
            options["objective"] = _penalty(options.get("objective"), settings)
        return command(options=options, **values)

    flags = [_fit_flag(name) for name in FitOptions.model_fields]
    return with_options(
        checked,
        *flags,
        click.option(
            "--penalty-strength",
            type=click.FloatRange(0, min_open=True),
            help="Weight of the penalty, lambda.",
        ),
        click.option(
            "--penalty-at",
            multiple=True,
            metavar="VALUE[,...]",
            callback=_values,
            help="Where the penalty is taken: a value of each parameter; repeat the flag.",
        ),
        click.option(
            "--penalty-density",
            type=click.Choice(["events", "histogram"]),
            help="How the penalty averages over the observables.",
        ),
        click.option(
            "--penalty-bins", type=click.IntRange(2), help="Bins per observable of the histogram."
        ),
    )


def _fit_flag(name: str) -> Any:
    field = FitOptions.model_fields[name]
    kinds = [k for k in (int, float) if k in (field.annotation, *get_args(field.annotation))]
    # Several numbers, as of hidden, are text with commas.
    kind: Any = str if name == "hidden" or not kinds else kinds[0]
    return click.option(f"--{name}", type=kind, help=field.description)


def _penalty(objective: str | None, settings: dict[str, Any]) -> dict[str, Any]:
    if objective not in (None, "penalty"):
        flags = ", ".join(f"--penalty-{name}" for name in settings)
        raise InputError(f"{flags}: given for --objective {objective}; give --objective penalty")
    return {"penalty": settings}


def _values(
    _ctx: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[float | tuple[float, ...], ...]:
    """Numbers, or tuples of them where there are several parameters."""
    try:
        values = [tuple(float(part) for part in text.split(",")) for text in texts]
    except ValueError:
        raise InputError(
            f"--penalty-at: {', '.join(texts)}; give a number, or one for each parameter with "
            "commas between them"
        ) from None
    if len(values) == 1:
        raise InputError("--penalty-at: one value; give at least two, each with a flag of its own")
    return tuple(value[0] if len(value) == 1 else value for value in values)


def _layers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"hidden: {text!r}; give numbers such as 16 or 16,16") from None


@click.command()
@template_options
@_fit_options
@output_file("--output", "Model file.", required=True)
@as_json
def fit(
    analysis: Analysis | dict[str, Analysis],
    options: dict[str, Any],
    output: Path,
    where: str | None,
    machine: bool,
) -> None:
    """Train a model on templates and write it to a file.

    TEMPLATES is an analysis.yaml, or a pattern with --bounds and -x. The models of several channels
    are written to one file. Interrupted, the same command goes on from the last epoch. Started by
    torchrun, several processes train together, each on its own share of the events:
    torchrun --nproc-per-node 2 -m gridless fit ...

    Example: gridless fit analysis.yaml -o top.safetensors --seed 1
    """
    found = by_channel(analysis)
    for one in found.values():
        one.fit_options(**options)  # refuses wrong ones before torch is loaded
    from gridless import distributed
    from gridless.training.checkpoint import checkpoint_path

    checkpoint = output.with_name(f".{output.name}.checkpoint")
    check_outputs([output, checkpoint], [s for one in found.values() for s in one.sources])
    try:
        with distributed.joined():
            model = gl.fit_files(analysis, where=where, checkpoint=checkpoint, **options)
            first = distributed.rank() == 0
            if first:
                model = _with_command(model, command_line())
                model.save(output)
            distributed.least(0)  # all wait for the file, without which checkpoints are needed
            for name in found:
                own = channel_checkpoint(checkpoint, name) or checkpoint
                checkpoint_path(own).unlink(missing_ok=True)
    except KeyboardInterrupt:
        click.echo("interrupted; the same command goes on from the last epoch", err=True)
        sys.exit(130)
    if first:
        _tell(model, output, machine)


def _with_command(model: gl.Model | gl.Channels, command: str) -> gl.Model | gl.Channels:
    """The model with what was typed to make it."""
    if isinstance(model, gl.Channels):
        return gl.Channels({name: _noted(one, command) for name, one in model.items()})
    return _noted(model, command)


def _noted(model: gl.Model, command: str) -> gl.Model:
    return replace(model, record=replace(model.record, command=command))


def _content(model: gl.Model) -> dict[str, Any]:
    """What the fit has made of one channel, for machines."""
    return {
        "events": sum(file.events for file in model.files),
        "templates": len(model.grid),
        "max_log_q": model.implied_prior.max_log,
        "warnings": [warning._asdict() for warning in model.warnings],
    }


def _tell(model: gl.Model | gl.Channels, output: Path, machine: bool) -> None:
    """What the fit has made."""
    models = list(model.values()) if isinstance(model, gl.Channels) else [model]
    events = sum(file.events for one in models for file in one.files)
    if machine and isinstance(model, gl.Channels):
        parts = {name: _content(one) for name, one in model.items()}
        print_json({"model": str(output), "events": events, "channels": parts})
        return
    if machine:
        print_json({"model": str(output), **_content(models[0])})
        return
    varied = " with variations and backgrounds" if any(one.nuisances for one in models) else ""
    click.echo(f"{model!r}\n  {events:,} events{varied}; written to {output}")
    for warning in model.warnings:
        click.echo(f"  warning: {warning.name}: {warning.text}")
