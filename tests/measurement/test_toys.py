"""Intervals of a measurement by pseudo-experiments, every nuisance parameter profiled."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from tests.measurement.test_likelihood import SHIFTS, T, channel, least_squares, measurement

import gridless as gl
from gridless.examples import Nuisances
from gridless.likelihood.channel import Toys, generator
from gridless.measurement.joint import Joint
from gridless.measurement.likelihood import MeasurementLikelihood
from gridless.measurement.term import SummaryChannel, Sums
from gridless.templates.arrays import covariance_root

EXAMPLE = Nuisances()


class NormalToys(Toys):
    """Means of so many events that they are normal."""

    def draw(self, t, toys, seed, stat):
        raise NotImplementedError

    def functions(self, t):
        raise NotImplementedError

    def deviations(self, t, covariance, toys, seed):
        normal = generator(*seed).standard_normal((toys, len(covariance)))
        return normal @ covariance_root(covariance).T

    def __add__(self, other):
        return self

    def restrict(self, axis, t):
        return self


def linear(mean, **options):
    """The likelihood of a linear measurement, of which everything is known."""
    one = channel(measurement(SHIFTS, **options), mean)
    return MeasurementLikelihood([replace(one, base=replace(one.base, toys=NormalToys()))])


@pytest.fixture(scope="module")
def model():
    return EXAMPLE.fit(3_000, seed=1, hidden=6, epochs=4)


def test_far_from_bounds_it_is_that_of_wilks_with_every_systematic():
    likelihood = linear(T)
    belt = likelihood.belt(toys=2_000, points=31)
    for level in (0.68, 0.95):
        want = likelihood.interval(level)
        got = likelihood.interval(level, method="feldman-cousins", belt=belt)
        np.testing.assert_allclose(got, want, atol=0.05 * (want[1] - want[0]))
    _, covariance = least_squares(SHIFTS, T)
    assert np.diff(belt.interval(0.683)) == pytest.approx(2 * np.sqrt(covariance[0, 0]), rel=0.08)
    held = likelihood.belt(toys=1_000, points=31, stat=True).interval(0.683)
    assert np.diff(held) == pytest.approx(2 / np.sqrt(100), rel=0.1)


@pytest.mark.parametrize("constraints", [[1.0, 1.0], [1.0, None]])
def test_at_a_bound_the_rises_are_those_of_feldman_and_cousins(constraints):
    """There the estimate is at the bound in half of all cases, where nothing rises."""
    likelihood = linear([0.02, 0.1, -0.05], constraints=constraints)
    experiments = likelihood.experiments()
    place, _ = experiments.profile(0)(0.0)
    lattice = experiments.lattice(place, 0)
    drawn = experiments.draw(place, 20_000, (1,))
    rises, best = lattice.rises(experiments.curves(place, lattice.points)(drawn))
    assert (best < 1e-6).mean() == pytest.approx(0.5, abs=0.01)
    for level in (0.683, 0.954):
        want = 0.5 * norm.ppf(level) ** 2
        assert np.quantile(rises, level) == pytest.approx(want, abs=0.02 + 0.03 * want)


def test_a_limit_has_the_systematics_too():
    likelihood = linear([0.05, 0.0, 0.0])
    error = np.sqrt(least_squares(SHIFTS, T)[1][0, 0])
    belt = likelihood.belt(method="upper", toys=2_000, points=21)
    low, limit = likelihood.interval(0.95, method="upper", belt=belt)
    assert low == 0
    # CLs of a normal distribution: (1 - Phi(limit - best)) / (1 - Phi(-best)).
    best = likelihood.maximum().value
    want = best + error * norm.ppf(1 - 0.05 * norm.cdf(best / error))
    assert limit == pytest.approx(want, abs=0.1 * error)


class Moved(Joint):
    """A fit whose constraints have other centres."""

    centres = ()

    @property
    def gaussians(self):
        return [(w, c, e) for (w, _, e), c in zip(super().gaussians, self.centres, strict=True)]


def test_a_newton_step_finds_the_profile_of_whole_fits(model):
    likelihood = model.likelihood(EXAMPLE.sample(0.3, 4_000, seed=2))
    experiments, joint, known = likelihood.experiments(), likelihood.joint, model.measurement
    place, _ = experiments.profile(0)(0.35)
    drawn = experiments.draw(place, 12, (3,))
    lattice = experiments.lattice(place, 0)
    rises, best = lattice.rises(experiments.curves(place, lattice.points)(drawn))
    for vector, rise, value in zip(drawn, rises, best, strict=True):
        total = 4_000 * vector[: known.size]
        sums = Sums(4_000, 4_000.0, 4_000.0, total, total, np.zeros((known.size,) * 2), False)
        (only,) = joint.parts
        fit = Moved(
            [SummaryChannel(known, sums, only.base)], [], joint.grid, joint.nuisances, [], {}
        )
        fit.centres = vector[known.size :]
        assert fit.best[0] == pytest.approx(value, abs=0.1 * joint.error(0))
        assert fit.profiled({0: 0.35})[0] - fit.floor == pytest.approx(rise, abs=0.1)


def test_many_points_at_once_are_those_one_by_one(model):
    """A belt asks for thousands of points: one by one they took half a minute."""
    joint = model.likelihood(EXAMPLE.sample(0.5, 500, seed=2)).joint
    (term,) = joint.terms_at(joint.best)
    points = joint.best + np.linspace(-3, 3, 5)[:, None] * joint.errors(joint.best)
    whole = term.around(points)
    for k, point in enumerate(points):
        for many, one in zip(whole, term.around(point), strict=True):
            np.testing.assert_allclose(many[k], one, rtol=1e-10, atol=1e-10)


def test_few_events_have_the_mean_the_width_and_the_skewness_of_events(model):
    few = model.expected(0.4, 20)
    experiments = few.experiments()
    place = experiments.best_place
    (term,) = few.joint.terms_at(place)
    size = model.measurement.size
    drawn = experiments.draw(place, 20_000, (1,))[:, :size]
    error = np.sqrt(np.diag(term.observed + term.statistics + term.open))
    pulls = (drawn - term.around(place).mean) / error
    np.testing.assert_allclose(pulls.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(pulls.std(axis=0), 1, atol=0.05)
    y = model.reweighting.measured
    of_one = ((y - y.mean(axis=0)) ** 3).mean(axis=0) / y.std(axis=0) ** 3
    largest = int(np.argmax(np.abs(of_one)))
    skewness = (pulls[:, largest] ** 3).mean() * np.sqrt(20)
    assert skewness == pytest.approx(of_one[largest], rel=0.4)


def test_channels_with_and_without_systematics_and_held_parameters():
    both = linear(T)
    plain = gl.fit(_plain_templates(), hidden=3, seed=1)
    likelihood = both + plain.likelihood(np.random.default_rng(2).normal(2.3, 1, (50, 1)))
    for one in (likelihood, likelihood.constrain("mass", 2.2, 0.2), likelihood.fix(s0=0.0)):
        want = one.interval(0.68)
        got = one.belt(toys=1_000, points=21).interval(0.68)
        np.testing.assert_allclose(got, want, atol=0.12 * (want[1] - want[0]))


def _plain_templates():
    random = np.random.default_rng(1)
    theta = np.repeat([0.5, 1.5, 2.5, 3.5], 2_000)
    return gl.Templates(random.normal(theta, 1)[:, None], theta, bounds=(0, 4), parameters=["mass"])


def test_belts_of_a_model_add_up_and_run_on_an_executor(varied):
    likelihood = varied.likelihood(EXAMPLE.sample(0.02, 300, seed=4))
    first, second = (likelihood.belt(toys=50, points=5, seed=seed) for seed in (1, 2))
    assert (first + second).toys == 100
    with ThreadPoolExecutor(2) as executor:
        again = likelihood.belt(toys=50, points=5, seed=1, executor=executor)
    np.testing.assert_array_equal(again.rises, first.rises)


def test_what_cannot_be_made_is_refused(varied):
    likelihood = varied.likelihood(EXAMPLE.sample(0.3, 500, seed=4))
    with pytest.raises(gl.InputError, match="no parameter 'jes' of interest; there is theta"):
        likelihood.belt("jes")
    with pytest.raises(gl.InputError, match="method"):
        likelihood.interval(method="bayes")
    with pytest.raises(gl.InputError, match="no simulation to draw from"):
        MeasurementLikelihood([channel(measurement(SHIFTS), T)]).belt()
