"""The estimate: the best theta with its interval, and whether to trust it."""

import math
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Estimate:
    """The most likely value of the parameter and its 68 percent interval.

    `cut` says for either end of the interval whether a bound cut it short; `at_bound` whether the
    best value itself lies on a bound. Either makes the estimate not `valid`.
    """

    value: float
    interval: tuple[float, float]
    at_bound: bool
    cut: tuple[bool, bool]
    events: int
    parameter: str
    bounds: tuple[float, float]

    @property
    def error(self) -> float:
        """Half the length of the interval."""
        return 0.5 * (self.interval[1] - self.interval[0])

    @property
    def valid(self) -> bool:
        """Whether value and interval lie inside the bounds."""
        return not (self.at_bound or any(self.cut))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is wrong with the estimate, in words."""
        notes = []
        low, high = self.bounds
        if self.at_bound:
            bound = low if self.value - low < high - self.value else high
            notes.append(f"the estimate is at the bound {bound:g}; the true value may lie beyond")
        for cut, bound, end in zip(self.cut, self.bounds, ("low", "high"), strict=True):
            if cut:
                notes.append(f"the {end} end of the interval is cut by the bound {bound:g}")
        return tuple(notes)

    def __str__(self) -> str:
        up, down = self.interval[1] - self.value, self.value - self.interval[0]
        smallest = min((e for e in (up, down) if e > 0), default=0.0)
        digits = max(0, 1 - math.floor(math.log10(smallest))) if smallest > 0 else 4
        text = (
            f"{self.parameter} = {self.value:.{digits}f} +{up:.{digits}f} -{down:.{digits}f}"
            f"  ({self.events:,} events)"
        )
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        up, down = self.interval[1] - self.value, self.value - self.interval[0]
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return (
            f"<table><tr><th>parameter</th><th>value</th><th>interval</th><th>events</th></tr>"
            f"<tr><td>{escape(self.parameter)}</td>"
            f"<td>{self.value:.6g} <sup>+{up:.2g}</sup> <sub>-{down:.2g}</sub></td>"
            f"<td>[{self.interval[0]:.6g}, {self.interval[1]:.6g}]</td>"
            f"<td>{self.events:,}</td></tr></table>" + (f"<ul>{notes}</ul>" if notes else "")
        )
