"""`gridless export`: the network and the likelihood for other programs."""

from pathlib import Path

import click

import gridless as gl
from gridless.cli.options import (
    as_json,
    channel_data,
    check_model_first,
    check_restrictions,
    likelihood_options,
    load_one,
    model_file,
    output_file,
    print_json,
    weight,
    where,
)
from gridless.errors import InputError


@click.command()
@model_file
@click.argument("data", nargs=-1)
@output_file("--onnx", "The network as an ONNX file.")
@output_file("--curve", "The likelihood of DATA as JSON.")
@output_file("--hepdata", "The likelihood of DATA as HEPData YAML.")
@likelihood_options
@weight
@where
@as_json
def export(
    model: Path,
    data: tuple[str, ...],
    onnx: Path | None,
    curve: Path | None,
    hepdata: Path | None,
    level: float | None,
    constrain: dict[str, tuple[float, float]],
    fix: dict[str, float],
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
    check_model_first(model, data, wanted)
    from gridless.curves.intervals import LEVEL
    from gridless.likelihood.derived import restricted

    trained = gl.load(model)
    check_restrictions(trained, constrain, fix)
    if onnx is not None:
        all_channels = ", or leave --onnx out for the likelihood of all" if curve or hepdata else ""
        gl.write_onnx(onnx, load_one(model, "--onnx", all_channels))
    if curve or hepdata:
        likelihood = gl.read_likelihood(trained, channel_data(trained, data), weight, where)
        likelihood = restricted(likelihood, constrain, fix)
        for path, kind in ((curve, "json"), (hepdata, "hepdata")):
            if path is not None:
                gl.write_curve(path, likelihood, kind, level=level or LEVEL)
    if machine:
        print_json({"written": [str(path) for path in wanted]})
    else:
        click.echo("written to " + ", ".join(str(path) for path in wanted))
