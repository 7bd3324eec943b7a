"""Blinding: a measurement whose value is shifted by an offset that nobody sees."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from gridless.errors import InputError, check_kind
from gridless.likelihood.estimate import Estimate
from gridless.results import printing
from gridless.results.printing import Lines

BLIND_RANGE = 0.25  # of the range between the bounds: the largest offset
LEAST_KEY = 4  # letters of a key: fewer are guessed by mistake


def check_key(key: str) -> None:
    """Refuse a key that is guessed by mistake."""
    check_kind(key, str, "blind")
    if len(key) < LEAST_KEY:
        raise InputError(f"blind: a key of {len(key)} letters; give {LEAST_KEY} or more")


@dataclass(frozen=True)
class Blinded(Lines):
    """An estimate with hidden offsets; `estimate.blinded(key)` makes it.

    Values and intervals are shifted by the same offset. Errors, budget and p-value are as they
    are. Bounds are not shown and warnings have no text, since both could tell the value.

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
        """The shifted value of a parameter."""
        return self.estimate[parameter].value + self.offset(parameter)

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold: as of the estimate, without what would tell the value."""
        content = self.estimate.to_dict()
        for name, one in content["parameters"].items():
            shift = self.offset(name)
            for key in ("value", "low", "high", "stat_low", "stat_high"):
                one[key] += shift
            for key in ("bounds", "at_bound", "cut"):
                del one[key]
        del content["valid"]
        names = sorted({warning.name for warning in self.estimate.warnings})
        return content | {"blind": True, "warnings": [{"name": name} for name in names]}

    def __str__(self) -> str:
        details = self.estimate.details()
        lines = []
        for one in self.estimate.results:
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
        names = sorted({warning.name for warning in self.estimate.warnings})
        return "\n".join([*lines, *(f"  warning: {name}" for name in names)])

    __repr__ = __str__
