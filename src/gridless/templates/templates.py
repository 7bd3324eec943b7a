"""Templates: the simulated events at each value of theta, checked and ready to fit."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gridless.errors import GridlessWarning, InputError, check_choice
from gridless.registry import OBJECTIVES
from gridless.templates.arrays import Array, as_table, as_weights, weights_or_ones
from gridless.templates.audit import Audit, audit
from gridless.templates.grid import make_grid
from gridless.templates.query import FileRecord, Query


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
    query
        How the observables were made of columns, with weight and selection; its names are those of
        the observables. By default every observable is a column of its own name.
    files
        The files that the events came from.
    """

    def __init__(
        self,
        x: Any,
        theta: Any,
        bounds: ArrayLike,
        weights: Any = None,
        observables: Sequence[str] | None = None,
        parameters: Sequence[str] | None = None,
        *,
        query: Query | None = None,
        files: Sequence[FileRecord] = (),
    ) -> None:
        self.files = tuple(files)
        self.x, names = as_table(x, "x", query.names if query else observables, "x")
        self.query = query or Query.of(names)
        values, labels = as_table(theta, "theta", parameters, "theta")
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
        self.grid, self.template = make_grid(values, bounds, labels)
        self._check_weights()
        self._warn_of_constants()

    @property
    def observables(self) -> tuple[str, ...]:
        """The names of the observables."""
        return self.query.names

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        names = ", ".join(self.observables)
        return (
            f"Templates: {len(self):,} events at {len(self.grid)} values of "
            f"{', '.join(self.grid.parameters)}, observables {names}"
        )

    @property
    def event_weights(self) -> Array:
        """The weight of each event (events,): 1 where there are no weights."""
        return weights_or_ones(self.weights, len(self))

    def totals(self) -> Array:
        """The sum of the weights of each template (templates,)."""
        counts = np.bincount(self.template, self.event_weights, minlength=len(self.grid))
        return np.asarray(counts, np.float64)

    def effective_sizes(self) -> Array:
        """(sum w)^2 / sum w^2 of each template (templates,)."""
        squares = np.bincount(self.template, self.event_weights**2, minlength=len(self.grid))
        return np.asarray(self.totals() ** 2 / squares)

    def audit(self, components: int = 1, objective: str = "template") -> Audit:
        """Check whether the templates are what an objective needs, and say what to change.

        The default objective, that of `fit`, asks that no gap is too wide, nothing is extrapolated,
        and no template too small. `posterior` and `penalty` take p(theta) as flat, and ask for
        equal spacing, margins of half a gap and equal weights too (section 3 of the paper).

        Parameters
        ----------
        components : int
            Components of the mixture to be fitted.
        objective : str
            What the fit will minimise: "template", "posterior" or "penalty".

        Returns
        -------
        Audit
            Findings by name, each with a number and a text.

        Examples
        --------
        >>> from gridless.examples import OneObservable
        >>> templates = OneObservable().templates(events=500, seed=1)
        >>> print(templates.audit()["size"].text)
        at least 500 effective events per template (theta = 0.05): fewer than 1,000 say little; ...
        """
        check_choice("objective", objective, OBJECTIVES.names)
        return audit(self, components, objective, flat_grid=objective != "template")

    def mean_weights(self) -> Array:
        """Event weights scaled so that their mean is 1: templates count with their sizes."""
        weights = self.event_weights
        return np.asarray(weights * len(self) / weights.sum())

    def balanced_weights(self) -> Array:
        """Event weights scaled so that every template has the same total and the mean is 1.

        This makes p(theta) flat over the templates whatever the sizes of the samples.
        """
        total = self.totals()[self.template]
        return np.asarray(self.event_weights * (len(self) / len(self.grid)) / total)

    def _check_weights(self) -> None:
        if self.weights is None:
            return
        totals = self.totals()
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
