"""Virtual templates: simulated events that a model keeps, weighted to any theta."""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from gridless.calibration.share_correction import Corrected
from gridless.errors import GridlessWarning, InputError
from gridless.results.printing import Lines
from gridless.templates.arrays import (
    Array,
    as_count,
    as_events,
    as_numbers,
    check_total,
    weights_or_ones,
)
from gridless.templates.grid import Grid

if TYPE_CHECKING:
    from gridless.model.model import Model

GOOD_EFFECTIVE = 1000  # effective events below which a virtual template warns
LEAST_EFFECTIVE = 50  # effective events below which there is none
MAX_DRAWN = 10**9  # events of one sample
BINS = 20  # of an observable that is compared, at the most
LEAST_IN_BIN = 10  # effective events of a sample in each of them: chi2 needs normal numbers
TYPICAL = 20  # events of average weight that are added to a bin for its mean square weight


@dataclass(frozen=True, eq=False)
class VirtualTemplate(Lines):
    """Simulated events with weights that make them events at theta; `model.at(theta)` makes it.

    Attributes
    ----------
    theta : array (parameters,)
        Where it is.
    x : array (events, observables)
        The events.
    weights : array (events,)
        Their weights, which sum to 1.
    observables : tuple of str
        The names of the observables.
    corrected : tuple of Corrected
        The shares of bins of each observable, with their uncertainties. Empty for a model without
        calibration.

    Examples
    --------
    >>> x, weights = np.array([[1.0], [2.0]]), np.array([0.5, 0.5])
    >>> VirtualTemplate(np.array([0.4]), x, weights, ("x",))
    Virtual template at 0.4: 2 effective events
    """

    theta: Array
    x: Array
    weights: Array
    observables: tuple[str, ...]
    corrected: tuple[Corrected, ...] = ()

    @property
    def effective_size(self) -> float:
        """1 / sum w^2: the number of events that say as much."""
        return float(1 / (self.weights**2).sum())

    def sample(self, events: int, seed: int = 0) -> Array:
        """Events drawn from it with replacement, (events, observables)."""
        as_count(events, "events", 1, MAX_DRAWN)
        as_count(seed, "seed", 0)
        share = self.weights.clip(min=0)
        drawn = np.random.default_rng(seed).choice(len(self.x), events, p=share / share.sum())
        return np.asarray(self.x[drawn], np.float64)

    def shares(self, observable: str, edges: Any) -> tuple[Array, Array]:
        """The shares (bins,) of an observable between edges, and their covariance (bins, bins).

        It is that of the events inside of corrected bins, and what is not known of these bins.

        Parameters
        ----------
        observable : str
            Its name.
        edges : array (bins - 1,)
            Where one bin ends and the next begins; the first and the last bin have no end.

        Examples
        --------
        >>> x, weights = np.array([[1.0], [2.0]]), np.array([0.5, 0.5])
        >>> at = VirtualTemplate(np.array([0.4]), x, weights, ("x",))
        >>> at.shares("x", [1.5])[0].tolist()
        [0.5, 0.5]
        """
        if observable not in self.observables:
            raise InputError(
                f"observable: no {observable!r}; there is {', '.join(self.observables)}"
            )
        j, w = self.observables.index(observable), self.weights
        cell, changes = np.zeros(len(w), np.int64), np.zeros((1, 0))
        if self.corrected:
            cell, _, changes = self.corrected[j]
        limits = as_numbers(edges, "edges")
        if limits.ndim != 1 or not (np.diff(limits) > 0).all() or np.isnan(limits).any():
            raise InputError(f"edges: {edges!r:.80}; give a list of rising numbers")
        bins, cells = len(limits) + 1, len(changes)
        number = cell * bins + np.searchsorted(limits, self.x[:, j], side="right")
        content = np.bincount(number, w, cells * bins).reshape(cells, bins)
        squares = np.bincount(number, w**2, cells * bins).reshape(cells, bins)
        total = content.sum(axis=1, keepdims=True)
        inside = content / np.where(total != 0, total, 1.0)
        crossed = inside.T @ squares
        covariance = np.diag(squares.sum(axis=0)) - crossed - crossed.T
        covariance += (inside * squares.sum(axis=1, keepdims=True)).T @ inside
        moved = content.T @ changes
        return content.sum(axis=0), covariance + moved @ moved.T

    def p_value(self, observable: str, values: Any, weights: Any = None) -> float:
        """Whether a sample of an observable looks like it: a chi2 in bins of equal content.

        Parameters
        ----------
        observable : str
            Its name.
        values : array (events,)
            The sample.
        weights : array (events,), optional
            Its weights.

        Examples
        --------
        >>> x = np.random.default_rng(1).normal(size=(2_000, 1))
        >>> at = VirtualTemplate(np.array([0.4]), x, np.full(2_000, 1 / 2_000), ("x",))
        >>> at.p_value("x", x[:1_000, 0]) > 0.01, at.p_value("x", x[:, 0] + 0.2) > 0.01
        (True, False)
        """
        table, given = as_events(values, weights, (observable,))
        sample, w = table[:, 0], weights_or_ones(given, len(table))
        check_total(float(w.sum()))
        effective = w.sum() ** 2 / (w**2).sum()
        bins = int(np.clip(effective / LEAST_IN_BIN, 2, BINS))
        edges = np.unique(np.quantile(sample, np.linspace(0, 1, bins + 1)[1:-1]))
        where = np.searchsorted(edges, sample, side="right")
        first, one = _weighted_shares(where, w / w.sum(), len(edges) + 1)
        second, two = self.shares(observable, edges)
        # Shares sum to 1: the last bin says nothing more.
        rest, covariance = (first - second)[:-1], (one + two)[:-1, :-1]
        return float(chdtrc(len(rest), rest @ np.linalg.pinv(covariance, hermitian=True) @ rest))

    def __repr__(self) -> str:
        place = ", ".join(f"{value:g}" for value in self.theta)
        return f"Virtual template at {place}: {self.effective_size:,.0f} effective events"


def _weighted_shares(where: NDArray[np.int64], weights: Array, bins: int) -> tuple[Array, Array]:
    """The shares of bins by events of these weights, and their covariance. A few events do not know
    the mean square weight of their bin: those with small weights would look certain."""
    number = np.bincount(where, minlength=bins)
    squares = np.bincount(where, weights**2, bins) + TYPICAL * (weights**2).mean()
    squares *= number / (number + TYPICAL)
    shares = np.bincount(where, weights, bins).astype(float)
    crossed = np.outer(shares, squares)
    covariance = np.diag(squares) - crossed - crossed.T
    return shares, covariance + np.outer(shares, shares) * squares.sum()


def virtual_template(model: "Model", theta: Any) -> VirtualTemplate:
    """The simulated events at theta: see `Model.at`."""
    values = inner_point(model.grid, theta)
    place = model.grid.from_unit(values)
    source = model.reweighting
    label = ", ".join(
        f"{name} = {value:g}" for name, value in zip(model.grid.parameters, place, strict=True)
    )
    found = VirtualTemplate(place, source.x, source.at(values), model.observables)
    # A few events cannot be refined.
    if found.effective_size >= LEAST_EFFECTIVE:
        weights, corrected = source.refined(values, found.weights)
        found = replace(found, weights=weights, corrected=corrected)
    size = found.effective_size
    if size < LEAST_EFFECTIVE:
        raise InputError(
            f"theta: at {label} the simulated events are worth {size:.0f} events; simulate "
            "templates nearer to it, or ask nearer to a template"
        )
    if size < GOOD_EFFECTIVE:
        warnings.warn(
            f"theta: at {label} the simulated events are worth {size:.0f} events only; "
            "distributions and pseudo-experiments there are coarse",
            GridlessWarning,
            stacklevel=4,
        )
    pairs = zip(model.observables, source.corrections, strict=False)
    erratic = [name for name, one in pairs if one.erratic]
    if erratic:
        warnings.warn(
            f"distributions of {', '.join(erratic)} change between the templates in ways that "
            "the network has not learnt, and their uncertainties may be too small; simulate more "
            "events or more templates",
            GridlessWarning,
            stacklevel=4,
        )
    return found


def inner_point(grid: Grid, theta: Any) -> Array:
    """theta, a number or one per parameter, in units of the range; outside of it is refused."""
    t = grid.unit_point(theta)
    if not ((t >= 0) & (t <= 1)).all():
        raise InputError(f"theta: {theta!r:.80} is outside of {grid.describe()}")
    return t
