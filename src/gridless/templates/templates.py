"""Templates: the simulated events at each value of theta, checked and ready to fit."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridless.distributed import total
from gridless.errors import GridlessWarning, InputError
from gridless.registry import OBJECTIVES
from gridless.templates.arrays import Array, as_table, as_weights, weights_or_ones
from gridless.templates.audit import Audit, audit
from gridless.templates.grid import Grid, make_grid
from gridless.templates.query import FileRecord, Query

# With several parameters a likelihood is a polynomial in all of them, whose size is a power.
MAX_PARAMETERS = 3
# The work grows with templates times events. Values drawn from a range, one for every event, are
# no templates.
LEAST_EVENTS = 20  # per template on average
FEW_TEMPLATES = 50  # so many may be smaller: the audit says what is missing


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Templates:
    """Simulated events `x` with the `theta` each was made with.

    Parameters
    ----------
    x : array (events, observables) or (events,), or data frame
        Observables: NumPy, torch, pandas, or anything that NumPy can read.
    theta : array (events,) or (events, parameters), or data frame
        The parameter value of each event.
    bounds : (float, float), or sequence of such pairs
        (low, high) of the parameter, or one such pair per parameter.
    weights : array (events,), optional
        One weight per event, of either sign; each template must keep a positive total.
    observables, parameters : sequence of str, optional
        Names; taken from a data frame's columns where there is one.
    query : Query, optional
        How the observables were made of columns, with weight and selection; its names are those of
        the observables. By default every observable is a column of its own name.
    files : sequence of FileRecord
        The files that the events came from.
    labels : mapping from str to str, optional
        How figures and tables call parameters and observables, with their units:
        {"mtop": "$m_t$ [GeV]"}. A model keeps them.

    Attributes
    ----------
    x : array (events, observables)
        The observables.
    weights : array (events,) or None
        The weights as they were given.
    event_weights : array (events,)
        The same, or 1 for each event where there are none.
    template : array (events,) of int
        The template of each event: its row in `grid.values`.
    grid : Grid
        The values of the templates, with names and bounds of the parameters.
    query, files
        As given.

    Examples
    --------
    >>> import numpy as np
    >>> import gridless as gl
    >>> theta = np.repeat(gl.grid((0, 1), 4), 1_000)  # four templates of 1,000 events
    >>> x = np.random.default_rng(1).normal(theta, 0.5)  # your simulation goes here
    >>> templates = gl.Templates(x, theta, bounds=(0, 1), observables=["m_jj"])
    >>> templates
    Templates: 4,000 events at 4 values of theta, observables m_jj
    >>> templates.grid.values[:, 0].tolist()
    [0.125, 0.375, 0.625, 0.875]
    >>> templates.audit().ok
    True
    """

    x: Array
    weights: Array | None
    event_weights: Array
    template: NDArray[np.int64]
    grid: Grid
    query: Query
    files: tuple[FileRecord, ...]

    def __init__(  # noqa: PLR0913
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
        labels: Mapping[str, str] | None = None,
    ) -> None:
        table, names = as_table(x, "x", query.names if query else observables, "x")
        values, known = as_table(theta, "theta", parameters, "theta")
        if len(values) != len(table):
            raise InputError(
                f"theta: {len(values)} values for {len(table)} events; give one value per event"
            )
        if values.shape[1] > MAX_PARAMETERS:
            raise InputError(
                f"theta: {values.shape[1]} parameters; up to three can be estimated together: "
                "give theta of shape (events, parameters) with fewer columns"
            )
        with _exchanged(table, values):
            grid, template = make_grid(values, bounds, known)
        if len(grid) > FEW_TEMPLATES and len(table) < LEAST_EVENTS * len(grid):
            raise InputError(
                f"theta: {len(grid):,} different values for {len(table):,} events, "
                f"{len(table) / len(grid):.3g} events each; a template is many events at one "
                f"value, {LEAST_EVENTS} at least: simulate at fewer values, or give every event "
                "the centre of its bin of theta (gl.grid has some)"
            )
        asked = query or Query.of(names)
        given = as_weights(weights, len(table))
        fields = {
            "x": table,
            "weights": given,
            "event_weights": weights_or_ones(given, len(table)),
            "template": template,
            "files": tuple(files),
            **_with_labels(grid, asked, labels or {}),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self._check_weights()
        self._warn_of_constants()

    @property
    def observables(self) -> tuple[str, ...]:
        """The names of the observables."""
        return self.query.names

    def labelled(self, labels: Mapping[str, str]) -> "Templates":
        """The same templates with labels for parameters and observables.

        Parameters
        ----------
        labels : mapping from str to str
            Names with what figures and tables call them: {"mtop": "$m_t$ [GeV]"}.

        Returns
        -------
        Templates

        Examples
        --------
        >>> from gridless.examples import OneObservable
        >>> templates = OneObservable().templates(events=500, seed=1).labelled({"theta": "m [GeV]"})
        >>> templates.grid.labels["theta"]
        'm [GeV]'
        """
        other = copy(self)
        for name, value in _with_labels(self.grid, self.query, labels).items():
            object.__setattr__(other, name, value)
        return other

    def subset(self, rows: Any) -> "Templates":
        """Some of the events, on the same grid.

        Parameters
        ----------
        rows : array of int or of bool
            Which events.

        Returns
        -------
        Templates

        Examples
        --------
        >>> from gridless.examples import OneObservable
        >>> OneObservable().templates(events=500, seed=1).subset(slice(None, None, 2))
        Templates: 2,500 events at 10 values of theta, observables x
        """
        other = copy(self)
        for name in ("x", "template", "weights", "event_weights"):
            value = getattr(self, name)
            object.__setattr__(other, name, None if value is None else value[rows])
        return other

    @property
    def theta(self) -> Array:
        """The parameter values of each event (events, parameters)."""
        return np.asarray(self.grid.values[self.template])

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        names = ", ".join(self.observables)
        return (
            f"Templates: {len(self):,} events at {len(self.grid)} values of "
            f"{', '.join(self.grid.parameters)}, observables {names}"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{escape(self.grid.label(k))}</td>"
            f"<td>{count:,}</td><td>{effective:,.0f}</td></tr>"
            for k, (count, effective) in enumerate(
                zip(np.bincount(self.template), self.effective_sizes(), strict=True)
            )
        )
        head = "<tr><th>template</th><th>events</th><th>effective events</th></tr>"
        return f"<table><caption>{escape(repr(self))}</caption>{head}{rows}</table>"

    def totals(self) -> Array:
        """The total weight of each template (templates,)."""
        counts = np.bincount(self.template, self.event_weights, minlength=len(self.grid))
        return np.asarray(counts, np.float64)

    def contents(self, bins: NDArray[np.int64], count: int) -> Array:
        """The weight of each template in each of `count` bins (templates, count), over all ranks;
        `bins` (events,) is the bin of every event."""
        cells = self.template * count + bins
        sums = np.bincount(cells, self.event_weights, minlength=len(self.grid) * count)
        return np.asarray(total(sums).reshape(len(self.grid), count))

    def effective_sizes(self) -> Array:
        """(sum w)^2 / sum w^2 of each template (templates,), over all ranks."""
        squares = np.bincount(self.template, self.event_weights**2, minlength=len(self.grid))
        return np.asarray(total(self.totals()) ** 2 / total(squares))

    def audit(self, components: int = 1, objective: Any = "template") -> Audit:
        """Check whether the templates are what an objective needs, and say what to change.

        The default objective, that of `fit`, asks that no gap is too wide, nothing is extrapolated,
        and no template too small. `posterior` and `penalty` take p(theta) as flat, and ask for
        equal spacing, margins of half a gap and equal weights too (section 3 of the paper).

        Parameters
        ----------
        components : int
            Components of the mixture to be fitted.
        objective : str, dict or Objective
            What the fit will minimise: "template", "posterior", "penalty", or as `fit` takes it.

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
        name = next(iter(objective)) if isinstance(objective, Mapping) else objective
        chosen = OBJECTIVES.find(name) if isinstance(name, str) else name
        return audit(self, components, chosen.name, chosen.needs_flat_grid)

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


@contextmanager
def _exchanged(x: Array, theta: Array) -> Iterator[None]:
    """Errors of theta say so where x and theta are exchanged: theta has hardly any values twice."""
    try:
        yield
    except InputError as error:
        few, many = (len(np.unique(one, axis=0)) for one in (x, theta))
        if many > max(FEW_TEMPLATES, LEAST_EVENTS * few):
            raise InputError(
                f"theta has {many:,} different values and x has {few:,}: are they exchanged? Give "
                "gl.Templates(x, theta, bounds)"
            ) from error
        raise


def _with_labels(grid: Grid, query: Query, labels: Mapping[str, str]) -> dict[str, Any]:
    """Grid and query with these labels, each with those of its own names."""
    known = [*grid.parameters, *query.names]
    for name, text in labels.items():
        if name not in known:
            raise InputError(f"labels: there is no {name!r}; there is {', '.join(known)}")
        if not isinstance(text, str):
            raise InputError(f"labels: {text!r} for {name}; give a text such as '$m_t$ [GeV]'")
    of_grid = {name: labels[name] for name in grid.parameters if name in labels}
    of_query = {name: labels[name] for name in query.names if name in labels}
    return {
        "grid": replace(grid, labels={**grid.labels, **of_grid}),
        "query": replace(query, labels=query.labels | of_query),
    }
