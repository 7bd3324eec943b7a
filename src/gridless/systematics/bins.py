"""Signal, backgrounds and systematics in the bins of every observable, for figures of data against
simulation.

The share of events in a bin is (1 - sum_b f_b) h(theta, alpha) + sum_b f_b h_b(alpha), with
h(theta, alpha) = h(theta) + sum_k [alpha_k l_k(theta) + alpha_k^2 s_k(theta)]; l = (up - down) / 2
and s = (up + down) / 2 of the changes that the variations make, linear in theta.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridless.systematics.samples import Events, ProcessSamples, Varied
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid
from gridless.templates.histograms import Histogram, bin_events
from gridless.templates.interpolation import interpolate

Edges = Mapping[str, Array]
OWN = ("nominal", "variance", "systematics", "linear", "square")


@dataclass(frozen=True, eq=False)
class BinnedProcess:
    """A process in the bins of all observables, one observable after the other.

    Attributes
    ----------
    nominal, variance : array (bins,)
        Shares of the events of a background, and their variances. Of the signal they are 0: the
        summary of the templates has them at every theta.
    systematics : array (K,) of int
        The nuisance parameters that change it.
    linear, square : array (K, 1 + parameters, bins)
        What each changes, times alpha and alpha^2: coefficients of 1, t_1 - 1/2, ...
    """

    nominal: Array
    variance: Array
    systematics: NDArray[np.int64]
    linear: Array
    square: Array

    def change(self, t: Array, alpha: Array) -> Array:
        """The change (bins,) at t, in units of the range, and alpha of all nuisance parameters."""
        terms = np.concatenate([[1.0], t - 0.5])[: self.linear.shape[1]]
        own = alpha[self.systematics]
        return np.asarray(
            np.einsum("k,kjb,j->b", own, self.linear, terms)
            + np.einsum("k,kjb,j->b", own**2, self.square, terms)
        )

    def arrays(self) -> dict[str, Array]:
        """What a file holds of it."""
        return {name: np.asarray(getattr(self, name), np.float64) for name in OWN}


def process_of(
    arrays: Mapping[str, Array], bins: int, nuisances: int, parameters: int
) -> BinnedProcess:
    """The process of a file; a ValueError or KeyError if it is none."""
    which = arrays["systematics"]
    if which.ndim != 1 or any(not 0 <= one < nuisances for one in which):
        raise ValueError("bins: systematics")
    shapes = {"nominal": (bins,), "variance": (bins,), "systematics": which.shape}
    shapes |= dict.fromkeys(("linear", "square"), (len(which), 1 + parameters, bins))
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"bins: {name} is {arrays[name].shape} and not {shape}")
    return BinnedProcess(
        arrays["nominal"],
        arrays["variance"],
        which.astype(np.int64),
        arrays["linear"],
        arrays["square"],
    )


def bin_samples(
    samples: Sequence[ProcessSamples], names: Sequence[str], edges: Edges, grid: Grid
) -> tuple[BinnedProcess, ...]:
    """The signal and the backgrounds of a measurement in bins.

    Parameters
    ----------
    samples : sequence of ProcessSamples
        The signal first.
    names : sequence of str
        The nuisance parameters.
    edges : mapping from str to array (bins + 1,)
        Of every observable, in the order of the columns of x.
    grid : Grid
        That of the templates.
    """
    return tuple(
        _binned(sample, names, edges, grid if number == 0 else None)
        for number, sample in enumerate(samples)
    )


def mixed_histograms(
    signal: Mapping[str, Histogram],
    processes: Sequence[BinnedProcess],
    shares: Array,
    t: Array,
    alpha: Array,
) -> dict[str, Histogram]:
    """Histograms of signal and backgrounds together.

    Parameters
    ----------
    signal : mapping from str to Histogram
        Shares of the signal's events at t, by observable.
    processes, shares : sequence of BinnedProcess, array (processes,)
        Signal first, and the share of each.
    t, alpha : array (parameters,), array (nuisances,)
        Where.
    """
    of_signal = np.concatenate([one.values() for one in signal.values()])
    noise = np.concatenate([one.variances() for one in signal.values()])
    values, variances = shares[0] * of_signal, shares[0] ** 2 * noise
    for share, process in zip(shares, processes, strict=True):
        values = values + share * (process.nominal + process.change(t, alpha))
        variances = variances + share**2 * process.variance
    found, first = {}, 0
    for name, one in signal.items():
        last = first + len(one.axes[0])
        own = values[first:last].clip(min=0)
        found[name] = Histogram(one.axes, one.total, own, variances[first:last])
        first = last
    return found


def _binned(
    sample: ProcessSamples, names: Sequence[str], edges: Edges, grid: Grid | None
) -> BinnedProcess:
    points = len(sample.t)
    nominal = np.array([_shares(sample.nominal, point, edges)[0] for point in range(points)])
    width = sample.t.shape[1]
    linear, square = [], []
    for varied in sample.varied:
        changes = _changes(varied, nominal, edges, grid)
        up, down = changes[0], changes[-1] if len(changes) > 1 else -changes[0]
        linear.append(_in_theta(varied.t, 0.5 * (up - down)))
        square.append(_in_theta(varied.t, 0.5 * (up + down)))
    empty = np.zeros((0, 1 + width, nominal.shape[1]))
    shares, variance = np.zeros(nominal.shape[1]), np.zeros(nominal.shape[1])
    if grid is None:  # a background
        shares, variance = _shares(sample.nominal, 0, edges)
    return BinnedProcess(
        shares,
        variance,
        np.array([names.index(varied.name) for varied in sample.varied], np.int64),
        np.array(linear) if linear else empty,
        np.array(square) if square else empty,
    )


def _changes(varied: Varied, nominal: Array, edges: Edges, grid: Grid | None) -> list[Array]:
    """What every side changes (points, bins)."""
    before = []
    for t, template in zip(varied.t, varied.template, strict=True):
        if template >= 0:
            before.append(nominal[template])
        else:
            assert grid is not None
            before.append(interpolate(grid, nominal, grid.from_unit(t))[0])
    return [
        np.array([_shares(side, point, edges)[0] for point in range(len(varied.t))]) - before
        for side in varied.sides
    ]


def _in_theta(t: Array, changes: Array) -> Array:
    """Coefficients (1 + parameters, bins) of a linear function of t; constant where there are too
    few points for more."""
    count = 1 + t.shape[1]
    terms = np.hstack([np.ones((len(t), 1)), t - 0.5])
    if len(t) > count and np.linalg.matrix_rank(terms) == count:
        return np.asarray(np.linalg.lstsq(terms, changes, rcond=None)[0])
    return np.vstack([changes.mean(axis=0), np.zeros((count - 1, changes.shape[1]))])


def _shares(events: Events, point: int, edges: Edges) -> tuple[Array, Array]:
    """Shares of the events at a point in all bins, and their variances."""
    own = events.point == point
    weights = events.weights[own]
    binned = bin_events(edges, events.x[own], weights, {})
    total = float(weights.sum())
    return binned.content.ravel() / total, binned.squares.ravel() / total**2
