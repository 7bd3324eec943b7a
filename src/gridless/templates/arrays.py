"""Turning what users have (arrays, tensors, data frames) into checked float arrays."""

from collections.abc import Iterator, Sequence
from numbers import Integral
from os import PathLike
from typing import Any
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError, counted

Array = NDArray[np.float64]

UNPRINTABLE = {"Cc", "Cs"}  # Unicode categories: control characters, halves of characters
SMALLEST_SQUARES = 1e-200  # sum of squared weights: a square of less is lost
LARGEST_SQUARES = 1e150  # the same: fourth powers of more overflow
LARGEST_SIZE = 1e15  # events: of more, sums lose single ones
LARGEST_VALUE = 1e100  # of an observable: sums of squares of more overflow
LEAST_EIGENVALUE = 1e-3  # of a covariance, to its median one
LEAST_WORTH = 2.0  # events that a sample must be worth: a single one has no spread
# A value that more than this share of the events have in common is a mark, such as -999 for a jet
# that is missing, a count or an edge; it says nothing of how wide the others are.
MARK_SHARE = 0.01


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
    if columns == 0:
        raise InputError(f"{what}: no columns; give at least one number per event")
    if names is not None:
        labels = as_names(names, what)
        if len(labels) != columns:
            raise InputError(
                f"{what}: {counted(len(labels), 'name')} for {counted(columns, 'column')}; give "
                "one name per column"
            )
        if len(set(labels)) != columns:
            raise InputError(f"{what}: the names {', '.join(labels)} repeat; make them distinct")
    elif own is not None and len(own) == columns:
        labels = as_names(own, what)
    else:
        labels = (default,) if columns == 1 else tuple(f"{default}_{i + 1}" for i in range(columns))
    check_finite(table, what, labels)
    return table, labels


def as_names(names: Any, what: str) -> tuple[str, ...]:
    """Names as text that can be shown anywhere: without control characters."""
    try:
        found = (names,) if isinstance(names, str) else tuple(names)
    except TypeError:
        raise InputError(f"{what}: {names!r:.80} for names; give a list of text") from None
    for name in found:
        if not isinstance(name, str) or not name or UNPRINTABLE & {category(c) for c in name}:
            raise InputError(
                f"{what}: {name!r:.80} is no name; give text without control characters"
            )
    return found


def as_number(value: Any, what: str) -> float:
    """A single real number, which may be infinite."""
    number = as_numbers(value, what)
    if number.size != 1:
        raise InputError(f"{what}: {value!r:.80}; give one number")
    return float(number.reshape(()))


def as_numbers(value: Any, what: str) -> Array:
    """Real numbers, which may be infinite."""
    try:
        return np.asarray(value, np.float64)
    except (OverflowError, TypeError, ValueError):
        raise InputError(f"{what}: {value!r:.80}; give a number") from None


def as_count(value: Any, what: str, least: int = 1, most: int = 2**63 - 1) -> int:
    """A whole number between two others."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:
        raise InputError(f"{what}: {value!r:.40}; give a whole number from {least:,} to {most:,}")
    return int(value)


def as_size(value: Any, what: str = "events") -> float:
    """A number of events, which need not be whole."""
    number = as_number(value, what)
    if not 1 <= number <= LARGEST_SIZE:
        raise InputError(f"{what}: {number:g}; give a number of events, at least 1")
    return number


def as_events(
    x: Any, weights: Any = None, observables: Sequence[str] | None = None
) -> tuple[Array, Array | None]:
    """Observed events as a finite table with their weights.

    Parameters
    ----------
    x : array, data frame or Sample
        Events (events, observables). Columns of a data frame and of a `Sample` are found by their
        names; those of an array must be in the order of `observables`.
    weights : array, optional
        One weight per event. Without any, those of the sample, if it has some.
    observables : sequence of str, optional
        The columns that are wanted, in their order. Without it, all there are.

    Returns
    -------
    tuple of array (events, observables) and array (events,) or None

    Examples
    --------
    >>> import gridless as gl
    >>> sample = gl.read({"pt": [30.0, 40.0], "eta": [0.5, -1.0], "w": [1, 2]}, ["eta", "pt"], "w")
    >>> x, weights = as_events(sample, observables=["pt", "eta"])
    >>> x.tolist(), weights.tolist()
    ([[30.0, 0.5], [40.0, -1.0]], [1.0, 2.0])
    """
    if _is_sample(x):
        weights = x.weights if weights is None else weights
        x = _columns(x.x, tuple(x.observables), observables)
    elif hasattr(x, "columns"):
        x = _columns(x, tuple(str(name) for name in x.columns), observables)
    table, found = as_table(x, "x", None, "x")
    if observables is not None and len(found) != len(observables):
        raise InputError(
            f"x: {counted(len(found), 'column')}, but the model has "
            f"{counted(len(observables), 'observable')}; give {', '.join(observables)}, in "
            "that order"
        )
    return table, as_weights(weights, len(table))


def as_weights(weights: Any, events: int) -> Array | None:
    """One finite weight per event, or None where there are none."""
    if weights is None:
        return None
    values = _as_floats(weights, "weights")
    if values.shape not in ((events,), (events, 1)):
        shape = f" of shape {values.shape}" if values.ndim > 1 else ""
        raise InputError(
            f"weights: {values.size} values{shape} for {events} events; give one weight per event"
        )
    values = values.reshape(-1)
    check_finite(values[:, None], "weights", ("weight",))
    check_squares(values)
    return values


def check_squares(weights: Array) -> None:
    """Refuse weights whose squares, of which every uncertainty is made, no number can hold."""
    with np.errstate(over="ignore", under="ignore"):
        squares = float(np.square(weights).sum())
    if np.any(weights) and not SMALLEST_SQUARES < squares < LARGEST_SQUARES:
        largest = np.abs(weights).max()
        raise InputError(
            f"weights: the largest is {largest:g}, and the sum of their squares is {squares:g}; "
            "give weights near 1"
        )


def check_total(total: float) -> None:
    """Refuse observed events whose weights cancel: nothing is left to estimate from."""
    if not total > 0:
        raise InputError(
            f"weights: their sum over the observed events is {total:g}; it must be positive: check "
            "the weights"
        )


def worth(total: Array, squares: Array) -> Array:
    """(sum w)^2 / sum w^2, the number of events without weights that know a mean as well; 0 where
    weights of either sign cancel."""
    return np.where(total > 0, total, 0.0) ** 2 / np.where(squares > 0, squares, 1.0)


def weights_or_ones(weights: Array | None, events: int) -> Array:
    """The weights of this number of events: 1 each where there are none."""
    return np.ones(events) if weights is None else weights


def covariance_root(covariance: Array) -> Array:
    """A matrix whose product with its transpose is the covariance, singular or not."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(values.clip(min=0)))


def positive(covariance: Array) -> Array:
    """The covariance (..., d, d) with eigenvalues of at least a thousandth of the median one:
    weights of either sign, or shares of processes below 0, may leave others.

    Examples
    --------
    >>> positive(np.diag([4.0, 2.0, -1.0])).diagonal().tolist()
    [4.0, 2.0, 0.002]
    """
    values, vectors = np.linalg.eigh(covariance)
    floor = LEAST_EIGENVALUE * np.median(values)
    return np.asarray(
        (vectors * values.clip(min=floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    )


def symmetric_power(covariance: Array, power: float) -> Array:
    """The symmetric matrix that is the covariance to a power; 0 where the covariance is.

    Examples
    --------
    >>> symmetric_power(np.diag([4.0, 0.0]), -0.5).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(covariance)
    there = values > values.max(initial=0.0) * len(values) * np.finfo(float).eps
    powers = np.where(there, np.where(there, values, 1.0) ** power, 0.0)
    return np.asarray((vectors * powers) @ vectors.T)


def slices(count: int, size: int) -> Iterator[slice]:
    """Consecutive pieces of `size` rows, the last one shorter.

    Examples
    --------
    >>> list(slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    return (slice(start, start + size) for start in range(0, count, size))


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


def unusable_units(name: str, column: Array) -> InputError:
    """The error that refuses an observable whose values are too far from 1 to compute with."""
    return InputError(
        f"x: column {name!r} has values as large as {np.abs(column).max():g}; give it in "
        "units in which its values are nearer to 1"
    )


def _is_sample(x: Any) -> bool:
    """Whether `x` is events with weights, such as `read` gives; a data frame may have columns of
    these names, and templates hold events of different theta."""
    return (
        hasattr(x, "x")
        and hasattr(x, "weights")
        and hasattr(x, "observables")
        and not hasattr(x, "__len__")
    )


def _columns(data: Any, names: tuple[str, ...], wanted: Sequence[str] | None) -> Any:
    """The wanted columns of an array or a data frame whose columns have these names."""
    if wanted is None:
        return data
    missing = [name for name in wanted if name not in names]
    if missing:
        raise InputError(
            f"x: no column {', '.join(missing)}; the model needs {', '.join(wanted)}: rename the "
            "columns, or give an array in that order"
        )
    if isinstance(data, np.ndarray):
        return data[:, [names.index(name) for name in wanted]]
    # Names of a data frame's columns need not be text.
    return data[[data.columns[names.index(name)] for name in wanted]]


def _own_names(data: Any) -> tuple[str, ...] | None:
    if hasattr(data, "columns"):
        return tuple(str(name) for name in data.columns)
    name = getattr(data, "name", None)
    return (name,) if isinstance(name, str) else None


def _as_floats(data: Any, what: str) -> Array:
    if isinstance(data, PathLike) or (isinstance(data, str) and "." in data):
        raise InputError(
            f"{what}: {str(data)!r:.80} is the name of a file; read it first: gl.read_templates, "
            "gl.read, or gl.read_likelihood(model, file) for observed events"
        )
    if hasattr(data, "detach"):
        data = data.detach().cpu()
    try:
        if isinstance(data, list | tuple) and any(np.ma.isMaskedArray(row) for row in data):
            data = np.ma.array(data)
        if np.ma.is_masked(data):
            data = np.ma.filled(np.ma.asarray(data, np.float64), np.nan)
        found = np.asarray(data)
        # Of complex numbers NumPy would drop a part, dates are counted in any unit.
        if found.dtype.kind in "cmMSUV":
            raise TypeError(f"it holds {found.dtype}")
        values = np.ascontiguousarray(found, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(f"{what}: not a table of numbers ({error}); give real numbers") from error
    # Data frames hand out read-only views, of which torch warns.
    return values if values.flags.writeable else values.copy()
