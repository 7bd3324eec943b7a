"""Faults of single events: exact copies of others, and marks of missing values.

Copies are counted in constant memory and in any number of parts.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridless.distributed import total
from gridless.errors import counted
from gridless.templates.arrays import Array
from gridless.templates.finding import Finding

if TYPE_CHECKING:
    from gridless.templates.templates import Templates

MAX_COPIES = 0.01  # share of the events that may be copies of others without a word
KEPT = 4096  # distinct keys that are kept: a share of 1 percent is then seen as 40 copies
# Odd numbers with well mixed bits (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
STEP = 0x9E3779B97F4A7C15
FIRST = np.uint64(0xBF58476D1CE4E5B9)
HALF = np.uint64(32)  # bits
MANY = 2**16  # keys, beyond which it pays to look for the smallest before sorting
# Values that programs write where there is nothing to write; one event with such a value is enough.
MARKS = tuple(sign * float("9" * digits) for digits in range(2, 7) for sign in (-1, 1))
LEAST_REPEATED = 3  # events with the same value, if it is none of those
ISOLATED = 3.0  # times the width of all other events: the gap to the nearest of them
CENTRAL = (0.001, 0.999)  # quantiles between which that width lies
LEAST_VALUES = 10  # different values of the other events: with fewer they are categories
MAX_MARKS = 3  # marks at each end of an observable


def _row_keys(x: Array) -> NDArray[np.uint64]:
    """A hash of each row: equal rows have equal hashes, different rows almost never."""
    keys = np.zeros(len(x), np.uint64)
    for number, column in enumerate(x.T, start=1):
        # 0.0 and -0.0 are equal but have different bits.
        keys += (column + 0.0).view(np.uint64) * np.uint64(number * STEP % 2**64 | 1)
        keys ^= keys >> HALF
    keys *= FIRST
    keys ^= keys >> HALF
    keys *= FIRST
    return keys


@dataclass(frozen=True, eq=False)
class Keys:
    """The smallest keys among all rows, and how often each occurs.

    Keys are hashes: the smallest are a random sample of the distinct rows. `a + b` are those of
    two parts of a table together.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(1).normal(size=(1000, 2))
    >>> both = Keys.of(x) + Keys.of(x[:250])
    >>> round(both.share, 12)
    0.2
    """

    smallest: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, x: Array, template: NDArray[np.int64] | None = None) -> "Keys":
        """Those of the rows of x (events, observables). With the template of each event, rows of
        different templates are different."""
        keys = _row_keys(x)
        if template is not None:
            keys ^= _row_keys(template[:, None].astype(float))
        if len(keys) > MANY:
            # Hashes are uniform: those below a limit contain the smallest. Sorting all takes long.
            limit = np.uint64(min(2**64 - 1, 2**64 // len(keys) * 3 * KEPT))
            few = keys[keys < limit]
            if len(np.unique(few)) >= KEPT:
                keys = few
        found, counts = np.unique(keys, return_counts=True)
        return cls(found[:KEPT], counts[:KEPT])

    def __add__(self, other: "Keys") -> "Keys":
        every = np.concatenate([self.smallest, other.smallest])
        keys, place = np.unique(every, return_inverse=True)
        counts = np.bincount(place, np.concatenate([self.counts, other.counts])).astype(np.int64)
        return Keys(keys[:KEPT], counts[:KEPT])

    @property
    def share(self) -> float:
        """The share of the rows that are copies of others."""
        return float(1 - len(self.counts) / self.counts.sum())

    def common(self, other: "Keys") -> float:
        """The share of the distinct rows of the smaller table that the other has too."""
        known = [keys.smallest.max() for keys in (self, other) if len(keys.smallest) == KEPT]
        limit = min(known, default=np.uint64(2**64 - 1))
        few, more = sorted((k.smallest[k.smallest <= limit] for k in (self, other)), key=len)
        return float(np.isin(few, more).mean()) if len(few) else 0.0


def find_copies(templates: "Templates") -> Finding:
    """Whether events are exact copies of others, beyond what observables of few values explain.

    Weights may make the same events several templates: what is common to these fluctuates together,
    which the uncertainty from simulation does not know.
    """
    share = Keys.of(templates.x).share
    alone = share if templates.weights is None else Keys.of(templates.x, templates.template).share
    by_chance = chance_of_copies(templates.x)
    text = f"{alone:.1%} of the events are exact copies of others"
    met = share <= MAX_COPIES or share < 2 * by_chance
    if alone > MAX_COPIES and not met:
        text += ": the same events twice make errors too small; remove the copies"
    elif not met:
        text = (
            f"{share:.1%} of the events are in several templates, with other weights: templates "
            "then fluctuate together, and the uncertainty from simulation and p-values are too "
            "small; simulate each by itself, and give a common background as gl.Background"
        )
    return Finding("copies", bool(met), float(alone), text)


def chance_of_copies(x: Array) -> float:
    """The share of the events that are copies by chance: where all observables take few values."""
    if x.shape[1] == 1:
        return _repeated(x[:, 0])
    rng = np.random.default_rng(0)
    # Shuffled columns keep their values, but make new rows.
    return Keys.of(np.stack([rng.permutation(column) for column in x.T], axis=1)).share


def _repeated(column: Array) -> float:
    """For a single observable: the share of events whose value many others have too; 1 where values
    lie on a grid."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) < LEAST_VALUES:
        return 1.0
    steps = np.diff(values)
    # Without a grid the smallest step between n values is about 1 / n of the median step.
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
            found.append(f"{name} = {value:g} in {counted(events, 'event')}")
            count += events
    marked, events = total(np.array([count, len(templates)], float))
    share = float(marked / events)
    if not share:
        return Finding("sentinels", True, share, "no value stands for missing ones")
    text = (
        f"far from all other events: {', '.join(found)}: such marks of missing values are "
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
