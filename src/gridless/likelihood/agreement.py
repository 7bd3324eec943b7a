"""Do the observed events look like the simulation?

The templates' events, in units of the network's inputs, are gathered in cells around some forty
centres. That answers two questions about observed events: how many lie farther from every centre
than the simulation does, and whether the cells are filled as the simulation at the estimate fills
them. Making and filling cells needs the network: see `gridless.model.cells`.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from gridless.curves import chebyshev
from gridless.templates.arrays import Array
from gridless.templates.event_findings import MAX_COPIES, Keys

# Relative error of the share outside at any theta. Cells are made of these very events, and others
# lie a little farther from their centres.
OUTSIDE_SLACK = 0.3
LEAST_TRACE = 1e-6  # of the quadratic form chi2: less is rounding, and no cell is left to compare
LEAST_SHARE = 1e-12  # of a cell: the polynomial of a share may fall below 0
# Width of the kernel over neighbouring cells, in units of the distance to the nearest one. Wider
# ones see smooth faults better and narrow peaks worse.
SMOOTHING = 0.6
LEAST_EVENTS = 10.0  # expected in a cell: with fewer, chi2 has longer tails
LEAST_SIMULATED = 40.0  # simulated events in a cell: chi2 divides by its share
UNSEEN_COPIES = 3.0  # expected copies that a simulation without any may still have had
BEYOND_CHANCE = 5.0  # copies up to this many times the number by chance are not warned of
FAR_SHOWN = 5  # events far outside that are named


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the simulation, and how it fills them at every theta.

    `centres` (cells, observables) are in units of the network's inputs. Events with a larger
    squared distance than `reach` from every centre are outside. `share` (cells, ...) are Chebyshev
    coefficients of the share of events in each cell, `effective` those of the log of the number of
    simulated events that it was taken from, `share_variance` (cells, ...) those of the variance of
    each share, `outside` (2, ...) those of the share of events that are outside and of its
    variance.
    """

    centres: Array
    reach: float
    share: Array
    effective: Array
    share_variance: Array
    outside: Array

    def restrict(self, axis: int, t: float) -> "Cells":
        """The same with one parameter held at t."""
        return replace(
            self,
            share=chebyshev.restrict(self.share, axis + 1, t),
            effective=chebyshev.restrict(self.effective, axis, t),
            share_variance=chebyshev.restrict(self.share_variance, axis + 1, t),
            outside=chebyshev.restrict(self.outside, axis + 1, t),
        )

    def shares(self, t: Array) -> Array:
        """The share of each cell at t; they sum to 1."""
        share = _at(self.share, t).clip(min=LEAST_SHARE)
        return np.asarray(share / share.sum())

    def variances(self, t: Array, share: Array) -> Array:
        """The relative variance of each share at t from the statistics of the simulation."""
        return np.asarray(_at(self.share_variance, t).clip(min=0) / share**2)

    def slopes(self, t: Array) -> Array:
        """d share / dt at t, (cells, parameters)."""
        return _slopes(self.share, t)

    def slope_covariances(self, t: Array) -> Array:
        """The covariance of each share with each of its slopes at t, (cells, parameters)."""
        return 0.5 * _slopes(self.share_variance, t)

    def share_outside(self, t: Array) -> tuple[float, float]:
        """The share of good events that is outside at t, and its variance."""
        # Polynomials may leave the range of shares.
        share, variance = (min(max(0.0, float(one)), 1.0) for one in _at(self.outside, t))
        variance += (OUTSIDE_SLACK * share) ** 2
        # Where hardly any event is expected outside, as many as its error are allowed.
        return max(share, float(np.sqrt(variance))), variance


class FarEvent(NamedTuple):
    """An event that lies farther outside of the simulation than it is wide."""

    row: int
    observable: str
    value: float

    def __str__(self) -> str:
        return f"{self.observable} = {self.value:g} in row {self.row:,}"


@dataclass(frozen=True, eq=False)
class Filling:
    """Observed events in cells: `content` is their weight in each, `squares` the sum of squared
    weights, `outside` how many lie outside of the simulation, `events` how many were looked at.

    Of all `rows`, `far` are so far outside that they are left out, of which some are `named`.
    `keys` tell how many are exact copies of others.
    """

    content: Array
    squares: float
    outside: int
    events: int
    rows: int
    keys: Keys
    far: int = 0
    named: tuple[FarEvent, ...] = ()

    def __add__(self, other: "Filling") -> "Filling":
        # Rows are counted through all parts.
        more = tuple(event._replace(row=event.row + self.rows) for event in other.named)
        return Filling(
            self.content + other.content,
            self.squares + other.squares,
            self.outside + other.outside,
            self.events + other.events,
            self.rows + other.rows,
            self.keys + other.keys,
            self.far + other.far,
            (*self.named, *more)[:FAR_SHOWN],
        )


@dataclass(frozen=True, eq=False)
class Agreement:
    """The cells of a model with the observed events in them.

    `copies` is the share of exact copies in the simulation, if known: observables of few values
    have some by chance.
    """

    cells: Cells
    filling: Filling
    copies: float | None = None

    def __add__(self, other: "Agreement") -> "Agreement":
        """The same for more events of the same model."""
        return replace(self, filling=self.filling + other.filling)

    def restrict(self, axis: int, t: float) -> "Agreement":
        """The same with one parameter held at t."""
        return replace(self, cells=self.cells.restrict(axis, t))

    def copied(self, t: Array) -> float:
        """The share of the events that are copies of others; 0 where chance explains them.

        Chance is judged by the share of copies in the simulation, scaled to the number of observed
        events, by which it grows.
        """
        share = self.filling.keys.share
        return share if share > self._usual_copies(t) else 0.0

    def common(self, other: "Agreement", t: Array) -> float:
        """The share of the events that another channel has too; 0 where chance explains them."""
        share = self.filling.keys.common(other.filling.keys)
        return share if share > self._usual_copies(t) else 0.0

    def _usual_copies(self, t: Array) -> float:
        """The share of copies that chance may have made."""
        if self.copies is None:
            return 1.0
        simulated = np.exp(float(chebyshev.evaluate(self.cells.effective, t)))
        usual = (self.copies + UNSEEN_COPIES / simulated) * max(1, self.filling.rows / simulated)
        return float(MAX_COPIES + BEYOND_CHANCE * usual)

    def chi2(self, t: Array) -> tuple[float, float]:
        """How far the filling is from that of the simulation near t, and the degrees of freedom.

        r_c = (n_c - a s_c - b . ds_c/dt) / sqrt(v N s_c + N^2 s_c^2 u_c),  chi2 = r' K r / g,

        n_c the weight in cell c, N its sum, s_c the simulation's share, v the mean of w^2 over that
        of w, u_c the relative variance of s_c from the statistics of the simulation. The number of
        events and the parameters, a and b, are those with the least sum of squares of r: an
        estimate from all of the events, moved by the simulation, is not where the cells alone would
        have it. K_cd = exp(-d^2 / 2 h^2) joins neighbours at the distance d, since a fault of the
        data rarely ends at a cell; h is `SMOOTHING` times the usual distance of nearest neighbours.
        The scale g and the degrees of freedom are those with which chi2 has the mean and the
        variance of its distribution. Cells are joined until each expects enough events, observed
        and simulated; K of joined cells is the mean.

        The slopes ds_c/dt fluctuate together with the shares. Where a template tells little of
        theta, moving along them would take away most of what the simulation is off by. So each
        slope is freed of what it has in common with the difference n_c - N s_c.
        """
        share = self.cells.shares(t)
        filling = self.filling
        total = filling.content.sum()
        if not total > 0:
            return 0.0, 0.0  # weights of either sign that cancel fill nothing
        spread = filling.squares / total
        relative = self.cells.variances(t, share)
        # The events of a cell over the least number; events of weight v count as one each.
        simulated = 1 / relative.clip(min=LEAST_SHARE)
        worth = np.minimum(total * share / spread / LEAST_EVENTS, simulated / LEAST_SIMULATED)
        join = _joined(worth, self.cells.centres)
        variance = join @ (spread * total * share + total**2 * share**2 * relative)
        off = join @ (filling.content - total * share)
        common = join @ self.cells.slope_covariances(t) * (total * off / variance)[:, None]
        free = np.column_stack([join @ share, join @ self.cells.slopes(t) + common])
        residual = off / np.sqrt(variance)
        directions = free / np.sqrt(variance)[:, None]
        if not (np.isfinite(residual).all() and np.isfinite(directions).all()):
            return 0.0, 0.0  # only a damaged model has such numbers
        rest = np.eye(len(residual)) - directions @ np.linalg.pinv(directions)
        form = rest @ _kernel(self.cells.centres, join * share) @ rest
        mean, half_variance = float(np.trace(form)), float((form**2).sum())
        if not mean > LEAST_TRACE:
            return 0.0, 0.0
        return float(residual @ form @ residual) * mean / half_variance, mean**2 / half_variance


def _kernel(centres: Array, shares: Array) -> Array:
    """How much neighbouring groups of cells are taken together: the mean of K over the cells of
    both, which are in the groups with `shares` (groups, cells); 1 of a group with itself."""
    squares = ((centres[:, None] - centres) ** 2).sum(axis=-1)
    nearest = np.where(np.eye(len(squares), dtype=bool), np.inf, squares).min(axis=1)
    width = max(SMOOTHING**2 * float(np.median(nearest)), LEAST_SHARE)
    together = shares @ np.exp(-squares / (2 * width)) @ shares.T
    scale = np.sqrt(np.diag(together))
    return np.asarray(together / np.outer(scale, scale))


def _slopes(c: Array, t: Array) -> Array:
    """d/dt of each of the series c (cells, ...) at t, (cells, parameters)."""
    axes = range(1, len(t) + 1)
    return np.stack([_at(chebyshev.derivative(c, axis), t) for axis in axes], axis=1)


def _at(c: Array, t: Array) -> Array:
    """Each of the series c (cells, ...) at the point t."""
    for value in t:
        c = chebyshev.restrict(c, 1, float(value))
    return c


def _joined(worth: Array, centres: Array) -> Array:
    """Which cells (columns) to take together (rows) so that each is worth enough: those that are
    not join their neighbours along the axis on which the centres spread most."""
    along = centres[:, int(centres.var(axis=0).argmax())]
    groups: list[list[int]] = [[int(cell)] for cell in np.flatnonzero(worth >= 1)]
    group: list[int] = []
    for cell in np.argsort(along):
        if worth[cell] < 1:
            group.append(int(cell))
        if worth[group].sum() >= 1:
            groups.append(group)
            group = []
    if group and groups:
        # What is left over joins the smallest.
        min(groups, key=lambda cells: float(worth[cells].sum())).extend(group)
    elif group:
        groups.append(group)
    join = np.zeros((len(groups), len(worth)))
    for row, cells in enumerate(groups):
        join[row, cells] = 1
    return join


def p_value(chi2: float, dof: float) -> float:
    """The probability of a chi2 at least as large; 1 where nothing is left to compare."""
    return float(chdtrc(dof, chi2)) if dof > 0 else 1.0
