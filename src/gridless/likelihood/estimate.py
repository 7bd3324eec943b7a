"""The estimate: the best theta with its interval, its budget, and whether to trust it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from html import escape
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gridless import strict_json
from gridless.results import printing
from gridless.results.by_name import ByName
from gridless.results.labels import label_html
from gridless.results.warning import EstimateWarning
from gridless.templates.arrays import Array
from gridless.templates.query import used_of

if TYPE_CHECKING:
    from gridless.likelihood.blinding import Blinded

STAT = "stat"
SIMULATION = "simulation"
MODEL = "model"
SIDES = ("low", "high")
COLUMNS = ("parameter", "value", "sources", "interval")  # of a table of estimates


@dataclass(frozen=True)
class ParameterEstimate:
    """The estimate of one parameter: `estimate["mtop"]`.

    Attributes
    ----------
    name : str
        The parameter.
    value : float
        The most likely value.
    stat_interval : tuple of float
        (low, high) of the 68 percent interval of the likelihood, constraints included, without the
        uncertainty from simulation.
    budget : mapping from str to float
        Where the uncertainty comes from: "stat", "simulation" (the statistics of the templates),
        "model" (what they leave open between them), each constraint.
    bounds : tuple of float
        (low, high) between which the parameter lies.
    at_bound : bool
        Whether the value lies on a bound. It then has no uncertainty from simulation.
    stat_cut : tuple of bool
        Whether a bound cuts the low and the high end of `stat_interval`.
    beyond : float
        The uncertainty that `stat_interval` does not have: that from simulation.
    label : str
        How figures and tables call the parameter, with its unit.
    """

    name: str
    value: float
    stat_interval: tuple[float, float]
    budget: Mapping[str, float]
    bounds: tuple[float, float]
    at_bound: bool = False
    stat_cut: tuple[bool, bool] = (False, False)
    beyond: float = 0.0
    label: str = ""

    @property
    def error(self) -> float:
        """The total uncertainty: the root of the sum of the squares in the budget."""
        return math.hypot(*self.budget.values())

    @property
    def stat(self) -> float:
        """The statistical uncertainty."""
        return self.budget[STAT]

    @property
    def simulation(self) -> float | None:
        """The uncertainty from the finite number of simulated events; None if unknown."""
        return self.budget.get(SIMULATION)

    @property
    def systematic(self) -> float:
        """Everything in the budget but "stat", "simulation" and "model", in quadrature."""
        method = (STAT, SIMULATION, MODEL)
        return math.hypot(*(e for n, e in self.budget.items() if n not in method))

    @property
    def sides(self) -> tuple[float, float]:
        """The total uncertainty to the low and to the high side, where bounds do not cut it."""
        low, high = self.stat_interval
        return math.hypot(low - self.value, self.beyond), math.hypot(high - self.value, self.beyond)

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high) of the 68 percent interval with every uncertainty, cut at the bounds.

        Each side is sqrt(s^2 + m^2), s that of `stat_interval` and m what is beyond the
        likelihood, such as the uncertainty from simulation.
        """
        low, high = self._ends
        return max(low, self.bounds[0]), min(high, self.bounds[1])

    @property
    def cut(self) -> tuple[bool, bool]:
        """Whether a bound cuts the low and the high end of the interval."""
        low, high = self._ends
        return self.stat_cut[0] or low < self.bounds[0], self.stat_cut[1] or high > self.bounds[1]

    @property
    def _ends(self) -> tuple[float, float]:
        """Ends of the interval before it is cut; a bound where the likelihood reaches it."""
        down, up = self.sides
        low = self.bounds[0] if self.stat_cut[0] else self.value - down
        high = self.bounds[1] if self.stat_cut[1] else self.value + up
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """The same for machines, in what JSON can hold."""
        low, high = self.interval
        stat_low, stat_high = self.stat_interval
        content = {
            "value": self.value,
            "low": low,
            "high": high,
            "error": self.error,
            "error_simulation": self.simulation,
            "stat": self.stat,
            "stat_low": stat_low,
            "stat_high": stat_high,
            "bounds": list(self.bounds),
            "at_bound": self.at_bound,
            "cut": list(self.cut),
        }
        return dict(strict_json.plain(content))

    def __str__(self) -> str:
        sources = _sources(self.budget, self._rounded()[3:])
        return f"{self._with_error()} ({sources}){self._marks()}"

    def total(self) -> str:
        """`mtop = 172.4 +- 0.3`: the value with its total uncertainty, and what bounds do to it."""
        return f"{self._with_error()}{self._marks()}"

    def _with_error(self) -> str:
        value, down, up, *_ = self._rounded()
        return f"{self.name} = {value} " + (f"+- {up}" if up == down else f"+{up} -{down}")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return printing.block(printing.table(COLUMNS, [self.html_row()]))

    def html_row(self) -> list[str]:
        """The cells of the parameter in a table: name, value, budget, interval."""
        value, down, up, *parts = self._rounded()
        spread = f"&plusmn; {up}" if up == down else f"<sup>+{up}</sup> <sub>-{down}</sub>"
        low, high = (f"{end:.6g}" for end in self.interval)
        return [
            label_html(self.label or self.name),
            f"{value} {spread}",
            escape(_sources(self.budget, parts)),
            f"[{low}, {high}]{escape(self._marks())}",
        ]

    def _rounded(self) -> list[str]:
        down, up = (abs(end - self.value) for end in self.interval)
        return printing.rounded(self.value, down, up, *self.budget.values())

    def _marks(self) -> str:
        """What the bounds do to the value and to the interval."""
        if self.at_bound:
            nearest = min(self.bounds, key=lambda bound: abs(bound - self.value))
            return f", at the bound {nearest:g}"
        marks = [
            f", {side} end cut by the bound {bound:g}"
            for side, bound, cut in zip(SIDES, self.bounds, self.cut, strict=True)
            if cut
        ]
        return "".join(marks)


@dataclass(frozen=True, eq=False)
class Estimate(ByName[ParameterEstimate]):
    """The most likely values of the parameters, with intervals, budget and warnings.

    `estimate["mtop"]` is the estimate of one parameter. Where there is only one, `value`, `error`,
    `interval`, `stat`, `simulation` and `bounds` are its numbers.

    Attributes
    ----------
    results : tuple of ParameterEstimate
        One for each parameter.
    covariances : mapping from str to array (parameters, parameters)
        The covariance of every source: "stat", "simulation", each constraint.
    events : int
        Number of observed events.
    p_value : float or None
        How well the events fit the simulation at the estimate; None where it is not known.
    p_values : mapping from str to float
        The same for every channel.
    outside : float or None
        Share of the events that lie outside of the simulation.
    warnings : tuple of EstimateWarning
        Reasons to doubt the estimate; docs/warnings.md explains each.
    offered : int or None
        Number of observed events before the selection; None where there is none.

    Notes
    -----
    An interval reaches to where the likelihood, all other parameters at their best, has risen by
    1/2 (Wilks). What is uncertain in the simulation is added in quadrature to each side.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> estimate = example.likelihood(example.quantiles(0.4)).maximum()
    >>> estimate
    theta = 0.400 +- 0.010 (stat)
      10,000 events
    >>> round(estimate["theta"].value, 4), round(estimate.error, 4)
    (0.4, 0.01)
    """

    results: tuple[ParameterEstimate, ...]
    covariances: Mapping[str, Array]
    events: int
    p_value: float | None = None
    p_values: Mapping[str, float] = field(default_factory=dict)
    outside: float | None = None
    warnings: tuple[EstimateWarning, ...] = ()
    offered: int | None = None
    kind: ClassVar[str] = "estimate"

    def __post_init__(self) -> None:
        frozen = {name: read_only(matrix) for name, matrix in self.covariances.items()}
        object.__setattr__(self, "covariances", MappingProxyType(frozen))

    def __reduce__(self) -> Any:
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        # A read-only view of a dict cannot be pickled.
        return type(self), tuple((given | {"covariances": dict(self.covariances)}).values())

    @cached_property
    def by_name(self) -> Mapping[str, ParameterEstimate]:
        """The estimate of each parameter."""
        return MappingProxyType({one.name: one for one in self.results})

    @property
    def budget(self) -> dict[str, dict[str, float]]:
        """Of each parameter the uncertainty from every source; squares sum to that of `error`."""
        return {one.name: dict(one.budget) for one in self.results}

    @property
    def values(self) -> Array:
        """The best value of each parameter."""
        return read_only([one.value for one in self.results])

    @property
    def errors(self) -> Array:
        """The total uncertainty of each parameter."""
        return read_only([one.error for one in self.results])

    @property
    def covariance(self) -> Array:
        """The covariance of the parameters from every source together."""
        return read_only(sum(self.covariances.values()))

    @property
    def correlation(self) -> Array:
        """`covariance` over the errors that it has on its diagonal."""
        return correlation(self.covariance)

    @property
    def value(self) -> float:
        """The best value of the only parameter."""
        return self.only("value").value

    @property
    def error(self) -> float:
        """The total uncertainty of the only parameter."""
        return self.only("error").error

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high) of the only parameter, with every uncertainty."""
        return self.only("interval").interval

    @property
    def stat(self) -> float:
        """The statistical uncertainty of the only parameter."""
        return self.only("stat").stat

    @property
    def simulation(self) -> float | None:
        """The uncertainty of the only parameter from the finite number of simulated events."""
        return self.only("simulation").simulation

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high) between which the only parameter lies."""
        return self.only("bounds").bounds

    @property
    def valid(self) -> bool:
        """Whether values and intervals lie inside the bounds."""
        return not any(one.at_bound or any(one.cut) for one in self.results)

    def blinded(self, key: str) -> "Blinded":
        """The estimate with its values shifted by an offset that the key decides and nobody sees.

        Parameters
        ----------
        key : str
            The same key gives the same offset in every use of a parameter with these bounds.

        Returns
        -------
        Blinded
        """
        from gridless.likelihood.blinding import Blinded

        return Blinded(self, key)

    def to_dict(self) -> dict[str, Any]:
        """The estimate for machines, in what JSON can hold: what `--json` prints.

        Returns
        -------
        dict
            `parameters` with one entry per name, `budget`, `correlation`, `events`, `valid`,
            `p_value`, `p_values`, `outside`, `warnings`. What is not a number is None.
        """
        content = {
            "parameters": {one.name: one.to_dict() for one in self.results},
            "budget": self.budget,
            "correlation": self.correlation,
            "events": self.events,
            "events_read": self.events if self.offered is None else self.offered,
            "valid": self.valid,
            "p_value": self.p_value,
            "p_values": self.p_values,
            "outside": self.outside,
            "warnings": [warning._asdict() for warning in self.warnings],
        }
        return dict(strict_json.plain(content))

    def details(self) -> list[str]:
        """Lines of text beside values, sources and `summary`: tables of a measurement."""
        return []

    def __str__(self) -> str:
        lines = [str(one) for one in self.results]
        return "\n".join([*lines, f"  {self.summary()}", *printing.warning_lines(self.warnings)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return printing.block(self.html())

    def html(self) -> str:
        """The estimate as a table with its warnings, to stand inside other HTML."""
        rows = printing.table(COLUMNS, [one.html_row() for one in self.results])
        return f"{rows}<p>{escape(self.summary())}</p>{printing.warning_list(self.warnings)}"

    def summary(self) -> str:
        """`5,000 events, p-value 0.42, correlation (a, b) -0.80`."""
        parts = [used_of(self.events, self.offered)]
        if self.p_value is not None:
            parts.append(f"p-value {printing.probability(self.p_value).removeprefix('= ')}")
        matrix = self.correlation
        for (i, first), (j, second) in combinations(enumerate(self.parameters), 2):
            if np.isfinite(matrix[i, j]):
                parts.append(f"correlation ({first}, {second}) {matrix[i, j]:.2f}")
        return ", ".join(parts)


def read_only(values: Any) -> Array:
    """A copy as an array that cannot be written to."""
    array = np.array(values, float)
    array.flags.writeable = False
    return array


def correlation(covariance: Array) -> Array:
    """C_ij / sqrt(C_ii C_jj); NaN for what does not vary, such as a parameter at a bound."""
    variances = np.where(np.diag(covariance) > 0, np.diag(covariance), np.nan)
    return read_only(covariance / np.sqrt(np.outer(variances, variances)))


def _sources(budget: Mapping[str, float], errors: list[str]) -> str:
    """`0.30 stat, 0.10 simulation`, or the name alone where there is one."""
    if len(budget) == 1:
        return next(iter(budget))
    return ", ".join(f"{error} {name}" for name, error in zip(budget, errors, strict=True))
