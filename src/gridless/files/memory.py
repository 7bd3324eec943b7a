"""Tables in memory, read as files are: data frames, awkward records, mappings of arrays."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.files.sources import label
from gridless.files.table import (
    ALL,
    Block,
    Column,
    Rows,
    Table,
    awkward_fault,
    dtype_fault,
    one_length,
    unmask,
)


class MemoryTable(Table):
    """A data frame, an awkward array of flat records, a structured array, or arrays by name."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._keys = {str(key): key for key in _keys(source)}
        self.columns = tuple(self._keys)

    def fault(self, column: str) -> str:
        if _is_awkward(self._source):
            return awkward_fault(self._source[column])
        values = self._column(column)
        return dtype_fault(values.dtype, values.shape)

    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:  # noqa: ARG002
        columns = {name: self._column(name) for name in names}
        shapes = {name: column.shape for name, column in columns.items()}
        for start in range(0, one_length(shapes, label(self._source)), size):
            yield {name: column[start : start + size] for name, column in columns.items()}

    def _column(self, name: str) -> Column:
        return _as_array(self._source[self._keys[name]])


def _is_awkward(source: Any) -> bool:
    return hasattr(source, "fields") and hasattr(source, "layout")


def _keys(source: Any) -> Any:
    """What the columns of a table are called."""
    if _is_awkward(source):
        return source.fields
    if hasattr(source, "columns"):
        return source.columns
    if isinstance(source, Mapping):
        return source
    if isinstance(source, np.ndarray) and source.dtype.names:
        return source.dtype.names
    raise InputError(
        f"{label(source)}: cannot be read; give a path such as 'top.root:events', a data frame, an "
        "awkward array of records, or a mapping of names to arrays"
    )


def _as_array(values: Any) -> Column:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    if hasattr(values, "layout") and hasattr(values, "mask"):
        return unmask(values.to_numpy())
    # A nullable column of pandas that has gaps is an array of objects unless told otherwise.
    plain = getattr(getattr(values, "dtype", None), "numpy_dtype", None)
    if plain is not None and plain.kind in "fiub" and values.isna().any():
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return unmask(np.asanyarray(values))
