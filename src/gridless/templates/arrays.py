"""Turning what users have (arrays, tensors, data frames) into checked float arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError

Array = NDArray[np.float64]


def as_table(
    data: Any, what: str, names: Sequence[str] | None, default: str
) -> tuple[Array, tuple[str, ...]]:
    """`data` as a finite array (events, columns) with a name for each column.

    Takes NumPy arrays, torch tensors, pandas objects, and anything with `__array__`. Names come
    from `names`, else from the data frame, else they are `default` and its numbered forms.
    """
    own = _own_names(data)
    table = _as_floats(data, what)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise InputError(f"{what}: shape {table.shape}; give one row per event, one column each")
    if len(table) == 0:
        raise InputError(f"{what}: no events; give at least one row")
    columns = table.shape[1]
    if names is not None:
        labels = (names,) if isinstance(names, str) else tuple(names)
        if len(labels) != columns:
            raise InputError(
                f"{what}: {len(labels)} name(s) for {columns} column(s); give one name per column"
            )
        if len(set(labels)) != columns:
            raise InputError(f"{what}: the names {', '.join(labels)} repeat; make them distinct")
    elif own is not None and len(own) == columns:
        labels = own
    else:
        labels = (default,) if columns == 1 else tuple(f"{default}_{i + 1}" for i in range(columns))
    check_finite(table, what, labels)
    return table, labels


def as_weights(weights: Any, events: int) -> Array | None:
    """One finite weight per event, or None where there are none."""
    if weights is None:
        return None
    values = _as_floats(weights, "weights").reshape(-1)
    if len(values) != events:
        raise InputError(
            f"weights: {len(values)} values for {events} events; give one weight per event"
        )
    check_finite(values[:, None], "weights", ("weight",))
    return values


def check_finite(table: Array, what: str, labels: Sequence[str]) -> None:
    """Refuse NaN and infinity, naming the first one's row and column."""
    # The sum is finite unless a value is not (or overflows): one fast pass in the usual case.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(table.sum()):
            return
    rows, columns = np.nonzero(~np.isfinite(table))
    if len(rows) == 0:
        return
    row, column = rows[0], columns[0]
    more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
    raise InputError(
        f"{what}: column {labels[column]!r} is {table[row, column]} in row {row}{more}; "
        "remove those events or give finite values"
    )


def _own_names(data: Any) -> tuple[str, ...] | None:
    if hasattr(data, "columns"):
        return tuple(str(name) for name in data.columns)
    name = getattr(data, "name", None)
    return (name,) if isinstance(name, str) else None


def _as_floats(data: Any, what: str) -> Array:
    if hasattr(data, "detach"):
        data = data.detach().cpu()
    try:
        return np.ascontiguousarray(data, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: not a table of numbers ({error}); give real numbers") from error
