"""Templates: the simulated events at each value of theta, checked and ready to fit."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gridless.errors import GridlessWarning, InputError, check_choice
from gridless.templates.arrays import Array, as_table, as_weights
from gridless.templates.audit import Audit, audit_templates
from gridless.templates.grid import make_grid
from gridless.training.objectives import OBJECTIVES


class Templates:
    """Simulated events `x` with the `theta` each was made with.

    Parameters
    ----------
    x
        Observables, (events, observables) or (events,) for a single one: NumPy, torch, pandas.
    theta
        The parameter value of each event, (events,) or (events, parameters).
    bounds
        (low, high) of the parameter, or one such pair per parameter.
    weights
        One weight per event; each template must keep a positive total.
    observables, parameters
        Names; taken from a data frame's columns where there is one.
    """

    def __init__(
        self,
        x: Any,
        theta: Any,
        bounds: ArrayLike,
        weights: Any = None,
        observables: Sequence[str] | None = None,
        parameters: Sequence[str] | None = None,
    ) -> None:
        # What files the events came from, if any: names, sizes and checksums.
        self.data: tuple[dict[str, Any], ...] = ()
        self.x, self.observables = as_table(x, "x", observables, "x")
        values, names = as_table(theta, "theta", parameters, "theta")
        if len(values) != len(self.x):
            raise InputError(
                f"theta: {len(values)} values for {len(self.x)} events; give one value per event"
            )
        if values.shape[1] > 3:
            raise InputError(
                f"theta: {values.shape[1]} parameters; up to three can be estimated together: "
                "give theta of shape (events, parameters) with fewer columns"
            )
        self.weights = as_weights(weights, len(self.x))
        self.grid, self.template = make_grid(values, bounds, names)
        self._check_weights()
        self._warn_of_constants()

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        names = ", ".join(self.observables)
        return (
            f"Templates: {len(self):,} events at {len(self.grid)} values of "
            f"{', '.join(self.grid.parameters)}, observables {names}"
        )

    def audit(self, components: int = 1, objective: str = "penalty") -> Audit:
        """What section 3 of the paper asks of a grid, in words and numbers.

        With objective="template", the default of `fit`, only what that still asks: that no gap is
        too wide, nothing is extrapolated, and no template too small.
        """
        check_choice("objective", objective, OBJECTIVES)
        return audit_templates(
            self.x, self.template, self.weights, self.grid, self.observables, components, objective
        )

    def mean_weights(self) -> Array:
        """Event weights scaled so that their mean is 1: templates count with their sizes."""
        weights = np.ones(len(self)) if self.weights is None else self.weights
        return np.asarray(weights * len(self) / weights.sum())

    def balanced_weights(self) -> Array:
        """Event weights scaled so that every template has the same total and the mean is 1.

        This makes p(theta) flat over the templates whatever the sizes of the samples.
        """
        weights = np.ones(len(self)) if self.weights is None else self.weights
        total = np.bincount(self.template, weights, minlength=len(self.grid))
        return np.asarray(weights * (len(self) / len(self.grid)) / total[self.template])

    def _check_weights(self) -> None:
        if self.weights is None:
            return
        totals = np.bincount(self.template, self.weights, minlength=len(self.grid))
        if (totals <= 0).any():
            template = int(np.argmax(totals <= 0))
            raise InputError(
                f"weights: the template {self.grid.label(template)} has a total weight of "
                f"{totals[template]:g}; it must be positive: check its weights or leave it out"
            )

    def _warn_of_constants(self) -> None:
        for name, low, high in zip(
            self.observables, self.x.min(axis=0), self.x.max(axis=0), strict=True
        ):
            if low == high:
                warnings.warn(
                    f"x: column {name!r} is {low:g} in every event and says nothing about "
                    f"{', '.join(self.grid.parameters)}; leave it out",
                    GridlessWarning,
                    stacklevel=3,
                )
