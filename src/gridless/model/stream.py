"""The likelihood of files of any size: piece by piece, in constant memory, here or on a cluster."""

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from gridless.errors import InputError
from gridless.files.read import pieces, stream
from gridless.files.table import Rows
from gridless.likelihood.likelihood import Likelihood
from gridless.model.file import received, sent
from gridless.model.model import Model
from gridless.parallel import run
from gridless.templates.query import Query

# Rows read at once, and those of one task: a task is worth its overhead, and a lost one no loss.
_ROWS, _TASK = 250_000, 2_000_000


def read_likelihood(
    model: Model,
    sources: Any,
    weight: str | None = None,
    where: str | None = None,
    executor: Any = None,
) -> Likelihood:
    """-sum_i w_i log [p(theta | x_i) / q(theta)] of the events in files, which are never in memory
    at once.

    Parameters
    ----------
    sources
        A path such as `data.root:events`, or several.
    weight
        Expression for the weight of an event.
    where
        Expression that is true for the events to use, of those that the model's own selection
        keeps.
    executor
        Where to work: a `concurrent.futures.Executor` or a dask client; this process without one.
        Sums are taken in the same order everywhere, so that the numbers are the same.
    """
    files = sources if isinstance(sources, list | tuple) else [sources]
    query = replace(model.query, weight=weight).where(where)
    if not files:
        raise InputError("sources: none; give at least one file of observed events")
    tasks = [(source, rows) for source in files for rows in pieces(source, query, _TASK)]
    given = sent(model, executor)
    results = run(
        _piece_likelihood, [(given, *task, query) for task in tasks], executor, "likelihood"
    )
    found = [part for part in results if part is not None]
    if not found:
        names = ", ".join(str(source) for source in files)
        raise InputError(f"{names}: no event passes the selection {query.selection!r}; widen it")
    return _tree_sum(found)


def _piece_likelihood(
    model: Model | bytes, source: Any, rows: Rows, query: Query
) -> Likelihood | None:
    """The likelihood of some rows of a file; None if none of them passes the selection."""
    model = received(model)
    total: Likelihood | None = None
    for x, weights in stream(source, query, _ROWS, rows):
        part = model.likelihood_of(x, weights)
        total = part if total is None else total + part
    return total


def _tree_sum(parts: list[Likelihood]) -> Likelihood:
    """The sum in pairs, pairs of pairs and so on, in which rounding hardly grows."""
    while len(parts) > 1:
        parts = [reduce(add, parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]
