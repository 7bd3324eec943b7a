"""Columns of files: why one does not hold one number per event, and missing values in it."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError

Column = NDArray[Any]
Block = dict[str, Column]


def dtype_fault(kind: np.dtype[Any] | None, shape: tuple[int, ...]) -> str:
    """What keeps an array of that kind and shape from being one number per event; empty if
    nothing does."""
    if kind is None or kind.names:
        return "records"
    if kind.kind in "OSUT":
        return f"text or objects ({kind})"
    if len(shape) != 1:
        return f"an array of shape {shape}"
    return "" if kind.kind in "fiub" else f"{kind}"


def awkward_fault(array: Any) -> str:
    """What keeps an awkward array from being one number per event; empty if nothing does."""
    kind = str(array.type.content)
    if re.fullmatch(r"\??(u?int\d+|float\d+|bool)", kind):
        return ""
    if kind.lstrip("?").startswith(("string", "bytes")):
        return f"text ({kind})"
    return f"several values per event ({kind})" if " * " in kind else f"objects ({kind})"


def unmask(values: Column) -> Column:
    """Missing numbers become nan, so that they are named unless the selection removes them."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values.data)
    return np.asarray(np.ma.filled(values.astype(np.float64), np.nan))


def one_length(shapes: Mapping[str, tuple[int, ...]], where: Any) -> int:
    """The number of rows that all columns have."""
    lengths = {name: shape[0] for name, shape in shapes.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"{where}: columns of unequal length ({listed}); give one row per event")
    return next(iter(lengths.values()))
