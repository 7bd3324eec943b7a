"""Saving a model as one safetensors file, and loading it. Nothing in the file is ever executed."""

import platform
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gridless.calibration.calibration import Calibration, from_arrays
from gridless.density.basis import Basis
from gridless.density.conditioner import Conditioner
from gridless.density.network import (
    Factory,
    Network,
    make_conditioner,
    outputs_needed,
)
from gridless.errors import InputError, counted
from gridless.files.sources import check_readable
from gridless.files.write import write_whole
from gridless.likelihood.agreement import Cells
from gridless.measurement.archive import arrays_of, header_of, measurement_of
from gridless.measurement.measurement import Measurement
from gridless.model.combined import Channels
from gridless.model.model import Model
from gridless.model.prior import ImpliedPrior
from gridless.model.record import FitOptions
from gridless.model.replicas import Replicas
from gridless.model.reweighting import SimulatedEvents
from gridless.model.storage.archive import check_finite, check_shape, curve, pack, take, unpack
from gridless.model.storage.header import (
    CHANNELS,
    CHANNELS_FORMAT,
    FORMAT,
    Header,
    channel_headers,
    read_header,
    split_channel,
)
from gridless.registry import BASES, NETWORKS
from gridless.systematics.bins import BinnedProcess, process_of
from gridless.templates.grid import Grid

_KEY = "gridless"
_CURE = "save the model again, or fit it anew"


def current_versions() -> dict[str, str]:
    """The versions of what matters to a result."""
    packages = ("gridless", "torch", "numpy", "scipy", "iminuit")
    return {name: version(name) for name in packages} | {"Python": platform.python_version()}


def save_model(model: Model, path: Path) -> None:
    """Write the model's arrays and header to `path`."""
    write_whole(path, model_bytes(model))


def save_channels(models: Mapping[str, Model], path: Path) -> None:
    """Write the arrays and headers of several models to `path`."""
    headers: dict[str, Any] = {}
    arrays: dict[str, Tensor] = {}
    for number, (name, model) in enumerate(models.items()):
        header, own = _content(model)
        headers[name] = header
        arrays |= {f"{number}.{key}": value for key, value in own.items()}
    header = {"format": CHANNELS_FORMAT, "versions": current_versions(), CHANNELS: headers}
    write_whole(path, pack(arrays, _KEY, header))


def model_bytes(model: Model) -> bytes:
    """What a model file holds."""
    header, arrays = _content(model)
    return pack(arrays, _KEY, header)


def _content(model: Model) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and arrays of a model."""
    network, grid = model.network, model.grid
    header = Header(
        format=FORMAT,
        versions=current_versions(),
        parameters=list(grid.parameters),
        query=model.query,
        options=model.options.to_dict(),
        record=replace(model.record, versions={}),
        basis=network.basis.name,
        basis_options=network.basis.options(),
        components=network.components,
        network=network.conditioner.name,
        network_options=network.conditioner.options(),
        members=network.members,
        files=list(model.files),
        summary=model.summary,
        labels=dict(grid.labels),
        measurement=None if model.measurement is None else header_of(model.measurement),
    )
    parts: dict[str, dict[str, Any]] = {
        "network": network.state_dict(),
        "grid": {"values": grid.values, "bounds": grid.bounds},
        "prior": {"log_q": model.implied_prior.log_q},
        "calibration": model.known.arrays(),
        "simulated": vars(model.simulated),
        "cells": asdict(model.cells),
    }
    if model.replicas is not None:
        parts["replicas.network"] = model.replicas.network.state_dict()
        parts["replicas"] = {"log_q": model.replicas.log_q}
    if model.measurement is not None:
        parts["measurement"] = arrays_of(model.measurement)
    for number, process in enumerate(model.binned):
        parts[f"bins.{number}"] = process.arrays()
    arrays = {
        f"{part}.{name}": value if isinstance(value, Tensor) else torch.tensor(value)
        for part, content in parts.items()
        for name, value in content.items()
    }
    return header.model_dump(), arrays


def load(path: str | Path, network: Factory | nn.Module | None = None) -> Model | Channels:
    """Load a model, or the models of several channels, from a file.

    Parameters
    ----------
    path : str or Path
        A file that `save` or `gridless fit` has written. Nothing in it is executed. `path:name` is
        one channel of a file that has several.
    network : function (inputs, outputs) -> torch.nn.Module, or torch.nn.Module, optional
        For a model with a network of your own that has no registered name: what makes it, as it was
        given to `fit`. Files hold its weights, never its code.

    Returns
    -------
    Model or Channels

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> model.save("model.safetensors")
    >>> gl.load("model.safetensors").observables
    ('x',)
    """
    file, channel = split_channel(path)
    if file.suffix in (".yaml", ".yml"):
        raise InputError(
            f"{file}: an analysis file where a model belongs; first make the model: "
            f"gridless fit {file} -o model.safetensors"
        )
    found, arrays = unpack(_bytes(file), _KEY, str(file), _CURE)
    if CHANNELS not in found:
        if channel is not None:
            raise InputError(
                f"{path}: {file} holds one model and no channels; leave out :{channel}"
            )
        return _model(found, arrays, str(file), network)
    headers = channel_headers(found, str(file))
    places = {name: number for number, name in enumerate(headers)}
    if channel is not None and channel not in headers:
        known = ", ".join(headers)
        raise InputError(f"{path}: there is no channel {channel!r} in it; there is {known}")
    models = {
        name: _model(headers[name], _under(f"{places[name]}.", arrays), f"{file}: {name}", network)
        for name in ([channel] if channel is not None else headers)
    }
    if channel is not None:
        return models[channel]
    try:
        return Channels(models)
    except InputError as error:
        raise InputError(f"{file}: damaged, {error}; {_CURE}") from error


def model_from(content: bytes, name: str) -> Model:
    """The model of a file with that content and that name."""
    return _model(*unpack(content, _KEY, name, _CURE), name, None)


def _model(
    found: dict[str, Any],
    arrays: dict[str, Tensor],
    name: str,
    network: Factory | nn.Module | None,
) -> Model:
    """The model of a header and arrays."""
    header = read_header(found, name)
    if not header.network and network is None:
        raise InputError(
            f"{name}: its network has no registered name; give load(path, network=...) what was "
            "given to fit, or fit with a name from register_network"
        )
    try:
        return _build(header, arrays, network or header.network)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    except (LookupError, RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name}: damaged, its arrays do not fit its header ({error}); {_CURE}"
        ) from error


@lru_cache(maxsize=8)
def unpickled(content: bytes) -> Model:
    """The model of pickled content: made once in a process, however many tasks it comes with."""
    return model_from(content, "the pickled model")


def _bytes(path: Path) -> bytes:
    check_readable(path, "give a model written by save()")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: may not be read ({error}); ask its owner") from error


def _build(header: Header, arrays: dict[str, Tensor], made_by: str | Factory | nn.Module) -> Model:
    check_finite(arrays)
    grid = _build_grid(header, arrays)
    width = len(header.parameters)
    log_q = take(arrays, "prior.log_q", *curve(width))
    network = _build_network(header, grid, made_by, header.members, _under("network.", arrays))
    replicas = None
    if "replicas.log_q" in arrays:
        changes = take(arrays, "replicas.log_q", None, *curve(width))
        state = _under("replicas.network.", arrays)
        copies = _build_network(header, grid, made_by, header.members * len(changes), state)
        replicas = Replicas(copies, changes)
    summary = header.summary
    for rows in (summary.effective, *(one.shares for one in summary.distributions)):
        if len(rows) != len(grid):
            raise InputError(f"damaged, its summary has {len(rows)} templates; {_CURE}")
    return Model(
        network,
        grid,
        header.query,
        FitOptions.of(**header.options),
        replace(header.record, versions=header.versions),
        ImpliedPrior(log_q, grid),
        _build_cells(arrays, len(header.query.observables), curve(width)),
        summary,
        tuple(header.files),
        _build_calibration(_under("calibration.", arrays), grid),
        _build_simulated(_under("simulated.", arrays), grid, len(header.query.observables)),
        replicas,
        _build_measurement(header, _under("measurement.", arrays), grid),
        _build_bins(header, _under("bins.", arrays), grid),
    )


def _build_cells(arrays: dict[str, Tensor], observables: int, series: list[range]) -> Cells:
    centres = take(arrays, "cells.centres", None, observables)
    return Cells(
        centres,
        float(take(arrays, "cells.reach")),
        take(arrays, "cells.share", len(centres), *series),
        take(arrays, "cells.effective", *series),
        take(arrays, "cells.share_variance", len(centres), *series),
        take(arrays, "cells.outside", 2, *series),
    )


def _build_bins(header: Header, arrays: dict[str, Tensor], grid: Grid) -> tuple[BinnedProcess, ...]:
    """Backgrounds and systematics in bins."""
    if header.measurement is None:
        return ()
    bins = sum(len(edges) - 1 for edges in header.summary.edges.values())
    processes = []
    for number, _ in enumerate(header.measurement.systematics):
        own = _as_numpy(_under(f"{number}.", arrays))
        width = len(grid.parameters) if number == 0 else 0
        count = len(header.measurement.nuisances)
        processes.append(process_of(own, bins, count, width))
    return tuple(processes)


def _build_simulated(arrays: dict[str, Tensor], grid: Grid, observables: int) -> SimulatedEvents:
    template = arrays["template"]
    check_shape("simulated.template", template, None, kind=torch.int32)
    kept = SimulatedEvents(
        take(arrays, "x", len(template), observables),
        np.asarray(template.numpy()),
        take(arrays, "weights", len(template)),
    )
    kept.check(len(grid), observables)
    return kept


def _build_measurement(header: Header, arrays: dict[str, Tensor], grid: Grid) -> Measurement | None:
    if header.measurement is None:
        return None
    found = _as_numpy(arrays)
    return measurement_of(header.measurement, found, grid, len(header.query.observables))


def _build_calibration(arrays: dict[str, Tensor], grid: Grid) -> Calibration:
    calibration = from_arrays(_as_numpy(arrays))
    calibration.check(len(grid), len(grid.parameters))
    return calibration


def _build_grid(header: Header, arrays: dict[str, Tensor]) -> Grid:
    width = len(header.parameters)
    values = take(arrays, "grid.values", None, width)
    bounds = take(arrays, "grid.bounds", width, 2)
    low, high = bounds.T
    if not (low < high).all() or (values < low).any() or (values > high).any():
        raise InputError(f"damaged, its bounds {bounds.tolist()} are none of its grid; {_CURE}")
    return Grid(values, bounds, tuple(header.parameters), header.labels)


def _build_network(
    header: Header,
    grid: Grid,
    made_by: str | Factory | nn.Module,
    members: int,
    state: dict[str, Tensor],
) -> Network:
    basis: Basis = BASES.find(header.basis).from_options(header.basis_options)
    if basis.parameters != len(grid.parameters):
        of = counted(basis.parameters, "parameter")
        raise InputError(f"damaged, its basis is one of {of}; {_CURE}")
    inputs = len(header.query.observables)
    outputs = outputs_needed(basis, header.components)
    templates, log_share = state.get("templates"), state.get("log_share")
    if templates is not None:
        check_shape("templates", templates, len(grid), len(grid.parameters))
        check_shape("log_share", state["log_share"], len(grid))
    made = NETWORKS.find(made_by) if isinstance(made_by, str) else made_by
    ours = isinstance(made, type) and issubclass(made, Conditioner)
    # Only shapes are made of what a header asks for: nothing is allocated before they are compared.
    with torch.device("meta" if ours else "cpu"):
        conditioner = make_conditioner(made_by, inputs, outputs, members, header.network_options)
        network = Network(conditioner, basis, header.components, inputs, templates, log_share)
    # Files that were written before observables could be shifted.
    state.setdefault("shift", torch.zeros(inputs))
    for name, array in network.state_dict().items():
        check_shape(name, state[name], *array.shape, kind=array.dtype)
    network.load_state_dict(state, assign=ours)
    if not ((network.scale > 0).all() and (network.bend >= 0).all()):
        raise InputError(f"damaged, a scale of its inputs is not positive; {_CURE}")
    if not (network.low <= network.high).all():
        raise InputError(f"damaged, its inputs end before they begin; {_CURE}")
    return network


def _as_numpy(arrays: dict[str, Tensor]) -> dict[str, Any]:
    return {name: np.asarray(array.numpy()) for name, array in arrays.items()}


def _under(prefix: str, arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """The arrays whose names begin with `prefix`, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
