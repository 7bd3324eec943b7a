"""Knowing when not to trust an estimate: do the observed events look like the simulation?

The templates' events, in units of the network's inputs, are gathered in cells around some forty
centres. That answers two questions about observed events: how many lie farther from every centre
than the simulation does, and whether the cells are filled as the simulation, weighted to the
estimate, fills them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.stats import chi2, poisson

from gridless.density.network import Network
from gridless.likelihood import chebyshev, minimum
from gridless.likelihood.estimate import STAT, Estimate
from gridless.likelihood.warnings import EstimateWarning
from gridless.model.evaluation import SINGLE, log_density
from gridless.templates.arrays import Array

CELLS = 40
# Events that make the cells, those that fill them, and the share that lies outside by definition.
_CENTRES, _EVENTS, _OUTSIDE = 20_000, 200_000, 0.001
_CHUNK = 8192
# A p-value below this, for each of the tests, is worth a warning.
_SMALL = 1e-3


@dataclass(frozen=True)
class Cells:
    """Cells of the simulation, and how it fills them at every theta.

    `share` (cells, ...) are Chebyshev coefficients of the share of events in each cell, `effective`
    those of the log of the number of simulated events that it was taken from.
    """

    centres: Array
    reach: float
    share: Array
    effective: Array

    def fill(self, network: Network, x: Array, weights: Array) -> "Filling":
        """How observed events fill the cells; of very many, some that tell as much."""
        every = max(1, len(x) // SINGLE)
        x, weights = x[::every], weights[::every]
        where, distance = nearest(network, x, self.centres)
        count = len(self.centres)
        return Filling(
            np.bincount(where, weights, count).astype(float),
            float((weights**2).sum()),
            int((distance > self.reach).sum()),
            len(x),
        )


@dataclass(frozen=True)
class Filling:
    """Observed events in cells: their weight in each, sum of squared weights, how many lie
    outside of the simulation, and how many were looked at."""

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


@dataclass(frozen=True)
class Trust:
    """What a likelihood knows about whether to trust it; adds up as likelihoods do.

    `log_q` is the implied prior, as Chebyshev coefficients, that was not divided by; `of_model`
    are warnings that hold for every estimate with the model.
    """

    cells: Cells
    filling: Filling
    log_q: Array | None
    of_model: tuple[EstimateWarning, ...]

    def __add__(self, other: "Trust") -> "Trust":
        return replace(self, filling=self.filling + other.filling)

    def restrict(self, axis: int, t: float) -> "Trust":
        """The same with one parameter held at t."""
        cells = replace(
            self.cells,
            share=chebyshev.restrict(self.cells.share, axis + 1, t),
            effective=chebyshev.restrict(self.cells.effective, axis, t),
        )
        log_q = None if self.log_q is None else chebyshev.restrict(self.log_q, axis, t)
        return replace(self, cells=cells, log_q=log_q)

    def p_value(self, best: Array) -> float:
        """The probability of a filling at least as far from the simulation's at theta.

        chi2 = sum_c (n_c - N s_c)^2 / N s_c (v + N / M), N the summed weight and v the mean of w^2
        over that of w, M the effective number of simulated events.
        """
        share = np.array([minimum.value(c, best) for c in self.cells.share]).clip(min=1e-12)
        content = self.filling.content
        total = content.sum()
        simulated = np.exp(minimum.value(self.cells.effective, best))
        factor = self.filling.squares / total + total / simulated
        statistic = ((content - total * share) ** 2 / (total * share * factor)).sum()
        # The fitted parameters take away one degree of freedom each, nearly.
        return float(chi2.sf(statistic, len(share) - 1 - len(best)))

    def warnings(self, estimate: Estimate, best: Array) -> list[EstimateWarning]:
        """Every reason that speaks against the estimate."""
        warnings = list(self.of_model)
        filling = self.filling
        expected = max(_OUTSIDE * filling.events, 1e-9)
        if poisson.sf(filling.outside - 1, expected) < _SMALL:
            share = filling.outside / filling.events
            text = (
                f"{share:.2%} of the events lie outside of the simulation, where {_OUTSIDE:.1%} "
                "are expected; compare the distributions of data and templates"
            )
            warnings.append(EstimateWarning("outside_simulation", text))
        p_value = self.p_value(best)
        if p_value < _SMALL:
            text = (
                f"the events do not look like the simulation at the estimate (p = {p_value:.2g}); "
                "compare their distributions, add what the templates lack"
            )
            warnings.append(EstimateWarning("bad_fit", text))
        if self.log_q is not None:
            warnings += self._not_flat(estimate, best)
        return warnings

    def _not_flat(self, estimate: Estimate, best: Array) -> list[EstimateWarning]:
        """The bias from an implied prior that is not flat, if it is not small."""
        assert self.log_q is not None
        size = np.array([one.bounds[1] - one.bounds[0] for one in estimate.results])
        errors = [one.stat for one in estimate.results]
        slope = self.filling.content.sum() * minimum.gradient(self.log_q, best) / size
        shift = np.abs(estimate.covariances[STAT] @ slope / errors)
        if not shift.max() > 0.3:
            return []
        worst = int(shift.argmax())
        return [
            EstimateWarning(
                "implied_prior",
                f"q is not flat, which moves {estimate.parameters[worst]} by about "
                f'{shift[worst]:.1f} errors; fit with prior="divide"',
            )
        ]


def make_cells(
    network: Network,
    x: Array,
    template: NDArray[np.int64],
    weights: Array,
    sizes: tuple[int, ...],
) -> Cells:
    """Cells of the templates' events, filled at Chebyshev points of theta."""
    every = max(1, len(x) // _EVENTS)
    x, template, weights = x[::every], template[::every], weights[::every]
    some = _inputs(network, x[:: max(1, len(x) // _CENTRES)])
    count = min(CELLS, max(2, len(some) // 50))
    centres, _ = kmeans2(some, count, minit="++", rng=np.random.default_rng(0))
    where, distance = nearest(network, x, centres)
    # Of the template that reaches farthest: at its theta too no more may lie outside.
    own = [distance[template == k] for k in np.unique(template)]
    reach = float(max(np.quantile(d, 1 - _OUTSIDE) for d in own))
    t = chebyshev.box_points(sizes)
    content, squares = np.zeros((count, len(t))), np.zeros(len(t))
    for part, log_p in log_density(network, x, t):
        density = np.exp(log_p.double().numpy())
        member = np.zeros((len(density), count))
        member[np.arange(len(density)), where[part]] = weights[part]
        content += member.T @ density
        squares += weights[part] ** 2 @ density**2
    total = content.sum(axis=0)
    share = (content / total).reshape(count, *sizes)
    return Cells(
        centres,
        reach,
        np.array([chebyshev.coefficients(s) for s in share]),
        chebyshev.coefficients(np.log(total**2 / squares).reshape(sizes)),
    )


def nearest(network: Network, x: Array, centres: Array) -> tuple[NDArray[np.int64], Array]:
    """Of each event the nearest centre, and the squared distance from it."""
    parts = list(_nearest_parts(network, x, centres))
    return np.concatenate([w for w, _ in parts]), np.concatenate([d for _, d in parts])


def _nearest_parts(
    network: Network, x: Array, centres: Array
) -> Iterator[tuple[NDArray[np.int64], Array]]:
    # In float32, which tells distances of cells well enough, and with centres last in memory,
    # along which torch finds a least one fastest.
    middles = torch.as_tensor(centres).float()
    squares = (middles**2).sum(1)
    for start in range(0, len(x), _CHUNK):
        y = network.standardise(torch.as_tensor(x[start : start + _CHUNK])).float()
        distance, where = torch.addmm(squares, y, middles.T, alpha=-2).min(1)
        yield where.numpy(), (distance + (y**2).sum(1)).numpy()


def _inputs(network: Network, x: Array) -> Array:
    return network.standardise(torch.as_tensor(x)).numpy()
