"""Weights of simulated events, some of which a model keeps, at any theta.

An event of any template is an event at theta with the weight

    w_i(theta) = r(x_i, theta) / sum_k s_k r(x_i, theta_k),   r = p(theta | x) / q(theta),

s_k the share of template k in the events. The network's r is near the ratio of densities only. So
the weights are tilted by exp(lambda . y), the least change that makes the mean of the summary y
the calibrated mu(theta). Distributions of observables are then corrected by what all events of the
templates show: see `gridless.model.refining`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from gridless import distributed
from gridless.calibration.moments import Moments
from gridless.calibration.share_correction import Corrected, ShareCorrection
from gridless.curves import chebyshev
from gridless.errors import InputError
from gridless.model.evaluation import event_features, log_density
from gridless.model.refining import raked, share_corrections
from gridless.templates.arrays import Array, covariance_root
from gridless.templates.templates import Templates

if TYPE_CHECKING:
    from gridless.model.model import Model

TILT_STEPS = 40  # of Newton's method: some five are usual
TILT_PRECISION = 1e-6  # of the mean, in units of the spread of one event
MAX_STEP = 1.0  # of lambda in one step, in units of 1 / spread
RAKINGS = 4  # rounds over all observables: what is left is far below the statistics of the bins
FEW_KEPT = 20  # kept events per component of a summary that a covariance needs
MAX_KEPT_EVENTS = 50_000  # that a model keeps: a few megabytes
MAX_KEPT_NUMBERS = (
    1_000_000  # that they may have together: of many observables fewer events are kept
)


@dataclass(frozen=True, eq=False)
class SimulatedEvents:
    """A random part of the templates' events.

    Attributes
    ----------
    x : array (events, observables)
        In float32, as files hold them.
    template : array (events,)
        The number of the template of each event.
    weights : array (events,)
        Their weights, of either sign; every template has a mean of 1.
    """

    x: Array
    template: NDArray[np.int32]
    weights: Array

    def __len__(self) -> int:
        return len(self.x)

    def check(self, templates: int, observables: int) -> None:
        """Refuse, with a ValueError, arrays that fit neither each other nor the grid."""
        events = len(self.template)
        if self.x.shape != (events, observables) or self.weights.shape != (events,):
            raise ValueError("simulated: events, templates and weights differ in number")
        if not 0 < events <= MAX_KEPT_EVENTS:
            raise ValueError(f"simulated: {events} events")
        if self.template.min() < 0 or self.template.max() >= templates:
            raise ValueError("simulated: a template that is not in the grid")
        totals = np.bincount(self.template, self.weights, templates)
        if (totals[np.unique(self.template)] <= 0).any():
            raise ValueError("simulated: a template without weight")


def keep_events(templates: Templates, seed: int) -> SimulatedEvents:
    """A random part of the events, of the first rank's where there are several; `seed` says
    which."""
    x = templates.x
    count = min(len(x), MAX_KEPT_EVENTS, max(1_000, MAX_KEPT_NUMBERS // x.shape[1]))
    some = np.sort(np.random.default_rng(seed).choice(len(x), count, replace=False))
    w = templates.event_weights[some]
    number = templates.template[some]
    totals = np.bincount(number, w)
    sizes = np.bincount(number)
    # Of a template whose few kept weights cancel, none is kept.
    good = totals > 0
    mean = np.where(good, totals / sizes.clip(min=1), 1.0)
    use = good[number]
    rows = (x[some][use], number[use].astype(np.int32), (w / mean[number])[use])
    if distributed.size() == 1:
        kept_x, kept_template, kept_weights = rows
    else:
        width = x.shape[1]
        table = np.hstack([rows[0], rows[1][:, None], rows[2][:, None]])
        size = int(distributed.of_first(torch.tensor([len(table)]))[0])
        first = torch.zeros(size, width + 2, dtype=torch.float64)
        if distributed.rank() == 0:
            first = torch.as_tensor(table)
        table = distributed.of_first(first).numpy()
        kept_x, kept_template, kept_weights = table[:, :width], table[:, width], table[:, -1]
    return SimulatedEvents(
        np.asarray(kept_x, np.float32),
        np.asarray(kept_template, np.int32),
        np.asarray(kept_weights, np.float64),
    )


class Reweighting:
    """Weights of a model's kept events at any theta.

    Attributes
    ----------
    x : array (events, observables)
        The events.
    y : array (events, d)
        Their vectors: the whitened summaries of a calibrated model.
    """

    def __init__(self, model: "Model") -> None:
        self.model, self.kept = model, model.simulated
        self.x = np.asarray(model.simulated.x, np.float64)
        vectors, self.matrix, self.offset = model.event_vectors(self.x)
        self.y = np.asarray(vectors.double().numpy())

    @cached_property
    def measured(self) -> Array:
        """The summaries (events, d) of the kept events in a measurement with systematics."""
        known = self.model.measurement
        if known is None:
            raise InputError("the model has no systematics and no backgrounds; fit it with them")
        features = event_features(self.model.network, self.x)
        return np.concatenate([known.summaries(c.mean(0), z) for _, c, z in features])

    @cached_property
    def log_mixture(self) -> Array:
        """log sum_k s_k r(x_i, theta_k) of each event."""
        sizes = np.bincount(self.kept.template, minlength=len(self.model.grid))
        there = sizes > 0
        log_share = np.log(sizes[there] / sizes.sum())
        rows = self.log_ratios(self.model.grid.unit[there]) + log_share
        return np.asarray(np.logaddexp.reduce(rows, axis=1))

    def log_ratios(self, t: Array) -> Array:
        """log r(x_i, t_j) of each event and point: (events, points)."""
        # Likelihoods need q only where they are divided by it; densities always do.
        log_q = chebyshev.evaluate(self.model.implied_prior.log_q, t)
        parts = [p.double().numpy() for _, p in log_density(self.model.network, self.x, t)]
        return np.asarray(np.concatenate(parts) - log_q)

    def at(self, t: Array, log_ratio: Array | None = None) -> Array:
        """The weights (events,) at a point t of the unit box, which sum to 1."""
        found = self.log_ratios(t[None])[:, 0] if log_ratio is None else log_ratio
        log_w = found - self.log_mixture
        base = self.kept.weights * np.exp(log_w - log_w.max())
        calibration = self.model.calibration
        if calibration is None:
            return np.asarray(base / base.sum())
        return tilted(base, self.y, calibration.mean(t[None])[0])

    @cached_property
    def moments(self) -> Moments:
        """The moments of whitened summaries that the calibration was made of; the covariances of
        single events from the kept ones, or from all where too few of a template are kept."""
        calibration, size = self.model.calibration, self.y.shape[1]
        if calibration is None:
            raise InputError("the model was fitted with calibrate=False; fit it anew")
        means, of_mean = calibration.template_means()
        spread = np.tile(np.cov(self.y.T).reshape(size, size), (len(means), 1, 1))
        for k in range(len(means)):
            own = self.kept.template == k
            if np.sum(own) > FEW_KEPT * size:
                spread[k] = np.cov(self.y[own].T).reshape(size, size)
        return Moments(calibration.t, means, spread, of_mean)

    @cached_property
    def corrections(self) -> tuple[ShareCorrection, ...]:
        """What corrects the distributions of observables; nothing without calibration."""
        return () if self.model.calibration is None else share_corrections(self)

    def refined(self, t: Array, weights: Array) -> tuple[Array, tuple[Corrected, ...]]:
        """The weights (events,) at t with which observables have their corrected distributions and
        summaries their mean, and these corrections; they begin as `weights`."""
        calibration = self.model.calibration
        corrected = tuple(correct(t, weights) for correct in self.corrections)
        if calibration is None or not corrected:
            return weights, ()
        mean = calibration.mean(t[None])[0]
        for _ in range(RAKINGS):
            weights = tilted(raked(weights, corrected), self.y, mean)
        moved = weight_changes(self.y, weights, calibration.mean_covariance(t[None])[0])
        return weights, tuple(_also(one, weights, moved) for one in corrected)

    def mean_curve(self, t: Array) -> Array:
        """Minus the mean log likelihood of an event at t, as Chebyshev coefficients."""
        mean = self.at(t) @ self.y
        return chebyshev.add(-np.tensordot(mean, self.matrix, 1), self.offset)


def _also(corrected: Corrected, weights: Array, moved: Array) -> Corrected:
    """The corrected shares with further changes, from relative changes (events, changes) of the
    weights."""
    where, shares, changes = corrected
    content = np.bincount(where, weights, len(shares))
    sums = np.array([np.bincount(where, weights * column, len(shares)) for column in moved.T]).T
    mean = sums / np.where(content != 0, content, 1.0)[:, None]
    return Corrected(where, shares, np.hstack([changes, mean]))


def weight_changes(y: Array, weights: Array, covariance: Array) -> Array:
    """Independent relative changes (events, d) of the tilted weights, from the covariance of the
    mean of y that they are tilted to."""
    rest = y - weights @ y
    spread = (rest * weights[:, None]).T @ rest
    inverse = np.linalg.pinv(spread, hermitian=True)
    return np.asarray(rest @ inverse @ covariance_root(covariance))


def tilted(base: Array, y: Array, mean: Array) -> Array:
    """Weights base * exp(lambda . y) with a sum of 1 and a weighted mean of y that is `mean`.

    Newton's method for the minimum of log sum_i base_i exp(lambda . (y_i - mean)), which is convex
    for positive weights. Where the mean lies outside of what the events can give, the nearest.
    """
    z = y - mean
    chosen = np.zeros(z.shape[1])
    weights, value = _tilted_by(base, z, chosen)
    for _ in range(TILT_STEPS):
        slope = weights @ z
        if np.abs(slope).max() < TILT_PRECISION:
            break
        second = (z * weights[:, None]).T @ z - np.outer(slope, slope)
        step = -np.linalg.pinv(second, rcond=1e-9, hermitian=True) @ slope
        step *= min(1.0, MAX_STEP / max(1e-300, float(np.sqrt(abs(step @ second @ step)))))
        for _ in range(10):
            new_weights, new_value = _tilted_by(base, z, chosen + step)
            if new_value <= value:
                break
            step *= 0.5
        else:
            break
        chosen, weights, value = chosen + step, new_weights, new_value
    return weights


def _tilted_by(base: Array, z: Array, tilt: Array) -> tuple[Array, float]:
    exponent = z @ tilt
    most = exponent.max()
    weights = base * np.exp(exponent - most)
    total = weights.sum()
    if total <= 0:  # of weights of either sign
        return weights, np.inf
    return weights / total, float(np.log(total) + most)
