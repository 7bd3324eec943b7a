"""Likelihoods as cost functions of iminuit: everything that we use of its classes is here."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from iminuit.cost import Cost

from gridless.templates.arrays import Array

ERRORDEF = 0.5  # minus log likelihood rises by 1/2 in one standard deviation


class MinuitCost(Cost):  # type: ignore[misc]  # iminuit's Cost is untyped
    """A function of named parameters with limits and a gradient, which iminuit minimises.

    `Minuit(cost, a=..., b=...)` takes it. It adds to iminuit's own costs to give their `CostSum`.
    """

    def __init__(self, limits: Mapping[str, tuple[float, float]]) -> None:
        super().__init__(dict(limits), 0)

    @abstractmethod
    def _value(self, args: Sequence[float]) -> float: ...

    @abstractmethod
    def _grad(self, args: Sequence[float]) -> Array: ...

    def _has_grad(self) -> bool:
        return True

    def _ndata(self) -> float:
        return np.inf

    def _errordef(self) -> float:
        return ERRORDEF

    def add_cost(self, other: Any) -> Any:
        """The sum with a cost of iminuit or a number."""
        return super().__add__(other)

    def add_to_cost(self, other: Any) -> Any:
        """The sum of a cost of iminuit or a number with this."""
        return super().__radd__(other)
