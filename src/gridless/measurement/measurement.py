"""What a model knows of a whole measurement: mu(theta, alpha) of the summary, from every sample.

mu = (1 - sum_b f_b) mu_signal(theta, alpha) + sum_b f_b mu_b(alpha), and the shares are
f_b = share_b + unit_b alpha_b.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gridless.measurement.features import Features
from gridless.measurement.process import Process
from gridless.templates.arrays import Array, positive
from gridless.templates.grid import Grid

FREE = 1e6  # units of a variation: the error of a free nuisance parameter without information


class Nuisance(NamedTuple):
    """A nuisance parameter: its name, and the standard deviation of its constraint around 0."""

    name: str
    constraint: float | None

    @property
    def width(self) -> float:
        """The constraint; `FREE`, which is as good as none, for a free parameter."""
        return FREE if self.constraint is None else self.constraint


class Share(NamedTuple):
    """The share of a background, and how much it changes with its parameter."""

    nuisance: int
    share: float
    unit: float


class State(NamedTuple):
    """A measurement at one point or several: mean (..., d), its slopes (..., parameters +
    nuisances, d), the shares (..., processes), and the means of the processes (..., processes, d).
    """

    mean: Array
    slopes: Array
    shares: Array
    means: Array


@dataclass(frozen=True, eq=False)
class Measurement:
    """Signal and backgrounds with their systematics, as functions of theta and alpha.

    Attributes
    ----------
    grid : Grid
        Parameters, bounds and templates.
    nuisances : tuple of Nuisance
        Systematics first, then the backgrounds.
    shares : tuple of Share
        Of each background.
    centre, transform : array (size,), array (size, d)
        y = (raw - centre) @ transform is the whitened summary.
    processes : tuple of Process
        The signal first, then the backgrounds.
    features, projection : Features, array (folds, features, nuisances and parameters)
        They make the coefficients of the summary that are not the network's own.
    """

    grid: Grid
    nuisances: tuple[Nuisance, ...]
    shares: tuple[Share, ...]
    centre: Array
    transform: Array
    processes: tuple[Process, ...]
    features: Features
    projection: Array

    def summaries(self, c: Array, z: Array) -> Array:
        """The whitened summary (events, d) of observed events.

        Parameters
        ----------
        c, z : array (events, size), array (events, observables)
            The network's own summary, and its standardised inputs.
        """
        learnt = self.features.project(c, z, self.projection.mean(axis=0))
        return np.asarray((np.hstack([c, learnt]) - self.centre) @ self.transform)

    @property
    def size(self) -> int:
        """The number of components of the summary."""
        return int(self.transform.shape[1])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameters and nuisance parameters."""
        return (*self.grid.parameters, *(one.name for one in self.nuisances))

    def split(self, p: Array) -> tuple[Array, Array]:
        """t in units of the range and alpha, of vectors (..., parameters + nuisances)."""
        count = len(self.grid.parameters)
        return self.grid.to_unit(p[..., :count]), p[..., count:]

    def process_shares(self, alpha: Array) -> Array:
        """The share of every process (..., processes): 1 - sum f first."""
        f = [one.share + one.unit * alpha[..., one.nuisance] for one in self.shares]
        return np.stack([1 - sum(f, np.zeros(alpha.shape[:-1])), *f], axis=-1)

    def without_backgrounds(self) -> dict[str, float]:
        """The nuisance parameters of the shares, with values at which the signal is alone."""
        return {self.nuisances[one.nuisance].name: -one.share / one.unit for one in self.shares}

    def at(self, p: Array) -> State:
        """Mean and slopes at theta and alpha: p (..., parameters + nuisances)."""
        t, alpha = self.split(p)
        count = t.shape[-1]
        shares = self.process_shares(alpha)
        points = [process.at(t, alpha) for process in self.processes]
        means = np.stack([point.mean for point in points], axis=-2)
        slopes = np.zeros((*p.shape, self.size))
        slopes[..., :count, :] = shares[..., :1, None] * points[0].by_t / self.grid.range[:, None]
        for number, (process, point) in enumerate(zip(self.processes, points, strict=True)):
            places = count + process.systematics
            slopes[..., places, :] += shares[..., number, None, None] * point.by_alpha
        for number, one in enumerate(self.shares, start=1):
            change = means[..., number, :] - means[..., 0, :]
            slopes[..., count + one.nuisance, :] += one.unit * change
        return State(np.einsum("...b,...bd->...d", shares, means), slopes, shares, means)

    def curvature(self, p: Array, along: Array) -> Array:
        """The second derivatives of mu by the systematics, along a vector (d,); those by shares and
        by theta, which are small, are left out."""
        t, alpha = self.split(p)
        total = np.zeros((len(p), len(p)))
        for share, process in zip(self.process_shares(alpha), self.processes, strict=True):
            places = len(t) + process.systematics
            total[np.ix_(places, places)] += share * process.curvature(t, alpha, along)
        return total

    def event_covariance(self, p: Array) -> Array:
        """The covariance (d, d) of the summary of one event."""
        t, alpha = self.split(p)
        state = self.at(p)
        each = np.array([process.event_covariance(t, alpha) for process in self.processes])
        rest = state.means - state.mean
        each = each + rest[:, :, None] * rest[:, None, :]
        return positive(np.tensordot(state.shares, each, 1))

    def statistics(self, p: Array, size: Array) -> Array:
        """The covariance (d, d) of mu from the statistics of the simulation, where the systematics
        are of the typical size (nuisances,)."""
        t, alpha = self.split(p)
        each = [process.statistics(t, size) for process in self.processes]
        return np.asarray(np.tensordot(self.process_shares(alpha) ** 2, np.array(each), 1))

    def interpolation(self, p: Array) -> Array:
        """The covariance (d, d) of mu from the interpolation between the templates."""
        t, alpha = self.split(p)
        return np.asarray(self.process_shares(alpha)[0] ** 2 * self.processes[0].interpolation(t))

    def left_open(self, p: Array, size: Array) -> Array:
        """The variances (nuisances, d) of mu from what the samples of each systematic do not
        determine: see `Process.left_open`."""
        t, alpha = self.split(p)
        total = np.zeros((len(alpha), self.size))
        for share, process in zip(self.process_shares(alpha), self.processes, strict=True):
            if len(process.systematics):
                total[process.systematics] += share**2 * process.left_open(t, size)
        return total
