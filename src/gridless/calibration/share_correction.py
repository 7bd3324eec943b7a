"""Shares of bins at any theta: what weighted events predict, corrected by what templates show.

Simulated events that are weighted to theta give the share f_b(theta) of bin b. All events of a
template tell the share s_bk at its theta. Their difference

    s_bk - f_b(theta_k) = f_b(theta_k) g_b(theta_k) + noise

has two parts. g is the relative error of the weights, a Gaussian process that is smooth in the
bins and in theta; the differences say what size and smoothness is most likely, and the size may be
0. The covariance of the noise is known: every f_b is made of the same events, and some of them are
in s_bk too. So whatever the weights are worth, shares are right at the templates and smooth between
them, and what is not known of them is a covariance.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridless.templates.arrays import Array, covariance_root

WIDTHS = (0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.3, 1.0)  # of g that are tried, beside 0
BIN_LENGTHS = (0.03, 0.1, 0.3)  # over which g varies, in shares of all events
THETA_LENGTHS = (0.05, 0.1, 0.2, 0.4, 0.8)  # likewise, in units of the range
MUCH = 0.05  # of g: less between templates hardly shows beside the statistics of shares
# Least variance of a combination of differences, relative to their mean variance. The sum over all
# templates has nearly no variance by construction, but is not known exactly, since weights are
# tilted. Without this floor it would count as a precise measurement of the noise of every share.
LEAST_NOISE = 1e-3
NO_NOISE = 1e-18  # variance of a share: all events are in one bin, and nothing can be off
LEAST_LEFT = 0.1  # of a share that remains after any correction


class Drawn(NamedTuple):
    """Simulated events, as they are weighted to the templates and as the templates have them.

    Attributes
    ----------
    weights : array (templates, events)
        Their weights at every template, each with a sum of 1.
    own : array (templates, events)
        The weight of an event in the shares that its own template has of all its events; 0 in the
        other templates.
    left : array (templates,)
        The variance of these shares from events of the template that were not drawn, in units of
        the share: 1 / events, if none of the template was drawn.
    """

    weights: Array
    own: Array
    left: Array


class Corrected(NamedTuple):
    """Shares of bins at one theta.

    Attributes
    ----------
    where : array (events,)
        The bin of every event; the last bin is what lies outside of all others.
    shares : array (bins,)
        The share of each bin, with a sum of 1.
    changes : array (bins, changes)
        Independent relative changes of the shares, each of one standard deviation.
    """

    where: NDArray[np.int64]
    shares: Array
    changes: Array


class _Process(NamedTuple):
    """g with the covariance width^2 exp(-(u - u')^2 / 2 l^2 - (t - t')^2 / 2 m^2)."""

    width: float
    bin_length: float
    theta_length: float


@dataclass(frozen=True, eq=False)
class ShareCorrection:
    """Corrects the shares of the bins of one observable.

    Attributes
    ----------
    where : array (events,)
        The bin of every drawn event; the last number is that of events outside of all bins.
    seen : array (templates, bins)
        The share of all events of each template in each bin.
    drawn : Drawn
        The simulated events.
    unit : array (templates, parameters)
        Where the templates are, in units of the range.

    Examples
    --------
    >>> where, even = np.arange(2_000) % 2, np.full((3, 2_000), 1 / 2_000)  # as many in each bin
    >>> drawn = Drawn(even, np.zeros_like(even), np.full(3, 1e-5))
    >>> seen, unit = np.array([[0.6, 0.4]] * 3), np.array([[0.0], [0.5], [1.0]])
    >>> made = ShareCorrection(where, seen, drawn, unit)
    >>> made(np.array([0.3]), even[0]).shares.round(2).tolist()
    [0.6, 0.4, 0.0]
    """

    where: NDArray[np.int64]
    seen: Array
    drawn: Drawn
    unit: Array

    @property
    def bins(self) -> int:
        """The number of bins, without the one of events outside."""
        return int(self.seen.shape[1])

    @cached_property
    def places(self) -> Array:
        """Where the bins are, (bins, 1), in shares of all events."""
        mean = self.seen.mean(axis=0)
        return np.asarray((np.cumsum(mean) - 0.5 * mean)[:, None])

    @cached_property
    def predicted(self) -> Array:
        """The shares (templates, bins) that the weighted events have."""
        return np.array([self.content(w) for w in self.drawn.weights])

    @cached_property
    def noise(self) -> Array:
        """The covariance of the differences at all templates and bins, if the weights are right."""
        rest, f = self.drawn.weights - self.drawn.own, self.predicted
        found = self._covariance(rest, f, rest, f)
        for k, variance in enumerate(self.drawn.left):
            # A bin without events does not know that its share is 0.
            found[k, :, k] += variance * (np.diag(f[k].clip(min=variance)) - np.outer(f[k], f[k]))
        matrix = found.reshape(f.size, f.size)
        least = max(LEAST_NOISE * float(np.trace(matrix)) / f.size, NO_NOISE)
        return np.asarray(matrix + least * np.eye(f.size))

    @cached_property
    def process(self) -> _Process:
        """The most likely width and lengths of g."""
        tried = [_Process(0.0, BIN_LENGTHS[0], THETA_LENGTHS[0])]
        tried += [_Process(*one) for one in product(WIDTHS, BIN_LENGTHS, THETA_LENGTHS)]
        return max(tried, key=self._log_evidence)

    @property
    def erratic(self) -> bool:
        """Whether g is large and changes from template to template: between templates it is then
        less certain than one process for all bins says."""
        distance = np.linalg.norm(self.unit[:, None] - self.unit, axis=-1)
        np.fill_diagonal(distance, np.inf)
        near = self.process.theta_length < float(np.median(distance.min(axis=1)))
        return bool(self.process.width >= MUCH and near)

    def content(self, weights: Array) -> Array:
        """The shares (bins,) that these weights give."""
        return np.bincount(self.where, weights, self.bins + 1)[: self.bins].astype(float)

    def __call__(self, t: Array, weights: Array) -> Corrected:
        """The shares at a point t of the unit box, to which `weights` (events,) weight them."""
        f, all_f = self.content(weights), self.predicted
        rest = self.drawn.weights - self.drawn.own
        crossed = self._covariance(weights[None], f[None], rest, all_f)[0]
        own = self._covariance(weights[None], f[None], weights[None], f[None])[0, :, 0]
        crossed = crossed.reshape(self.bins, -1) + self._g(t[None], f[None], self.unit, all_f)
        own = own + self._g(t[None], f[None], t[None], f[None])
        # Noise of f is to be taken away: its sign is that of f in the differences.
        inverse = np.linalg.solve(self._total(self.process), crossed.T)
        change = (self.seen - all_f).ravel() @ inverse
        covariance = own - crossed @ inverse
        inside = np.maximum(f + change, LEAST_LEFT * f)
        shares = np.append(inside, max(0.0, 1 - inside.sum()))
        root = covariance_root(0.5 * (covariance + covariance.T))
        root = np.vstack([root, -root.sum(axis=0)])
        there = shares > 0
        changes = np.where(there[:, None], root / np.where(there, shares, 1.0)[:, None], 0.0)
        return Corrected(self.where, shares / shares.sum(), changes)

    def _covariance(self, first: Array, f: Array, second: Array, other_f: Array) -> Array:
        """The covariance (a, bins, k, bins) of the shares that weights `first` and `second` (rows,
        events) give, which are f and other_f (rows, bins) on average:
        sum_i first_ai second_ki (1_b(i) - f_ab) (1_c(i) - other_f_kc)."""
        parts = np.array([first[:, own] @ second[:, own].T for own in self._members])
        inside, total = parts[:-1], parts.sum(axis=0)
        found = np.einsum("ab,kc,ak->abkc", f, other_f, total)
        found -= np.einsum("ab,cak->abkc", f, inside) + np.einsum("kc,bak->abkc", other_f, inside)
        for b, part in enumerate(inside):
            found[:, b, :, b] += part
        return np.asarray(found)

    @cached_property
    def _members(self) -> list[NDArray[np.int64]]:
        """The events of each bin."""
        order = np.argsort(self.where, kind="stable")
        ends = np.cumsum(np.bincount(self.where, minlength=self.bins + 1))
        return np.split(order, ends[:-1])

    def _g(self, t: Array, f: Array, other_t: Array, other_f: Array) -> Array:
        """The covariance of f g between points t, with shares f (points, bins), and other ones."""
        return _kernel(self.process, (t, f), (other_t, other_f), self.places)

    def _total(self, process: _Process) -> Array:
        points = self.unit, self.predicted
        return np.asarray(self.noise + _kernel(process, points, points, self.places))

    def _log_evidence(self, process: _Process) -> float:
        try:
            root = np.linalg.cholesky(self._total(process))
        except np.linalg.LinAlgError:  # shares of weights of either sign may be below 0
            return -np.inf
        rest = np.linalg.solve(root, (self.seen - self.predicted).ravel())
        return float(-0.5 * rest @ rest - np.log(np.diag(root)).sum())


def _kernel(process: _Process, first: Any, second: Any, places: Array) -> Array:
    """The covariance of the changes f (g - mean g) of shares between two sets of points, each
    given as t and f: weights are divided by their sum, so that shares still sum to 1."""
    (t, f), (other_t, other_f) = first, second
    near = process.width**2 * _falling(t, other_t, process.theta_length)
    inside = _falling(places, places, process.bin_length)
    one, two = (h[:, :, None] * (np.eye(len(places)) - h[:, None]) for h in (f, other_f))
    found = np.einsum("ak,abi,ij,kcj->abkc", near, one, inside, two, optimize=True)
    return np.asarray(found.reshape(f.size, other_f.size))


def _falling(first: Array, second: Array, length: float) -> Array:
    distance = ((first[:, None] - second) ** 2).sum(axis=-1)
    return np.asarray(np.exp(-0.5 * distance / length**2))
