"""The posterior p(theta | x) of each of a set of events."""

from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gridless import chebyshev
from gridless.arrays import Array
from gridless.basis import Basis
from gridless.errors import InputError
from gridless.grid import Grid
from gridless.network import mixture_log_prob

# Quadrature and inverse CDF by trapezoids: exact to 1e-5 for components wider than 0.005.
_STEPS = 1024


class Posterior:
    """p(theta | x_i) = sum_m c_m B_m(theta), one density per event, normalised inside the bounds.

    With prior="divide" each density is divided by the implied prior q(theta) and normalised again.
    """

    def __init__(
        self, basis: Basis, log_c: Tensor, z: Tensor, grid: Grid, log_q: Array | None
    ) -> None:
        self._basis, self._log_c, self._z = basis, log_c, z
        self._grid, self._log_q = grid, log_q

    def __len__(self) -> int:
        return len(self._log_c)

    def __repr__(self) -> str:
        low, high = self._grid.bounds[0]
        name = self._grid.parameters[0]
        return f"Posterior of {name} in [{low:g}, {high:g}] for {len(self):,} event(s)"

    def log_prob(self, theta: ArrayLike) -> Array:
        """log p(theta | x), -inf outside the bounds.

        `theta` broadcasts against the events: a number, one value per event, or shape (n, 1) for
        n values at every event.
        """
        theta = np.asarray(theta, float)
        try:
            np.broadcast_shapes(theta.shape, (len(self),))
        except ValueError:
            raise InputError(
                f"theta: shape {theta.shape} for {len(self)} events; give one value per event, "
                "or theta[:, None] to have every value at every event"
            ) from None
        low, high = self._grid.bounds[0]
        t = (theta - low) / (high - low)
        inside = (t >= 0) & (t <= 1)
        log_p = self._log_ratio(torch.as_tensor(np.where(inside, t, 0.5))) - self._log_norm
        return np.asarray(np.where(inside, log_p - np.log(high - low), -np.inf))

    @property
    def mean(self) -> Array:
        """E[theta | x] of each event."""
        t, density = self._table
        moment = np.asarray(np.trapezoid(density * t[:, None], t, axis=0))
        return self._grid.from_unit(moment[:, None])[:, 0]

    @property
    def mode(self) -> Array:
        """The theta of greatest density of each event."""
        t, density = self._table
        best = density.argmax(axis=0)
        # A parabola through the highest point and its neighbours, where it has both.
        inner = best.clip(1, _STEPS - 1)
        events = np.arange(len(self))
        left, mid, right = (np.log(density[inner + i, events]) for i in (-1, 0, 1))
        bend = left - 2 * mid + right
        shift = np.where(bend < 0, 0.5 * (left - right) / np.where(bend < 0, bend, -1), 0)
        t_best = np.where(best == inner, t[inner] + shift.clip(-1, 1) / _STEPS, t[best])
        return self._grid.from_unit(t_best[:, None])[:, 0]

    def sample(self, size: int = 1, seed: int = 0) -> Array:
        """`size` values of theta for each event, (size, events), drawn by the inverse CDF."""
        t, density = self._table
        steps = 0.5 * (density[1:] + density[:-1]) / _STEPS
        cdf = np.concatenate([np.zeros((1, len(self))), np.cumsum(steps, axis=0)])
        u = np.random.default_rng(seed).random((size, len(self)))
        draws = np.stack(
            [np.interp(u[:, i] * cdf[-1, i], cdf[:, i], t) for i in range(len(self))], axis=1
        )
        return self._grid.from_unit(draws[..., None])[..., 0]

    def _log_ratio(self, t: Tensor) -> Array:
        """log p(t | x) - log q(t), in units of the range and before normalising again."""
        log_p = mixture_log_prob(self._basis, self._log_c, self._z, t).numpy()
        if self._log_q is None:
            return np.asarray(log_p)
        return np.asarray(log_p - chebyshev.evaluate(self._log_q, t.numpy()))

    @cached_property
    def _log_norm(self) -> Array | float:
        """What dividing by q leaves of the normalisation of each event."""
        if self._log_q is None:
            return 0.0
        nodes, weights = np.polynomial.legendre.leggauss(128)
        log_p = self._log_ratio(torch.as_tensor(0.5 + 0.5 * nodes)[:, None])
        return np.asarray(np.log(np.exp(log_p).T @ (weights / 2)))

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        """t on an even grid (steps + 1,) and the density there (steps + 1, events)."""
        t = np.linspace(0, 1, _STEPS + 1)
        density = np.exp(self._log_ratio(torch.as_tensor(t)[:, None]) - self._log_norm)
        return t, density
