"""Reading events from files and tables: samples, and streams of blocks."""

import difflib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gridless.errors import InputError
from gridless.files.expressions import compares_nan, evaluate, names
from gridless.files.memory import MemoryTable
from gridless.files.sources import label, listed, open_file, split_source
from gridless.files.table import ALL, Block, Column, Rows, Table
from gridless.templates.arrays import Array
from gridless.templates.query import Columns, FileRecord, Query, used_of

# A column that every table has: the number of the row, from 0. `entry % 4 == 0` is every fourth.
ENTRY = "entry"

BLOCK = 200_000  # rows read at once: few enough for memory, enough to make the overhead small


@dataclass(frozen=True, eq=False)
class Sample:
    """Events of one source, as `read` gives them.

    `model.likelihood`, `closure` and others take a sample in place of an array, with its weights.

    Attributes
    ----------
    x : array (events, observables)
        The observables of the events that passed the selection.
    weights : array (events,) or None
        Their weights.
    query : Query
        How they were read: observables, weight and selection.
    source : str
        The file, or the kind of table in memory.
    checksum : str or None
        SHA-256 of the file; None for a table in memory.
    offered : int or None
        How many events the source has, before the selection.

    Examples
    --------
    >>> import gridless as gl
    >>> sample = gl.read({"pt": [20, 30, 40], "w": [1, 1, 2]}, "pt", "w", selection="pt > 25")
    >>> sample
    Sample: 2 of 3 weighted events from dict in memory, observables pt
    >>> sample.x.tolist(), sample.weights.tolist()
    ([[30.0], [40.0]], [1.0, 2.0])
    """

    x: Array
    weights: Array | None
    query: Query
    source: str
    checksum: str | None
    offered: int | None = None

    @property
    def observables(self) -> tuple[str, ...]:
        """The names of the observables."""
        return self.query.names

    @property
    def events(self) -> int:
        """How many events passed the selection."""
        return len(self.x)

    @property
    def record(self) -> FileRecord:
        """What templates and models keep of it: source, number of events and checksum."""
        return FileRecord(self.source, self.events, self.checksum, self.offered)

    def __repr__(self) -> str:
        used = used_of(self.events, self.offered)
        if self.weights is not None:
            used = used.replace("events", "weighted events")
        return f"Sample: {used} from {self.source}, observables {', '.join(self.observables)}"

    def _repr_html_(self) -> str:
        columns = zip(self.observables, self.x.T, strict=True)
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{x.min():.5g}</td><td>{x.mean():.5g}</td>"
            f"<td>{x.max():.5g}</td></tr>"
            for name, x in columns
        )
        head = "<tr><th>observable</th><th>least</th><th>mean</th><th>largest</th></tr>"
        return f"<table><caption>{escape(repr(self))}</caption>{head}{rows}</table>"


def read(
    source: Any, columns: Columns, weight: str | None = None, selection: str | None = None
) -> Sample:
    """Read the events of a file (`top.root:events`, `top.parquet`) or of a table in memory.

    Parameters
    ----------
    source : str, path, data frame, awkward array, structured array or mapping
        A path, with `:name` of the tree, RNTuple, group or compound dataset where a ROOT or HDF5
        file holds several; or a table in memory.
    columns : str, sequence of str, or mapping of str to str
        Column names or expressions of columns (`m_jjb / m_jj`); or names with one of these each.
    weight : str, optional
        Expression for the weight of an event.
    selection : str, optional
        Expression that is true for the events to keep (`(pt > 30) & (abs(eta) < 2.5)`). `entry` is
        the number of the row in its file, so that `entry % 4 == 0` keeps every fourth. Weight and
        selection may use the names of observables too, unless a column has the same name.

    Returns
    -------
    Sample
        The selected events, with their weights if there are any.

    Examples
    --------
    >>> import gridless as gl
    >>> table = {"m_jjb": [172.0, 168.0, 190.0], "m_jj": [80.0, 60.0, 95.0]}
    >>> gl.read(table, {"ratio": "m_jjb / m_jj"}, selection="ratio < 2.5").x.tolist()
    [[2.15], [2.0]]
    """
    return read_query(source, Query.of(columns, weight, selection))


def read_query(source: Any, query: Query) -> Sample:
    """The events of a source that a query asks for."""
    rows: list[int] = []
    x, weights = _joined(stream(source, query, BLOCK, counted=rows.append))
    return Sample(x, weights, query, label(source), _checksum(source), sum(rows))


def events_of(samples: Iterable[Sample]) -> tuple[Array, Array | None]:
    """x and weights of several samples, one after the other; either all have weights or none."""
    return _joined((sample.x, sample.weights) for sample in samples)


def _joined(parts: Iterable[tuple[Array, Array | None]]) -> tuple[Array, Array | None]:
    x, weights = zip(*parts, strict=True)
    return np.concatenate(x), None if weights[0] is None else np.concatenate(weights)


def check_columns(source: Any, query: Query) -> None:
    """Refuse a query of columns that a source does not have, or that are not numbers."""
    with _opened(source, query):
        pass


def pieces(source: Any, query: Query, size: int) -> list[Rows]:
    """Ranges of rows, of about `size` each, in which a source can be read independently."""
    with _opened(source, query) as (table, _):
        return table.pieces(size)


def stream(
    source: Any,
    query: Query,
    size: int,
    rows: Rows = ALL,
    counted: Callable[[int], object] | None = None,
) -> Iterator[tuple[Array, Array | None]]:
    """Blocks of x and weights of some `rows`, one of the `pieces` of the source, or of all.

    `counted` is told how many rows each block has before the selection.
    """
    seen = kept = undefined = 0
    with _opened(source, query) as (table, columns):
        for block in table.blocks(columns, size, rows):
            x, weights = _compute(source, block, query, rows[0] + seen)
            count = len(block[columns[0]])
            seen += count
            if counted is not None:
                counted(count)
            kept += len(x)
            if len(x):
                yield x, weights
            elif kept == 0 and rows == ALL:
                undefined += _undefined(block, query)
    if rows != ALL:
        return  # A piece of a file may be empty.
    if seen == 0:
        raise InputError(f"{label(source)}: no events in it; give a file with events")
    if kept == 0:
        why = f" (for {undefined:,} of them it compares nan, which is false)" if undefined else ""
        cure = ", or give what is a number for every event" if undefined else ""
        raise InputError(
            f"{label(source)}: none of its {seen:,} events passes the selection "
            f"{query.selection!r}{why}; widen it{cure}"
        )


class Division(NamedTuple):
    """How several selections divide the rows of a source: how many there are, how many each takes,
    how many none takes, and how many more than one takes."""

    rows: int
    each: tuple[int, ...]
    unused: int
    shared: int


def division(source: Any, queries: Sequence[Query]) -> Division:
    """How the selections of some queries divide a source, in constant memory.

    Examples
    --------
    >>> low, high = Query.of("pt", selection="pt < 3"), Query.of("pt", selection="pt > 3")
    >>> division({"pt": [1, 2, 3, 4]}, [low, high])
    Division(rows=4, each=(2, 1), unused=1, shared=0)
    """
    rows = unused = shared = 0
    each = np.zeros(len(queries), np.int64)
    queries = [replace(query, weight=None) for query in queries]  # observed events have none
    with _opened(source, *queries) as (table, columns):
        for block in table.blocks(columns, BLOCK):
            count = len(block[columns[0]])
            whole = {ENTRY: rows + np.arange(count), **block}
            taken = np.array([_passes(source, whole, query, count) for query in queries])
            times = taken.sum(axis=0)
            rows += count
            each += taken.sum(axis=1)
            unused += int((times == 0).sum())
            shared += int((times > 1).sum())
    return Division(rows, tuple(each.tolist()), unused, shared)


def _passes(source: Any, block: Block, query: Query, count: int) -> Column:
    """Whether each row of a block passes the selection of a query."""
    if query.selection is None:
        return np.ones(count, bool)
    try:
        return _condition(query.selection, _with_aliases(query.selection, block, query))
    except InputError as error:
        raise InputError(f"{label(source)}: {error}") from error


@contextmanager
def _opened(source: Any, *queries: Query) -> Iterator[tuple[Table, list[str]]]:
    """The table of a source, and the columns that queries need of it: all there, and of numbers."""
    with open_table(source) as table:
        needed = (_needed_columns(source, table, query) for query in queries)
        yield table, list(dict.fromkeys(chain.from_iterable(needed)))


def _needed_columns(source: Any, table: Table, query: Query) -> list[str]:
    """The columns that a query needs."""
    needed: dict[str, None] = {}
    for text in query.observables.values():
        needed |= dict.fromkeys(_columns_of(source, table, text, {}))
    for expression in (query.weight, query.selection):
        if expression is not None:
            needed |= dict.fromkeys(_columns_of(source, table, expression, _aliases(query)))
    if not needed:
        first = next(iter(query.observables.values()))
        raise InputError(f"{label(source)}: no column in {first!r}; use at least one")
    for name in needed:
        fault = table.fault(name)
        if fault:
            raise InputError(
                f"{label(source)}: column {name!r} holds {fault}, not one number per event; "
                "choose another column"
            )
    return list(needed)


def _aliases(query: Query) -> dict[str, str]:
    """The observables that have a name of their own, with their expressions."""
    return {name: text for name, text in query.observables.items() if str(text).strip() != name}


def _columns_of(
    source: Any, table: Table, expression: str, aliases: Mapping[str, str]
) -> list[str]:
    """The columns of a table that an expression uses, beside observables by their names."""
    known = [*table.columns, *aliases]
    try:
        used = names(expression, known)
    except InputError as error:
        guess = _closest(str(expression), known)
        raise InputError(f"{label(source)}: {error}{guess}") from error
    for name in sorted(used & set(aliases) & {*table.columns, ENTRY}):
        raise InputError(
            f"{label(source)}: {name!r} in {expression!r} is a column and also an observable "
            f"({aliases[name]!r}); give the observable another name"
        )
    columns = used - set(aliases) - ({ENTRY} - set(table.columns))
    for name in sorted(columns - set(table.columns)):
        inside = "" if name == expression else f" for {expression!r}"
        raise InputError(
            f"{label(source)}: no column {name!r}{inside}{_closest(name, known)}; "
            f"there are {listed(table.columns)}"
        )
    return sorted(columns)


def _compute(source: Any, block: Block, query: Query, first: int) -> tuple[Array, Array | None]:
    """x and weights of the selected rows of a block that begins at row `first`."""
    lengths = {name: len(column) for name, column in block.items()}
    count = max(lengths.values())
    for name, length in lengths.items():
        if length < count:
            raise InputError(
                f"{label(source)}: column {name!r} has {length:,} rows where others have "
                f"{count:,}; the file is damaged, make it again"
            )
    rows = first + np.arange(count)
    try:
        kept = block = {ENTRY: rows, **block}
        if query.selection is not None:
            passes = _condition(query.selection, _with_aliases(query.selection, block, query))
            kept, rows = {n: column[passes] for n, column in block.items()}, rows[passes]
        columns = {name: evaluate(text, kept) for name, text in query.observables.items()}
        weights = None
        if query.weight is not None:
            weights = evaluate(query.weight, _with_aliases(query.weight, kept, query))
    except InputError as error:
        raise InputError(f"{label(source)}: {error}") from error
    x = np.column_stack([column.astype(np.float64) for column in columns.values()])
    _check_finite(source, x, [f"column {name!r}" for name in columns], rows)
    if weights is None:
        return x, None
    weights = weights.astype(np.float64)
    _check_finite(source, weights[:, None], [f"weight {query.weight!r}"], rows)
    return x, weights


def _with_aliases(expression: str, block: Block, query: Query) -> Block:
    """A block with those observables as columns that an expression names."""
    aliases = _aliases(query)
    used = names(expression, [*block, *aliases])
    return block | {name: evaluate(aliases[name], block) for name in used if name in aliases}


def _condition(selection: str, block: Block) -> Column:
    values = evaluate(selection, block)
    if np.isnan(values).any():
        raise InputError(f"selection {selection!r} is nan for some events; compare it: x > 0")
    return np.asarray(values != 0)


def _undefined(block: Block, query: Query) -> int:
    """For how many rows the selection compares nan with something."""
    selection = query.selection
    if selection is None:
        return 0
    block = {ENTRY: np.arange(len(next(iter(block.values())))), **block}
    return int(compares_nan(selection, _with_aliases(selection, block, query)).sum())


def _check_finite(source: Any, table: Array, labels: Sequence[str], rows: Column) -> None:
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = (int(index[0]) for index in np.nonzero(bad))
        raise InputError(
            f"{label(source)}: {labels[column]} is {table[row, column]} in row {rows[row]}; "
            "remove such events by a selection, or give finite values"
        )


def _closest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def file_record(source: Any, events: int, offered: int) -> FileRecord:
    """The record of a source of which so many of the offered events were used."""
    return FileRecord(label(source), events, _checksum(source), offered)


def _checksum(source: Any) -> str | None:
    """SHA-256 of a file; None for a table in memory."""
    if not isinstance(source, str | Path):
        return None
    with split_source(source)[0].open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_table(source: Any) -> AbstractContextManager[Table]:
    """The table of a file, or one in memory, for as long as the context lasts."""
    return open_file(source) if isinstance(source, str | Path) else nullcontext(MemoryTable(source))
