"""Likelihoods: values, sums, minima, intervals, and life with iminuit."""

import numpy as np
import pytest
from helpers import parabola
from hypothesis import given
from hypothesis import strategies as st
from iminuit import Minuit
from iminuit.cost import NormalConstraint

import gridless as gl
from gridless.examples import OneObservable

TOY = OneObservable()


def test_it_is_minus_the_sum_of_log_posteriors(learnt):
    x = TOY.sample(0.4, 300, seed=1)
    likelihood, posterior = learnt.likelihood(x), learnt.posterior(x)
    theta = np.array([0.0, 0.2, 0.55, 1.0])
    ours = np.array([likelihood(t) for t in theta])
    direct = -posterior.log_prob(theta[:, None]).sum(axis=1)
    np.testing.assert_allclose(ours - ours[0], direct - direct[0], atol=1e-6)


def test_likelihoods_of_parts_add_up(model):
    x = TOY.sample(0.4, 400, seed=2)
    whole = model.likelihood(x)
    parts = [model.likelihood(x[:150]), model.likelihood(x[150:151]), model.likelihood(x[151:])]
    total = sum(parts)
    for theta in (0.0, 0.3, 0.9):
        assert total(theta) == pytest.approx(whole(theta), abs=1e-5)
    assert total.events == 400
    assert total.maximum().value == pytest.approx(whole.maximum().value, abs=1e-6)


@given(best=st.floats(0.1, 0.9), log_width=st.floats(-5, -2))
def test_a_parabola_gives_its_own_minimum_and_width(best, log_width):
    width = 10.0**log_width
    estimate = parabola(best, width).maximum()
    assert estimate.value == pytest.approx(best, abs=1e-8)
    assert estimate.error == pytest.approx(width, rel=1e-6)
    assert estimate.valid


@given(st.floats(0.01, 0.999))
def test_wilks_levels(level):
    from scipy.stats import norm

    low, high = parabola(0.5, 0.01).interval(level)
    reach = 0.01 * norm.ppf(0.5 + level / 2)
    assert high - low == pytest.approx(2 * reach, rel=1e-6)


def test_bounds_are_flagged():
    beyond = parabola(1.2, 0.1).maximum()
    assert beyond.value == 1
    assert beyond["theta"].at_bound
    assert beyond["theta"].cut == (False, True)
    assert not beyond.valid
    near = parabola(0.02, 0.05).maximum()
    assert near.value == pytest.approx(0.02)
    assert not near["theta"].at_bound
    assert near["theta"].cut == (True, False)
    assert near.interval[0] == 0
    assert not near.valid


def test_other_units():
    likelihood = parabola(172.5, 0.3, bounds=(165, 180))
    estimate = likelihood.maximum()
    assert estimate.value == pytest.approx(172.5)
    assert estimate.error == pytest.approx(0.3)
    assert likelihood.interval(0.95)[1] == pytest.approx(172.5 + 0.3 * 1.959964)
    np.testing.assert_allclose(likelihood.scan([172.5, 172.8]), [0, 0.5], atol=1e-9)


def test_minuit_finds_the_same(learnt):
    likelihood = learnt.likelihood(TOY.sample(0.4, 2000, seed=3))
    minuit = Minuit(likelihood, theta=0.5)
    assert minuit.parameters == ("theta",)
    assert minuit.errordef == 0.5
    minuit.migrad()
    minuit.minos()
    assert minuit.valid
    estimate = likelihood.maximum()
    assert minuit.values["theta"] == pytest.approx(estimate.value, abs=0.01 * estimate.stat)
    assert minuit.errors["theta"] == pytest.approx(estimate.stat, rel=0.01)
    upper = minuit.values["theta"] + minuit.merrors["theta"].upper
    assert upper == pytest.approx(estimate["theta"].stat_interval[1], abs=1e-3 * estimate.stat)


def test_gradient(model):
    likelihood = model.likelihood(TOY.sample(0.4, 500, seed=4))
    step = 1e-6
    slope = (likelihood(0.3 + step) - likelihood(0.3 - step)) / (2 * step)
    assert likelihood.grad(0.3)[0] == pytest.approx(slope, rel=1e-5)


def test_it_adds_to_iminuits_costs():
    total = parabola(0.5, 0.1) + NormalConstraint("theta", 0.6, 0.1)
    minuit = Minuit(total, theta=0.5)
    minuit.migrad()
    assert minuit.values["theta"] == pytest.approx(0.55, abs=1e-4)
    assert minuit.errors["theta"] == pytest.approx(0.1 / np.sqrt(2), rel=0.01)
    reversed_sum = NormalConstraint("theta", 0.6, 0.1) + parabola(0.5, 0.1)
    assert reversed_sum(0.5) == pytest.approx(total(0.5))


def test_what_does_not_add():
    with pytest.raises(gl.InputError, match="no value that both allow"):
        parabola(0.5, 0.1) + parabola(2.5, 0.1, bounds=(2, 3))
    constrained = parabola(0.5, 0.1).constrain("theta", 0.4, 0.1)
    with pytest.raises(gl.InputError, match="add them first, then constrain the sum"):
        constrained + constrained


def test_bad_level():
    with pytest.raises(gl.InputError, match="between 0 and 1"):
        parabola(0.5, 0.1).interval(95)


def test_weights_of_one_change_nothing_and_of_two_do_not_shrink_the_error(model):
    x = TOY.sample(0.5, 5000, seed=5)
    plain = model.likelihood(x).maximum()
    ones = model.likelihood(x, weights=np.ones(5000)).maximum()
    twos = model.likelihood(x, weights=np.full(5000, 2.0)).maximum()
    assert ones.value == pytest.approx(plain.value, abs=1e-8)
    assert ones.stat == pytest.approx(plain.stat, rel=0.05)
    assert twos.value == pytest.approx(plain.value, abs=1e-8)
    assert twos.stat == pytest.approx(ones.stat, rel=1e-4)


def test_weighted_and_unweighted_events_add(model):
    x = TOY.sample(0.5, 4000, seed=5)
    halves = model.likelihood(x[:2000], weights=np.full(2000, 1.0)) + model.likelihood(x[2000:])
    whole = model.likelihood(x)
    assert halves.events == 4000
    assert halves.maximum().value == pytest.approx(whole.maximum().value, abs=1e-6)
    assert halves.maximum().stat == pytest.approx(whole.maximum().stat, rel=0.03)
    assert halves.maximum().simulation == pytest.approx(whole.maximum().simulation, rel=1e-2)


def test_a_few_weighted_events_do_not_stretch_the_error_of_many_others(model):
    x = TOY.sample(0.5, 4000, seed=5)
    sum_of_both = model.likelihood(x[:3], weights=np.ones(3)) + model.likelihood(x[3:])
    assert sum_of_both.maximum().stat == pytest.approx(model.likelihood(x).maximum().stat, rel=0.01)


@pytest.mark.parametrize("theta", [([0.3],), (), (0.3, 0.4), ("a",), ({},)])
def test_what_is_no_point_is_refused(theta):
    with pytest.raises(gl.InputError, match="theta: "):
        parabola(0.4, 0.1)(*theta)


def test_odd_numbers_are_refused():
    likelihood = parabola(0.4, 0.1)
    for call in (
        lambda: likelihood.constrain("theta", "a", 1),
        lambda: likelihood.profile("theta", ["a"]),
        lambda: likelihood.interval("a"),
        lambda: likelihood.interval(0.9, {}),
        lambda: gl.grid((0, 1), {}),
        lambda: gl.grid((0, 1), 10**12),
        lambda: gl.Templates([1.0, 2.0], [0.0, 1.0], (0, 1), observables=3),
        lambda: gl.Templates([1.0, 2.0], [0.0, 1.0], (0, 1), observables=["a\x1b"]),
    ):
        with pytest.raises(gl.InputError):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda one: one(1.5),
        lambda one: one.scan([0.2, 1.5]),
        lambda one: one.profile("theta", [np.nan]),
    ],
)
def test_a_likelihood_outside_of_the_bounds_is_refused(call):
    """It is a polynomial, which means nothing there."""
    with pytest.raises(gl.InputError, match="not inside the bounds"):
        call(OneObservable().likelihood(OneObservable().quantiles(0.4, 100)))


def test_another_solution_is_told():
    """x ~ N(theta^2, 0.5): the sign of theta is not known."""
    random = np.random.default_rng(1)
    theta = np.repeat(np.linspace(-1.5, 1.5, 13), 1_000)
    templates = gl.Templates(random.normal(theta**2, 0.5), theta, bounds=(-1.6, 1.6))
    model = gl.fit(templates, hidden=8, seed=1)
    told = model.likelihood(random.normal(0.64, 0.5, 500)).maximum().warnings
    (other,) = [one.text for one in told if one.name == "other_solution"]
    assert abs(abs(float(other.split("theta = ")[1].split(",")[0])) - 0.8) < 0.1
    alone = model.likelihood(random.normal(0.0, 0.5, 500)).maximum().warnings
    assert "other_solution" not in [one.name for one in alone]


def test_a_constraint_without_a_name_is_one_of_the_only_parameter():
    likelihood = OneObservable().likelihood(OneObservable().quantiles(0.4, 100))
    assert likelihood.constrain(None, 0.4, 0.1).constraints[0].parameter == "theta"
