"""Saving a model as one safetensors file, and loading it. Nothing in the file is ever executed."""

import json
import platform
from dataclasses import asdict, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save
from torch import Tensor, nn

from gridless.density.basis import Basis
from gridless.density.network import Factory, Network, make_conditioner, outputs_needed
from gridless.errors import InputError
from gridless.files.write import write_whole
from gridless.likelihood.agreement import Cells
from gridless.model.model import Model
from gridless.model.prior import ImpliedPrior
from gridless.model.record import FitOptions, TrainingRecord
from gridless.model.replicas import Replicas
from gridless.registry import BASES
from gridless.templates.grid import Grid
from gridless.templates.query import FileRecord, Query
from gridless.templates.summary import Summary

FORMAT = 3
# Formats that can be read: 2 had the query and the record among the options.
READABLE = (2, 3)
_KEY = "gridless"


class Header(BaseModel):
    """What a model file says of itself beside its arrays."""

    model_config = ConfigDict(extra="forbid")

    format: int
    versions: dict[str, str]
    parameters: list[str]
    query: Query
    options: dict[str, Any]
    record: dict[str, Any]
    basis: str
    basis_options: dict[str, int | float]
    components: int
    network: str
    network_options: dict[str, Any]
    members: int
    files: list[FileRecord] = []
    summary: dict[str, Any] | None = None


def _from_format_2(header: dict[str, Any]) -> dict[str, Any]:
    """The header of a file that version 0.1 wrote, as it would be written now."""
    options = dict(header.pop("options"))
    columns = options.pop("columns", None) or {name: name for name in header["observables"]}
    header["query"] = {
        "observables": dict(zip(header.pop("observables"), columns.values(), strict=True)),
        "weight": options.pop("weight", None),
        "selection": options.pop("selection", None),
    }
    record = {name: options.pop(name, None) for name in ("gain", "command", "where")}
    record |= {name: options.get(name) for name in ("epochs", "batch", "validation")}
    header["record"] = record | {"history": header.pop("history")}
    penalty = options.pop("penalty", None)
    if penalty is not None:
        options["objective"] = {"penalty": penalty}
    perceptron = {name: header.pop(name) for name in ("hidden", "activation")}
    header |= {"network": "perceptron", "network_options": perceptron}
    network = {name: header[name] for name in ("basis", "components")} | perceptron
    made_with = {"prior": header.pop("prior"), "ensemble": header["members"], **network}
    header["options"] = {**options, **made_with}
    header["files"] = header.pop("data", [])
    return header


def current_versions() -> dict[str, str]:
    """The versions of what matters to a result."""
    packages = ("gridless", "torch", "numpy", "scipy", "iminuit")
    return {name: version(name) for name in packages} | {"Python": platform.python_version()}


def save_model(model: Model, path: Path) -> None:
    """Write the model's arrays and header to `path`."""
    write_whole(path, model_bytes(model))


def model_bytes(model: Model) -> bytes:
    """What a model file holds."""
    network, grid = model.network, model.grid
    header = Header(
        format=FORMAT,
        versions=current_versions(),
        parameters=list(grid.parameters),
        query=model.query,
        options=model.options.to_dict(),
        record=replace(model.record, versions={}).to_dict(),
        basis=network.basis.name,
        basis_options=network.basis.options(),
        components=network.components,
        network=network.conditioner.name,
        network_options=network.conditioner.options(),
        members=network.members,
        files=list(model.files),
        summary=None if model.summary is None else model.summary.to_dict(),
    )
    arrays = {f"network.{name}": value for name, value in network.state_dict().items()}
    arrays |= {
        "grid.values": torch.tensor(grid.values),
        "grid.bounds": torch.tensor(grid.bounds),
        "prior.log_q": torch.as_tensor(model.implied_prior.log_q),
    }
    if model.replicas is not None:
        state = model.replicas.network.state_dict()
        arrays |= {f"replicas.network.{name}": value for name, value in state.items()}
        arrays["replicas.log_q"] = torch.as_tensor(model.replicas.log_q)
    if model.cells is not None:
        arrays |= {f"cells.{k}": torch.as_tensor(v) for k, v in asdict(model.cells).items()}
    arrays = {name: value.contiguous() for name, value in arrays.items()}
    return save(arrays, {_KEY: header.model_dump_json()})


def load(path: str | Path, network: Factory | nn.Module | None = None) -> Model:
    """Load a model from a file.

    Parameters
    ----------
    path : str or Path
        A file that `Model.save` or `gridless fit` has written. Nothing in it is executed.
    network : function (inputs, outputs) -> torch.nn.Module, or torch.nn.Module, optional
        For a model with a network of your own that has no registered name: what makes it, as it was
        given to `fit`. Files hold its weights, never its code.

    Returns
    -------
    Model

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> model.save("model.safetensors")
    >>> gl.load("model.safetensors").observables
    ('x',)
    """
    return model_from(_content(Path(path)), str(path), network)


def model_from(content: bytes, name: str, network: Factory | nn.Module | None = None) -> Model:
    """The model of a file with that content and that name."""
    header, arrays = _read(content, name)
    if not header.network and network is None:
        raise InputError(
            f"{name}: its network has no registered name; give load(path, network=...) what was "
            "given to fit, or fit with a name from register_network"
        )
    try:
        return _build(header, arrays, network or header.network)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{name}: damaged, its arrays do not fit its header ({error}); save the model again"
        ) from error


@lru_cache(maxsize=8)
def unpickled(content: bytes) -> Model:
    """The model of pickled content: made once in a process, however many tasks it comes with."""
    return model_from(content, "the pickled model")


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a model written by save()")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: may not be read ({error}); ask its owner") from error


def _read(content: bytes, name: str) -> tuple[Header, dict[str, Tensor]]:
    """Header and arrays of a model file."""
    try:
        arrays = read_tensors(content)
    except SafetensorError as error:
        raise InputError(
            f"{name}: damaged, or not a safetensors file ({error}); save the model again"
        ) from error
    # A safetensors file begins with the length of its header, which is JSON.
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    if _KEY not in metadata:
        raise InputError(f"{name}: a safetensors file, but not a gridless model; give one of those")
    try:
        header = json.loads(metadata[_KEY])
        found = header["format"]
        if found > FORMAT:
            raise InputError(
                f"{name}: written by a newer gridless ({header['versions']['gridless']}, format "
                f"{found}; this is {version('gridless')}, format {FORMAT}); upgrade gridless"
            )
        if found not in READABLE:
            raise InputError(
                f"{name}: of format {found}, which is not read any more; fit the model anew"
            )
        if found == 2:
            header = _from_format_2(header)
        return Header.model_validate(header), arrays
    except (KeyError, TypeError, json.JSONDecodeError, ValidationError) as error:
        raise InputError(
            f"{name}: its header is damaged ({error}); save the model again"
        ) from error


def _build(header: Header, arrays: dict[str, Tensor], made_by: str | Factory | nn.Module) -> Model:
    network = _build_network(header, made_by, header.members, _under("network.", arrays))
    replicas = None
    if "replicas.log_q" in arrays:
        log_q = arrays["replicas.log_q"].numpy()
        state = _under("replicas.network.", arrays)
        copies = _build_network(header, made_by, header.members * len(log_q), state)
        replicas = Replicas(copies, log_q)
    of_cells = _under("cells.", arrays)
    cells = None
    if of_cells:
        centres, share, effective = (of_cells[n].numpy() for n in ("centres", "share", "effective"))
        cells = Cells(centres, float(of_cells["reach"]), share, effective)
    values, bounds = (arrays[name].numpy() for name in ("grid.values", "grid.bounds"))
    grid = Grid(values, bounds, tuple(header.parameters))
    return Model(
        network,
        grid,
        header.query,
        FitOptions.of(**header.options),
        replace(TrainingRecord.from_dict(header.record), versions=header.versions),
        ImpliedPrior(np.asarray(arrays["prior.log_q"].numpy()), grid),
        replicas,
        cells,
        None if header.summary is None else Summary.from_dict(header.summary),
        tuple(header.files),
    )


def _under(prefix: str, arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """The arrays whose names begin with `prefix`, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _build_network(
    header: Header, made_by: str | Factory | nn.Module, members: int, state: dict[str, Tensor]
) -> Network:
    basis: Basis = BASES.find(header.basis).from_options(header.basis_options)
    inputs = len(header.query.observables)
    outputs = outputs_needed(basis, header.components)
    conditioner = make_conditioner(made_by, inputs, outputs, members, header.network_options)
    templates, log_share = state.get("templates"), state.get("log_share")
    network = Network(conditioner, basis, header.components, inputs, templates, log_share)
    # Format 2 has the perceptron's arrays without the name of its part of the network.
    named = {
        f"conditioner.{name}" if name.startswith(("weights.", "biases.")) else name: value
        for name, value in state.items()
    }
    network.load_state_dict(named)
    return network
