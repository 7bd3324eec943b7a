"""Minima of very many likelihoods at once, from their values on a lattice of points."""

import numpy as np

from gridless.templates.arrays import Array

# Points per parameter, by their number; of one parameter at the least and at the most.
SIZES = {2: 41, 3: 17}
LEAST_POINTS = 129
MOST_POINTS = 2049
PER_ERROR = 4.0  # points per error, of one parameter
REACH = 6.0  # errors to either side that the lattice spans, of several parameters


class Lattice:
    """Points around a place: of one parameter over the whole range, of several a box.

    Minima lie between points: a parabola through neighbours finds them.

    Attributes
    ----------
    points : array (points, parameters)
        All points at which values are needed: those of the lattice, then those with the parameter
        of `axis` at the place.
    here : float
        The place's value of that parameter.
    """

    def __init__(self, place: Array, widths: Array, axis: int) -> None:
        count = len(place)
        self.axis, self.here = axis, float(place[axis])
        if count == 1:
            size = int(np.clip(PER_ERROR / widths[0], LEAST_POINTS, MOST_POINTS))
            self.axes = [np.linspace(0, 1, size)]
        else:
            size = SIZES[count]
            low, high = (place - REACH * widths).clip(0, 1), (place + REACH * widths).clip(0, 1)
            self.axes = [np.linspace(a, b, size) for a, b in zip(low, high, strict=True)]
        free = _mesh(self.axes)
        held = _mesh([np.array([self.here]) if p == axis else a for p, a in enumerate(self.axes)])
        self.free = len(free)
        self.points = np.concatenate([free, held])

    def rises(self, values: Array) -> tuple[Array, Array]:
        """l(here) - min l of each row of values (rows, points), and where along the axis the
        minimum is."""
        sizes = [len(a) for a in self.axes]
        lowest, where = _lowest(values[:, : self.free].reshape(-1, *sizes))
        others = [size for p, size in enumerate(sizes) if p != self.axis]
        held = values[:, self.free :].reshape(-1, *others)
        profile = _lowest(held)[0] if others else held
        grid = self.axes[self.axis]
        step = grid[1] - grid[0]
        best = grid[0] + step * where[:, self.axis]
        return np.asarray(profile - lowest).clip(min=0), np.asarray(best)


def _mesh(axes: list[Array]) -> Array:
    grids = np.meshgrid(*axes, indexing="ij")
    return np.stack([g.ravel() for g in grids], axis=-1)


def _lowest(values: Array) -> tuple[Array, Array]:
    """The minimum of each row of values on a lattice (rows, ...), and where, in steps: (rows,
    parameters)."""
    rows, sizes = len(values), values.shape[1:]
    index = np.stack(np.unravel_index(values.reshape(rows, -1).argmin(axis=1), sizes), axis=1)
    # Parabolas need a neighbour on either side.
    centre = index.clip(1, np.array(sizes) - 2)
    count, every = len(sizes), np.arange(rows)

    def at(*shift: int) -> Array:
        return np.asarray(values[(every, *(centre + np.array(shift)).T)])

    zero = at(*[0] * count)
    slope, bend = np.zeros((rows, count)), np.zeros((rows, count, count))
    for p in range(count):
        one = np.eye(count, dtype=int)[p]
        up, down = at(*one), at(*-one)
        slope[:, p], bend[:, p, p] = 0.5 * (up - down), up - 2 * zero + down
        for q in range(p):
            other = np.eye(count, dtype=int)[q]
            corners = at(*(one + other)) - at(*(one - other)) - at(*(other - one))
            bend[:, p, q] = bend[:, q, p] = 0.25 * (corners + at(*(-one - other)))
    good = np.linalg.eigvalsh(bend)[:, 0] > 1e-12
    safe = np.where(good[:, None, None], bend, np.eye(count))
    move = np.linalg.solve(safe, -slope[..., None])[..., 0].clip(-1, 1)
    value = zero + np.einsum("ni,ni->n", slope, move)
    value = value + 0.5 * np.einsum("ni,nij,nj->n", move, bend, move)
    grid_value = values[(every, *index.T)]
    use = good & (value <= grid_value)
    place = np.where(use[:, None], centre + move, index)
    return np.where(use, value, grid_value), place
