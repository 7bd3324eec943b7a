"""What single events say of the templates: copies of each other, and marks of missing values."""

from typing import TYPE_CHECKING

import numpy as np

from gridless.distributed import total
from gridless.templates.arrays import Array
from gridless.templates.copies import MAX_COPIES, Keys, row_keys
from gridless.templates.finding import Finding

if TYPE_CHECKING:
    from gridless.templates.templates import Templates

# Values that programs write where there is nothing to write; one event with such a value is enough.
MARKS = tuple(sign * float("9" * digits) for digits in range(2, 7) for sign in (-1, 1))
LEAST_REPEATED = 3  # events with the same value, if it is none of those
ISOLATED = 3.0  # times the width of all other events: the gap to the nearest of them
CENTRAL = (0.001, 0.999)  # quantiles between which that width lies
LEAST_VALUES = 10  # different values of the other events: with fewer they are categories
MAX_MARKS = 3  # marks at each end of an observable


def find_copies(templates: "Templates") -> Finding:
    """Whether events are exact copies of others, beyond what observables of few values explain.

    Copies in another template count too, unless weights make the same events several templates.
    """
    keys = row_keys(templates.x)
    if templates.weights is not None:
        keys = keys ^ row_keys(templates.template[:, None].astype(float))
    found = Keys.of(keys)
    share = found.share
    by_chance = chance_of_copies(templates.x)
    text = f"{share:.1%} of the events are exact copies of others"
    met = share <= MAX_COPIES or share < 2 * by_chance
    if not met:
        text += ": the same events twice make errors too small; remove the copies"
    return Finding("copies", bool(met), float(share), text)


def chance_of_copies(x: Array) -> float:
    """The share of the events that are copies by chance: where all observables take few values."""
    rng = np.random.default_rng(0)
    # Columns in an order of their own have their values, but not the rows.
    keys = row_keys(np.stack([rng.permutation(column) for column in x.T], axis=1))
    return Keys.of(keys).share if x.shape[1] > 1 else _repeated(x[:, 0])


def _repeated(column: Array) -> float:
    """For a single observable: the share of the events on values that most events share, or 1 where
    values lie on a grid."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) < LEAST_VALUES:
        return 1.0
    steps = np.diff(values)
    # Of values drawn without a grid the least step is some 1 / n of the median one.
    on_grid = steps.min() > 0.01 * np.median(steps)
    popular = counts > max(20, 0.001 * len(column))
    return 1.0 if on_grid else float(counts[popular].sum() / len(column))


def find_sentinels(templates: "Templates") -> Finding:
    """Whether an observable has marks of missing values: the same value again and again, or one of
    those that programs use, far from all others."""
    found = []
    count = 0
    for name, column in zip(templates.observables, templates.x.T, strict=True):
        for value, events in _marks(column):
            found.append(f"{name} = {value:g} in {events:,}")
            count += events
    marked, events = total(np.array([count, len(templates)], float))
    share = float(marked / events)
    if not share:
        return Finding("sentinels", True, share, "no value stands for missing ones")
    text = (
        f"far from all other events: {', '.join(found)} event(s): such marks of missing values are "
        "taken for numbers; cut them, or give them a value near the others"
    )
    return Finding("sentinels", False, share, text)


def _marks(column: Array) -> list[tuple[float, int]]:
    """Values at the ends of a column, and events with them, that look like marks."""
    found = []
    for sign in (-1, 1):
        rest = sign * column
        for _ in range(MAX_MARKS):
            value = rest.max()
            here = rest == value
            others = rest[~here]
            events = int(here.sum())
            if len(others) < len(rest) / 2:
                break
            marked = sign * value in MARKS or events >= LEAST_REPEATED
            if not (marked and value - others.max() > ISOLATED * _width(others)):
                break
            found.append((float(sign * value), events))
            rest = others
    return found


def _width(values: Array) -> float:
    """The width of nearly all values; infinite where they are categories."""
    some = values[:: max(1, len(values) // 100_000)]
    if len(np.unique(some[:1000])) < LEAST_VALUES:
        return np.inf
    low, high = np.quantile(some, CENTRAL)
    return float(high - low)
