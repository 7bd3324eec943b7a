"""Tables in memory, read as files are: data frames, awkward records, mappings of arrays."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.files.expressions import Column
from gridless.files.formats import (
    Block,
    Rows,
    Table,
    awkward_fault,
    dtype_fault,
    one_length,
    unmask,
)


def table_in_memory(source: Any) -> Table:
    """A data frame, an awkward array of flat records, a structured array, or arrays by name."""
    flexible = hasattr(source, "fields") and hasattr(source, "layout")
    if flexible:
        keys = source.fields
    elif hasattr(source, "columns"):
        keys = source.columns
    elif isinstance(source, Mapping):
        keys = source
    elif isinstance(source, np.ndarray) and source.dtype.names:
        keys = source.dtype.names
    else:
        raise InputError(
            f"{label(source)}: cannot be read; give a path such as 'top.root:events', a data "
            "frame, an awkward array of records, or a mapping of names to arrays"
        )
    by_name = {str(key): key for key in keys}

    def fault(name: str) -> str:
        if flexible:
            return awkward_fault(source[name])
        values = _as_array(source[by_name[name]])
        return dtype_fault(values.dtype, values.shape)

    def blocks(wanted: Sequence[str], size: int, _: Rows) -> Iterator[Block]:
        columns = {name: _as_array(source[by_name[name]]) for name in wanted}
        events = one_length({name: c.shape for name, c in columns.items()}, label(source))
        for start in range(0, events, size):
            yield {name: column[start : start + size] for name, column in columns.items()}

    return Table(tuple(by_name), fault, blocks)


def _as_array(values: Any) -> Column:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    if hasattr(values, "layout") and hasattr(values, "mask"):
        return unmask(values.to_numpy())
    # A nullable column of pandas that has gaps is an array of objects unless told otherwise.
    plain = getattr(getattr(values, "dtype", None), "numpy_dtype", None)
    if plain is not None and plain.kind in "fiub" and values.isna().any():
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values)


def label(source: Any) -> str:
    """How messages name a source."""
    return str(source) if isinstance(source, str | Path) else f"{type(source).__name__} in memory"
