"""Parquet files, read by pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gridless.files.table import ALL, Block, Column, Rows, Table, library, refuse_name


@contextmanager
def open_parquet(path: Path, name: str | None) -> Iterator[Table]:
    """The table of a file."""
    refuse_name(path, name)
    arrow = library(path, "pyarrow", "parquet")
    with library(path, "pyarrow.parquet", "parquet").ParquetFile(path) as file:
        yield ParquetTable(file, arrow)


class ParquetTable(Table):
    """An open file; `arrow` is pyarrow."""

    def __init__(self, file: Any, arrow: Any) -> None:
        self.columns = tuple(file.schema_arrow.names)
        self._file = file
        self._arrow = arrow
        counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._starts: list[int] = np.concatenate([[0], np.cumsum(counts)]).astype(int).tolist()

    def fault(self, column: str) -> str:
        kind = self._file.schema_arrow.field(column).type
        is_a = self._arrow.types
        if is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_boolean(kind):
            return ""
        if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_dictionary(kind):
            return f"text ({kind})"
        return f"several values per event ({kind})" if is_a.is_nested(kind) else f"{kind}"

    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:
        last = self._starts[-1] if rows[1] is None else rows[1]
        groups = [i for i, first in enumerate(self._starts[:-1]) if rows[0] <= first < last]
        for batch in self._file.iter_batches(size, row_groups=groups, columns=list(names)):
            yield {name: self._column(batch.column(name)) for name in names}

    def pieces(self, size: int) -> list[Rows]:
        # Only whole row groups can be read.
        joints = [0]
        for start in self._starts[1:]:
            if start - joints[-1] >= size or start == self._starts[-1]:
                joints.append(start)
        return list(pairwise(joints)) if joints[-1] else [ALL]

    def _column(self, values: Any) -> Column:
        if values.null_count:
            values = values.cast(self._arrow.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False))
