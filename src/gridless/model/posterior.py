"""The posterior p(theta | x) of each of a set of events."""

from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from gridless.curves import chebyshev
from gridless.density.basis import box_quadrature
from gridless.density.mixture import Mixture
from gridless.errors import InputError, counted
from gridless.templates.arrays import Array, as_numbers
from gridless.templates.grid import Grid

# Gauss-Legendre nodes along each parameter that normalise, by the number of parameters.
NODES = {1: 128, 2: 24, 3: 12}
# Cells along each parameter for mode and samples, by the number of parameters.
CELLS = {1: 1024, 2: 64, 3: 24}


class Posterior:
    """p(theta | x_i) = sum_m c_m B_m(theta), one density per event, normalised inside the bounds.

    With prior="divide" each density is divided by the implied prior q(theta) and normalised again.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable(width=0.3)
    >>> model = gl.fit(example.templates(2_000, seed=1), hidden=3, seed=1)
    >>> posterior = model.posterior([[0.0], [0.5], [1.0]])
    >>> [f"{mean:.1f}" for mean in posterior.mean]
    ['0.2', '0.5', '0.8']
    >>> sorted(posterior.to_dict())
    ['bounds', 'events', 'mean', 'mode', 'parameters']
    """

    def __init__(self, mixture: Mixture, grid: Grid, log_q: Array) -> None:
        self._mixture = mixture
        self._grid = grid
        self._log_q = log_q

    def __len__(self) -> int:
        return len(self._mixture)

    def __repr__(self) -> str:
        return f"Posterior of {self._grid.describe()} for {counted(len(self), 'event')}"

    def log_prob(self, theta: ArrayLike) -> Array:
        """log p(theta | x), -inf outside the bounds.

        `theta` broadcasts against the events: a number, one value per event, or shape (n, 1) for
        n values at every event. Several parameters are on a further, last axis.
        """
        values = as_numbers(theta, "theta")
        count = len(self._grid.parameters)
        values = values[..., None] if count == 1 else values
        if values.shape[-1:] != (count,):
            raise InputError(f"theta: shape {values.shape}; its last axis holds {count} parameters")
        try:
            shape = np.broadcast_shapes(values.shape[:-1], (len(self),))
        except ValueError:
            raise InputError(
                f"theta: shape {np.shape(theta)} for {len(self)} events; give one value per event, "
                "or theta[:, None] to have every value at every event"
            ) from None
        t = np.broadcast_to(self._grid.to_unit(values), (*shape, count))
        inside = np.asarray(((t >= 0) & (t <= 1)).all(axis=-1))
        safe = torch.as_tensor(np.where(inside[..., None], t, 0.5))
        log_p = self._mixture.log_prob(safe).numpy()
        log_p = log_p - chebyshev.evaluate(self._log_q, safe.numpy())
        log_p = log_p - self._log_norm - np.log(self._grid.range).sum()
        return np.asarray(np.where(inside, log_p, -np.inf))

    @property
    def mean(self) -> Array:
        """E[theta | x] of each event, with several parameters (events, parameters)."""
        nodes, weights = self._quadrature
        density = np.exp(self._log_ratio(nodes) - self._log_norm[:, None])
        return self._plain(self._grid.from_unit((density * weights) @ nodes))

    @property
    def mode(self) -> Array:
        """The theta of greatest density of each event."""
        cells, log_p = self._cells
        count = len(self._grid.parameters)
        steps = CELLS[count]
        best = log_p.argmax(axis=1)
        events = np.arange(len(self))
        t = cells[best].copy()
        for p in range(count):
            # A parabola through the highest cell and its neighbours, where it has both.
            stride = steps ** (count - 1 - p)
            position = best // stride % steps
            inner = (position > 0) & (position < steps - 1)
            middle = np.where(inner, best, stride)
            left, mid, right = (log_p[events, middle + i * stride] for i in (-1, 0, 1))
            bend = left - 2 * mid + right
            curved = inner & (bend < 0)
            shift = np.where(curved, 0.5 * (left - right) / np.where(curved, bend, -1.0), 0.0)
            t[:, p] += shift.clip(-1, 1) / steps
            # A density that still rises in the outermost cell has its mode on the bound.
            t[:, p] = np.where(position == 0, 0.0, np.where(position == steps - 1, 1.0, t[:, p]))
        return self._plain(self._grid.from_unit(t))

    def sample(self, size: int = 1, seed: int = 0) -> Array:
        """`size` values of theta for each event, (size, events), drawn by the inverse CDF.

        Several parameters are on a further, last axis.
        """
        cells, log_p = self._cells
        random = np.random.default_rng(seed)
        cdf = np.cumsum(np.exp(log_p - log_p.max(axis=1, keepdims=True)), axis=1)
        u = random.random((size, len(self))) * cdf[:, -1]
        chosen = np.stack(
            [np.searchsorted(cdf[i], u[:, i], side="right") for i in range(len(self))], axis=1
        )
        count = cells.shape[1]
        jitter = random.random((size, len(self), count)) - 0.5
        t = cells[chosen.clip(max=len(cells) - 1)] + jitter / CELLS[count]
        return self._plain(self._grid.from_unit(t))

    def to_dict(self) -> dict[str, Any]:
        """Mean and mode of each event for machines, in what JSON can hold.

        Returns
        -------
        dict
            `parameters`, `bounds`, `events` (their number), `mean` and `mode` (one per event).
        """
        return {
            "parameters": list(self._grid.parameters),
            "bounds": self._grid.bounds.tolist(),
            "events": len(self),
            "mean": self.mean.tolist(),
            "mode": self.mode.tolist(),
        }

    def _plain(self, theta: Array) -> Array:
        """Without the axis of parameters where there is one only."""
        return theta[..., 0] if len(self._grid.parameters) == 1 else theta

    def _log_ratio(self, t: Array) -> Array:
        """log p(t | x) - log q(t) (events, values), in units of the range, before normalising."""
        log_p = self._mixture.log_prob_at(torch.as_tensor(t)).numpy()
        return np.asarray(log_p - chebyshev.evaluate(self._log_q, t))

    @cached_property
    def _quadrature(self) -> tuple[Array, Array]:
        """Points and weights that integrate over the box."""
        count = len(self._grid.parameters)
        points, log_weights = box_quadrature(count, NODES[count])
        return points.numpy(), np.exp(log_weights.numpy())

    @cached_property
    def _log_norm(self) -> Array:
        """The log of the integral over theta, which is not 1 after dividing by q."""
        if self._mixture.templates is None and not self._log_q.any():
            return np.zeros(len(self))
        nodes, weights = self._quadrature
        log_p = self._log_ratio(nodes)
        top = log_p.max(axis=1)
        return np.asarray(top + np.log(np.exp(log_p - top[:, None]) @ weights))

    @cached_property
    def _cells(self) -> tuple[Array, Array]:
        """Midpoints of cells that fill the box, and the log density there (events, cells)."""
        count = len(self._grid.parameters)
        axis = (np.arange(CELLS[count]) + 0.5) / CELLS[count]
        cells = np.array(list(product(axis, repeat=count)))
        return cells, self._log_ratio(cells)
