"""A process of a measurement: the mean of the summary with its variations, its covariance, its
noise."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gridless.curves.polynomials import Powers
from gridless.measurement.shift import Shift, shift_powers, shift_slopes, shift_terms
from gridless.systematics.course import splines
from gridless.templates.arrays import Array, symmetric_power

MIN_KERNEL_EVENTS = 2000  # effective events that a covariance between templates is averaged over
# |alpha| up to which a shift is quadratic in alpha; beyond, it is a straight line.
STRAIGHT = 2.0
FARTHEST = 5.0  # alpha beyond which the undetermined terms stop growing: free alphas have no limit
CREST, MOST = 3**-0.5, 2 * 3**-1.5  # where |alpha^3 - alpha| is largest between the nodes: so much
MOST_CUBE = 0.6  # of a shift, in alpha^3 - alpha: of a peak that is shifted by twice its width
LEAST_SPREAD = 0.25  # of the nominal covariance, and its inverse: more is extrapolated too far
LEAST_SHIFT = 1e-12  # spreads of one event: a smaller shift counts as 0


class Point(NamedTuple):
    """A process at one point or several: its mean (..., d), and the slopes of that by t (...,
    parameters, d) and by each of its systematics (..., systematics, d)."""

    mean: Array
    by_t: Array
    by_alpha: Array


@dataclass(frozen=True, eq=False)
class Process:
    """The signal, or a background.

    Attributes
    ----------
    t : array (points, parameters)
        Where it was simulated, in units of the range; a background has no parameters.
    powers, coefficients : array (terms, parameters), array (terms, d)
        The nominal mean as a polynomial.
    noise : array (terms, d, changes)
        Independent unit changes of the coefficients by the statistics of the simulation.
    open : array (terms, d, changes)
        Independent unit changes of the coefficients by the interpolation between templates.
    covariance : array (points, d, d)
        The covariance of the summary of one event.
    size : array (points,)
        Effective events.
    systematics : array (systematics,) of int
        Which nuisance parameters vary it.
    linear, square : tuple of Shift
        What each does, in alpha and in alpha^2.
    pairs : array (pairs, 2) of int
        Which of its systematics are seen to do more together than the sum of both.
    crossed : array (pairs, terms, d)
        The coefficient of alpha_j alpha_k of each pair, as a polynomial like those of the shifts.
    untold : array (systematics, systematics)
        The standard deviation of second-order terms that no sample determines, in units of the
        product of the two shifts, each in spreads of one event; on the diagonal alpha_k^2.
    cubes : array (systematics,)
        The standard deviation of alpha^3 - alpha of those whose events are not known between the
        variations, in units of the cube of their shift in spreads of one event.
    coursed : array (coursed,) of int
        Which of its systematics are seen to do more in alpha than a parabola.
    course : array (coursed, nodes, terms, d)
        What that is at the nodes of `splines`, as polynomials like those of the shifts.
    spread : array (systematics, 2, d, d)
        What each does to the covariance of one event, in alpha and in alpha^2.
    """

    t: Array
    powers: Powers
    coefficients: Array
    noise: Array
    open: Array
    covariance: Array
    size: Array
    systematics: NDArray[np.int64]
    linear: tuple[Shift, ...]
    square: tuple[Shift, ...]
    pairs: NDArray[np.int64]
    crossed: Array
    untold: Array
    cubes: Array
    coursed: NDArray[np.int64]
    course: Array
    spread: Array

    @cached_property
    def shift_powers(self) -> Powers:
        """The terms of its shifts."""
        return shift_powers(self.t.shape[1])

    @cached_property
    def _shifts(self) -> Array:
        """Coefficients (2, systematics, terms, d) of all shifts."""
        size = self.coefficients.shape[1]
        if not self.linear:
            return np.zeros((2, 0, len(self.shift_powers), size))
        return np.array([[s.coefficients for s in kind] for kind in (self.linear, self.square)])

    @cached_property
    def _by_term(self) -> Array:
        """What pairs do together, as a matrix (terms, pairs * d)."""
        return np.swapaxes(self.crossed, 0, 1).reshape(self.crossed.shape[1], -1)

    @cached_property
    def _members(self) -> csr_array:
        """1 where a systematic is the first of a pair, then the second: (systematics, 2 pairs)."""
        count, which = len(self.pairs), self.pairs.T.ravel()
        shape = len(self.systematics), 2 * count
        return csr_array((np.ones(2 * count), (which, np.arange(2 * count))), shape=shape)

    def _together(self, phi: Array, one: Array, two: Array) -> Array:
        """sum_l alpha_l X_kl (..., systematics, d); `one` and `two` (..., pairs) are the values of
        the first and of the second of each pair."""
        *many, count = one.shape
        x = (phi @ self._by_term).reshape(*many, count, -1)
        each = np.concatenate([two[..., None] * x, one[..., None] * x], axis=-2)
        rows = np.moveaxis(each, -2, 0)
        found = self._members @ rows.reshape(2 * count, -1)
        return np.moveaxis(found.reshape(-1, *rows.shape[1:]), 0, -2)

    def at(self, t: Array, alpha: Array) -> Point:
        """The process at t (..., parameters) with its systematics at alpha (..., systematics)."""
        t = t[..., : self.t.shape[1]]
        a = alpha[..., self.systematics]
        bend, slope = bent(a)
        phi, dphi = shift_terms(t, self.shift_powers), shift_slopes(t, self.shift_powers)
        first, second = np.einsum("...m,xkmd->x...kd", phi, self._shifts)
        mean = shift_terms(t, self.powers) @ self.coefficients
        mean = mean + np.einsum("...k,...kd->...d", a, first)
        mean = mean + np.einsum("...k,...kd->...d", bend, second)
        moved = np.einsum("...k,kmd->...md", a, self._shifts[0])
        moved = moved + np.einsum("...k,kmd->...md", bend, self._shifts[1])
        by_alpha = first + slope[..., None] * second
        if len(self.pairs):
            one, two = a[..., self.pairs[:, 0]], a[..., self.pairs[:, 1]]
            together = self._together(phi, one, two)
            mean = mean + 0.5 * np.einsum("...k,...kd->...d", a, together)
            flat = self.crossed.reshape(len(self.pairs), -1)
            moved = moved + ((one * two) @ flat).reshape(moved.shape)
            by_alpha = by_alpha + together
        if len(self.coursed):
            value, change, _ = splines(a[..., self.coursed])
            mean = mean + np.einsum("...kn,...m,knmd->...d", value, phi, self.course)
            moved = moved + np.einsum("...kn,knmd->...md", value, self.course)
            by_alpha = by_alpha.copy()
            by_alpha[..., self.coursed, :] += np.einsum(
                "...kn,...m,knmd->...kd", change, phi, self.course
            )
        by_t = shift_slopes(t, self.powers) @ self.coefficients + dphi @ moved
        return Point(mean, by_t, by_alpha)

    def curvature(self, t: Array, alpha: Array, along: Array) -> Array:
        """The second derivatives (systematics, systematics) of the mean by alpha, along a vector
        (d,)."""
        a = alpha[self.systematics]
        phi = shift_terms(t[: self.t.shape[1]], self.shift_powers)
        second = np.einsum("m,kmd,d->k", phi, self._shifts[1], along)
        bends = np.diag(np.where(np.abs(a) <= STRAIGHT, 2 * second, 0.0))
        if len(self.coursed):
            change = splines(a[self.coursed])[2]
            own = np.einsum("kn,m,knmd,d->k", change, phi, self.course, along)
            bends[self.coursed, self.coursed] += own
        crossed = (phi @ self._by_term).reshape(len(self.pairs), len(along)) @ along
        bends[self.pairs[:, 0], self.pairs[:, 1]] += crossed
        bends[self.pairs[:, 1], self.pairs[:, 0]] += crossed
        return bends

    def event_covariance(self, t: Array, alpha: Array) -> Array:
        """The covariance (d, d) of one event at t, the average of those of near points, with its
        systematics at alpha."""
        nominal = np.tensordot(self._kernel(t[: self.t.shape[1]]), self.covariance, 1)
        a = np.clip(alpha[self.systematics], -STRAIGHT, STRAIGHT)
        if not a.any():
            return np.asarray(nominal)
        change = np.einsum("xk,kxij->ij", np.array([a, a**2]), self.spread)
        root = symmetric_power(nominal, 0.5)
        back = symmetric_power(nominal, -0.5)
        values, vectors = np.linalg.eigh(back @ change @ back)
        factors = (1 + values).clip(LEAST_SPREAD, 1 / LEAST_SPREAD)
        return np.asarray(root @ (vectors * factors) @ vectors.T @ root)

    def statistics(self, t: Array, size: Array) -> Array:
        """The covariance (d, d) of the mean from finite simulation, with systematics of the typical
        size (systematics,)."""
        t = t[: self.t.shape[1]]
        changes = np.tensordot(shift_terms(t, self.powers), self.noise, 1)
        total = changes @ changes.T
        phi = shift_terms(t, self.shift_powers)
        a = size[self.systematics]
        for one, two, x, y in zip(self.linear, self.square, a, bent(a)[0], strict=True):
            total = total + x**2 * one.noise(phi) + y**2 * two.noise(phi)
        return np.asarray(total)

    def interpolation(self, t: Array) -> Array:
        """The covariance (d, d) of the mean from what the templates leave open between them."""
        changes = np.tensordot(shift_terms(t[: self.t.shape[1]], self.powers), self.open, 1)
        return np.asarray(changes @ changes.T)

    def left_open(self, t: Array, size: Array) -> Array:
        """The variances (systematics, d) of the mean from what the samples of each systematic do
        not determine: its shift between their values of theta, and terms of higher order in alpha.
        `size` (systematics,) are the typical values of alpha."""
        phi = shift_terms(t[: self.t.shape[1]], self.shift_powers)
        a = size[self.systematics]
        between = [
            x**2 * one.left_open(phi) + y**2 * two.left_open(phi)
            for one, two, x, y in zip(self.linear, self.square, a, bent(a)[0], strict=True)
        ]
        d = self.coefficients.shape[1]
        return np.array(between).reshape(len(between), d) + self._undetermined(phi, a)

    def _undetermined(self, phi: Array, a: Array) -> Array:
        """The variances (systematics, d) of terms that no sample determines: those of second order,
        equal in all components since their direction is not known; and alpha^3 - alpha, whose ratio
        to the square is taken to be that of the square to the linear term, or which is as large as
        that of shifted peaks. Up to the typical alpha that counts which is farthest from a node."""
        a = np.clip(a, -FARTHEST, FARTHEST)
        first, second = np.einsum("m,xkmd->xkd", phi, self._shifts)
        noise = [np.trace(one.noise(phi)) for one in self.linear]
        moved = np.sqrt(((first**2).sum(axis=1) - noise).clip(min=0))
        products = np.outer(a, a)
        np.fill_diagonal(products, bent(a)[0])
        both = (self.untold * np.outer(moved, moved) * products) ** 2
        # Each pair of systematics is counted in two rows.
        each = 0.5 * (both.sum(axis=1) + np.diag(both)) / self.coefficients.shape[1]
        cubic = np.abs(a**3 - a)
        farthest = np.where(np.abs(a) < CREST, cubic, cubic.clip(min=MOST))
        cubes = np.minimum(self.cubes * moved**3, MOST_CUBE * moved) * farthest
        each = each + cubes**2 / self.coefficients.shape[1]
        bends = np.linalg.norm(second, axis=1)
        ratio = bends / np.maximum(moved, bends).clip(min=LEAST_SHIFT)
        return np.asarray(each[:, None] + ((ratio * (a**3 - a))[:, None] * second) ** 2)

    def traces(self, t: Array, weight: Array) -> tuple[Array, Array]:
        """tr(W C) of the noise C of the mean: as a quadratic form (terms, terms) in the terms of
        the nominal mean, and a number (systematics,) for each linear shift at t."""
        # Only the statistics of the simulation count: they alone make slopes of the fitted curve.
        weighted = np.einsum("ij,mjr->mir", weight, self.noise, optimize=True)
        of_mean = np.tensordot(self.noise, weighted, ((1, 2), (1, 2)))
        phi = shift_terms(t[: self.t.shape[1]], self.shift_powers)
        of_shifts = [np.einsum("ij,ij", weight, one.noise(phi)) for one in self.linear]
        return of_mean, np.array(of_shifts)

    def _kernel(self, t: Array) -> Array:
        if len(self.t) == 1:
            return np.ones(1)
        distance = np.linalg.norm(self.t[:, None] - self.t, axis=-1)
        np.fill_diagonal(distance, np.inf)
        width = 0.5 * float(np.median(distance.min(axis=1)))
        squared = ((t - self.t) ** 2).sum(axis=-1)
        while True:
            exponent = squared / (2 * width**2)
            kernel = self.size * np.exp(exponent.min() - exponent)
            if width >= 1 or kernel.sum() >= MIN_KERNEL_EVENTS:
                return np.asarray(kernel / kernel.sum())
            width *= 1.4


def bent(alpha: Array) -> tuple[Array, Array]:
    """alpha^2, straight beyond |alpha| = `STRAIGHT`, and its slope."""
    held = np.clip(alpha, -STRAIGHT, STRAIGHT)
    return held * (2 * alpha - held), 2 * held
