"""The verbs of the command line: audit, fit, measure, closure, report, export, init."""

import json
import shlex
import sys
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console

from gridless import distributed
from gridless.analysis import TEMPLATE
from gridless.cli.options import (
    as_json,
    cluster_options,
    fit_options,
    template_options,
    weight,
    where,
)
from gridless.cli.sources import analysis_from, analysis_of, templates_of
from gridless.distributed import find_device
from gridless.errors import InputError
from gridless.files.read import checksum
from gridless.files.write import check_writable, write_whole
from gridless.likelihood.export import curve as likelihood_curve
from gridless.likelihood.export import hepdata as hepdata_yaml
from gridless.likelihood.export import scan_csv
from gridless.model.file import file_versions, load
from gridless.model.model import Model
from gridless.model.onnx import onnx_bytes
from gridless.model.record import FitOptions
from gridless.model.stream import read_likelihood
from gridless.parallel import cluster
from gridless.templates.query import FileRecord, both


@click.command()
@template_options
@click.option("--components", type=int, default=1, show_default=True)
@click.option(
    "--objective",
    type=click.Choice(["posterior", "penalty", "template"]),
    default="template",
    show_default=True,
    help="What the fit will ask of the templates.",
)
@as_json
def audit(components: int, objective: str, where: str | None, machine: bool, **source: Any) -> None:
    """Check whether the templates are fit for the purpose, and say what to change.

    Example: gridless audit 'mtop_{mtop}.root:events' --bounds mtop 165 180 -x m_jjb,m_jj
    """
    found = templates_of(analysis_from(**source), where).audit(components, objective)
    if machine:
        rows = [finding.__dict__ for finding in found.findings]
        _print_json({"title": found.title, "ok": found.ok, "findings": rows})
    else:
        click.echo(str(found))


@click.command()
@template_options
@fit_options
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Model file.")
@as_json
@distributed.joined()
def fit(output: Path, where: str | None, machine: bool, **options: Any) -> None:
    """Train a model on templates and write it to a file.

    TEMPLATES is an analysis.yaml, or a pattern with --bounds and -x. Interrupted, the same command
    goes on from the last epoch. Started by torchrun, several processes train together, each on its
    own share of the events: torchrun --nproc-per-node 2 -m gridless fit ...

    Example: gridless fit analysis.yaml -o top.safetensors --seed 1
    """
    from gridless.fitting import fit as train

    check_writable(output)
    names = FitOptions.model_fields
    source = {key: value for key, value in options.items() if key not in names}
    given = {key: value for key, value in options.items() if key in names and value is not None}
    if "hidden" in given:
        given["hidden"] = _units(given["hidden"])
    analysis = analysis_from(**source)
    chosen = analysis.fit.model_dump() | given
    find_device(chosen["device"])
    FitOptions.of(**chosen)
    share = (
        None if distributed.size() == 1 else f"entry % {distributed.size()} == {distributed.rank()}"
    )
    templates = templates_of(analysis, both(where, share))
    events = int(distributed.total(torch.tensor(len(templates))))
    part = output.with_name(f".{output.name}.checkpoint")
    try:
        model = train(templates, checkpoint=part, **chosen)
    except KeyboardInterrupt:
        click.echo("interrupted; the same command goes on from the last epoch", err=True)
        sys.exit(130)
    record = replace(model.record, command=_command_line(), where=where)
    model = replace(model, record=record)
    if distributed.rank() == 0:
        model.save(output)
        _tell(model, output, events, machine)


def _tell(model: Model, output: Path, events: int, machine: bool) -> None:
    """What a fit has made."""
    if machine:
        _print_json(
            {
                "model": str(output),
                "events": events,
                "templates": len(model.grid),
                "max_log_q": model.implied_prior.max_log,
                "warnings": [warning._asdict() for warning in model.warnings],
            }
        )
    else:
        click.echo(f"{model!r}\n  {events:,} events; written to {output}")
        for warning in model.warnings:
            click.echo(f"  warning: {warning.name}: {warning.text}")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", nargs=-1, required=True)
@click.option("--level", type=float, help="Also an interval at this confidence level.")
@click.option(
    "--constrain",
    type=(str, float, float),
    multiple=True,
    metavar="NAME VALUE ERROR",
    help="What another measurement says of a parameter.",
)
@click.option(
    "--fix", type=(str, float), multiple=True, metavar="NAME VALUE", help="Hold a parameter."
)
@click.option(
    "--scan", type=click.Path(path_type=Path), help="Write the likelihood curve to a CSV file."
)
@weight
@where
@cluster_options
@as_json
def measure(
    model: Path,
    data: tuple[str, ...],
    level: float | None,
    constrain: tuple[tuple[str, float, float], ...],
    fix: tuple[tuple[str, float], ...],
    scan: Path | None,
    weight: str | None,
    where: str | None,
    dask: str | None,
    workers: int | None,
    machine: bool,
) -> None:
    """Estimate the parameters of observed events, with both uncertainties and every warning.

    Example: gridless measure top.safetensors data.root:events --level 0.95
    """
    if scan is not None:
        check_writable(scan)
    trained = load(model)
    with cluster(dask, workers) as executor:
        likelihood = read_likelihood(trained, data, weight, where, executor)
    for name, value, error in constrain:
        likelihood = likelihood.constrain(name, value, error)
    if fix:
        likelihood = likelihood.fix(**dict(fix))
    estimate = likelihood.maximum()
    wider = {}
    if level is not None:
        wider = {name: likelihood.interval(level, name) for name in estimate.parameters}
    if scan is not None:
        write_whole(scan, scan_csv(likelihood).encode())
    if machine:
        content = estimate.to_dict()
        for name, (low, high) in wider.items():
            found = {"level": level, "low": low, "high": high}
            content["parameters"][name]["interval"] = found
        _print_json(content)
        return
    click.echo(str(estimate))
    for name, (low, high) in wider.items():
        click.echo(f"  {name}: {low:.6g} to {high:.6g} at {level:.0%}")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("samples")
@click.option(
    "--weight", metavar="EXPRESSION", help="Weight of an event, if not that of the templates."
)
@where
@click.option("--toys", type=int, help="Pseudo-experiments per value, for the coverage.")
@click.option("--events", type=int, help="Events per pseudo-experiment.")
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes everything random.")
@cluster_options
@as_json
def closure(
    model: Path,
    samples: str,
    toys: int | None,
    events: int | None,
    seed: int,
    dask: str | None,
    workers: int | None,
    machine: bool,
    **reading: Any,
) -> None:
    """Estimate samples whose parameters are known: pulls, slope, chi2/dof, coverage.

    Example: gridless closure top.safetensors 'test_{mtop}.root:events' --toys 1000
    """
    from gridless.validation.closure import closure as close
    from gridless.validation.coverage import coverage

    trained = load(model)
    templates = templates_of(*analysis_of(trained, samples, **reading))
    with cluster(dask, workers) as executor:
        table = close(trained, templates, executor)
        tested = None
        if toys:
            tested = coverage(trained, templates, toys, events, seed, executor=executor)
    if machine:
        content = {
            "parameters": list(table.parameters),
            "true": table.truth.tolist(),
            "estimates": [e.to_dict()["parameters"] for e in table.estimates],
            "pull": table.pull.tolist(),
            "slope": [slope for slope, _ in table.lines],
            "chi2": table.chi2,
            "dof": table.dof,
        }
        if tested is not None:
            content["coverage"] = tested.covered.tolist()
            content["pull_width"] = tested.pull_width.tolist()
        _print_json(content)
        return
    click.echo(str(table))
    if tested is not None:
        click.echo(f"\n{tested}")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", nargs=-1)
@click.option("--closure", "samples", metavar="PATTERN", help="Samples of known parameters.")
@click.option(
    "--closure-where", metavar="EXPRESSION", help="Use only these events of them; else as --where."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page to write.",
)
@weight
@where
@as_json
def report(
    model: Path,
    data: tuple[str, ...],
    samples: str | None,
    closure_where: str | None,
    output: Path,
    machine: bool,
    **reading: Any,
) -> None:
    """Write one self-contained HTML page about a model and, with DATA, a measurement.

    Example: gridless report top.safetensors data.root:events --closure 'test_{mtop}.root:events'
    """
    from gridless.report.sections import Origin, model_report
    from gridless.validation.closure import closure as close

    check_writable(output)
    trained = load(model)
    table = None
    if samples is not None:
        kept = closure_where or reading["where"]
        table = close(trained, templates_of(*analysis_of(trained, samples, None, kept)))
    parts = [read_likelihood(trained, source, **reading) for source in data]
    likelihood = reduce(add, parts) if parts else None
    read = tuple(
        FileRecord(source, part.events, checksum(source))
        for source, part in zip(data, parts, strict=True)
    )
    origin = Origin(_command_line(), file_versions(model), read)
    write_whole(output, model_report(trained, likelihood, table, origin).encode())
    if machine:
        _print_json({"report": str(output)})
    else:
        click.echo(f"written to {output}")


@click.command()
@click.argument("output", type=click.Path(path_type=Path), default=Path("analysis.yaml"))
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@as_json
def init(output: Path, force: bool, machine: bool) -> None:
    """Write an analysis.yaml with comments, to begin from.

    Example: gridless init analysis.yaml
    """
    if output.exists() and not force:
        raise InputError(f"{output}: is there already; give another name, or --force")
    write_whole(output, TEMPLATE.encode())
    if machine:
        _print_json({"analysis": str(output)})
    else:
        Console().print(f"written to {output}; edit it, then: gridless audit {output}")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", nargs=-1)
@click.option("--onnx", type=click.Path(path_type=Path), help="The network as an ONNX file.")
@click.option("--curve", type=click.Path(path_type=Path), help="The likelihood of DATA as JSON.")
@click.option("--hepdata", type=click.Path(path_type=Path), help="The same as HEPData YAML.")
@weight
@where
@as_json
def export(
    model: Path,
    data: tuple[str, ...],
    onnx: Path | None,
    curve: Path | None,
    hepdata: Path | None,
    weight: str | None,
    where: str | None,
    machine: bool,
) -> None:
    """Write the network as ONNX, or the likelihood of DATA as JSON or HEPData YAML.

    Example: gridless export top.safetensors --onnx top.onnx
    """
    wanted = [path for path in (onnx, curve, hepdata) if path is not None]
    if not wanted:
        raise InputError("export: nothing asked for; give --onnx, --curve or --hepdata")
    if (curve or hepdata) and not data:
        raise InputError("export: the likelihood needs observed events; give a data file")
    for path in wanted:
        check_writable(path)
    trained = load(model)
    if onnx is not None:
        write_whole(onnx, onnx_bytes(trained))
    if curve or hepdata:
        likelihood = read_likelihood(trained, data, weight, where)
        if curve is not None:
            content = json.dumps(likelihood_curve(likelihood), indent=1)
            write_whole(curve, content.encode())
        if hepdata is not None:
            write_whole(hepdata, hepdata_yaml(likelihood).encode())
    if machine:
        _print_json({"written": [str(path) for path in wanted]})
    else:
        click.echo("written to " + ", ".join(str(path) for path in wanted))


def _command_line() -> str:
    """What was typed, as a shell takes it."""
    return shlex.join(["gridless", *sys.argv[1:]])


def _print_json(content: Any) -> None:
    click.echo(json.dumps(content, indent=1))


def _units(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"hidden: {text!r}; give numbers such as 16 or 16,16") from None
