"""Tables of events in files (ROOT, Parquet, HDF5, NPZ, CSV), read block by block."""

import importlib
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError
from gridless.files.csv_text import csv_header, csv_rows

Column = NDArray[Any]
Block = dict[str, Column]
# Rows from the first to before the last, or to the end.
Rows = tuple[int, int | None]
ALL: Rows = (0, None)
_TREES = ("ROOT::RNTuple", "TNtuple", "TNtupleD", "TTree")


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, of which `blocks` reads some, a number of rows at a time.

    `fault` says what keeps a column from being one number per event, and is empty if nothing does.
    `pieces` are ranges of rows, of about as many as asked for, that `blocks` can read alone.
    """

    columns: tuple[str, ...]
    fault: Callable[[str], str]
    blocks: Callable[[Sequence[str], int, Rows], Iterator[Block]]
    pieces: Callable[[int], list[Rows]] = lambda _: [ALL]


def split_source(source: str | Path) -> tuple[Path, str | None]:
    """`top.root:events` as the file and the name inside it, None where there is none."""
    text = str(source)
    if "://" in text:
        raise InputError(f"{text}: an address, not a file; copy the file here and give its path")
    known = "|".join(suffix[1:] for suffix in FORMATS)
    match = re.fullmatch(rf"(.*?\.(?:{known}))(?::(.*))?", text, re.IGNORECASE | re.DOTALL)
    if match is None:
        raise InputError(
            f"{text}: the kind of file is not known; give one that ends in {', '.join(FORMATS)}, "
            "with :name of the tree or group where it holds several (top.root:events)"
        )
    return Path(match[1]).expanduser(), match[2] or None


@contextmanager
def open_file(source: str | Path) -> Iterator[Table]:
    """The table in a file, open for as long as the context lasts."""
    path, name = split_source(source)
    if path.is_dir():
        raise InputError(f"{path}: a folder; give a file in it")
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; check the path, the working folder is {Path.cwd()}"
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; write it again")
    with ExitStack() as stack:
        with _damage(source):
            table = stack.enter_context(FORMATS[path.suffix.lower()](path, name))

        def fault(column: str) -> str:
            with _damage(source):
                return table.fault(column)

        def blocks(names: Sequence[str], size: int, rows: Rows) -> Iterator[Block]:
            rest = table.blocks(names, size, rows)
            while True:
                with _damage(source):
                    block = next(rest, None)
                if block is None:
                    return
                yield block

        yield Table(table.columns, fault, blocks, table.pieces)


def cut(total: int, size: int) -> list[Rows]:
    """All rows in pieces of `size`."""
    return [(first, min(first + size, total)) for first in range(0, total, size)] or [ALL]


@contextmanager
def _damage(source: str | Path) -> Iterator[None]:
    """Whatever a library raises on reading, as an error that names the file."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except PermissionError as error:
        raise InputError(f"{source}: may not be read; ask its owner, or chmod u+r it") from error
    # Libraries raise anything on damaged files: struct.error, KeyError, zlib.error, ArrowInvalid.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise InputError(
            f"{source}: damaged, truncated, or not of the kind its name says "
            f"({type(error).__name__}: {reason}); copy or write it again"
        ) from error


def _library(path: Path, name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"{path}: to read it needs {name}, which is not here: pip install 'gridless[{extra}]'"
        ) from error


@contextmanager
def _root(path: Path, name: str | None) -> Iterator[Table]:
    uproot = _library(path, "uproot", "root")
    with uproot.open({str(path): None}) as file:
        kinds = file.classnames(cycle=False)
        trees = [key for key, kind in kinds.items() if kind in _TREES]
        tree = file[_choose(path, name, trees, "tree or RNTuple")]
        # Branches of a TTree come under their short names, fields of an RNTuple under full ones.
        full = not hasattr(tree, "branches")
        keys = tuple(dict.fromkeys(tree.keys(full_paths=full)))

        def fault(column: str) -> str:
            # Not tree[column].array, which takes the dot in the name of a field for a path.
            try:
                none = tree.arrays(filter_name={column}.__contains__, entry_stop=0, library="ak")
            except uproot.interpretation.objects.CannotBeAwkward:
                return f"objects ({tree[column].typename})"
            # What uproot cannot interpret, it leaves out.
            return awkward_fault(_member(none, column)) if none.fields else "objects"

        def blocks(names: Sequence[str], size: int, rows: Rows) -> Iterator[Block]:
            # By filter, never by expression: uproot would run an expression as Python.
            wanted = set(names)
            for arrays in tree.iterate(
                filter_name=wanted.__contains__,
                step_size=size,
                library="np",
                entry_start=rows[0],
                entry_stop=rows[1],
            ):
                yield {name: unmask(np.asanyarray(_member(arrays, name))) for name in names}

        yield Table(keys, fault, blocks, lambda size: cut(tree.num_entries, size))


def _member(arrays: Any, name: str) -> Any:
    """A column by its name, or by its path into records."""
    kind = getattr(arrays, "dtype", None)
    fields = getattr(arrays, "fields", arrays) if kind is None else kind.names
    if name in fields:
        return arrays[name]
    first, _, rest = name.partition(".")
    return _member(arrays[first], rest)


def unmask(values: Column) -> Column:
    """Missing numbers become nan, so that they are named unless the selection removes them."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values.data)
    return np.asarray(np.ma.filled(values.astype(np.float64), np.nan))


def awkward_fault(array: Any) -> str:
    """What keeps an awkward array from being one number per event."""
    kind = str(array.type.content)
    if re.fullmatch(r"\??(u?int\d+|float\d+|bool)", kind):
        return ""
    if kind.lstrip("?").startswith(("string", "bytes")):
        return f"text ({kind})"
    return f"several values per event ({kind})" if " * " in kind else f"objects ({kind})"


def _choose(path: Path, name: str | None, there: Sequence[str], what: str) -> str:
    """The wanted name, or the only one there is."""
    listed = ", ".join(there)
    if not there:
        raise InputError(f"{path}: holds no {what}; write the events into one")
    if name is None:
        if len(there) == 1:
            return there[0]
        raise InputError(f"{path}: holds several ({listed}); say which: {path}:{there[0]}")
    if name.partition(";")[0].strip("/") not in {entry.strip("/") for entry in there}:
        raise InputError(f"{path}: no {what} {name!r}; there is {listed}")
    return name


@contextmanager
def _parquet(path: Path, name: str | None) -> Iterator[Table]:
    _no_name(path, name)
    arrow = _library(path, "pyarrow", "parquet")
    parquet = _library(path, "pyarrow.parquet", "parquet")
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow

        def fault(column: str) -> str:
            kind = schema.field(column).type
            is_a = arrow.types
            if is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_boolean(kind):
                return ""
            if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_dictionary(kind):
                return f"text ({kind})"
            return f"several values per event ({kind})" if is_a.is_nested(kind) else f"{kind}"

        counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(int).tolist()

        def blocks(names: Sequence[str], size: int, rows: Rows) -> Iterator[Block]:
            last = starts[-1] if rows[1] is None else rows[1]
            groups = [i for i, first in enumerate(starts[:-1]) if rows[0] <= first < last]
            for batch in file.iter_batches(size, row_groups=groups, columns=list(names)):
                yield {name: _from_arrow(batch.column(name), arrow) for name in names}

        def pieces(size: int) -> list[Rows]:
            # Only whole row groups can be read.
            joints = [0]
            for start in starts[1:]:
                if start - joints[-1] >= size or start == starts[-1]:
                    joints.append(start)
            return list(pairwise(joints)) or [ALL]

        yield Table(tuple(schema.names), fault, blocks, pieces)


def _from_arrow(values: Any, arrow: Any) -> Column:
    if values.null_count:
        values = values.cast(arrow.float64())
    return np.asarray(values.to_numpy(zero_copy_only=False))


@contextmanager
def _hdf5(path: Path, name: str | None) -> Iterator[Table]:
    h5py = _library(path, "h5py", "hdf5")
    with h5py.File(path, "r") as file:
        chosen = file[_choose(path, name, _hdf5_tables(file, h5py), "group or compound dataset")]
        if isinstance(chosen, h5py.Dataset):
            kinds = {field: chosen.dtype[field] for field in chosen.dtype.names}
            shapes = {field: (*chosen.shape, *kind.shape) for field, kind in kinds.items()}
        else:
            columns = {k: v for k, v in chosen.items() if isinstance(v, h5py.Dataset)}
            kinds = {column: dataset.dtype for column, dataset in columns.items()}
            shapes = {column: dataset.shape or () for column, dataset in columns.items()}

        def blocks(names: Sequence[str], size: int, rows: Rows) -> Iterator[Block]:
            events = one_length({name: shapes[name] for name in names}, path)
            compound = isinstance(chosen, h5py.Dataset)
            last = events if rows[1] is None else rows[1]
            for start in range(rows[0], last, size):
                part = slice(start, min(start + size, last))
                block = chosen.fields(list(names))[part] if compound else None
                yield {n: chosen[n][part] if block is None else block[n] for n in names}

        length = next((shape[0] for shape in shapes.values() if shape), 0)
        yield Table(
            tuple(kinds),
            lambda c: dtype_fault(kinds[c], shapes[c]),
            blocks,
            lambda size: cut(length, size),
        )


def _hdf5_tables(file: Any, h5py: Any) -> list[str]:
    """Compound datasets, and groups that hold plain one-dimensional ones."""
    tables: dict[str, None] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and len(item.shape or ()) == 1:
            tables.setdefault(name if item.dtype.names else name.rpartition("/")[0] or "/")

    file.visititems(visit)
    return list(tables)


def dtype_fault(kind: np.dtype[Any] | None, shape: tuple[int, ...]) -> str:
    """What keeps an array of that kind and shape from being one number per event."""
    if kind is None or kind.names:
        return "records"
    if kind.kind in "OSUT":
        return f"text or objects ({kind})"
    if len(shape) != 1:
        return f"an array of shape {shape}"
    return "" if kind.kind in "fiub" else f"{kind}"


def one_length(shapes: Mapping[str, tuple[int, ...]], where: Any) -> int:
    """The number of rows that all columns have."""
    lengths = {name: shape[0] for name, shape in shapes.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"{where}: columns of unequal length ({listed}); give one row per event")
    return next(iter(lengths.values()))


@contextmanager
def _npz(path: Path, name: str | None) -> Iterator[Table]:
    """Arrays read straight from the archive: in blocks, and with nothing in it ever unpickled."""
    _no_name(path, name)
    with zipfile.ZipFile(path) as archive:
        columns = [entry[:-4] for entry in archive.namelist() if entry.endswith(".npy")]
        kinds: dict[str, np.dtype[Any] | None] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for column in columns:
            with archive.open(f"{column}.npy") as file:
                shapes[column], kinds[column] = _npy_header(file)

        def blocks(names: Sequence[str], size: int, _: Rows) -> Iterator[Block]:
            events = one_length({name: shapes[name] for name in names}, path)
            with ExitStack() as stack:
                files = {n: stack.enter_context(archive.open(f"{n}.npy")) for n in names}
                kind = {name: _npy_header(file)[1] for name, file in files.items()}
                for start in range(0, events, size):
                    rows = min(size, events - start)
                    yield {n: _npy_rows(file, kind[n], rows) for n, file in files.items()}

        yield Table(tuple(columns), lambda c: dtype_fault(kinds[c], shapes[c]), blocks)


def _npy_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any] | None]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, kind = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, kind = np.lib.format.read_array_header_2_0(file)
    else:
        return (0,), None
    return shape, kind


def _npy_rows(file: Any, kind: Any, rows: int) -> Column:
    content = file.read(rows * kind.itemsize)
    if len(content) < rows * kind.itemsize:
        raise EOFError("an array ends too early")
    return np.frombuffer(content, kind)


@contextmanager
def _csv(path: Path, name: str | None) -> Iterator[Table]:
    _no_name(path, name)
    with path.open(encoding="utf-8-sig") as file:
        header = csv_header(path, file.readline())

    def blocks(names: Sequence[str], size: int, _: Rows) -> Iterator[Block]:
        first = 0
        with path.open(encoding="utf-8-sig") as file:
            next(file)
            while lines := list(islice(file, size)):
                rows = [line for line in lines if not line.isspace()]
                if rows:
                    yield csv_rows(path, rows, names, header, first)
                first += len(rows)

    yield Table(tuple(header), lambda _: "", blocks)


def _no_name(path: Path, name: str | None) -> None:
    if name is not None:
        raise InputError(f"{path}: holds a single table; leave out ':{name}'")


Opener = Callable[[Path, str | None], AbstractContextManager[Table]]
FORMATS: dict[str, Opener] = {
    ".root": _root,
    ".parquet": _parquet,
    ".pq": _parquet,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".npz": _npz,
    ".csv": _csv,
    ".txt": _csv,
}
