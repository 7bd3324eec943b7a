"""NPZ files: an array per column, read straight from the archive. Nothing is ever unpickled."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gridless.files.table import (
    ALL,
    Block,
    Column,
    Rows,
    Table,
    dtype_fault,
    one_length,
    refuse_name,
)


@contextmanager
def open_npz(path: Path, name: str | None) -> Iterator[Table]:
    """The arrays of an archive as columns."""
    refuse_name(path, name)
    with zipfile.ZipFile(path) as archive:
        yield NpzTable(archive, path)


class NpzTable(Table):
    """An open archive of arrays, compressed or not."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        entries = [entry for entry in archive.namelist() if entry.endswith(".npy")]
        self.columns = tuple(entry.removesuffix(".npy") for entry in entries)
        self._archive = archive
        self._path = path
        self._kinds: dict[str, np.dtype[Any] | None] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        for column in self.columns:
            with archive.open(f"{column}.npy") as file:
                self._shapes[column], self._kinds[column] = _header(file)

    def fault(self, column: str) -> str:
        return dtype_fault(self._kinds[column], self._shapes[column])

    # An archive can only be read from its beginning: the table is one piece.
    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:  # noqa: ARG002
        events = one_length({name: self._shapes[name] for name in names}, self._path)
        with ExitStack() as stack:
            files = {n: stack.enter_context(self._archive.open(f"{n}.npy")) for n in names}
            kinds = {name: _header(file)[1] for name, file in files.items()}
            for start in range(0, events, size):
                count = min(size, events - start)
                yield {name: _values(file, kinds[name], count) for name, file in files.items()}


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any] | None]:
    """Shape and type of an array; no type where the header is of a version for records only."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, kind = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, kind = np.lib.format.read_array_header_2_0(file)
    else:
        return (0,), None
    return shape, kind


def _values(file: Any, kind: Any, count: int) -> Column:
    content = file.read(count * kind.itemsize)
    if len(content) < count * kind.itemsize:
        raise EOFError("an array ends too early")
    return np.frombuffer(content, kind)
