"""Reading events from files and tables: samples, and streams of blocks."""

import difflib
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.files.columns import Block, Column
from gridless.files.expressions import evaluate, names
from gridless.files.memory import MemoryTable
from gridless.files.patterns import listed
from gridless.files.table import ALL, Rows, Table, label, open_file, split_source
from gridless.templates.arrays import Array
from gridless.templates.query import Columns, FileRecord, Query

# A column that every table has: the number of the row, from 0. `entry % 4 == 0` is every fourth.
ENTRY = "entry"


@dataclass(frozen=True, eq=False)
class Sample:
    """Events of one source: `x` (events, observables), weights or None, and where they are from."""

    x: Array
    weights: Array | None
    observables: tuple[str, ...]
    source: str
    checksum: str | None
    """SHA-256 of the file; None for a table in memory."""

    @property
    def events(self) -> int:
        """How many events passed the selection."""
        return len(self.x)

    @property
    def record(self) -> FileRecord:
        """What a model keeps of it: source, number of events and checksum."""
        return FileRecord(self.source, self.events, self.checksum)

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else " weighted"
        return (
            f"Sample: {self.events:,}{weighted} events from {self.source}, "
            f"observables {', '.join(self.observables)}"
        )


def read(
    source: Any, columns: Columns, weight: str | None = None, selection: str | None = None
) -> Sample:
    """The events of a file (`top.root:events`, `top.parquet`) or of a table in memory.

    Parameters
    ----------
    source
        A path, with `:name` of the tree, RNTuple, group or compound dataset where a ROOT or HDF5
        file holds several; or a data frame, an awkward array of records, a mapping of arrays.
    columns
        Column names or expressions of columns (`m_jjb / m_jj`); or a mapping of names to those.
    weight
        Expression for the weight of an event.
    selection
        Expression that is true for the events to keep (`(pt > 30) & (abs(eta) < 2.5)`). `entry` is
        the number of the row in its file, so that `entry % 4 == 0` keeps every fourth.
    """
    query = Query.of(columns, weight, selection)
    blocks = list(stream(source, query, 200_000))
    return Sample(
        x=np.concatenate([x for x, _ in blocks]),
        weights=None if weight is None else np.concatenate([w for _, w in blocks if w is not None]),
        observables=query.names,
        source=label(source),
        checksum=checksum(source),
    )


def chunks(
    source: Any,
    columns: Columns,
    weight: str | None = None,
    selection: str | None = None,
    size: int = 200_000,
) -> Iterator[tuple[Array, Array | None]]:
    """Blocks of `x` and weights from at most `size` rows each, for files larger than memory."""
    if size < 1:
        raise InputError(f"size: {size}; give at least 1 row per block")
    query = Query.of(columns, weight, selection)
    with open_table(
        source
    ) as table:  # Now, so that mistakes show before the first block is asked for.
        needed_columns(source, table, query)
    return stream(source, query, size)


def pieces(source: Any, query: Query, size: int) -> list[Rows]:
    """Ranges of rows, of about `size` each, in which a source can be read independently."""
    with open_table(source) as table:
        needed_columns(source, table, query)
        return table.pieces(size)


def stream(
    source: Any, query: Query, size: int, rows: Rows = ALL
) -> Iterator[tuple[Array, Array | None]]:
    """Blocks of x and weights of some `rows`, one of the `pieces` of the source, or of all."""
    seen = kept = 0
    with open_table(source) as table:
        needed = needed_columns(source, table, query)
        for block in table.blocks(needed, size, rows):
            x, weights = _compute(source, block, query, rows[0] + seen)
            seen += len(block[needed[0]])
            kept += len(x)
            if len(x):
                yield x, weights
    if rows != ALL:
        return  # A piece of a file may be empty.
    if seen == 0:
        raise InputError(f"{label(source)}: no events in it; give a file with events")
    if kept == 0:
        raise InputError(
            f"{label(source)}: none of its {seen:,} events passes the selection "
            f"{query.selection!r}; widen it"
        )


def needed_columns(source: Any, table: Table, query: Query) -> list[str]:
    """The columns to read, all of them there and of numbers."""
    wanted = [*query.observables.values(), query.weight, query.selection]
    needed: dict[str, None] = {}
    for expression in wanted:
        if expression is None:
            continue
        try:
            used = names(expression, table.columns)
        except InputError as error:
            guess = _closest(str(expression), table)
            raise InputError(f"{label(source)}: {error}{guess}") from error
        used = used - {ENTRY} if ENTRY not in table.columns else used
        for name in sorted(used - set(table.columns)):
            inside = "" if name == expression else f" for {expression!r}"
            raise InputError(
                f"{label(source)}: no column {name!r}{inside}{_closest(name, table)}; "
                f"there are {listed(table.columns)}"
            )
        needed |= dict.fromkeys(sorted(used))
    if not needed:
        raise InputError(f"{label(source)}: no column in {wanted[0]!r}; use at least one")
    for name in needed:
        fault = table.fault(name)
        if fault:
            raise InputError(
                f"{label(source)}: column {name!r} holds {fault}, not one number per event; "
                "choose another column"
            )
    return list(needed)


def _compute(source: Any, block: Block, query: Query, first: int) -> tuple[Array, Array | None]:
    """x and weights of the selected rows of a block that begins at row `first`."""
    try:
        rows = first + np.arange(len(next(iter(block.values()))))
        kept = block = {ENTRY: rows, **block}
        if query.selection is not None:
            passes = _condition(query.selection, block)
            kept, rows = {n: column[passes] for n, column in block.items()}, rows[passes]
        columns = {name: evaluate(text, kept) for name, text in query.observables.items()}
        weights = None if query.weight is None else evaluate(query.weight, kept)
    except InputError as error:
        raise InputError(f"{label(source)}: {error}") from error
    x = np.column_stack([column.astype(np.float64) for column in columns.values()])
    _check_finite(source, x, [f"column {name!r}" for name in columns], rows)
    if weights is None:
        return x, None
    weights = weights.astype(np.float64)
    _check_finite(source, weights[:, None], [f"weight {query.weight!r}"], rows)
    return x, weights


def _condition(selection: str, block: Block) -> Column:
    values = evaluate(selection, block)
    if np.isnan(values).any():
        raise InputError(f"selection {selection!r} is nan for some events; compare it: x > 0")
    return np.asarray(values != 0)


def _check_finite(source: Any, table: Array, labels: Sequence[str], rows: Column) -> None:
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = (int(index[0]) for index in np.nonzero(bad))
        raise InputError(
            f"{label(source)}: {labels[column]} is {table[row, column]} in row {rows[row]}; "
            "remove such events by a selection, or give finite values"
        )


def _closest(name: str, table: Table) -> str:
    close = difflib.get_close_matches(name, table.columns, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def checksum(source: Any) -> str | None:
    """SHA-256 of a file; None for a table in memory."""
    if not isinstance(source, str | Path):
        return None
    with split_source(source)[0].open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_table(source: Any) -> AbstractContextManager[Table]:
    """The table of a file, or one in memory, for as long as the context lasts."""
    return open_file(source) if isinstance(source, str | Path) else nullcontext(MemoryTable(source))
