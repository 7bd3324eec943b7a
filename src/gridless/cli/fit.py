"""`gridless fit`: from templates to a model file."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import gridless as gl
from gridless.analysis import Analysis
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
    analysis: Analysis, options: dict[str, Any], output: Path, where: str | None, machine: bool
) -> None:
    """Train a model on templates and write it to a file.

    TEMPLATES is an analysis.yaml, or a pattern with --bounds and -x. Interrupted, the same command
    goes on from the last epoch. Started by torchrun, several processes train together, each on its
    own share of the events: torchrun --nproc-per-node 2 -m gridless fit ...

    Example: gridless fit analysis.yaml -o top.safetensors --seed 1
    """
    analysis.fit_options(**options)  # refuses wrong ones before torch is loaded
    from gridless import distributed
    from gridless.training.checkpoint import checkpoint_path

    checkpoint = output.with_name(f".{output.name}.checkpoint")
    check_places([output, checkpoint], analysis.sources)
    try:
        with distributed.joined():
            model = gl.fit_files(analysis, where=where, checkpoint=checkpoint, **options)
            first = distributed.rank() == 0
            if first:
                model = replace(model, record=replace(model.record, command=command_line()))
                model.save(output)
            distributed.least(0)  # all wait for the file, without which checkpoints are needed
            checkpoint_path(checkpoint).unlink(missing_ok=True)
    except KeyboardInterrupt:
        click.echo("interrupted; the same command goes on from the last epoch", err=True)
        sys.exit(130)
    if first:
        _tell(model, output, machine)


def _tell(model: gl.Model, output: Path, machine: bool) -> None:
    """What the fit has made."""
    events = sum(file.events for file in model.files)
    if machine:
        print_json(
            {
                "model": str(output),
                "events": events,
                "templates": len(model.grid),
                "max_log_q": model.implied_prior.max_log,
                "warnings": [warning._asdict() for warning in model.warnings],
            }
        )
        return
    click.echo(f"{model!r}\n  {events:,} events; written to {output}")
    for warning in model.warnings:
        click.echo(f"  warning: {warning.name}: {warning.text}")
