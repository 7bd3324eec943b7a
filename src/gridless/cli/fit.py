"""`gridless fit`: from templates to a model file."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import gridless as gl
from gridless.analysis.analysis import Analysis
from gridless.analysis.fitting import channel_checkpoint
from gridless.analysis.loading import by_channel
from gridless.cli.options import (
    as_json,
    check_places,
    command_line,
    fit_options,
    output_file,
    print_json,
    template_options,
)


@click.command()
@template_options
@fit_options
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
    check_places([output, checkpoint], [s for one in found.values() for s in one.sources])
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
    click.echo(f"{model!r}\n  {events:,} events; written to {output}")
    for warning in model.warnings:
        click.echo(f"  warning: {warning.name}: {warning.text}")
