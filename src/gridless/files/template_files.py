"""Templates from files: by a pattern of names, by values, or by columns of one table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gridless.errors import InputError, counted
from gridless.files.read import Sample, check_columns, events_of, read_query
from gridless.files.sources import check_distinct, find, is_pattern, label
from gridless.templates.arrays import Array
from gridless.templates.grid import make_grid
from gridless.templates.query import Columns, FileRecord, Query
from gridless.templates.templates import Templates

# Values of the parameters with the source of their events.
Files = list[tuple[tuple[float, ...], Any]]


def read_templates(  # noqa: PLR0913
    sources: Any,
    observables: Columns,
    bounds: ArrayLike,
    *,
    weight: str | None = None,
    selection: str | None = None,
    parameters: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Templates:
    """Read templates from files.

    Parameters
    ----------
    sources : str, path, mapping, sequence of pairs, or table
        A pattern with the parameters in braces (`mtop_{mtop}.root:events`); or a mapping of values
        (or tuples of values) to sources, or pairs of those; or one source in which the parameters
        are columns.
    observables : str, sequence of str, or mapping of str to str
        Column names or expressions of columns; or names with one of these each.
    bounds : (float, float), or sequence of such pairs
        (low, high), or one such pair per parameter, in the order of `parameters`.
    weight, selection : str, optional
        As in `read`. The templates carry them, and so does a model: observed events are selected
        in the same way.
    parameters : str or sequence of str, optional
        Names of the parameters, or the columns they are in. With a pattern they are known, and
        this gives their order.
    columns : sequence of str, optional
        Expressions for `observables`, where those are names only.
    where : str, optional
        Further condition for the events to use, of these templates alone: to keep some apart.
    labels : mapping of str to str, optional
        How figures call parameters and observables: {"mtop": "$m_t$ [GeV]"}.

    Returns
    -------
    Templates
        With the query that they were read by, and a record of each file.

    Examples
    --------
    >>> import numpy as np
    >>> import gridless as gl
    >>> random = np.random.default_rng(1)
    >>> for mtop in (170.0, 172.5, 175.0):
    ...     m_jj, m_b = random.normal(80, 8, 1_000), random.normal(mtop - 80, 8, 1_000)
    ...     np.savez(f"mtop_{mtop}.npz", m_jj=m_jj, m_b=m_b)
    >>> gl.read_templates(
    ...     "mtop_{mtop}.npz", {"m_jjb": "m_jj + m_b"}, (168, 177), selection="abs(m_jj - 80) < 16"
    ... )
    Templates: 2,882 events at 3 values of mtop, observables m_jjb
    """
    query = Query.of(_pair(observables, columns), weight, selection)
    names = [parameters] if isinstance(parameters, str) else parameters
    found = _files(sources, names)
    if found is None:
        events = _table_events(sources, query.where(where), names)
    else:
        pairs, names = found
        _check_values(pairs, bounds, names)
        events = _file_events(pairs, query.where(where))
    x, theta, weights, files = events
    return Templates(
        *(x, theta, bounds, weights), parameters=names, query=query, files=files, labels=labels
    )


def read_known(
    sources: Any, query: Query, parameters: Sequence[str]
) -> list[tuple[tuple[float, ...], Sample]]:
    """The value of every parameter, and the events, of each of one or more samples.

    `sources` are as for `read_templates`; values may be outside of any bounds.
    """
    found = _files(sources, parameters)
    if found is not None:
        files, _ = found
        samples = _read_all(files, query)
        return [(value, sample) for (value, _), sample in zip(files, samples, strict=True)]
    table = _with_theta(sources, query, parameters)
    theta = table.x[:, len(query.names) :]
    known = []
    for value in np.unique(theta, axis=0):
        own = (theta == value).all(axis=1)
        weights = None if table.weights is None else table.weights[own]
        x = table.x[own, : len(query.names)]
        part = replace(table, x=x, weights=weights, query=query, offered=None)
        known.append((tuple(value.tolist()), part))
    return known


def read_events(sources: Any, query: Query, parameters: Sequence[str] | None) -> "ThetaEvents":
    """The events of sources as for `read_templates`; one value is enough, inside of any bounds or
    not."""
    found = _files(sources, parameters)
    if found is None:
        return _table_events(sources, query, parameters)
    return _file_events(found[0], query)


class ThetaEvents(NamedTuple):
    """Events with the theta of each, and the files that they were read from."""

    x: Array
    theta: Array
    weights: Array | None
    files: list[FileRecord]


def _table_events(source: Any, query: Query, parameters: Sequence[str] | None) -> ThetaEvents:
    table = _with_theta(source, query, parameters)
    count = len(query.names)
    return ThetaEvents(table.x[:, :count], table.x[:, count:], table.weights, [table.record])


def _file_events(files: Files, query: Query) -> ThetaEvents:
    samples = _read_all(files, query)
    x, weights = events_of(samples)
    theta = np.repeat([value for value, _ in files], [s.events for s in samples], axis=0)
    return ThetaEvents(x, theta, weights, [sample.record for sample in samples])


def check_events(
    sources: Any, query: Query, parameters: Sequence[str], bounds: ArrayLike | None = None
) -> None:
    """Refuse missing files and columns of what `read_events` is to read, and values outside of
    bounds."""
    found = _files(sources, parameters)
    if found is None:
        with _no_braces(parameters or ()):
            check_columns(sources, _query_with_theta(query, parameters))
        return
    files, names = found
    if bounds is not None:
        _check_values(files, bounds, names)
    _check_files(files, query)


def _files(sources: Any, labels: Sequence[str] | None) -> tuple[Files, Sequence[str]] | None:
    """Values with their sources, and the names of the parameters; None for one table in which the
    parameters are columns."""
    if is_pattern(sources):
        return _order(sources, find(sources), labels)
    if _is_table(sources):
        if isinstance(sources, str | Path) and "*" in str(sources):
            find(sources)  # which asks for braces
        return None
    files = _pairs(sources)
    return files, _name_values(files, labels)


def _read_all(files: Files, query: Query) -> list[Sample]:
    """The events of every file; mistakes in any of them show before the first is read."""
    _check_files(files, query)
    return [read_query(source, query) for _, source in files]


def _check_files(files: Files, query: Query) -> None:
    """Refuse files that are given twice or are missing, and those that lack a column."""
    check_distinct([source for _, source in files])
    for _, source in files:
        check_columns(source, query)


def _pair(observables: Columns, columns: Sequence[str] | None) -> Columns:
    if columns is None:
        return observables
    labels = [observables] if isinstance(observables, str) else list(observables)
    texts = [columns] if isinstance(columns, str) else list(columns)
    if len(labels) != len(texts):
        raise InputError(
            f"columns: {counted(len(texts), 'expression')} for "
            f"{counted(len(labels), 'observable')}; give one each"
        )
    return dict(zip(labels, texts, strict=True))


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
                f"{label(source)}: {counted(len(value), 'value')} for "
                f"{counted(count, 'parameter')}; give one each"
            )
    if not files:
        raise InputError("sources: none; give at least two values with their sources")
    if labels is not None:
        return labels
    return ["theta"] if count == 1 else [f"theta_{i + 1}" for i in range(count)]


def _check_values(files: Files, bounds: ArrayLike, labels: Sequence[str]) -> None:
    """Refuse values outside the bounds before anything is read."""
    values = np.array([value for value, _ in files])
    try:
        limits = np.asarray(bounds, float)
    except (TypeError, ValueError):
        make_grid(values, bounds, labels)  # which says what is wrong
        raise
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


def _with_theta(source: Any, query: Query, labels: Sequence[str] | None) -> Sample:
    """The events of one table with the parameters, which are columns of it, behind the
    observables."""
    if not labels:
        raise InputError(
            f"{label(source)}: no braces in the name; put the parameter there "
            "(mtop_{mtop}.root), or give the columns that hold it: parameters=['mtop']"
        )
    with _no_braces(labels):
        return read_query(source, _query_with_theta(query, labels))


@contextmanager
def _no_braces(parameters: Sequence[str]) -> Iterator[None]:
    """Errors of columns that are parameters say that the name of the file may have these."""
    try:
        yield
    except InputError as error:
        for name in parameters:
            if f"no column {name!r}" in str(error):
                more = f"or give a pattern of files with {{{name}}} in the name"
                raise InputError(f"{error}; {more}") from error
        raise


def _query_with_theta(query: Query, parameters: Sequence[str]) -> Query:
    columns = query.observables | {f"{name} (parameter)": name for name in parameters}
    return replace(query, observables=columns)
