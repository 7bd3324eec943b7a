"""The error that other numbers of simulated events would give, from the moments of a pilot.

The variance of an estimate from simulation is a sum over templates, V_k / n_k with n_k events of
template k. So the error of any other simulation is known before it is made.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gridless.calibration.calibration import Calibration, calibrate
from gridless.calibration.moments import Moments
from gridless.curves.polynomials import slopes, terms
from gridless.curves.simplest import simplest_polynomial
from gridless.errors import InputError
from gridless.likelihood.channel import Channel, Place
from gridless.likelihood.estimate import MODEL, SIMULATION
from gridless.likelihood.estimating import beyond_covariances
from gridless.likelihood.likelihood import Likelihood
from gridless.model.cells import nearest
from gridless.model.model import Model
from gridless.model.observed import channel_of_sum
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

MAX_DEGREE = {1: 8, 2: 4, 3: 3}  # of the curve through a pilot's means
WEAK_INFORMATION = 400.0  # chi2 of the templates for theta: with less a network learns only a part
CERTAIN = 2.0  # standard deviations by which cells must know more than the summary
LEAST_TRUE = 0.25  # of the information: a pilot that is noise for the rest is not corrected further


class SimpleCurve:
    """The simplest curve through the means of a pilot. Noise in its slope looks like information:
    the square of a slope is too large by its variance."""

    def __init__(self, moments: Moments) -> None:
        self.moments = moments
        self.powers, self.matrix = simplest_polynomial(
            moments.t, moments.mean, moments.mean_covariance, MAX_DEGREE[moments.t.shape[1]]
        )
        self.coefficients = self.matrix @ moments.mean

    def __call__(self, t: Array) -> Array:
        return np.asarray(terms(t, self.powers) @ self.coefficients)

    def true_share(self, t: Array, p: int) -> float:
        """The share of the information on parameter p at a point that is not noise."""
        m = self.moments
        row = slopes(t[None], self.powers)[0, p]
        slope, moved = row @ self.coefficients, row @ self.matrix
        noise = np.tensordot(moved**2, m.mean_covariance, 1)
        nearest = int(np.argmin(((m.t - t) ** 2).sum(axis=1)))
        inverse = np.linalg.pinv(m.noise_per_event[nearest], hermitian=True)
        return float(1 - np.trace(inverse @ noise) / max(float(slope @ inverse @ slope), 1e-300))


class Pilot(NamedTuple):
    """The simulation of one channel at hand.

    Attributes
    ----------
    name : str
        That of the channel; empty where there is one only.
    grid : Grid
        Its templates.
    moments : Moments
        Theirs, with means on the simplest curve: their scatter about it will be another one.
    curve : SimpleCurve
        The simplest curve.
    events : float
        How many events it will observe.
    simulated : array (templates,)
        The effective number of events of each template.
    information : float
        What the templates say of theta: see `MeanCurve`.
    learnt : array (parameters,)
        The share of the information on each parameter that the network has learnt.
    """

    name: str
    grid: Grid
    moments: Moments
    curve: SimpleCurve
    events: float
    simulated: Array
    information: float
    learnt: Array

    def gain(self, p: int, factor: float) -> float:
        """How many times as much information on a parameter a network learns from so many times the
        events. What it leaves is a number of units of log likelihood that does not grow: fewer
        are not told from noise."""
        return float((1 - (1 - self.learnt[p]) / max(factor, 1.0)) / self.learnt[p])

    @property
    def labels(self) -> list[str]:
        """The names of the templates."""
        start = f"{self.name}: " if self.name else ""
        return [start + self.grid.label(k) for k in range(len(self.grid))]

    @property
    def middles(self) -> list[Array]:
        """Points between neighbouring templates, in units of the range."""
        unit = self.grid.unit
        return [0.5 * (unit[i] + unit[j]) for i, j in self.grid.neighbours()]


def pilot_of(model: Model, events: float, name: str = "") -> Pilot:
    """The pilot that a calibrated model keeps the moments of."""
    if model.calibration is None:
        raise InputError("plan: the model was fitted with calibrate=False; fit it anew")
    if not 1 <= events < float("inf"):
        raise InputError(f"events: {events:g}; give the number of events to be observed")
    measured = model.reweighting.moments
    curve = SimpleCurve(measured)
    means = curve(measured.t)
    smooth = Moments(measured.t, means, measured.covariance, measured.mean_covariance)
    information = model.calibration.mean.information
    learnt = np.ones(len(model.grid.parameters))
    if information < WEAK_INFORMATION:
        learnt = np.array([learnt_share(model, p) for p in range(len(learnt))])
    sizes = simulated_sizes(model)
    return Pilot(name, model.grid, smooth, curve, float(events), sizes, information, learnt)


def simulated_sizes(model: Model) -> Array:
    """The effective number (sum w)^2 / sum w^2 of simulated events of each template. Their means
    may be worth fewer: those of an ensemble whose members disagree, or of events kept out."""
    return np.array(model.summary.effective)


def learnt_share(model: Model, p: int) -> float:
    """The share of the information on parameter p that the network has learnt.

    The network of a small pilot may miss what more events would let it learn. Cells of the
    observables, which no network made, tell: it is 1 unless their shares change with theta more
    than the summary does. Both changes are squares of straight lines through the templates, in
    units of their noise, without what noise alone gives: 1 for each cell, and for each component of
    the summary.

    Parameters
    ----------
    model : Model
        A calibrated model that keeps simulated events.
    p : int
        The parameter.

    Returns
    -------
    float
        From above 0 to 1.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> learnt_share(gl.fit(OneObservable().templates(500, seed=1), hidden=3, seed=1), 0)
    1.0
    """
    kept, moments = model.simulated, model.reweighting.moments
    where = nearest(model.network, np.asarray(kept.x, np.float64), model.cells.centres)[0]
    shape = len(model.grid), len(model.cells.centres)
    number = kept.template * shape[1] + where
    content, squares = (
        np.bincount(number, w, shape[0] * shape[1]).reshape(shape)
        for w in (kept.weights, kept.weights**2)
    )
    events = content.sum(axis=1)
    line = _line(moments.t, events, p)
    variances = line**2 @ squares
    told = variances > 0
    chi2 = float(((line @ content)[told] ** 2 / variances[told]).sum())
    count = int(told.sum()) - 1
    in_cells, noise = chi2 - count, np.sqrt(2 * count + 4 * max(chi2 - count, 0.0))
    of_one = float(line**2 @ squares.sum(axis=1))
    per_event = _information(moments, p)
    if in_cells - CERTAIN * noise < per_event * of_one:
        return 1.0
    return float(per_event * of_one / in_cells)


def _information(moments: Moments, p: int) -> float:
    """What the summary of one observed event says of parameter p, without what noise alone gives:
    that of the straight line s = sum_k l_k n_k m_k / sum_k l_k^2 n_k through the means m_k."""
    sizes = moments.effective
    line = _line(moments.t, sizes, p)
    weights = line * sizes / float(line**2 @ sizes)
    slope = weights @ moments.mean
    score = np.linalg.pinv(np.tensordot(weights**2, moments.mean_covariance, 1)) @ slope
    chi2 = float(score @ slope)
    spread = np.tensordot(sizes / sizes.sum(), moments.covariance, 1)
    # Members of an ensemble that disagree make the means noisier than the summary of one event.
    true = max(chi2 - len(slope), 1.0) / max(chi2, 1.0)
    return true * chi2**2 / max(float(score @ spread @ score), 1e-300)


def _line(t: Array, events: Array, p: int) -> Array:
    """The parameter at the templates without what the others and a constant explain."""
    root = np.sqrt(events)[:, None]
    others = np.hstack([np.ones((len(t), 1)), np.delete(t, p, axis=1)])
    found = np.linalg.lstsq(others * root, t[:, [p]] * root, rcond=None)[0]
    return np.asarray((t[:, [p]] - others @ found)[:, 0])


class NewTemplate(NamedTuple):
    """A template that could be made: in which channel, at which point, of how many events."""

    pilot: int
    t: Array
    events: float


class Forecast:
    """Statistical error, that from simulation and the total for any numbers of simulated events:
    roots of mean squares over some values of theta.

    Attributes
    ----------
    pilots : list of Pilot
        One of each channel.
    grid : Grid
        Parameters and bounds of all channels.
    places : array (places, parameters)
        Where, in units of its range.
    p : int
        The parameter.
    now : array (templates,)
        Events at hand of all templates of all channels, in effective numbers.
    """

    def __init__(self, pilots: list[Pilot], grid: Grid, places: Array, p: int) -> None:
        self.pilots, self.grid, self.places, self.p = pilots, grid, places, p
        self.now = np.concatenate([one.simulated for one in pilots])

    def __call__(self, sizes: Array, extra: NewTemplate | None = None) -> Array:
        """The three errors with templates of these sizes (templates,), and one more."""
        stat, sim = np.sqrt(np.mean([found for found, _ in self._variances(sizes, extra)], axis=0))
        return np.array([stat, sim, np.hypot(stat, sim)])

    def by_template(self, sizes: Array) -> Array:
        """The variance that each template contributes, averaged over the places."""
        return np.asarray(np.mean([each for _, each in self._variances(sizes)], axis=0))

    def _variances(
        self, sizes: Array, extra: NewTemplate | None = None
    ) -> list[tuple[Array, Array]]:
        """Variances (statistical, simulation), and that of each template, at every place."""
        ends = np.cumsum([len(one.grid) for one in self.pilots])[:-1]
        made, factors = [], []
        for k, own in enumerate(np.split(sizes, ends)):
            new = extra if extra is not None and extra.pilot == k else None
            made.append(calibrate(_resized(self.pilots[k], own, new)))
            events = own.sum() + (0.0 if new is None else new.events)
            factors.append(float(events / self.pilots[k].simulated.sum()))
        return [self._at(made, factors, place) for place in self.places]

    def _at(
        self, calibrations: list[Calibration], factors: list[float], place: Array
    ) -> tuple[Array, Array]:
        parts = list(zip(self.pilots, calibrations, strict=True))
        channels = [self._channel(one, calibration, place) for one, calibration in parts]
        likelihood = Likelihood(channels)
        p, size, covariance = self.p, self.grid.range[self.p], likelihood.unit_covariance
        beyond = beyond_covariances(likelihood)
        sim = sum(beyond[name][p, p] for name in (SIMULATION, MODEL) if name in beyond)
        each, information, true = [], 0.0, 0.0
        for (one, calibration), channel, factor in zip(parts, channels, factors, strict=True):
            inside = Place(channel, self.grid)
            own = inside.own(place)
            moved = inside.slopes(calibration.simulation_slopes(own)) @ covariance * one.events
            each.append((moved[..., p] ** 2).sum(axis=1))
            if p not in inside.axes:
                continue
            da, dmu = calibration.score_slopes(own[None])[0], calibration.mean.slopes(own[None])[0]
            known = float(one.events * inside.matrix(da @ dmu.T)[p, p])
            information += known
            axis = inside.axes.index(p)
            true += known * one.curve.true_share(own, axis) * one.gain(axis, factor)
        stat = covariance[p, p] / max(true / information, LEAST_TRUE)
        return np.array([stat, sim]) * size**2, np.concatenate(each) * size**2

    def _channel(self, one: Pilot, calibration: Calibration, place: Array) -> Channel:
        """What a channel will say on average at a place."""
        axes = [self.grid.parameters.index(name) for name in one.grid.parameters]
        own = one.grid.to_unit(self.grid.from_unit(place)[axes])
        y = one.events * calibration.mean(own[None])[0]
        made = channel_of_sum(calibration, one.grid, y, one.events, round(one.events))
        return replace(made, name=one.name, model=one.name)


def _resized(pilot: Pilot, sizes: Array, extra: NewTemplate | None) -> Moments:
    """The moments of templates of other sizes, and of a new one."""
    m = pilot.moments
    of_one = m.mean_covariance * pilot.simulated[:, None, None]
    changed = Moments(m.t, m.mean, m.covariance, of_one / sizes[:, None, None])
    if extra is None:
        return changed
    nearest = [int(np.argmin(((m.t - extra.t) ** 2).sum(axis=1)))]
    noise = of_one[nearest] / extra.events
    return Moments(
        np.vstack([m.t, extra.t]),
        np.vstack([m.mean, pilot.curve(extra.t[None])]),
        np.concatenate([m.covariance, m.covariance[nearest]]),
        np.concatenate([changed.mean_covariance, noise]),
    )
