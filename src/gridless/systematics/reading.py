"""Systematics and backgrounds of files, read as the templates were."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError
from gridless.files.read import check_columns, events_of, read_query
from gridless.files.template_files import check_events, read_events
from gridless.systematics.inputs import Background, Systematic
from gridless.systematics.settings import BackgroundFiles, SystematicFiles
from gridless.templates.arrays import Array
from gridless.templates.query import FileRecord, Query

NUMBER = "number of the event"  # the column behind the observables that `event` is read into
LARGEST_NUMBER = 2**53  # whole numbers beyond are not exact as float64


@dataclass(frozen=True)
class Process:
    """Where the nominal events of a process are, and how they are read.

    Attributes
    ----------
    nominal : sources as `read_templates` takes them, or list of files
        Of the signal, or of a background.
    query : Query
        Observables, weight, and selection with any further condition.
    parameters : tuple of str
        Those of the signal; a background has none.
    records : list of FileRecord
        The files of variations that were read.
    """

    nominal: Any
    query: Query
    parameters: tuple[str, ...] = ()
    records: list[FileRecord] = field(default_factory=list)

    def check(self, sources: Any, query: Query) -> None:
        """Refuse missing files and columns."""
        if self.parameters:
            check_events(sources, query, self.parameters)
            return
        for source in _listed(sources):
            check_columns(source, query)

    def read(self, sources: Any, query: Query) -> tuple[Array, Array | None, Array | None]:
        """x, theta and weights of all events, and the files noted."""
        if self.parameters:
            x, theta, weights, records = read_events(sources, query, self.parameters)
            self.records.extend(records)
            return x, theta, weights
        samples = [read_query(source, query) for source in _listed(sources)]
        self.records.extend(sample.record for sample in samples)
        x, weights = events_of(samples)
        return x, None, weights


def read_measurement(
    signal: Process,
    systematics: Sequence[SystematicFiles],
    backgrounds: Sequence[BackgroundFiles],
) -> tuple[list[Systematic], list[Background], list[FileRecord]]:
    """The systematics and backgrounds of an analysis, and the files that they came from."""
    varied = [_systematic(one, signal) for one in systematics]
    mixed = []
    for background in backgrounds:
        process = _process_of(background, signal)
        x, _, weights = process.read(process.nominal, process.query)
        own = [_systematic(one, process) for one in background.systematics]
        mixed.append(
            Background(background.name, x, background.share, background.error, weights, own)
        )
    # A nominal file is read again for the weights and numbers of its events.
    return varied, mixed, list(dict.fromkeys(signal.records))


def check_measurement(
    signal: Process,
    systematics: Sequence[SystematicFiles],
    backgrounds: Sequence[BackgroundFiles],
) -> None:
    """Refuse missing files and columns of what `read_measurement` is to read."""
    for one in systematics:
        _check(one, signal)
    for background in backgrounds:
        process = _process_of(background, signal)
        process.check(process.nominal, process.query)
        for one in background.systematics:
            _check(one, process)


def _process_of(background: BackgroundFiles, signal: Process) -> Process:
    """How a background is read; the files of its variations are noted with those of the signal."""
    query = _weighted(signal.query, background.weight)
    return replace(signal, nominal=background.listed, parameters=(), query=query)


def _check(one: SystematicFiles, process: Process) -> None:
    try:
        for sources, query in _sides(one, process):
            process.check(sources, query)
        if one.event is not None:
            process.check(process.nominal, _numbered(process.query, one.event))
    except InputError as error:
        raise InputError(f"systematic {one.name!r}: {error}") from None


def _systematic(one: SystematicFiles, process: Process) -> Systematic:
    """A systematic of a process."""
    given: list[Any] = []
    numbers: list[NDArray[np.int64]] = []
    files = (one.up, one.down)
    for (sources, query), own in zip(_sides(one, process), files, strict=False):
        x, theta, weights = process.read(sources, query)
        if one.event is not None:
            numbers.append(_whole(x[:, -1], one))
            x = x[:, :-1]
        given.append(weights if own is None else (x, theta, weights))
    same = None
    if one.event is not None:
        x = process.read(process.nominal, _numbered(process.query, one.event))[0]
        same = (_whole(x[:, -1], one), *numbers)
    up, *down = given
    return Systematic(one.name, up, down[0] if down else None, one.constraint, same)


def _sides(one: SystematicFiles, process: Process) -> list[tuple[Any, Query]]:
    """Sources and query of each side."""
    files, weights = (one.up, one.down), (one.weight_up, one.weight_down)
    found: list[tuple[Any, Query]] = []
    for own, weight, _ in zip(files, weights, one.sides, strict=False):
        query = _weighted(process.query, weight)
        if one.event is not None:
            query = _numbered(query, one.event)
        sources: Any = process.nominal if own is None else own
        if isinstance(own, list):
            sources = [(file.values(list(process.parameters)), file.source) for file in own]
        found.append((sources, query))
    return found


def _weighted(query: Query, weight: str | None) -> Query:
    return query if weight is None else replace(query, weight=weight)


def _numbered(query: Query, event: str) -> Query:
    return replace(query, observables=query.observables | {NUMBER: event})


def _whole(values: Array, one: SystematicFiles) -> NDArray[np.int64]:
    """Event numbers, which are read as the observables are."""
    if (np.abs(values) > LARGEST_NUMBER).any() or (values != np.rint(values)).any():
        raise InputError(
            f"systematic {one.name!r}: event {one.event!r} gives no whole numbers up to 2^53; give "
            "a column that numbers the events"
        )
    return values.astype(np.int64)


def _listed(sources: Any) -> list[Any]:
    return sources if isinstance(sources, list) else [sources]
