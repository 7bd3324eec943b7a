"""A smooth function on the unit box: a sum of Chebyshev series, each over some of the parameters.

One series holds all parameters of one model. A sum over models with different parameters stays a
sum of small arrays, so that its size grows with the number of models, not of parameters.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gridless.curves import chebyshev
from gridless.templates.arrays import Array

Series = tuple[tuple[int, ...], Array]  # the axes that the function depends on, coefficients


@dataclass(frozen=True, eq=False)
class Curve:
    """f(t) = sum over series s of sum_kl... c_s[k, l, ...] T_k(2 t_a - 1) T_l(2 t_b - 1) ...

    `series` are pairs of axes (a, b, ...), ascending, and coefficients with an axis for each.
    """

    parameters: int
    series: tuple[Series, ...]

    @classmethod
    def of(cls, c: Array) -> "Curve":
        """That of one series, whose coefficients c have an axis for each parameter."""
        return cls(c.ndim, ((tuple(range(c.ndim)), c),))

    def __call__(self, t: Array) -> Array:
        """f at each of the points t (..., parameters)."""
        total = np.zeros(np.shape(t)[:-1])
        for axes, c in self.series:
            total = total + chebyshev.evaluate(c, np.asarray(t)[..., list(axes)])
        return total

    def value(self, t: Array) -> float:
        """f at one point."""
        return float(self(t))

    def gradient(self, t: Array) -> Array:
        """First derivatives at one point."""
        return np.array([slope.value(t) for slope in self.slopes])

    def hessian(self, t: Array) -> Array:
        """Matrix of second derivatives at one point."""
        return np.array([slope.gradient(t) for slope in self.slopes])

    @cached_property
    def slopes(self) -> tuple["Curve", ...]:
        """The derivative with respect to each parameter."""
        return tuple(self._derivative(axis) for axis in range(self.parameters))

    def _derivative(self, axis: int) -> "Curve":
        parts = [
            (axes, chebyshev.derivative(c, axes.index(axis)))
            for axes, c in self.series
            if axis in axes
        ]
        return Curve(self.parameters, tuple(parts))

    def restrict(self, axis: int, t: float) -> "Curve":
        """The function of the other parameters with that of `axis` held at t."""
        parts = []
        for axes, c in self.series:
            rest = tuple(a - (a > axis) for a in axes if a != axis)
            held = chebyshev.restrict(c, axes.index(axis), t) if axis in axes else c
            parts.append((rest, held))
        return Curve(self.parameters - 1, tuple(parts))

    @property
    def coefficients(self) -> Array | None:
        """The coefficients over all parameters; None if the function is a sum of several series."""
        return self.series[0][1] if len(self.series) == 1 else None


def add_series(parameters: int, series: Iterable[Series]) -> Curve:
    """The sum of series; one over some axes of another is added to that one's coefficients.

    Examples
    --------
    >>> wide, narrow = np.ones((3, 3)), np.ones(2)
    >>> add_series(3, [((0, 1), wide), ((1,), narrow), ((2,), narrow)]).series[0][1][0]
    array([2., 2., 1.])
    """
    merged: list[Series] = []
    # Stable: series over equally many axes are added in the order given.
    for axes, c in sorted(series, key=lambda one: -len(one[0])):
        for i, (others, total) in enumerate(merged):
            if set(axes) <= set(others):
                merged[i] = (others, chebyshev.add(total, _widened(axes, c, others)))
                break
        else:
            merged.append((axes, c))
    return Curve(parameters, tuple(merged))


def ordered(axes: Iterable[int], c: Array) -> Series:
    """A series with its axes in ascending order."""
    places = list(axes)
    order = np.argsort(places)
    return tuple(places[i] for i in order), np.transpose(c, order)


def _widened(axes: tuple[int, ...], c: Array, others: tuple[int, ...]) -> Array:
    """The coefficients over more axes, on which the function does not depend."""
    sizes = iter(c.shape)
    return c.reshape([next(sizes) if axis in axes else 1 for axis in others])
