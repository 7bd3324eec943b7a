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
from gridless.errors import InputError
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


class _Profiles(NamedTuple):
    """v' Q v / 2 + l . v + c of vectors (toys, size) at some points, v = vector - centre; arrays
    (points, size), (points, size, size), (points, size) and (points,)."""

    centre: Array
    quadratic: Array
    linear: Array
    constant: Array

    def __call__(self, vectors: Array) -> Array:
        found = np.empty((len(vectors), len(self.centre)))
        for k, (centre, quadratic, linear, constant) in enumerate(zip(*self, strict=True)):
            v = vectors - centre
            found[:, k] = np.einsum("ti,ti->t", v, 0.5 * v @ quadratic + linear) + constant
        return found


class SummaryExperiments(Experiments):
    """Those of a likelihood with nuisance parameters. A place has the values of all names.

    A vector has the mean summary of each model, the centre of every constraint, and the vector of
    the channels without systematics.
    """

    def __init__(self, likelihood: "MeasurementLikelihood") -> None:
        check_toys(likelihood.channels)
        joint = likelihood.joint
        if found := joint.two_sided():
            raise InputError(
                f"the effect of {', '.join(found)} turns over: up and down move the events the "
                "same way, and pseudo-experiments would follow one side only; take intervals "
                "without a method"
            )
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
        inverse, hessian = self._inverse([term.around(place) for term in terms], nuisances)
        follow = -inverse @ hessian[:, self.axes]
        steps = (points - self.unit(place)) * self.range
        whole = place + steps @ follow.T
        whole[:, self.axes] = place[self.axes] + steps
        added = None if self.plain is None else self.plain.curves(
            self._of_plain(place), self._of_plain(whole)
        )  # fmt: skip

        profiles = self._profiles(terms, whole, nuisances)
        size = profiles.centre.shape[1]

        def values(vectors: Array) -> Array:
            found = profiles(vectors[:, :size])
            return found if added is None else found + added(vectors[:, size:])

        return values

    def _profiles(
        self, terms: list[SummaryTerm], p: Array, nuisances: NDArray[np.bool_]
    ) -> _Profiles:
        """The likelihood of any vector after one Newton step of the nuisance parameters from each
        of the points p (points, names).

        The gradient is g - B v, v what the vector differs by from what is expected at p.
        """
        around = [term.around(p) for term in terms]
        inverse, _ = self._inverse(around, nuisances)
        gradient = sum((one.gradient for one in around), np.zeros(p.shape))
        for where, centre, error in self.joint.unconstrained:
            gradient[:, where] += (p[:, where] - centre) / error**2
        gaussians = self.joint.gaussians
        rows = [one.slopes @ term.inverse for term, one in zip(terms, around, strict=True)]
        for where, _, error in gaussians:
            row = np.zeros((*p.shape, 1))
            row[:, where] = 1 / error**2
            rows.append(row)
        weights = [term.inverse for term in terms]
        weights += [np.array([[1 / error**2]]) for _, _, error in gaussians]
        slopes = np.concatenate(rows, axis=2)
        step = (inverse @ gradient[:, :, None])[:, :, 0]
        across = np.swapaxes(slopes, 1, 2)
        return _Profiles(
            np.hstack([*(one.mean for one in around), p[:, [where for where, _, _ in gaussians]]]),
            block_diag(*weights) - across @ inverse @ slopes,
            (across @ step[:, :, None])[:, :, 0],
            sum((one.value for one in around), np.zeros(len(p))) - 0.5 * (gradient * step).sum(1),
        )

    def _inverse(self, around: list[Around], nuisances: NDArray[np.bool_]) -> tuple[Array, Array]:
        """The inverse of the second derivatives by the nuisance parameters, and all of these, at
        one point or several; the inverse is 0 where there is none: there are no nuisance
        parameters, or so far away the correction leaves no minimum."""
        hessian = np.sum([one.hessian for one in around], axis=0)
        for where, _, error in [*self.joint.gaussians, *self.joint.unconstrained]:
            hessian[..., where, where] += 1 / error**2
        size = len(nuisances)
        found = [inverse_on(one, nuisances) for one in hessian.reshape(-1, size, size)]
        none = np.zeros((size, size))
        return np.array([none if one is None else one for one in found]).reshape(
            hessian.shape
        ), hessian

    def _of_plain(self, place: Array) -> Array:
        """Places (..., names) as those of the plain channels."""
        assert self.plain is not None
        likelihood = self.plain.likelihood
        axes = [self.joint.place(name) for name in likelihood.parameters]
        return likelihood.grid.to_unit(place[..., axes])
