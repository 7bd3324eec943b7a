"""The estimate: the best theta with its interval, and whether to trust it."""

import math
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from gridless.templates.arrays import Array


class Caveat(NamedTuple):
    """A reason not to trust an estimate: its name, as in the documentation, and what it means."""

    name: str
    text: str


@dataclass(frozen=True)
class Estimate:
    """The most likely values of the parameters with their 68 percent intervals.

    `values`, `intervals`, `cuts`, `limits` (parameters, 2) and `covariance` are arrays for any
    number of parameters. `value`, `interval`, `error`, `error_simulation`, `cut` and `bounds` are
    plain numbers for one parameter, and the same arrays for several. `covariance` is statistical,
    `simulation` the one from the finite number of simulated events; `cuts` say for either end of
    an interval whether a bound cut it short. `p_value` says how well the events fit the simulation
    at the estimate, `outside` what share of them lies outside of it. `warnings` are named;
    docs/warnings.md explains
    each.
    """

    parameters: tuple[str, ...]
    values: Array
    intervals: Array
    covariance: Array
    cuts: Array
    limits: Array
    events: int
    at_bound: bool = False
    simulation: Array | None = None
    p_value: float | None = None
    outside: float | None = None
    warnings: tuple[Caveat, ...] = ()

    @property
    def value(self) -> Any:
        """The best theta."""
        return _plain(self.values)

    @property
    def interval(self) -> Any:
        """(low, high) where the likelihood has risen by 1/2."""
        return self.intervals if len(self.values) > 1 else tuple(self.intervals[0].tolist())

    @property
    def cut(self) -> Any:
        """Whether a bound cut the low and the high end of the interval."""
        return self.cuts if len(self.values) > 1 else tuple(self.cuts[0].tolist())

    @property
    def bounds(self) -> Any:
        """(low, high) between which the parameter lies."""
        return self.limits if len(self.values) > 1 else tuple(self.limits[0].tolist())

    @property
    def errors(self) -> Array:
        """Half the length of each interval."""
        return np.asarray(0.5 * (self.intervals[:, 1] - self.intervals[:, 0]))

    @property
    def error(self) -> Any:
        """Half the length of the interval."""
        return _plain(self.errors)

    @property
    def errors_simulation(self) -> Array | None:
        """The uncertainty of each value from the finite number of simulated events."""
        return None if self.simulation is None else np.sqrt(np.diag(self.simulation))

    @property
    def error_simulation(self) -> Any:
        """The uncertainty from the finite number of simulated events."""
        errors = self.errors_simulation
        return None if errors is None else _plain(errors)

    @property
    def correlation(self) -> Array:
        """The statistical covariance over the errors."""
        scale = np.sqrt(np.diag(self.covariance))
        return np.asarray(self.covariance / np.outer(scale, scale))

    @property
    def parameter(self) -> str:
        """The name of the (first) parameter."""
        return self.parameters[0]

    @property
    def valid(self) -> bool:
        """Whether values and intervals lie inside the bounds."""
        return not (self.at_bound or self.cuts.any())

    def __str__(self) -> str:
        lines = [self._line(p) for p in range(len(self.values))]
        width = max(len(line) for line in lines)
        lines[0] = f"{lines[0]:<{width}}  ({self.events:,} events)"
        if len(self.values) > 1:
            pairs = [
                f"({a}, {b}) {self.correlation[i, j]:.2f}"
                for i, a in enumerate(self.parameters)
                for j, b in enumerate(self.parameters)
                if i < j
            ]
            lines.append(f"  correlation {', '.join(pairs)}")
        return "\n".join([*lines, *(f"  warning: {w.name}: {w.text}" for w in self.warnings)])

    __repr__ = __str__

    def _line(self, p: int) -> str:
        """`mtop = 172.40 +0.30 -0.31 (stat) +-0.10 (simulation)`."""
        value, (low, high) = self.values[p], self.intervals[p]
        up, down = high - value, value - low
        smallest = min((e for e in (up, down) if e > 0), default=0.0)
        digits = max(0, 1 - math.floor(math.log10(smallest) + 1e-6)) if smallest > 0 else 4
        text = f"{self.parameters[p]} = {value:.{digits}f} +{up:.{digits}f} -{down:.{digits}f}"
        if self.errors_simulation is None:
            return text
        return f"{text} (stat) +-{self.errors_simulation[p]:.{digits}f} (simulation)"

    def _repr_html_(self) -> str:
        rows = ""
        for p, name in enumerate(self.parameters):
            value, (low, high) = self.values[p], self.intervals[p]
            simulation = self.errors_simulation
            rows += (
                f"<tr><td>{escape(name)}</td>"
                f"<td>{value:.6g} <sup>+{high - value:.2g}</sup> <sub>-{value - low:.2g}</sub></td>"
                f"<td>{'' if simulation is None else f'{simulation[p]:.2g}'}</td>"
                f"<td>[{low:.6g}, {high:.6g}]</td><td>{self.events:,}</td></tr>"
            )
        notes = "".join(f"<li>{escape(w.name)}: {escape(w.text)}</li>" for w in self.warnings)
        return (
            "<table><tr><th>parameter</th><th>value</th><th>simulation</th><th>interval</th>"
            f"<th>events</th></tr>{rows}</table>" + (f"<ul>{notes}</ul>" if notes else "")
        )


def _plain(values: Array) -> Any:
    return float(values[0]) if len(values) == 1 else values
