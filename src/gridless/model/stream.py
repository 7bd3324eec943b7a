"""The likelihood of files of any size: piece by piece, in constant memory, here or on a cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from itertools import islice
from operator import add
from typing import Any, NamedTuple

from gridless.errors import InputError, check_kind, errors_of
from gridless.files.read import (
    Division,
    Sample,
    check_columns,
    division,
    events_of,
    file_record,
    pieces,
    read_query,
    stream,
)
from gridless.files.sources import check_distinct, label, source_key
from gridless.files.table import Rows
from gridless.files.template_files import read_known, read_templates
from gridless.likelihood.likelihood import Likelihood
from gridless.model.combined import Channels, models_of
from gridless.model.model import Model
from gridless.model.observed import check_used, grouped
from gridless.parallel import run
from gridless.templates.arrays import Array, check_squares, check_total
from gridless.templates.query import FileRecord, Query
from gridless.templates.templates import Templates

GROUP = "group of an event"  # the last column that is read, where events are grouped
BLOCK_ROWS = 250_000  # rows in memory at once
TASK_ROWS = 2_000_000  # rows of one task: enough to hide its overhead, few enough to repeat it


def read_likelihood(
    model: Model | Channels,
    sources: Any,
    weight: str | None = None,
    where: str | None = None,
    executor: Any = None,
    by: str | None = None,
) -> Likelihood:
    """The likelihood of the events in files, which are never in memory at once.

    -sum_i w_i log [p(theta | x_i) / q(theta)], up to a constant.

    Parameters
    ----------
    model : Model or Channels
        Its query says how observables are made of columns, and which events are used.
    sources : path, table or list of these
        Such as `data.root:events`. Channels divide them by their selections, which must not
        overlap; or they have sources of their own, {"electron": ..., "muon": ...}.
    weight : str, optional
        Expression for the weight of an event; observed events are not weighted as templates are.
    where : str, optional
        Expression that is true for the events to use, of those that the model's selection keeps.
    executor : concurrent.futures.Executor or dask client, optional
        Runs the tasks; without one, this process does. Sums are taken in the same order
        everywhere, so that the numbers are the same.
    by : str, optional
        Expression of columns whose value tells the group of an event, such as `run - run % 1000`:
        groups are channels of their own, which `likelihood.by()` compares.

    Returns
    -------
    Likelihood
        As `model.likelihood` of all events.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(events=500, seed=1), hidden=2, epochs=2, replicas=0)
    >>> runs = [{"x": example.sample(0.4, 1_000, seed=run)[:, 0]} for run in range(2)]
    >>> gl.read_likelihood(model, runs).events
    2000
    >>> gl.read_likelihood(model, runs, where="x > 0").events
    1290
    """
    if isinstance(model, Channels):
        if by is not None:
            raise InputError(
                "by: for the events of one channel; give its model, channels[name] or FILE:NAME"
            )
        return _of_channels(model, by_channel(model, sources), weight, where, executor)[0]
    check_kind(model, Model, "model")
    return _of_model(model, _listed(sources), weight, where, executor, by)[0]


def read_observed(
    model: Model | Channels, sources: Any, weight: str | None = None, where: str | None = None
) -> tuple[Likelihood, dict[str, list[FileRecord]]]:
    """The likelihood of the events in files, and a record of every file by the channel whose events
    it has: for `write_report`. Arguments as for `read_likelihood`."""
    given = by_channel(model, sources)
    if isinstance(model, Channels):
        likelihood, read = _of_channels(model, given, weight, where, None)
    else:
        likelihood, own = _of_model(model, given[""], weight, where)
        read = {"": own}
    files: dict[str, list[FileRecord]] = {name: [] for name in given}
    for source, places in _readers(given):
        found = {name: read[name][place] for name, place in places.items()}
        first, *_ = found.values()
        whole = file_record(source, 0, sum(piece.rows for piece in first))
        for name, parts in found.items():
            files[name].append(replace(whole, events=sum(piece.used for piece in parts)))
    return likelihood, files


def _of_model(
    model: Model,
    files: list[Any],
    weight: str | None,
    where: str | None,
    executor: Any = None,
    by: str | None = None,
) -> tuple[Likelihood, list[list["_Piece"]]]:
    """The likelihood of the events of one model, and the pieces that each file was read in."""
    query = _observed_query(model, weight, where, by)
    if not files:
        raise InputError("sources: none; give at least one file of observed events")
    check_distinct(files)
    cut = [pieces(source, query, TASK_ROWS) for source in files]
    tasks = [
        (model, source, rows, query)
        for source, parts in zip(files, cut, strict=True)
        for rows in parts
    ]
    results = run(_piece_likelihood, tasks, executor, "likelihood")
    found = [piece.likelihood for piece in results if piece.likelihood is not None]
    if not found:
        names = ", ".join(str(source) for source in files)
        raise InputError(f"{names}: no event passes the selection {query.selection!r}; widen it")
    if weight is not None:
        check_total(sum(piece.weight for piece in results))
    likelihood = _tree_sum(found)
    agreement = likelihood.channels[0].agreement
    used = sum(piece.used for piece in results)
    check_used(likelihood.events, used, agreement, model.summary.edges)
    if query.selection is not None:
        likelihood = likelihood.with_offered(sum(piece.rows for piece in results))
    rest = iter(results)
    return likelihood, [list(islice(rest, len(parts))) for parts in cut]


def _of_channels(
    channels: Channels,
    given: dict[str, list[Any]],
    weight: str | None,
    where: str | None,
    executor: Any,
) -> tuple[Likelihood, dict[str, list[list["_Piece"]]]]:
    """The sum of the likelihoods of all channels, and the pieces that each read its files in."""
    for name, model in channels.items():
        query = _observed_query(model, weight, where)
        for source in given[name]:
            with errors_of(name):
                check_columns(source, query)
    divided = _divisions(channels, given, where)
    parts, read = {}, {}
    for name, model in channels.items():
        with errors_of(name):
            part, read[name] = _of_model(model, given[name], weight, where, executor)
        # Of a source that several channels divide, each row is offered once.
        twice = 0
        for names, found in divided:
            if name in names:
                twice += found.rows - found.each[names.index(name)]
                twice -= found.unused if name == names[0] else 0
        parts[name] = part.with_offered(part.offered - twice) if part.offered and twice else part
    return channels.summed(parts), read


def by_channel(model: Model | Channels, sources: Any) -> dict[str, list[Any]]:
    """The sources of every channel: its own, or those that all of them divide."""
    if not isinstance(model, Channels) or not _by_name(model, sources):
        return {name: _listed(sources) for name in models_of(model)}
    return {name: _listed(sources[name]) for name in model}


def _by_name(channels: Channels, sources: Any) -> bool:
    """Whether sources are given by the names of the channels; then there is one for each."""
    if not isinstance(sources, Mapping) or not set(sources) & set(channels):
        return False
    channels.check_names(sources, "sources")
    return True


def _divisions(
    channels: Channels, given: dict[str, list[Any]], where: str | None
) -> list[tuple[list[str], Division]]:
    """The channels that read the same source, and how they divide it; no event may be in two."""
    found = []
    for source, places in _readers(given):
        names = list(places)
        if len(names) < 2:
            continue
        one = division(source, [channels[name].query.where(where) for name in names])
        if one.shared:
            raise InputError(
                f"{label(source)}: {one.shared:,} of its {one.rows:,} events are in more than one "
                f"of the channels {', '.join(names)} and would count twice; let the selections "
                "exclude each other, or give each channel its own events"
            )
        found.append((names, one))
    return found


def _readers(given: dict[str, list[Any]]) -> Iterable[tuple[Any, dict[str, int]]]:
    """Every source with the channels that read it, and its place among the sources of each."""
    readers: dict[Any, tuple[Any, dict[str, int]]] = {}
    keys = {source_key(source) for sources in given.values() for source in sources}
    bare = {file for file, inside in keys if inside is None}
    for name, sources in given.items():
        for place, source in enumerate(sources):
            file, inside = source_key(source)
            # Without a name it is the only table of the file.
            key = (file, None if file in bare else inside)
            readers.setdefault(key, (source, {}))[1][name] = place
    return readers.values()


def observed_events(
    model: Model | Channels,
    sources: Any,
    weight: str | None = None,
    where: str | None = None,
    by: str | None = None,
) -> tuple[dict[str, Sample], dict[str, Array] | None]:
    """The observed events of every channel, and the group of each event: for `review`, which has
    them in memory. Arguments as for `read_likelihood`."""
    given = by_channel(model, sources)
    if isinstance(model, Channels):
        _divisions(model, given, where)
    samples, groups = {}, {}
    for name, one in models_of(model).items():
        check_distinct(given[name])
        query = _observed_query(one, weight, where, by)
        x, weights = events_of(read_query(source, query) for source in given[name])
        if by is not None:
            x, groups[name] = x[:, :-1], x[:, -1]
            query = _observed_query(one, weight, where)
        samples[name] = Sample(x, weights, query, ", ".join(map(label, given[name])), None)
    return samples, groups or None


def _observed_query(
    model: Model, weight: str | None, where: str | None, by: str | None = None
) -> Query:
    """How observed events are read, with their groups as a last column."""
    query = replace(model.query, weight=weight).where(where)
    return query if by is None else replace(query, observables=query.observables | {GROUP: by})


def _listed(sources: Any) -> list[Any]:
    return list(sources) if isinstance(sources, list | tuple) else [sources]


def read_samples(
    model: Model | Channels, sources: Any, *, weight: str | None = None, where: str | None = None
) -> Any:
    """Samples whose parameters are known, read as the model's templates were: for `closure` and
    `coverage`.

    Parameters
    ----------
    model : Model or Channels
        Its query says which columns, weight and selection to use.
    sources : str, mapping or pairs
        As for `read_templates`; one sample is enough. Channels divide them by their selections, or
        have samples of their own, {"electron": ..., "muon": ...}.
    weight : str, optional
        Expression for the weight of an event, if not that of the templates.
    where : str, optional
        Expression that is true for the events to use, of those that the selection keeps.

    Returns
    -------
    list of (tuple of float, Sample)
        The true values of the parameters, in their order, and the events; of channels, such a list
        by the name of each.

    Examples
    --------
    >>> import numpy as np
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(500, seed=1), hidden=3, epochs=2, replicas=4)
    >>> np.savez("test_0.40.npz", x=example.sample(0.4, 1_000, seed=2)[:, 0])
    >>> gl.read_samples(model, "test_{theta}.npz")
    [((0.4,), Sample: 1,000 events from test_0.40.npz, observables x)]
    """
    if isinstance(model, Channels):
        own = _by_name(model, sources)
        return {
            name: read_samples(one, sources[name] if own else sources, weight=weight, where=where)
            for name, one in model.items()
        }
    query = replace(model.query, weight=weight or model.query.weight).where(where)
    return read_known(sources, query, model.grid.parameters)


class _Piece(NamedTuple):
    """Some rows of a file: the likelihood of those that pass the selection, None if there are none;
    the sum of their weights, their number, and the number of all rows."""

    likelihood: Likelihood | None
    weight: float
    used: int
    rows: int


def _piece_likelihood(model: Model, source: Any, rows: Rows, query: Query) -> _Piece:
    """The likelihood of some rows of a file, block by block."""
    counts: list[int] = []
    likelihood: Likelihood | None = None
    total, used = 0.0, 0
    for x, weights in stream(source, query, BLOCK_ROWS, rows, counts.append):
        if weights is not None:
            check_squares(weights)
        if GROUP in query.observables:
            part = grouped(model.likelihood_of, x[:, :-1], weights, x[:, -1])
        else:
            part = model.likelihood_of(x, weights)
        likelihood = part if likelihood is None else likelihood + part
        total += len(x) if weights is None else float(weights.sum())
        used += len(x)
    return _Piece(likelihood, total, used, sum(counts))


def _tree_sum(parts: list[Likelihood]) -> Likelihood:
    """The sum in pairs, pairs of pairs and so on, in which rounding hardly grows."""
    while len(parts) > 1:
        parts = [reduce(add, parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def read_templates_like(
    model: Model, sources: Any, *, weight: str | None = None, where: str | None = None
) -> Templates:
    """Templates read as the model's own were: for `leave_one_out`, `stability` and `review`.

    Parameters
    ----------
    model : Model
        Its query says which columns, weight and selection to use, its grid which parameters.
    sources, weight, where
        As for `read_samples`.

    Returns
    -------
    Templates
    """
    query = replace(model.query, weight=weight or model.query.weight).where(where)
    return read_templates(
        sources,
        query.observables,
        model.grid.bounds,
        weight=query.weight,
        selection=query.selection,
        parameters=model.grid.parameters,
    )
