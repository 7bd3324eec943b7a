"""Reading events from files and tables: samples, streams of blocks, and templates by file name."""

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gridless.arrays import Array
from gridless.errors import InputError
from gridless.expressions import Column, evaluate, names
from gridless.formats import ALL, Block, Rows, Table, open_file, split_source
from gridless.grid import make_grid
from gridless.patterns import find, listed
from gridless.tables import label, table_in_memory
from gridless.templates import Templates

# A column that every table has: the number of the row, from 0. `entry % 4 == 0` is every fourth.
ENTRY = "entry"
# One name alone, several names, or names with an expression each.
Columns = str | Sequence[str] | Mapping[str, str]


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
    def provenance(self) -> dict[str, Any]:
        """What a model keeps of it: source, number of events and checksum."""
        return {"source": self.source, "events": self.events, "checksum": self.checksum}

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else " weighted"
        return (
            f"Sample: {self.events:,}{weighted} events from {self.source}, "
            f"observables {', '.join(self.observables)}"
        )


@dataclass(frozen=True)
class Request:
    """What is wanted of each source: names with their expressions, weight and selection."""

    columns: dict[str, str]
    weight: str | None
    selection: str | None


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
    request = make_request(columns, weight, selection)
    blocks = list(stream(source, request, 200_000))
    return Sample(
        x=np.concatenate([x for x, _ in blocks]),
        weights=None if weight is None else np.concatenate([w for _, w in blocks if w is not None]),
        observables=tuple(request.columns),
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
    request = make_request(columns, weight, selection)
    with _open(source) as table:  # Now, so that mistakes show before the first block is asked for.
        _needed(source, table, request)
    return stream(source, request, size)


def pieces(source: Any, request: Request, size: int) -> list[Rows]:
    """Ranges of rows, of about `size` each, in which a source can be read independently."""
    with _open(source) as table:
        _needed(source, table, request)
        return table.pieces(size)


def read_templates(
    sources: Any,
    observables: Columns,
    bounds: ArrayLike,
    *,
    weight: str | None = None,
    selection: str | None = None,
    parameters: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Templates:
    """Templates from files.

    Parameters
    ----------
    sources
        A pattern with the parameters in braces (`mtop_{mtop}.root:events`); or a mapping of values
        (or tuples of values) to sources, or pairs of those; or one source in which the parameters
        are columns.
    observables
        Column names or expressions, or a mapping of names to those.
    bounds
        (low, high), or one such pair per parameter, in the order of `parameters`.
    weight, selection
        As in `read`.
    parameters
        Names of the parameters, or the columns they are in. With a pattern they are known, and
        this gives their order.
    columns
        Expressions for `observables`, where those are names only.
    """
    request = make_request(_pair(observables, columns), weight, selection)
    labels = [parameters] if isinstance(parameters, str) else parameters
    if _has_braces(sources):
        files, labels = _order(sources, find(sources), labels)
    elif _is_table(sources):
        return _read_with_theta(sources, request, bounds, labels)
    else:
        files = _pairs(sources)
        labels = _name_values(files, labels)
    _check_values(files, bounds, labels)
    for _, source in files:
        with _open(source) as table:
            _needed(source, table, request)
    samples = [read(source, request.columns, weight, selection) for _, source in files]
    theta = [np.tile(v, (s.events, 1)) for (v, _), s in zip(files, samples, strict=True)]
    templates = Templates(
        np.concatenate([sample.x for sample in samples]),
        np.concatenate(theta),
        bounds,
        None if weight is None else np.concatenate([s.weights for s in samples]),
        tuple(request.columns),
        labels,
    )
    templates.data = tuple(sample.provenance for sample in samples)
    return templates


def make_request(columns: Columns, weight: str | None, selection: str | None) -> Request:
    """What is wanted, of columns by their names or expressions."""
    if not isinstance(columns, Mapping):
        listed = [columns] if isinstance(columns, str) else list(columns)
        if len(set(listed)) < len(listed):
            raise InputError(f"columns: {', '.join(listed)} repeat; give each once")
        columns = {column: column for column in listed}
    if not columns:
        raise InputError("columns: none; give at least one column or expression")
    return Request(dict(columns), weight, selection)


def stream(
    source: Any, request: Request, size: int, rows: Rows = ALL
) -> Iterator[tuple[Array, Array | None]]:
    """Blocks of x and weights of some `rows`, one of the `pieces` of the source, or of all."""
    seen = kept = 0
    with _open(source) as table:
        needed = _needed(source, table, request)
        for block in table.blocks(needed, size, rows):
            x, weights = _compute(source, block, request, rows[0] + seen)
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
            f"{request.selection!r}; widen it"
        )


def _needed(source: Any, table: Table, request: Request) -> list[str]:
    """The columns to read, all of them there and of numbers."""
    wanted = [*request.columns.values(), request.weight, request.selection]
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


def _compute(source: Any, block: Block, request: Request, first: int) -> tuple[Array, Array | None]:
    """x and weights of the selected rows of a block that begins at row `first`."""
    try:
        rows = first + np.arange(len(next(iter(block.values()))))
        kept = block = {ENTRY: rows, **block}
        if request.selection is not None:
            passes = _condition(request.selection, block)
            kept, rows = {n: column[passes] for n, column in block.items()}, rows[passes]
        columns = {name: evaluate(text, kept) for name, text in request.columns.items()}
        weights = None if request.weight is None else evaluate(request.weight, kept)
    except InputError as error:
        raise InputError(f"{label(source)}: {error}") from error
    x = np.column_stack([column.astype(np.float64) for column in columns.values()])
    _check_finite(source, x, [f"column {name!r}" for name in columns], rows)
    if weights is None:
        return x, None
    weights = weights.astype(np.float64)
    _check_finite(source, weights[:, None], [f"weight {request.weight!r}"], rows)
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


def _open(source: Any) -> AbstractContextManager[Table]:
    return (
        open_file(source)
        if isinstance(source, str | Path)
        else nullcontext(table_in_memory(source))
    )


def _has_braces(sources: Any) -> bool:
    return isinstance(sources, str | Path) and "{" in str(sources)


def _pair(observables: Columns, columns: Sequence[str] | None) -> Columns:
    if columns is None:
        return observables
    labels = [observables] if isinstance(observables, str) else list(observables)
    texts = [columns] if isinstance(columns, str) else list(columns)
    if len(labels) != len(texts):
        raise InputError(
            f"columns: {len(texts)} expression(s) for {len(labels)} observable(s); give one each"
        )
    return dict(zip(labels, texts, strict=True))


Files = list[tuple[tuple[float, ...], Any]]


def _order(
    pattern: Any, found: list[tuple[dict[str, float], str]], labels: Sequence[str] | None
) -> tuple[Files, list[str]]:
    """The files of a pattern with their values in the order of the parameters."""
    there = list(found[0][0])
    order = there if labels is None else list(labels)
    if sorted(order) != sorted(there):
        raise InputError(
            f"{pattern}: has {', '.join(there)} in braces, and the parameters are "
            f"{', '.join(order)}; make them agree"
        )
    return [(tuple(values[name] for name in order), source) for values, source in found], order


def _is_table(sources: Any) -> bool:
    if isinstance(sources, Mapping):
        return bool(sources) and all(isinstance(key, str) for key in sources)
    return not isinstance(sources, list | tuple)


def _pairs(sources: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> Files:
    pairs = list(sources.items() if isinstance(sources, Mapping) else sources)
    try:
        return [(tuple(np.atleast_1d(np.asarray(v, float)).tolist()), s) for v, s in pairs]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"sources: not values with sources ({error}); give a mapping such as "
            "{172.5: 'a.root', 175.0: 'b.root'}, or a pattern with braces"
        ) from error


def _name_values(files: Files, labels: Sequence[str] | None) -> Sequence[str]:
    count = len(labels) if labels is not None else len(files[0][0]) if files else 0
    for value, source in files:
        if len(value) != count:
            raise InputError(
                f"{label(source)}: {len(value)} value(s) for {count} parameter(s); give one each"
            )
    if not files:
        raise InputError("sources: none; give at least two values with their sources")
    if labels is not None:
        return labels
    return ["theta"] if count == 1 else [f"theta_{i + 1}" for i in range(count)]


def _check_values(files: Files, bounds: ArrayLike, labels: Sequence[str]) -> None:
    """Refuse values outside the bounds before anything is read."""
    values = np.array([value for value, _ in files])
    limits = np.asarray(bounds, float)
    limits = limits[None, :] if limits.shape == (2,) else limits
    if limits.shape == (len(labels), 2):
        outside = (values < limits[:, 0]) | (values > limits[:, 1])
        for template, column in np.argwhere(outside & (limits[:, 0] < limits[:, 1])):
            raise InputError(
                f"{label(files[template][1])}: {labels[column]} = {values[template, column]:g} is "
                f"outside the bounds {limits[column, 0]:g} to {limits[column, 1]:g}; widen the "
                "bounds or leave it out"
            )
    make_grid(values, bounds, labels)


def _read_with_theta(
    source: Any, request: Request, bounds: ArrayLike, labels: Sequence[str] | None
) -> Templates:
    """Templates of one table in which the parameters are columns."""
    if not labels:
        raise InputError(
            f"{label(source)}: no braces in the name; put the parameter there "
            "(mtop_{mtop}.root), or give the columns that hold it: parameters=['mtop']"
        )
    columns = request.columns | {f"{name} (parameter)": name for name in labels}
    sample = read(source, columns, request.weight, request.selection)
    count = len(request.columns)
    return Templates(
        sample.x[:, :count],
        sample.x[:, count:],
        bounds,
        sample.weights,
        tuple(request.columns),
        labels,
    )
