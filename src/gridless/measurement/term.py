"""What the observed events of one model add to a likelihood of named parameters.

2 NLL = (T - mu)' W (T - mu) - tr(W C(p)) with T the mean of the summaries and W the inverse of its
covariance, held at a first estimate. C(p) is the noise of mu from finite simulation: without that
last term noise in the slopes of mu would count as information.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridless.curves.curve import Curve
from gridless.likelihood.channel import Channel
from gridless.likelihood.estimate import MODEL, SIMULATION, STAT
from gridless.measurement.measurement import Measurement
from gridless.measurement.process import Process
from gridless.measurement.shift import shift_slopes, shift_terms
from gridless.templates.arrays import Array, check_total, symmetric_power

ENOUGH_WEIGHTED = 50  # events per component of the summary, to take its covariance from them
NO_INFORMATION = 1e-100  # of a parameter: less counts as none; the inverse of this is still finite
LEAST_CURVATURE = 0.2  # share of the information that must remain after the correction for noise
HALVINGS = 20  # of the correction for noise, at the most, until that share remains


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over observed events of the whitened summary y: all that a likelihood needs of them.

    Attributes
    ----------
    events : int
        Their number.
    weight, squares : float
        Sums of w and of w^2.
    total, total_squares : array (d,)
        Sums of w y and of w^2 y.
    products : array (d, d)
        Sum of w^2 y y^T.
    weighted : bool
        Whether there are weights.
    average : bool
        Whether the sums are expectation values (Asimov data) instead of observed ones.
    """

    events: int
    weight: float
    squares: float
    total: Array
    total_squares: Array
    products: Array
    weighted: bool
    average: bool = False

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.events + other.events,
            self.weight + other.weight,
            self.squares + other.squares,
            self.total + other.total,
            self.total_squares + other.total_squares,
            self.products + other.products,
            self.weighted or other.weighted,
            self.average or other.average,
        )

    @property
    def mean(self) -> Array:
        """T, the mean of the summaries."""
        return self.total / self.weight

    def covariance(self, of_one: Array) -> Array:
        """The covariance of T, where that of one event is known for events without weights."""
        if not self.weighted or self.events < ENOUGH_WEIGHTED * len(self.total):
            return np.asarray(of_one * self.squares / self.weight**2)
        m = self.mean
        crossed = np.outer(m, self.total_squares)
        spread = self.products - crossed - crossed.T + self.squares * np.outer(m, m)
        return np.asarray(spread / self.weight**2)


def sums_of(y: Array, weights: Array | None) -> Sums:
    """The sums over events with summaries y (events, d)."""
    w = np.ones(len(y)) if weights is None else weights
    w2 = w**2
    return Sums(
        len(y), float(w.sum()), float(w2.sum()), w @ y, w2 @ y, (y * w2[:, None]).T @ y,
        weights is not None,
    )  # fmt: skip


def expected_sums(measurement: Measurement, theta: Array, events: float) -> Sums:
    """The sums that events at theta have on average, nuisance parameters at 0."""
    mean = measurement.at(np.concatenate([theta, np.zeros(len(measurement.nuisances))])).mean
    size = measurement.size
    return Sums(
        round(events), events, events, events * mean, events * mean, np.zeros((size, size)), False,
        average=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SummaryChannel:
    """The observed events of one model with systematics or backgrounds.

    Attributes
    ----------
    measurement : Measurement
        What the model knows.
    sums : Sums
        The events.
    base : Channel
        The same events without nuisance parameters: name, model, agreement with the simulation.
    """

    measurement: Measurement
    sums: Sums
    base: Channel

    @property
    def key(self) -> tuple[str, str]:
        """Channels with the same key are parts of one."""
        return self.base.name, self.base.model

    def __add__(self, other: "SummaryChannel") -> "SummaryChannel":
        return replace(self, sums=self.sums + other.sums, base=self.base + other.base)


class Around(NamedTuple):
    """A term around one point or several: mean (..., d) of the summary and its slopes (...,
    parameters, d); value and gradient of the correction for noise; second derivatives of the
    likelihood, as expected."""

    mean: Array
    slopes: Array
    value: Array
    gradient: Array
    hessian: Array


class SummaryTerm:
    """A channel's part of the likelihood, with its covariance held at a first estimate.

    Parameters
    ----------
    channel : SummaryChannel
        The events.
    places : array (own parameters,) of int
        Where the channel's parameters are among all.
    reference, errors : array
        Values of all parameters at which the covariance is taken, and how well they are known: what
        is wrong with a variation counts with alpha^2, on average value^2 + error^2.
    """

    def __init__(
        self, channel: SummaryChannel, places: NDArray[np.int64], reference: Array, errors: Array
    ) -> None:
        self.channel, self.places, self.size = channel, places, len(reference)
        self.known, self.sums = channel.measurement, channel.sums
        check_total(self.sums.weight)
        own = reference[places]
        self.observed = self.sums.covariance(self.known.event_covariance(own))
        typical = np.hypot(own, errors[places])[len(self.known.grid.parameters) :]
        self.statistics = self.known.statistics(own, typical)
        self.interpolation = self.known.interpolation(own)
        self.of_variations = self.known.left_open(own, typical)
        self.open = self.interpolation + np.diag(self.of_variations.sum(axis=0))
        total = self.observed + self.statistics + self.open
        # Directions whose covariance rounding has lost, far from the simulation, tell nothing.
        self.inverse = symmetric_power(total, -1.0)
        t, _ = self.known.split(own)
        self.traces = [process.traces(t, self.inverse) for process in self.known.processes]
        self.strength = 1.0
        self._weaken(own)

    def _weaken(self, own: Array) -> None:
        """Halve the correction until the information that it leaves is enough: of every nuisance
        parameter at least that of its constraint, and of all parameters together at least
        `LEAST_CURVATURE` of what there is without the correction."""
        known = self.known
        slopes = known.at(own).slopes
        count = len(known.grid.parameters)
        errors = np.array([one.width for one in known.nuisances])
        whole = slopes @ self.inverse @ slopes.T
        whole[count:, count:] += np.diag(1 / errors**2)
        scale = 1 / np.sqrt(np.diag(whole).clip(min=NO_INFORMATION))
        full = scale[:, None] * whole * scale
        for _ in range(HALVINGS):
            noise = self.strength * self._correction(own)[2]
            left = scale[:, None] * (whole - noise) * scale
            if (np.diag(left) <= LEAST_CURVATURE * np.diag(full)).any() or (
                np.linalg.eigvalsh(left).min() <= LEAST_CURVATURE * np.linalg.eigvalsh(full).min()
            ):
                self.strength *= 0.5
                continue
            variance = np.diag(symmetric_power(left, -1.0)) * scale**2
            loose = variance[count:] > errors**2
            loose &= np.diag(noise)[count:] > 1e-3 / errors**2
            if not loose.any():
                return
            self.traces = [
                (nominal, np.where(loose[process.systematics], 0.5, 1.0) * varied)
                for process, (nominal, varied) in zip(known.processes, self.traces, strict=True)
            ]
        self.strength = 0.0

    def chi2(self, p: Array) -> float:
        """(T - mu)' W (T - mu)."""
        rest = self.sums.mean - self.known.at(p[self.places]).mean
        return float(rest @ self.inverse @ rest)

    def slopes(self, p: Array, observed: bool = False) -> tuple[float, Array, Array]:
        """Minus the log likelihood, its gradient, and its second derivatives: as expected, or as
        observed."""
        around = self.around(p)
        rest = self.sums.mean - around.mean
        hessian = around.hessian
        if observed:
            own = self.known.curvature(p[self.places], self.inverse @ rest)
            hessian = hessian - self._wide_matrix(own)
        value = 0.5 * float(rest @ self.inverse @ rest) + float(around.value)
        return value, around.gradient - around.slopes @ self.inverse @ rest, hessian

    def around(self, p: Array) -> "Around":
        """What the likelihood of any events is made of, around values (..., names) of all
        parameters."""
        own = p[..., self.places]
        state = self.known.at(own)
        part, by_own, noise = self._correction(own)
        hessian = state.slopes @ self.inverse @ np.swapaxes(state.slopes, -1, -2)
        hessian = hessian - self.strength * noise
        slopes = np.zeros((*p.shape, self.components))
        slopes[..., self.places, :] = state.slopes
        return Around(
            state.mean, slopes, -0.5 * self.strength * part,
            self._wide(-0.5 * self.strength * by_own), self._wide_matrix(hessian),
        )  # fmt: skip

    def score_covariances(self, p: Array) -> dict[str, Array]:
        """The covariance of the gradient from every source of this channel."""
        rows = self.known.at(p[self.places]).slopes @ self.inverse
        parts = {STAT: self.observed, SIMULATION: self.statistics, MODEL: self.open}
        return {name: self._wide_matrix(rows @ c @ rows.T) for name, c in parts.items()}

    def left_open(self, p: Array, response: Array) -> tuple[float, dict[str, float]]:
        """The error of a parameter from the interpolation between templates, and from what the
        samples of each systematic do not determine; `response` is its change with the gradient."""
        row = response[self.places] @ self.known.at(p[self.places]).slopes @ self.inverse
        names = [one.name for one in self.known.nuisances]
        each = np.sqrt(self.of_variations @ row**2)
        return (
            float(np.sqrt((row @ self.interpolation @ row).clip(min=0))),
            dict(zip(names, each.tolist(), strict=True)),
        )

    @property
    def components(self) -> int:
        """The number of components of the summary."""
        return self.known.size

    def _wide(self, own: Array) -> Array:
        result = np.zeros((*own.shape[:-1], self.size))
        result[..., self.places] = own
        return result

    def _wide_matrix(self, own: Array) -> Array:
        result = np.zeros((*own.shape[:-2], self.size, self.size))
        result[..., self.places[:, None], self.places] = own
        return result

    def _correction(self, own: Array) -> tuple[Array, Array, Array]:
        """tr(W C), its gradient, and half its second derivatives (the larger ones)."""
        known = self.known
        t, alpha = known.split(own)
        count = t.shape[-1]
        shares = known.process_shares(alpha)
        value, gradient = np.zeros(own.shape[:-1]), np.zeros(own.shape)
        matrix = np.zeros((*own.shape, own.shape[-1]))
        sizes = []
        for number, (process, (nominal, varied)) in enumerate(
            zip(known.processes, self.traces, strict=True)
        ):
            a = alpha[..., process.systematics]
            places = count + process.systematics
            squared = shares[..., number, None] ** 2
            size, by_t, second = _trace(process, t, nominal)
            size = size + a**2 @ varied
            value = value + squared[..., 0] * size
            if by_t.shape[-1]:
                gradient[..., :count] += squared * by_t / known.grid.range
                unit = np.outer(*[known.grid.range] * 2)
                matrix[..., :count, :count] += squared[..., None] * second / unit
            gradient[..., places] += squared * 2 * varied * a
            matrix[..., places, places] += squared * varied
            sizes.append(size)
        for number, one in enumerate(known.shares, start=1):
            place = count + one.nuisance
            gradient[..., place] += (
                one.unit * 2 * (shares[..., number] * sizes[number] - shares[..., 0] * sizes[0])
            )
            matrix[..., place, place] += one.unit**2 * (sizes[number] + sizes[0])
        return value, gradient, matrix


def _trace(process: Process, t: Array, nominal: Array) -> tuple[Array, Array, Array]:
    """phi' G phi, its slopes by t, and half of its second derivatives from slopes of phi."""
    t = t[..., : process.t.shape[1]]
    phi, dphi = shift_terms(t, process.powers), shift_slopes(t, process.powers)
    rows = dphi @ nominal
    return (
        np.asarray(((phi @ nominal) * phi).sum(axis=-1)),
        np.asarray(2 * (rows @ phi[..., None])[..., 0]),
        np.asarray(rows @ np.swapaxes(dphi, -1, -2)),
    )


class CurveTerm:
    """The likelihood of a channel that is a curve in its own parameters.

    Parameters
    ----------
    channel : Channel
        The events.
    places : array (own parameters,) of int
        Where the channel's parameters are among all.
    size : int
        Number of all parameters.
    """

    def __init__(self, channel: Channel, places: NDArray[np.int64], size: int) -> None:
        self.channel, self.places, self.size = channel, places, size
        self.curve = Curve.of(channel.total)

    def slopes(self, p: Array, observed: bool = True) -> tuple[float, Array, Array]:  # noqa: ARG002
        """Minus the log likelihood, its gradient and second derivatives."""
        t, scale = self._own(p), self.channel.grid.range
        gradient, hessian = np.zeros(self.size), np.zeros((self.size, self.size))
        gradient[self.places] = self.curve.gradient(t) / scale
        hessian[np.ix_(self.places, self.places)] = self.curve.hessian(t) / np.outer(scale, scale)
        return self.curve.value(t), gradient, hessian

    def score_covariances(self, p: Array) -> dict[str, Array]:
        """The covariance of the gradient from every source of this channel."""
        channel, t = self.channel, self._own(p)
        spread = channel.scores
        stat = self.curve.hessian(t) if spread is None else spread.covariance(t)
        found = {STAT: self._wide(stat)}
        for name, source in channel.sources.items():
            found[name] = self._wide(source.covariance(source.slopes(t)))
        return found

    def chi2(self, p: Array) -> tuple[float, float] | None:
        """How far the events are from the simulation, with the degrees of freedom, if known."""
        agreement = self.channel.agreement
        return None if agreement is None else agreement.chi2(self._own(p))

    def _own(self, p: Array) -> Array:
        return self.channel.grid.to_unit(p[self.places])

    def _wide(self, own: Array) -> Array:
        scale = self.channel.grid.range
        result = np.zeros((self.size, self.size))
        result[np.ix_(self.places, self.places)] = own / np.outer(scale, scale)
        return result
