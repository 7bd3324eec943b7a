"""Sums over models: shared parameters, independent simulations, p-values and warnings of each."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iminuit import Minuit
from iminuit.cost import CostSum
from scipy.stats import chi2
from tests.helpers import parabola

import gridless as gl
from gridless.curves import chebyshev
from gridless.errors import InputError
from gridless.examples import OneObservable
from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.sources import ReplicaNoise
from gridless.templates.grid import Grid


def normal(names, best, matrix, bounds=None, **options):
    """The likelihood (theta - best) matrix (theta - best) / 2 of named parameters."""
    best, matrix = np.asarray(best, float), np.asarray(matrix, float)
    bounds = np.array(bounds or [(0.0, 1.0)] * len(names), float)
    grid = Grid(np.zeros((0, len(names))), bounds, tuple(names))

    def function(t):
        d = grid.from_unit(t) - best
        return 0.5 * np.einsum("ni,ij,nj->n", d, matrix, d)

    c = chebyshev.approximate(function, 1e-9, len(names))
    return Likelihood([Channel(c, grid, 100, **options)])


def simulated(best, error, shifts, model):
    """A likelihood of theta whose minimum the replicas of a model move by `shifts`."""
    slopes = -np.asarray(shifts) / error**2
    changes = np.stack([0.0 * slopes, 0.5 * slopes], axis=1)
    sources = {"simulation": ReplicaNoise(changes)}
    return normal(["theta"], [best], [[error**-2]], sources=sources, model=model)


matrices = st.tuples(st.floats(50, 5000), st.floats(50, 5000), st.floats(-0.9, 0.9)).map(
    lambda m: [[m[0], m[2] * (m[0] * m[1]) ** 0.5], [m[2] * (m[0] * m[1]) ** 0.5, m[1]]]
)
inside = st.floats(0.35, 0.65)
few = settings(max_examples=5, deadline=None)  # each takes a tenth of a second


@few
@given(matrices, matrices, inside, inside, inside, inside)
def test_models_that_share_one_parameter_give_what_iminuit_finds(a, b, m1, m2, s1, s2):
    first, second = normal(["mass", "s1"], [m1, s1], a), normal(["mass", "s2"], [m2, s2], b)
    total = first + second
    assert total.parameters == ("mass", "s1", "s2")
    estimate = total.maximum()
    minuit = Minuit(CostSum(first, second), mass=0.5, s1=0.5, s2=0.5)
    minuit.strategy, minuit.tol = 2, 1e-8
    minuit.migrad()
    # iminuit ends at a distance to the minimum that is in units of the errors.
    differences = (estimate.values - np.array(minuit.values)) / np.array(minuit.errors)
    assert np.abs(differences).max() < 1e-4
    information = np.zeros((3, 3))
    information[np.ix_([0, 1], [0, 1])] += a
    information[np.ix_([0, 2], [0, 2])] += b
    np.testing.assert_allclose(
        estimate.covariance, np.linalg.inv(information), rtol=1e-6, atol=1e-10
    )
    at = np.array([0.3, 0.6, 0.7])
    assert total(*at) == pytest.approx(first(*at[[0, 1]]) + second(*at[[0, 2]]), rel=1e-9)


def test_many_channels_with_a_nuisance_each():
    matrix = [[400.0, 150.0], [150.0, 300.0]]
    channels = [
        normal(["mass", f"s{k}"], [0.4 + 0.02 * k, 0.5 + 0.02 * k], matrix) for k in range(5)
    ]
    total = sum(channels)
    assert len(total.parameters) == 6
    # Each constrains the mass by 400 - 150^2 / 300 alone.
    estimate = total.maximum()
    assert estimate["mass"].value == pytest.approx(0.44, abs=1e-6)
    assert estimate["mass"].stat == pytest.approx((5 * (400 - 150**2 / 300)) ** -0.5, rel=1e-4)


def test_a_shared_parameter_lies_where_both_bounds_allow():
    wide = normal(["a", "b"], [1.0, 0.4], [[9.0, 2.0], [2.0, 16.0]], [(-2.0, 4.0), (0.0, 1.0)])
    narrow = normal(["a"], [1.6], [[9.0]], [(0.0, 10.0)])
    total = wide + narrow
    assert total.grid.bounds[0].tolist() == [0.0, 4.0]
    assert total(1.2, 0.3) == pytest.approx(wide(1.2, 0.3) + narrow(1.2), abs=1e-9)
    assert total.maximum()["a"].bounds == (0.0, 4.0)


@few
@given(matrices, matrices, st.floats(0.2, 0.8), st.floats(0.02, 0.3))
def test_fixing_and_constraining_commute_with_sums(a, b, value, error):
    first, second = normal(["m", "s"], [0.4, 0.5], a), normal(["m", "s"], [0.5, 0.6], b)
    for both in (
        ((first + second).fix(s=value), first.fix(s=value) + second.fix(s=value)),
        (
            (first + second).constrain("s", value, error),
            first.constrain("s", value, error) + second,
        ),
    ):
        one, other = (likelihood.maximum() for likelihood in both)
        np.testing.assert_allclose(one.values, other.values, atol=1e-8)
        np.testing.assert_allclose(one.errors, other.errors, rtol=1e-6)


def test_fixing_the_only_parameter_of_a_channel_leaves_the_others():
    total = normal(["m"], [0.4], [[400.0]]) + normal(["s"], [0.6], [[900.0]])
    estimate = total.fix(s=0.5).maximum()
    assert estimate.parameters == ("m",)
    assert estimate.value == pytest.approx(0.4)


def test_parts_of_one_model_move_together_and_two_models_do_not():
    shifts = np.random.default_rng(1).normal(0, 0.01, 32)
    spread = shifts.std(ddof=1)
    one = simulated(0.5, 0.05, shifts, "a")
    assert one.maximum().simulation == pytest.approx(spread, rel=1e-6)
    assert (one + one).maximum().simulation == pytest.approx(spread, rel=1e-6)
    # Fewer replicas of another model are no zeros: the mean of two moves by half of each.
    few_shifts = np.random.default_rng(2).normal(0, 0.01, 8)
    two = simulated(0.5, 0.05, few_shifts, "b")
    expected = 0.5 * np.hypot(spread, few_shifts.std(ddof=1))
    assert (one + two).maximum().simulation == pytest.approx(expected, rel=1e-6)
    assert (one + two).maximum().warnings == ()


def test_a_model_without_replicas_in_a_sum_is_named():
    one = simulated(0.5, 0.05, [0.01, -0.01], "a").named("electron")
    bare = normal(["theta"], [0.5], [[400.0]], model="b").named("muon")
    (warning,) = (one + bare).maximum().warnings
    assert warning.name == "no_simulation_error"
    assert warning.text.startswith("muon: ")


@pytest.fixture(scope="module")
def channels():
    """Two models of different templates, with events of each."""
    found = []
    for seed, width in ((1, 1.0), (2, 0.7)):
        example = OneObservable(width)
        model = gl.fit(example.templates(3_000, seed=seed), hidden=(4,), seed=seed, replicas=8)
        found.append((model, example.sample(0.4, 3_000, seed=seed + 10)))
    return found


def test_p_values_of_two_models_combine_by_chi2(channels):
    (first, x), (second, y) = channels
    a, b = first.likelihood(x).named("a"), second.likelihood(y).named("b")
    estimate = (a + b).maximum()
    assert list(estimate.p_values) == ["a", "b"]
    # The parameter is free in it: the p-value hardly moves with the estimate.
    assert estimate.p_values["a"] == pytest.approx(a.maximum().p_value, abs=0.1)
    parts = [channel.agreement.chi2(np.array([estimate.value])) for channel in (a + b).channels]
    total, dof = np.sum(parts, axis=0)
    assert estimate.p_value == pytest.approx(chi2.sf(total, dof))
    assert estimate.p_value > 1e-3
    assert estimate.warnings == ()


def test_parts_of_one_model_are_one_channel_wherever_they_were_made(channels):
    (model, x), _ = channels
    copy = pickle.loads(pickle.dumps(model))
    total = model.likelihood(x[:1_000]) + copy.likelihood(x[1_000:])
    assert len(total.channels) == 1
    assert total.maximum().p_value == pytest.approx(model.likelihood(x).maximum().p_value)
    assert pickle.loads(pickle.dumps(total)).maximum().value == total.maximum().value


def test_the_warnings_of_every_model_are_kept(channels):
    (first, x), (second, y) = channels
    odd = y.copy()
    odd[:30] += 20
    estimate = (first.likelihood(x).named("a") + second.likelihood(odd).named("b")).maximum()
    found = {(w.name, w.text.split(":")[0]) for w in estimate.warnings}
    assert ("outside_simulation", "b") in found
    assert ("outside_simulation", "a") not in found
    assert estimate.outside == pytest.approx(30 / 6_000, abs=0.002)


def test_the_model_warnings_of_the_second_model_are_kept(channels):
    (first, x), (second, y) = channels
    plain = second.options.model_copy(update={"calibrate": False})
    weak = replace(second, options=plain, record=replace(second.record, gain=0.1))
    estimate = (first.likelihood(x) + weak.likelihood(y)).maximum()
    told = {w.name: w.text for w in estimate.warnings}
    # Without its calibration the second has no uncertainty from simulation either.
    assert set(told) == {"no_information", "no_simulation_error"}
    assert told["no_information"].startswith("channel 2: ")


@pytest.mark.parametrize(("value", "error"), [(1e300, 0.1), (0.5, 1e-300), (np.nan, 1), (0.5, -1)])
def test_a_constraint_whose_square_overflows_is_refused(value, error):
    with pytest.raises(InputError, match="give a finite value"):
        parabola(0.5, 0.1).constrain("theta", value, error)
