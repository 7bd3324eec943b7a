"""Events of data frames, read as those of files are."""

from collections.abc import Callable
from typing import Any

from gridless.errors import InputError
from gridless.files.expressions import names as names_in
from gridless.files.read import ENTRY, read
from gridless.templates.arrays import Array, as_weights
from gridless.templates.query import Query


def frame_events(
    query: Query, frame: Any, weights: Any, not_selected: Callable[[str], None]
) -> tuple[Array, Array | None]:
    """The selected events of a data frame; one that has the observables as columns is taken at
    its word."""
    there = {str(name): name for name in frame.columns}
    ready = {name: name for name in query.names if name in there}
    wanted, selection = query.observables | ready, query.selection
    used = set().union(*(names_in(text, there) for text in wanted.values()))
    if used - set(there):
        raise InputError(
            f"x: no column {', '.join(sorted(used - set(there)))}; the model needs "
            f"{', '.join(query.names)}: rename the columns, or give an array in that order"
        )
    if selection is not None:
        absent = sorted(names_in(selection, there) - set(there) - set(wanted) - {ENTRY})
        if absent:
            not_selected(f"there is no column {', '.join(absent)}")
            selection = None
        else:
            used |= names_in(selection, there)
    columns = {name: frame[there[name]] for name in used if name in there}
    weight = None
    if weights is not None:
        weight = "weights given"
        columns[weight] = as_weights(weights, len(frame))
    sample = read(columns, wanted, weight, selection)
    return sample.x, sample.weights
