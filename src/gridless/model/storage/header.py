"""The header of a model file: everything but its arrays, and how it is checked."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gridless.errors import InputError
from gridless.files.sources import as_path
from gridless.measurement.archive import MeasurementHeader
from gridless.model.record import TrainingRecord, nan_for_null
from gridless.templates.query import FileRecord, Query
from gridless.templates.summary import Summary

FORMAT = 3
CHANNELS_FORMAT = 4  # of a file with the models of several channels, each of format 3
CHANNELS = "channels"
# Formats that can be read: 2 had the query and the record among the options, and no digest.
READABLE = (2, 3)


def _findings(summary: Any) -> Any:
    """A summary in which null stands for NaN among the numbers of the audit."""
    audit = summary.get("audit") if isinstance(summary, dict) else None
    if not isinstance(audit, dict):
        return summary
    return summary | {"audit": audit | {"findings": nan_for_null(audit.get("findings"))}}


class Header(BaseModel):
    """Everything in a model file but its arrays."""

    model_config = ConfigDict(extra="forbid")

    format: int
    versions: dict[str, str]
    parameters: list[str] = Field(min_length=1, max_length=3)
    query: Query
    options: dict[str, Any]
    record: TrainingRecord
    basis: str
    basis_options: dict[str, int | float]
    components: int = Field(ge=1)
    network: str
    network_options: dict[str, Any]
    members: int = Field(ge=1)
    files: list[FileRecord] = []
    summary: Annotated[Summary | None, BeforeValidator(_findings)] = None
    labels: dict[str, str] = {}
    measurement: MeasurementHeader | None = None


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


def split_channel(path: str | Path) -> tuple[Path, str | None]:
    """The file and the channel of `top.safetensors:soft`; a file by that whole name comes first."""
    whole = as_path(path)
    file, colon, channel = str(path).rpartition(":")
    if not colon or not channel or os.path.isfile(whole) or not os.path.isfile(file):
        return whole, None
    return Path(file), channel


def read_header(content: dict[str, Any], name: str, signed: bool) -> Header:
    """The checked header of a file.

    Parameters
    ----------
    content : dict
        What the file has as its header.
    name : str
        How messages call the file.
    signed : bool
        Whether the file has a digest.
    """
    _check_format(content, name, FORMAT)
    found = content.get("format")
    if found not in READABLE:
        raise InputError(
            f"{name}: of format {found}, which is not read any more; fit the model anew"
        )
    if found != 2 and not signed:
        raise InputError(f"{name}: damaged, it has no digest; save the model again")
    try:
        header = Header.model_validate(_from_format_2(content) if found == 2 else content)
        _check(header)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{name}: its header is damaged ({place}: {first['msg']}); save the model again"
        ) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{name}: its header is damaged ({error}); save the model again") from None
    return header


def channel_headers(content: dict[str, Any], name: str, signed: bool) -> dict[str, Any]:
    """The headers of the models in a file of several channels, by channel; each is checked where it
    is read."""
    _check_format(content, name, CHANNELS_FORMAT)
    headers = content[CHANNELS]
    if not (signed and isinstance(headers, dict) and headers):
        raise InputError(f"{name}: its header is damaged ({CHANNELS}); save the models again")
    for channel, header in headers.items():
        if not isinstance(header, dict):
            raise InputError(f"{name}: its header is damaged ({channel}); save the models again")
    return headers


def _check_format(content: dict[str, Any], name: str, newest: int) -> None:
    """Refuse a file that a newer version has written."""
    found = content.get("format")
    if isinstance(found, int) and found > newest:
        versions = content.get("versions")
        by = versions.get("gridless") if isinstance(versions, dict) else "of unknown version"
        raise InputError(
            f"{name}: written by a newer gridless ({by}, format {found}; this is "
            f"{version('gridless')}, format {newest}); upgrade gridless"
        )


def _check(header: Header) -> None:
    """What types alone do not say."""
    for what, names in (("parameters", header.parameters), ("observables", header.query.names)):
        if not names or len(set(names)) < len(names):
            raise ValueError(f"{what}: {len(names)} names, not all of their own")
    if not header.record.history:
        raise ValueError("record.history: no epoch")
    if header.summary is None:
        return
    if [one.observable for one in header.summary.distributions] != list(header.query.names):
        raise ValueError("summary: distributions of other observables")
    for one in header.summary.distributions:
        if len(one.edges) < 2 or (np.diff(one.edges) <= 0).any():
            raise ValueError(f"summary: edges of {one.observable!r}")
        if any(len(share) + 1 != len(one.edges) for share in one.shares):
            raise ValueError(f"summary: bins of {one.observable!r}")
