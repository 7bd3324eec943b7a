"""What a model says without observed events: simulation at any theta, expected likelihoods,
and pseudo-experiments: sums of the vectors of events drawn at any theta."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gridless.curves import chebyshev
from gridless.distributed import own_threads
from gridless.errors import InputError, check_kind
from gridless.likelihood.channel import SHARED, Channel, Toys, generator
from gridless.likelihood.likelihood import Likelihood
from gridless.measurement.likelihood import MeasurementLikelihood
from gridless.measurement.term import SummaryChannel, expected_sums
from gridless.model.observed import channel_of_sum
from gridless.model.reweighting import Reweighting, tilted
from gridless.model.virtual import VirtualTemplate, inner_point, virtual_template
from gridless.systematics.bins import mixed_histograms
from gridless.templates.arrays import Array, as_number, as_size, covariance_root, symmetric_power
from gridless.templates.histograms import Histogram

if TYPE_CHECKING:
    from gridless.model.model import Model

MAX_DIRECT = 128  # events that are drawn one by one; of more, blocks of as many
BLOCKS = 4096  # blocks that larger numbers of events are made of
MIN_NORMAL = 4000  # events whose sum is drawn from a normal distribution
DRAWN_AT_ONCE = 2**20  # events, so that memory stays small


@dataclass(frozen=True, eq=False)
class VirtualToys(Toys):
    """Draws from the events that a model keeps, weighted to theta.

    Attributes
    ----------
    model : Model
        It keeps the events.
    weight, squares : float
        The sums of the weights of the observed events, and of their squares.
    held : tuple of (int, float)
        Parameters that are held: the axis of each, among those that were free when it was held, and
        its value.
    """

    model: "Model"
    weight: float
    squares: float
    held: tuple[tuple[int, float], ...] = ()

    @property
    def events(self) -> int:
        """The number of events without weights with the same relative fluctuation."""
        return max(1, round(self.weight**2 / self.squares))

    def draw(self, t: Array, toys: int, seed: tuple[int, ...], stat: bool) -> Array:
        point = self._all(t[None])[0]
        source, weights = self.model.reweighting, self._chances(point)
        sums = _sums(source.y, weights, self.events, toys, generator(*seed))
        sums *= self.weight / self.events
        calibration = self.model.calibration
        if stat or calibration is None:
            return sums
        covariance = calibration.mean_covariance(point[None])[0]
        # Parts of one model, of which only the last number differs, have the same simulation.
        shared = generator(*seed[:-1], SHARED, SHARED).standard_normal((toys, len(covariance)))
        return np.asarray(sums + self.weight * shared @ covariance_root(covariance).T)

    def deviations(self, t: Array, covariance: Array, toys: int, seed: tuple[int, ...]) -> Array:
        random = generator(*seed)
        if self.events >= MIN_NORMAL:
            normal = random.standard_normal((toys, len(covariance)))
            return np.asarray(normal @ covariance_root(covariance).T)
        # The kept events lend the shape of the distribution: skewness and tails.
        y, weights = self.model.reweighting.measured, self._chances(self._all(t[None])[0])
        rest = y - weights @ y
        found = _sums(rest, weights, self.events, toys, random) / np.sqrt(self.events)
        own = symmetric_power((rest * weights[:, None]).T @ rest, -0.5)
        return np.asarray(found @ own @ symmetric_power(covariance, 0.5))

    def _chances(self, point: Array) -> Array:
        """The chance of each kept event to be drawn at a point of the unit box."""
        source = self.model.reweighting
        weights = source.at(point)
        if (weights < 0).any():
            # Nothing can be drawn with a negative chance.
            weights = tilted(weights.clip(min=0), source.y, weights @ source.y)
        return weights

    def functions(self, t: Array) -> tuple[Array, Array]:
        points, source = self._all(t), self.model.reweighting
        f = np.array([chebyshev.evaluate(row, points) for row in source.matrix])
        return f, self.weight * chebyshev.evaluate(source.offset, points)

    def __add__(self, other: Toys) -> "VirtualToys":
        if not isinstance(other, VirtualToys):
            raise ValueError("pseudo-experiments of different kinds do not add")
        return replace(
            self, weight=self.weight + other.weight, squares=self.squares + other.squares
        )

    def restrict(self, axis: int, t: float) -> "VirtualToys":
        return replace(self, held=(*self.held, (axis, t)))

    def _all(self, t: Array) -> Array:
        """Points with the held parameters."""
        for axis, value in reversed(self.held):
            t = np.insert(t, axis, value, axis=1)
        return t


def _sums(y: Array, weights: Array, events: int, toys: int, random: np.random.Generator) -> Array:
    """Sums (toys, size) of the vectors of `events` events, each drawn with its weight."""
    if events <= MAX_DIRECT:
        return _direct(y, weights, events, toys, random)
    mean = weights @ y
    rest = y - mean
    covariance = (rest * weights[:, None]).T @ rest
    if events >= MIN_NORMAL:
        normal = random.standard_normal((toys, len(mean)))
        return np.asarray(events * mean + np.sqrt(events) * normal @ covariance_root(covariance).T)
    # Of blocks, which keep skewness and tails, with exactly the mean and covariance of the events.
    blocks = _direct(rest, weights, MAX_DIRECT, BLOCKS, random)
    blocks -= blocks.mean(axis=0)
    found = np.linalg.pinv(covariance_root(np.cov(blocks.T, bias=True).reshape(len(mean), -1)))
    blocks = blocks @ found.T @ covariance_root(MAX_DIRECT * covariance).T
    count, left = divmod(events, MAX_DIRECT)
    chosen = random.integers(0, BLOCKS, (toys, count))
    total = blocks[chosen].sum(axis=1) + events * mean
    return np.asarray(total + (_direct(rest, weights, left, toys, random) if left else 0.0))


def _direct(y: Array, weights: Array, events: int, toys: int, random: np.random.Generator) -> Array:
    """Sums of events that are drawn one by one."""
    share = np.cumsum(weights)
    share /= share[-1]
    found = np.empty((toys, y.shape[1]))
    step = max(1, DRAWN_AT_ONCE // events)
    for begin in range(0, toys, step):
        rows = min(step, toys - begin)
        drawn = np.searchsorted(share, random.random((rows, events)), side="right")
        found[begin : begin + rows] = y[drawn.clip(max=len(y) - 1)].sum(axis=1)
    return found


class Simulating:
    """The methods of `Model` that need only its kept events and its calibration."""

    @cached_property
    def reweighting(self) -> Reweighting:
        """Weights of the kept simulated events at any theta."""
        return Reweighting(cast("Model", self))

    @own_threads()
    def at(self, theta: Any) -> VirtualTemplate:
        """Simulation at any theta: the kept events with weights w_i(theta).

        The network's ratio of densities, then the least change that gives summaries their
        calibrated mean and observables the distributions that all templates tell of. These are
        right whatever the network learnt; how observables go together is the network's.

        Parameters
        ----------
        theta : float or sequence of float
            Where: a number, or one for each parameter.

        Returns
        -------
        VirtualTemplate
            Events, weights that sum to 1, and their effective size. A warning tells where that is
            below 1,000; below 50 it is refused.

        Examples
        --------
        >>> import gridless as gl
        >>> from gridless.examples import OneObservable
        >>> model = gl.fit(OneObservable().templates(2_000, seed=1), hidden=3, seed=1)
        >>> simulated = model.at(0.4)
        >>> print(f"{simulated.weights @ simulated.x[:, 0]:.1f}")  # the mean of x there
        0.4
        """
        return virtual_template(cast("Model", self), theta)

    @own_threads()
    def expected(self, theta: Any, events: float) -> Likelihood:
        """The likelihood that events at theta have on average: nothing is drawn, and no observed
        event is looked at.

        -log L = events [b(theta') - a(theta') . mu(theta)], the calibrated likelihood with every
        summary at its mean. With systematics and backgrounds, nuisance parameters are at 0.

        Parameters
        ----------
        theta : float or sequence of float
            What is assumed to be true.
        events : float
            How many events will be observed.

        Returns
        -------
        Likelihood
            Its maximum is at theta; its interval, budget and contours are what to expect.

        Examples
        --------
        >>> import gridless as gl
        >>> from gridless.examples import OneObservable
        >>> model = gl.fit(OneObservable().templates(5_000, seed=1), hidden=3, seed=1)
        >>> estimate = model.expected(0.4, 10_000).maximum()
        >>> print(f"{estimate.value:.2f} +- {estimate.stat:.2f}")
        0.40 +- 0.01
        """
        model = cast("Model", self)
        events = as_size(events)
        t, calibration = inner_point(model.grid, theta), model.calibration
        if calibration is not None:
            y = events * calibration.mean(t[None])[0]
            channel = channel_of_sum(calibration, model.grid, y, float(events), round(events))
        else:
            channel = Channel(events * self.reweighting.mean_curve(t), model.grid, round(events))
        channel = replace(channel, warnings=model.warnings, model=model.identity)
        channel = replace(channel, toys=self.toys(events, events))
        if model.measurement is not None:
            sums = expected_sums(model.measurement, model.grid.from_unit(t), float(events))
            return MeasurementLikelihood([SummaryChannel(model.measurement, sums, channel)])
        return Likelihood([channel])

    def histograms(
        self, theta: Any, nuisances: Mapping[str, float] | None = None
    ) -> dict[str, Histogram]:
        """The simulation at any theta in histograms, which mplhep and others draw.

        Bins are polynomials in theta through all templates (`gridless.templates.interpolation`),
        with the backgrounds in their shares.

        Parameters
        ----------
        theta : float or sequence of float
            The value of each parameter.
        nuisances : mapping from str to float, optional
            Values of nuisance parameters; the others are 0.

        Returns
        -------
        dict of str to Histogram
            Shares of events by observable; `histogram * n` is what n events are expected to give.
            Variances are those of the simulation's statistics.

        Examples
        --------
        >>> from gridless.examples import Nuisances
        >>> model = Nuisances().fit(events=500, seed=1, hidden=3, epochs=2)
        >>> nominal, up = model.histograms(0.4), model.histograms(0.4, {"jes": 1})
        >>> bool(abs(up["x1"].values() - nominal["x1"].values()).max() > 0)
        True
        """
        model = cast("Model", self)
        point = model.grid.from_unit(model.grid.unit_point(theta))
        if not np.isfinite(point).all():
            raise InputError(f"theta: {theta!r:.80}; give finite numbers")
        labels = model.query.labels
        found = {
            one.observable: one.at(model.grid, point, labels.get(one.observable, ""))
            for one in model.summary.distributions
        }
        check_kind({} if nuisances is None else nuisances, Mapping, "nuisances")
        given = {n: as_number(v, f"nuisances: {n}") for n, v in (nuisances or {}).items()}
        for name in given:
            if name not in model.nuisances:
                known = ", ".join(model.nuisances) or "none"
                raise InputError(f"nuisances: there is no {name!r}; there is {known}")
        if model.measurement is None:
            return found
        alpha = np.array([given.get(name, 0.0) for name in model.nuisances])
        shares = model.measurement.process_shares(alpha)
        return mixed_histograms(found, model.binned, shares, model.grid.to_unit(point), alpha)

    def toys(self, weight: float, squares: float) -> VirtualToys | None:
        """Pseudo-experiments of events with these sums of weights and of their squares."""
        model = cast("Model", self)
        return VirtualToys(model, weight, squares) if weight > 0 else None
