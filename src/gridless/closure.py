"""Closure: estimating samples whose theta is known, on and between the templates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.arrays import Array
from gridless.errors import InputError
from gridless.estimate import Estimate
from gridless.model import Model
from gridless.templates import Templates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Samples = Templates | Mapping[float, Any] | Iterable[tuple[float, Any]]


@dataclass(frozen=True)
class Closure:
    """True and estimated theta of each sample; prints as a table."""

    true: Array
    estimates: tuple[Estimate, ...]

    @property
    def value(self) -> Array:
        """The estimated theta of each sample."""
        return np.array([estimate.value for estimate in self.estimates])

    @property
    def interval(self) -> Array:
        """(low, high) of each sample."""
        return np.array([estimate.interval for estimate in self.estimates])

    @property
    def pull(self) -> Array:
        """(estimated - true) over the error on the side of the true value.

        Where a bound cuts the interval short on that side, the error of the other side is taken.
        """
        sides = np.abs(self.interval.T - self.value)
        cut = np.array([estimate.cut for estimate in self.estimates]).T
        sides = np.where(cut & ~cut[::-1], sides[::-1], sides)
        error = np.where(self.value > self.true, *sides)
        return np.asarray((self.value - self.true) / error)

    @property
    def chi2(self) -> float:
        """Sum of the squared pulls."""
        return float((self.pull**2).sum())

    @property
    def dof(self) -> int:
        """Number of samples: nothing is fitted."""
        return len(self.true)

    @property
    def line(self) -> tuple[float, float]:
        """Slope and intercept of estimated against true theta, weighted by the errors."""
        errors = np.array([estimate.error for estimate in self.estimates])
        slope, intercept = np.polyfit(self.true, self.value, 1, w=1 / errors)
        return float(slope), float(intercept)

    def figure(self) -> "Figure":
        """Estimated against true theta with the pulls below, as a matplotlib figure."""
        from gridless.figures import draw_closure

        return draw_closure(self)

    def __str__(self) -> str:
        name = self.estimates[0].parameter
        lines = [f"{'true ' + name:>12} {'estimated':>10} {'interval':>20} {'pull':>6}"]
        for true, estimate, pull in zip(self.true, self.estimates, self.pull, strict=True):
            low, high = estimate.interval
            mark = "" if estimate.valid else "  at a bound"
            lines.append(
                f"{true:12.4f} {estimate.value:10.4f} {low:9.4f} {high:10.4f} {pull:6.2f}{mark}"
            )
        slope, intercept = self.line
        lines.append(
            f"slope {slope:.4f}, intercept {intercept:.4f}, "
            f"chi2/dof = {self.chi2:.1f}/{self.dof} = {self.chi2 / self.dof:.2f}"
        )
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{self}</pre>"


def closure(model: Model, samples: Samples) -> Closure:
    """Estimate theta of each sample and compare it with the truth.

    `samples` are Templates, a mapping from the true theta to the events, or pairs of the two.
    """
    pairs = [(float(true), x) for true, x in _pairs(samples)]
    if len(pairs) < 2:
        raise InputError(f"samples: {len(pairs)} sample(s); give at least two values of theta")
    estimates = tuple(model.likelihood(x).maximum() for _, x in pairs)
    return Closure(np.array([true for true, _ in pairs]), estimates)


def _pairs(samples: Samples) -> Iterable[tuple[float, Any]]:
    if isinstance(samples, Mapping):
        return samples.items()
    if isinstance(samples, Templates):
        values = samples.grid.values[:, 0]
        return [(v, samples.x[samples.template == k]) for k, v in enumerate(values)]
    return samples
