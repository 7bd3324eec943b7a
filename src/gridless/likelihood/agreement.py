"""Do the observed events look like the simulation?

The templates' events, in units of the network's inputs, are gathered in cells around some forty
centres. That answers two questions about observed events: how many lie farther from every centre
than the simulation does, and whether the cells are filled as the simulation, weighted to the
estimate, fills them. Making and filling cells needs the network: see `gridless.model.cells`.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc

from gridless.likelihood import chebyshev
from gridless.templates.arrays import Array

LEAST_SHARE = 1e-12  # of a cell: the polynomial of a share may fall below 0


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the simulation, and how it fills them at every theta.

    `centres` (cells, observables) are in units of the network's inputs. Events with a larger
    squared distance than `reach` from every centre are outside. `share` (cells, ...) are Chebyshev
    coefficients of the share of events in each cell, `effective` those of the log of the number of
    simulated events that it was taken from.
    """

    centres: Array
    reach: float
    share: Array
    effective: Array

    def restrict(self, axis: int, t: float) -> "Cells":
        """The same with one parameter held at t."""
        return replace(
            self,
            share=chebyshev.restrict(self.share, axis + 1, t),
            effective=chebyshev.restrict(self.effective, axis, t),
        )


@dataclass(frozen=True, eq=False)
class Filling:
    """Observed events in cells: `content` is their weight in each, `squares` the sum of squared
    weights, `outside` how many lie outside of the simulation, `events` how many were looked at."""

    content: Array
    squares: float
    outside: int
    events: int

    def __add__(self, other: "Filling") -> "Filling":
        return Filling(
            self.content + other.content,
            self.squares + other.squares,
            self.outside + other.outside,
            self.events + other.events,
        )


@dataclass(frozen=True, eq=False)
class Agreement:
    """The cells of a model with the observed events in them."""

    cells: Cells
    filling: Filling

    def __add__(self, other: "Agreement") -> "Agreement":
        """The same for more events of the same model."""
        return replace(self, filling=self.filling + other.filling)

    def restrict(self, axis: int, t: float) -> "Agreement":
        """The same with one parameter held at t."""
        return replace(self, cells=self.cells.restrict(axis, t))

    @property
    def dof(self) -> int:
        """Degrees of freedom before any parameter is fitted: cells less one for the total."""
        return len(self.cells.share) - 1

    def chi2(self, t: Array) -> float:
        """How far the filling is from that of the simulation at t.

        chi2 = sum_c (n_c - N s_c)^2 / N s_c (v + N / M), n_c the weight in cell c and N its sum,
        s_c the simulation's share, v the mean of w^2 over that of w, M the effective number of
        simulated events.
        """
        share = np.array([float(chebyshev.evaluate(c, t)) for c in self.cells.share])
        share = share.clip(min=LEAST_SHARE)
        content = self.filling.content
        total = content.sum()
        simulated = np.exp(float(chebyshev.evaluate(self.cells.effective, t)))
        factor = self.filling.squares / total + total / simulated
        return float(((content - total * share) ** 2 / (total * share * factor)).sum())


def p_value(chi2: float, dof: int) -> float:
    """The probability of a chi2 at least as large."""
    return float(chdtrc(max(dof, 1), chi2))
