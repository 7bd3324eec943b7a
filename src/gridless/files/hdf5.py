"""HDF5 files: groups of one-dimensional datasets, and compound datasets, read by h5py."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gridless.files.table import (
    ALL,
    Block,
    Rows,
    Table,
    choose_name,
    dtype_fault,
    equal_pieces,
    library,
    one_length,
)


@contextmanager
def open_hdf5(path: Path, name: str | None) -> Iterator[Table]:
    """The group or compound dataset of that name, or the only one in the file."""
    h5py = library(path, "h5py", "hdf5")
    with h5py.File(path, "r") as file:
        tables = _tables(file, h5py.Dataset)
        chosen = file[choose_name(path, name, tables, "group or compound dataset")]
        if isinstance(chosen, h5py.Dataset):
            yield CompoundTable(chosen, _elsewhere(chosen, file))
        else:
            # A link that leads nowhere is None.
            datasets = {k: v for k in chosen if isinstance(v := chosen.get(k), h5py.Dataset)}
            yield GroupTable(datasets, {k: _elsewhere(v, file) for k, v in datasets.items()}, path)


def _tables(file: Any, dataset: Any) -> list[str]:
    """Compound datasets, and groups that hold plain one-dimensional ones."""
    tables: dict[str, None] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, dataset) and len(item.shape or ()) == 1:
            tables.setdefault(name if item.dtype.names else name.rpartition("/")[0] or "/")

    file.visititems(visit)
    return list(tables)


class CompoundTable(Table):
    """A dataset of records, whose fields are the columns."""

    def __init__(self, dataset: Any, elsewhere: str) -> None:
        self.columns = tuple(dataset.dtype.names)
        self._dataset = dataset
        self._elsewhere = elsewhere

    def fault(self, column: str) -> str:
        if self._elsewhere:
            return self._elsewhere
        kind = self._dataset.dtype[column]
        return dtype_fault(kind, (*self._dataset.shape, *kind.shape))

    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:
        _check_written(self._dataset)
        for part in _parts(len(self._dataset), size, rows):
            block = self._dataset.fields(list(names))[part]
            yield {name: block[name] for name in names}

    def pieces(self, size: int) -> list[Rows]:
        return equal_pieces(len(self._dataset), size)


class GroupTable(Table):
    """The datasets of a group; some of them may be no columns of events."""

    def __init__(self, datasets: dict[str, Any], elsewhere: dict[str, str], path: Path) -> None:
        self.columns = tuple(datasets)
        self._datasets = datasets
        self._elsewhere = elsewhere
        self._path = path

    def fault(self, column: str) -> str:
        dataset = self._datasets[column]
        return self._elsewhere[column] or dtype_fault(dataset.dtype, dataset.shape or ())

    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:
        events = one_length({name: self._datasets[name].shape for name in names}, self._path)
        for name in names:
            _check_written(self._datasets[name])
        for part in _parts(events, size, rows):
            yield {name: self._datasets[name][part] for name in names}

    def pieces(self, size: int) -> list[Rows]:
        shapes = [dataset.shape for dataset in self._datasets.values() if dataset.shape]
        return equal_pieces(shapes[0][0] if shapes else 0, size)


def _elsewhere(dataset: Any, file: Any) -> str:
    """Where the values of a dataset are, if not in this file: its checksum would not hold them."""
    if dataset.file.filename != file.filename:
        return f"a link into another file ({dataset.file.filename})"
    if dataset.external:
        return f"values that are in another file ({dataset.external[0][0]})"
    return "values that are in other datasets or files" if dataset.is_virtual else ""


def _check_written(dataset: Any) -> None:
    """Refuse rows that a file declares and does not hold, which would be read as zeros."""
    if dataset.chunks is None:
        stored = len(dataset) if dataset.id.get_storage_size() else 0
    else:
        stored = dataset.id.get_num_chunks() * dataset.chunks[0]
    if stored < len(dataset):
        raise EOFError(f"declares {len(dataset):,} rows and holds {stored:,} at most")


def _parts(events: int, size: int, rows: Rows) -> Iterator[slice]:
    last = events if rows[1] is None else rows[1]
    for start in range(rows[0], last, size):
        yield slice(start, min(start + size, last))
