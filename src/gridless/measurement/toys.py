"""Pseudo-experiments of a measurement: belts with every nuisance parameter profiled.

At a value of the parameter of interest, all nuisance parameters are where the observed events want
them. A pseudo-experiment draws the mean T of the summary around mu there, with the covariance of
observed and simulated events, and what every constraint is centred at (the global observables)
around the nuisance parameter. Its profile is found by one Newton step of all nuisance parameters at
every point of a lattice of the parameters of interest: mu is nearly linear in them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from gridless.curves.newton import inverse_on
from gridless.likelihood.belt import CurveExperiments, Experiments, check_toys
from gridless.likelihood.channel import generator
from gridless.likelihood.likelihood import Likelihood
from gridless.measurement.term import Around, SummaryTerm
from gridless.templates.arrays import Array, covariance_root

if TYPE_CHECKING:
    from gridless.measurement.likelihood import MeasurementLikelihood

# Numbers of the seed: what is drawn.
EVENTS = 0
SIMULATION = 1
CONSTRAINTS = 2
PLAIN = 3


class _Profile(NamedTuple):
    """v' Q v / 2 + l . v + c of vectors (toys, size), v = vector - centre."""

    centre: Array
    quadratic: Array
    linear: Array
    constant: float

    def __call__(self, vectors: Array) -> Array:
        v = vectors - self.centre
        return (
            np.asarray((v * (0.5 * v @ self.quadratic + self.linear)).sum(axis=1)) + self.constant
        )


class SummaryExperiments(Experiments):
    """Those of a likelihood with nuisance parameters. A place has the values of all names.

    A vector has the mean summary of each model, the centre of every constraint, and the vector of
    the channels without systematics.
    """

    def __init__(self, likelihood: "MeasurementLikelihood") -> None:
        check_toys(likelihood.channels)
        joint = likelihood.joint
        self.joint, self.estimate = joint, likelihood.maximum()
        self.parameters, self.best_place = joint.interest, joint.best
        self.axes = [joint.place(name) for name in joint.interest]
        self.range = joint.high[self.axes] - joint.low[self.axes]
        self.best = self.unit(joint.best)
        errors = joint.errors(joint.best)[self.axes] / self.range
        known = np.isfinite(errors) & (errors > 0)
        self.widths = np.where(known, errors, 1.0).clip(max=1.0)
        self.plain = None
        if likelihood.plain:
            self.plain = CurveExperiments(Likelihood(likelihood.plain))

    def unit(self, place: Array) -> Array:
        return np.asarray((place[self.axes] - self.joint.low[self.axes]) / self.range)

    def profile(self, axis: int) -> Callable[[float], tuple[Array, float]]:
        joint, place = self.joint, self.axes[axis]

        def found(t: float) -> tuple[Array, float]:
            value, p = joint.profiled({place: float(joint.low[place] + t * self.range[axis])})
            return p, value - joint.floor

        return found

    def draw(self, place: Array, toys: int, seed: tuple[int, ...]) -> Array:
        parts = []
        for number, term in enumerate(self.joint.terms_at(place)):
            parts.append(self._means(term, place, toys, (*seed, number)))
        random = generator(*seed, 0, CONSTRAINTS)
        for where, _, error in self.joint.gaussians:
            parts.append(random.normal(place[where], error, (toys, 1)))
        if self.plain is not None:
            parts.append(self.plain.draw(self._of_plain(place), toys, (*seed, 0, PLAIN)))
        return np.hstack(parts)

    def _means(self, term: SummaryTerm, place: Array, toys: int, seed: tuple[int, ...]) -> Array:
        """The mean summaries (toys, d) of events at a place."""
        base, around = term.channel.base, term.around(place)
        assert base.toys is not None
        t, _ = term.known.split(place[term.places])
        drawn = base.toys.deviations(t, term.observed, toys, (*seed, EVENTS))
        normal = generator(*seed, SIMULATION).standard_normal((toys, term.components))
        root = covariance_root(term.statistics + term.open)
        # The correction takes out what noise in mu does on average. Here mu is the true one: so
        # that the likelihood has no slope at the place on average, T moves by as much.
        slopes = around.slopes[self.joint.free]
        curvature = np.linalg.pinv(slopes @ term.inverse @ slopes.T, hermitian=True)
        drift = slopes.T @ curvature @ around.gradient[self.joint.free]
        return np.asarray(around.mean + drift + drawn + normal @ root.T)

    def curves(self, place: Array, points: Array) -> Callable[[Array], Array]:
        joint, terms = self.joint, self.joint.terms_at(place)
        nuisances = joint.free.copy()
        nuisances[: len(joint.grid.parameters)] = False
        # Along with the parameters of interest, to first order.
        here = self._inverse([term.around(place) for term in terms], nuisances)
        follow = -here[0] @ here[1][:, self.axes]
        steps = (points - self.unit(place)) * self.range
        whole = place + steps @ follow.T
        whole[:, self.axes] = place[self.axes] + steps
        added = None if self.plain is None else self.plain.curves(
            self._of_plain(place), self._of_plain(whole)
        )  # fmt: skip

        profiles = [self._profile(terms, p, nuisances) for p in whole]
        size = len(profiles[0].centre)

        def values(vectors: Array) -> Array:
            own = vectors[:, :size]
            found = np.stack([profile(own) for profile in profiles], axis=1)
            return found if added is None else found + added(vectors[:, size:])

        return values

    def _profile(
        self, terms: list[SummaryTerm], p: Array, nuisances: NDArray[np.bool_]
    ) -> "_Profile":
        """The likelihood of any vector after one Newton step of the nuisance parameters from p.

        The gradient is g - B v, v what the vector differs by from what is expected at p.
        """
        around = [term.around(p) for term in terms]
        inverse, _ = self._inverse(around, nuisances)
        gradient = sum((one.gradient for one in around), np.zeros(len(p)))
        for where, centre, error in self.joint.unconstrained:
            gradient[where] += (p[where] - centre) / error**2
        gaussians = self.joint.gaussians
        rows = [one.slopes @ term.inverse for term, one in zip(terms, around, strict=True)]
        for where, _, error in gaussians:
            row = np.zeros((len(p), 1))
            row[where] = 1 / error**2
            rows.append(row)
        weights = [term.inverse for term in terms]
        weights += [np.array([[1 / error**2]]) for _, _, error in gaussians]
        slopes = np.hstack(rows)
        return _Profile(
            np.concatenate(
                [*(one.mean for one in around), [p[where] for where, _, _ in gaussians]]
            ),
            block_diag(*weights) - slopes.T @ inverse @ slopes,
            slopes.T @ inverse @ gradient,
            sum(one.value for one in around) - 0.5 * float(gradient @ inverse @ gradient),
        )

    def _inverse(self, around: list[Around], nuisances: NDArray[np.bool_]) -> tuple[Array, Array]:
        """The inverse of the second derivatives by the nuisance parameters, and all of these."""
        hessian = sum((one.hessian for one in around), np.zeros((len(nuisances),) * 2))
        for where, _, error in [*self.joint.gaussians, *self.joint.unconstrained]:
            hessian[where, where] += 1 / error**2
        inverse = inverse_on(hessian, nuisances)
        # None: there are no nuisance parameters, or so far away the correction leaves no minimum.
        return np.zeros_like(hessian) if inverse is None else inverse, hessian

    def _of_plain(self, place: Array) -> Array:
        """Places (..., names) as those of the plain channels."""
        assert self.plain is not None
        likelihood = self.plain.likelihood
        axes = [self.joint.place(name) for name in likelihood.parameters]
        return likelihood.grid.to_unit(place[..., axes])
