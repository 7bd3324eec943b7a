"""Exact copies among events, counted in constant memory and in any number of parts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridless.templates.arrays import Array

MAX_COPIES = 0.01  # share of the events that may be copies of others without a word
KEPT = 4096  # different keys that are kept, which tell a share of 1 percent by 40 events
# Odd numbers with well mixed bits (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
STEP = 0x9E3779B97F4A7C15
FIRST = np.uint64(0xBF58476D1CE4E5B9)
HALF = np.uint64(32)  # bits
MANY = 2**16  # keys, beyond which it pays to look for the smallest before sorting


def row_keys(x: Array) -> NDArray[np.uint64]:
    """A well mixed number for each row: the same for equal rows, and hardly for others."""
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
    """The smallest keys of all rows, each once, and how often each was there. Since keys are well
    mixed, these are a random choice of the different rows. Parts add up.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(1).normal(size=(1000, 2))
    >>> both = Keys.of(row_keys(x)) + Keys.of(row_keys(x[:250]))
    >>> round(both.share, 12)
    0.2
    """

    smallest: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.uint64]) -> "Keys":
        """Those of some rows."""
        if len(keys) > MANY:
            # Of well mixed keys few are needed to find the smallest: sorting all takes long.
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
