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
    summary: Annotated[Summary, BeforeValidator(_findings)]
    labels: dict[str, str] = {}
    measurement: MeasurementHeader | None = None


def split_channel(path: str | Path) -> tuple[Path, str | None]:
    """The file and the channel of `top.safetensors:soft`; a file by that whole name comes first."""
    whole = as_path(path)
    file, colon, channel = str(path).rpartition(":")
    if not colon or not channel or os.path.isfile(whole) or not os.path.isfile(file):
        return whole, None
    return Path(file), channel


def read_header(content: dict[str, Any], name: str) -> Header:
    """The checked header of a file, which messages call `name`."""
    _check_format(content, name, FORMAT)
    found = content.get("format")
    if found != FORMAT:
        raise InputError(
            f"{name}: of format {found}, which is not read any more; fit the model anew"
        )
    try:
        header = Header.model_validate(content)
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


def channel_headers(content: dict[str, Any], name: str) -> dict[str, Any]:
    """The headers of the models in a file of several channels, by channel; each is checked where it
    is read."""
    _check_format(content, name, CHANNELS_FORMAT)
    headers = content[CHANNELS]
    if not (isinstance(headers, dict) and headers):
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
    if [one.observable for one in header.summary.distributions] != list(header.query.names):
        raise ValueError("summary: distributions of other observables")
    if not all(size > 0 for size in header.summary.effective):
        raise ValueError("summary: a template that is worth no event")
    for one in header.summary.distributions:
        if len(one.edges) < 2 or (np.diff(one.edges) <= 0).any():
            raise ValueError(f"summary: edges of {one.observable!r}")
        if any(len(share) + 1 != len(one.edges) for share in one.shares):
            raise ValueError(f"summary: bins of {one.observable!r}")
