"""Histograms of observables: of the simulation at any theta, and of observed events.

They follow the protocol of UHI, so that mplhep, hist and others draw and take them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any, NamedTuple

import numpy as np

from gridless.errors import InputError
from gridless.templates.arrays import Array

WIDTH, HEIGHT = 300, 100  # pixels of a histogram in a notebook


class Traits(NamedTuple):
    """What UHI asks of an axis: it is neither a circle nor a list of categories."""

    circular: bool = False
    discrete: bool = False


NO_TRAITS = Traits()


def contents_and_edges(histogram: Any) -> tuple[Array, Array]:
    """Contents and edges of a histogram of one axis: one that follows UHI, or contents and edges.

    Examples
    --------
    >>> contents_and_edges(([2, 1], [0, 1, 3]))
    (array([2., 1.]), array([0., 1., 3.]))
    """
    try:
        if hasattr(histogram, "axes"):
            (axis,) = histogram.axes
            contents, edges = histogram.values(), axis.edges
        else:
            contents, edges = histogram
        contents, edges = np.asarray(contents, float), np.asarray(edges, float)
        fits = contents.shape == (len(edges) - 1,) and bool((np.diff(edges) > 0).all())
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(
            "histogram: not one of one axis; give one of hist or uproot, or (contents, edges)"
        )
    return contents, edges


@dataclass(frozen=True, eq=False)
class Axis:
    """The bins of a histogram.

    Attributes
    ----------
    edges : array (bins + 1,)
        Their edges.
    name : str
        The observable.
    label : str
        How figures call it, with its unit.
    """

    edges: Array
    name: str = ""
    label: str = ""
    traits: Traits = NO_TRAITS

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __getitem__(self, index: int) -> tuple[float, float]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return float(self.edges[index]), float(self.edges[index + 1])

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and np.array_equal(self.edges, other.edges)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Histogram:
    """A histogram of one observable, as UHI has them: `mplhep.histplot(histogram)` draws it.

    Attributes
    ----------
    axes : tuple of Axis
        One axis, with `edges`, `name` and `label`.
    total : float
        The sum of all weights, also of events below the first bin and above the last.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> observed = model.likelihood(example.sample(0.4, 1_000, seed=2)).histograms()["x"]
    >>> observed
    Histogram of x: 40 bins from -1.97165 to 2.95171, 982 of 1,000 events in them
    >>> simulated = model.histograms(theta=0.4)["x"]
    >>> round(float(simulated.values().sum()), 2)
    0.98
    """

    axes: tuple[Axis]
    total: float
    _values: Array
    _variances: Array
    kind: str = "COUNT"

    def values(self) -> Array:
        """The content of each bin: number of events, or their share."""
        return self._values

    def variances(self) -> Array:
        """The variance of each content."""
        return self._variances

    def counts(self) -> Array:
        """The number of events that each bin is worth: values^2 / variances."""
        positive = self._variances > 0
        return np.asarray(
            np.where(positive, self._values**2 / np.where(positive, self._variances, 1), 0.0)
        )

    def __mul__(self, factor: float) -> "Histogram":
        """The same with every content times `factor`."""
        return replace(
            self,
            total=self.total * factor,
            _values=self._values * factor,
            _variances=self._variances * factor**2,
        )

    __rmul__ = __mul__

    def merged(self, count: int) -> "Histogram":
        """The same with every `count` bins taken together; those left over at the end too."""
        axis = self.axes[0]
        starts = np.arange(0, len(axis), count)
        edges = np.append(axis.edges[starts], axis.edges[-1])
        return replace(
            self,
            axes=(replace(axis, edges=edges),),
            _values=np.add.reduceat(self._values, starts),
            _variances=np.add.reduceat(self._variances, starts),
        )

    def _repr_html_(self) -> str:
        top = float(self._values.max()) or 1.0
        width = WIDTH / len(self._values)
        bars = "".join(
            f"<rect x='{i * width:.1f}' y='{HEIGHT * (1 - v / top):.1f}' width='{width:.1f}' "
            f"height='{HEIGHT * max(v, 0) / top:.1f}' fill='#56B4E9'/>"
            for i, v in enumerate(self._values)
        )
        text = escape(repr(self))
        return (
            f"<p>{text}</p><svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' role='img' "
            f"aria-label='{text}'>{bars}</svg>"
        )

    def __repr__(self) -> str:
        axis = self.axes[0]
        return (
            f"Histogram of {axis.name}: {len(axis)} bins from {axis.edges[0]:g} to "
            f"{axis.edges[-1]:g}, {self._values.sum():,.6g} of {self.total:,.6g} events in them"
        )


@dataclass(frozen=True, eq=False)
class Binned:
    """Observed events in the bins of every observable; of more events, they add up.

    Attributes
    ----------
    edges : mapping from str to array (bins + 1,)
        The edges of the bins of each observable, equally far apart.
    content, squares : array (observables, bins)
        The sums of weights and of their squares.
    total : float
        The sum of all weights, also of events outside of the bins.
    labels : mapping from str to str
        How figures call an observable.
    """

    edges: Mapping[str, Array]
    content: Array
    squares: Array
    total: float
    labels: Mapping[str, str]

    def __add__(self, other: "Binned") -> "Binned":
        return replace(
            self,
            content=self.content + other.content,
            squares=self.squares + other.squares,
            total=self.total + other.total,
        )

    def histograms(self) -> dict[str, Histogram]:
        """A histogram of each observable."""
        found = {}
        for i, (name, edges) in enumerate(self.edges.items()):
            axis = Axis(edges, name, self.labels.get(name, name))
            found[name] = Histogram((axis,), self.total, self.content[i], self.squares[i])
        return found


def bin_events(
    edges: Mapping[str, Array], x: Array, weights: Array | None, labels: Mapping[str, str]
) -> Binned:
    """Observed events x (events, observables) in bins of equal width.

    Parameters
    ----------
    edges : mapping from str to array (bins + 1,)
        The edges of each observable, in the order of the columns of x.
    x : array (events, observables)
        The events.
    weights : array (events,) or None
        Their weights.
    labels : mapping from str to str
        How figures call an observable.

    Returns
    -------
    Binned
    """
    content, squares = [], []
    second = None if weights is None else weights**2
    for column, limits in zip(x.T, edges.values(), strict=True):
        bins = len(limits) - 1
        # Bins of equal width need no search. One more on either side takes what lies outside.
        place = (column - limits[0]) * (bins / (limits[-1] - limits[0]))
        where = np.clip(np.floor(place), -1, bins).astype(np.int64) + 1
        filled = np.bincount(where, weights, bins + 2)[1:-1].astype(float)
        content.append(filled)
        squares.append(filled if second is None else np.bincount(where, second, bins + 2)[1:-1])
    total = float(len(x)) if weights is None else float(weights.sum())
    return Binned(edges, np.array(content), np.array(squares), total, labels)
