"""Blinding: a measurement whose value is shifted by an offset that nobody sees."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from gridless.errors import InputError, check_kind
from gridless.likelihood.estimate import Estimate, ParameterEstimate
from gridless.results import printing
from gridless.results.printing import Lines

BLIND_RANGE = 0.25  # of the range between the bounds: the largest offset
LEAST_KEY = 4  # letters of a key: fewer are guessed by mistake
ON_BOUND = 1e-6  # of the range: so near to a bound an end of an interval is one
# Warnings whose names alone tell where the value is.
TELLING = ("at_bound", "cut_by_bound", "near_bound", "extrapolated")
AT_BOUND = "hidden: a bound is in its interval and would tell the offset; widen the bounds"


def check_key(key: str) -> None:
    """Refuse a key that is guessed by mistake."""
    check_kind(key, str, "blind")
    if len(key) < LEAST_KEY:
        raise InputError(f"blind: a key of {len(key)} letters; give {LEAST_KEY} or more")


@dataclass(frozen=True)
class Blinded(Lines):
    """An estimate with hidden offsets; `estimate.blinded(key)` makes it.

    Values and intervals are shifted by the same offset. Errors, budget and p-value are as they
    are. Bounds are not shown, nor a value with one in its interval. Warnings have no text, and
    those on bounds are left out, since they could tell the value.

    Attributes
    ----------
    estimate : Estimate
        As it is: look at it after the unblinding.
    key : str
        What the offsets are made of: the same key gives the same offsets.

    Examples
    --------
    >>> from gridless.examples import OneObservable
    >>> estimate = OneObservable().likelihood(OneObservable().quantiles(0.4)).maximum()
    >>> blinded = estimate.blinded("our secret")
    >>> again = estimate.blinded("our secret")
    >>> blinded.value("theta") == again.value("theta") != estimate.value
    True
    """

    estimate: Estimate
    key: str

    def __post_init__(self) -> None:
        check_key(self.key)

    def offset(self, parameter: str) -> float:
        """The hidden offset of a parameter."""
        low, high = self.estimate[parameter].bounds
        digest = sha256(f"gridless {self.key} {parameter}".encode()).digest()
        share = int.from_bytes(digest[:8], "big") / 2**64
        return (2 * share - 1) * BLIND_RANGE * (high - low)

    def value(self, parameter: str) -> float:
        """The shifted value of a parameter; nan where a bound is in its interval."""
        one = self.estimate[parameter]
        return float("nan") if _told(one) else one.value + self.offset(parameter)

    def interval(self, parameter: str, ends: Sequence[float]) -> tuple[float, float]:
        """The ends of an interval, shifted; nan for those at a bound and of a hidden value."""
        one, shift = self.estimate[parameter], self.offset(parameter)
        within = ON_BOUND * (one.bounds[1] - one.bounds[0])
        told = [_told(one) or min(abs(end - b) for b in one.bounds) < within for end in ends]
        low, high = np.where(told, np.nan, np.asarray(ends) + shift).tolist()
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold: as of the estimate, without what would tell the value."""
        content = self.estimate.to_dict()
        rows = content["parameters"].values()
        for result, row in zip(self.estimate.results, rows, strict=True):
            shift = None if _told(result) else self.offset(result.name)
            for key in ("value", "low", "high", "stat_low", "stat_high"):
                row[key] = None if shift is None else row[key] + shift
            for key in ("bounds", "at_bound", "cut"):
                del row[key]
        del content["valid"]
        names = [{"name": name} for name in self._warnings()]
        return content | {"blind": True, "warnings": names}

    def __str__(self) -> str:
        details = self.estimate.details()
        lines = []
        for one in self.estimate.results:
            if _told(one):
                lines.append(f"{one.name} = {AT_BOUND}")
                continue
            down, up = one.sides
            value, low, high, *parts = printing.rounded(
                self.value(one.name), down, up, *one.budget.values()
            )
            spread = f"+- {high}" if low == high else f"+{high} -{low}"
            shares = zip(parts, one.budget, strict=True)
            sources = ", ".join(f"{error} {source}" for error, source in shares)
            lines.append(f"{one.name} = {value} {spread}")
            lines[-1] += ", blind" if details else f" ({sources}), blind"
        lines += [f"  {self.estimate.summary()}", *details]
        return "\n".join([*lines, *(f"  warning: {name}" for name in self._warnings())])

    __repr__ = __str__

    def _warnings(self) -> list[str]:
        return sorted({w.name for w in self.estimate.warnings if w.name not in TELLING})


def _told(one: ParameterEstimate) -> bool:
    """Whether a bound, which is no secret, is in the interval."""
    return one.at_bound or any(one.cut)
