"""The likelihood of a measurement that is linear: everything is known from least squares."""

import time
from dataclasses import replace

import numpy as np
import pytest
from iminuit import Minuit

import gridless as gl
from gridless.likelihood.channel import Channel
from gridless.measurement.features import Features
from gridless.measurement.likelihood import MeasurementLikelihood
from gridless.measurement.measurement import Measurement, Nuisance
from gridless.measurement.process import Process
from gridless.measurement.shift import Shift, shift_powers
from gridless.measurement.term import SummaryChannel, sums_of
from gridless.systematics.course import NODES
from gridless.templates.grid import Grid

GRID = Grid(np.array([[1.0], [3.0]]), np.array([[0.0, 4.0]]), ("mass",))


def measurement(shifts, names=None, slope=(1.0, 0.0, 0.0), constraints=None):
    """mu = slope * mass + sum alpha_k shift_k, of unit covariance and without simulation noise."""
    count, d = np.shape(shifts)
    names = names or [f"s{k}" for k in range(count)]
    constraints = constraints or [1.0] * count
    coefficients = np.array([np.multiply(slope, 2.0), np.multiply(slope, 2.0)])
    m = len(shift_powers(1))
    nothing = np.zeros((d, m, 1)), np.zeros((1, d, d)), np.zeros((d, m, m))
    linear = [Shift(np.array([row, *[[0.0] * d] * (m - 1)]), *nothing) for row in shifts]
    still = Shift(np.zeros((m, d)), *nothing)
    process = Process(
        GRID.unit,
        np.array([[0], [1]]),
        coefficients,
        np.full((2, d, 1), 1e-9),
        np.zeros((2, d, 1)),
        np.tile(np.eye(d), (2, 1, 1)),
        np.full(2, 1e5),
        np.arange(count),
        tuple(linear),
        (still,) * count,
        np.zeros((0, 2), int),
        np.zeros((0, m, d)),
        np.zeros((count, count)),
        np.zeros(count),
        np.zeros(0, int),
        np.zeros((0, len(NODES), m, d)),
        np.zeros((count, 2, d, d)),
    )
    return Measurement(
        GRID,
        tuple(Nuisance(n, c) for n, c in zip(names, constraints, strict=True)),
        (),
        np.zeros(d),
        np.eye(d),
        (process,),
        Features(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 2))),
        np.zeros((2, 1, count)),
    )


def channel(known, mean, events=100, model="m"):
    y = np.tile(np.asarray(mean, float), (events, 1))
    base = Channel(np.zeros(1), GRID, events, model=model)
    return SummaryChannel(known, sums_of(y, None), base)


SHIFTS = np.array([[0.3, 0.2, 0.0], [0.1, 0.0, 0.15]])
T = np.array([2.3, 0.1, -0.05])


def least_squares(shifts, mean, events=100, slope=(1.0, 0.0, 0.0)):
    rows = np.array([slope, *shifts])
    hessian = events * rows @ rows.T + np.diag([0, *[1.0] * len(shifts)])
    covariance = np.linalg.inv(hessian)
    return covariance @ (events * rows @ mean), covariance


LIKELIHOOD = MeasurementLikelihood([channel(measurement(SHIFTS), T)])
BEST, COVARIANCE = least_squares(SHIFTS, T)


def test_values_errors_and_impacts_are_those_of_least_squares():
    estimate = LIKELIHOOD.maximum()
    np.testing.assert_allclose(LIKELIHOOD.joint.best, BEST, rtol=1e-6)
    np.testing.assert_allclose(estimate.full_covariance, COVARIANCE, rtol=1e-5, atol=1e-12)
    assert estimate.error == pytest.approx(np.sqrt(COVARIANCE[0, 0]), rel=1e-5)
    # The global observable of a nuisance parameter moves theta by its covariance with it.
    np.testing.assert_allclose(
        list(estimate.impacts["mass"].values()), COVARIANCE[0, 1:], rtol=1e-5
    )
    budget = estimate.budget["mass"]
    assert np.sqrt(sum(part**2 for part in budget.values())) == pytest.approx(estimate.error)
    assert budget["s0"] == pytest.approx(abs(COVARIANCE[0, 1]), rel=1e-5)
    assert estimate.pulls["s0"] == pytest.approx((BEST[1], np.sqrt(COVARIANCE[1, 1])), rel=1e-4)
    assert estimate["s1"].value == pytest.approx(BEST[2], rel=1e-5)
    assert estimate.dof == 2  # three numbers, one free parameter


def test_the_interval_of_an_estimate_at_a_bound_ends_where_the_profile_has_risen():
    beyond = MeasurementLikelihood([channel(measurement(SHIFTS), [4.1, 0.1, -0.05])])
    estimate = beyond.maximum()
    low, high = estimate["mass"].interval
    assert estimate.value == high == 4.0
    assert 3.5 < low < 4.0
    assert beyond.profile("mass", low) == pytest.approx(0.5, rel=1e-2)
    # As without systematics, an error that a bound cuts on one side is the length of the other.
    assert estimate.error == pytest.approx(4.0 - low)


def test_a_nuisance_parameter_far_beyond_its_variation_is_told():
    wide = measurement(SHIFTS, constraints=[4.0, None])
    far = MeasurementLikelihood([channel(wide, [2.9, 0.6, 0.6])]).maximum()
    assert far["s0"].value == pytest.approx(3, abs=0.2)
    told = [w.text for w in far.warnings if w.name == "extrapolated"]
    assert [text[:8] for text in told] == ["s0 is at", "s1 is at"]
    near = MeasurementLikelihood([channel(wide, [2.3, 0.2, 0.15])]).maximum()
    assert "extrapolated" not in {w.name for w in near.warnings}


def test_intervals_profiles_and_contours_of_any_parameter():
    error = np.sqrt(COVARIANCE[0, 0])
    low, high = LIKELIHOOD.interval()
    np.testing.assert_allclose([low, high], [BEST[0] - error, BEST[0] + error], rtol=1e-3)
    np.testing.assert_allclose(LIKELIHOOD.profile("mass", [low, high]), 0.5, rtol=1e-2)
    reach = np.sqrt(COVARIANCE[1, 1])
    np.testing.assert_allclose(LIKELIHOOD.profile("s0", BEST[1] + 2 * reach), 2.0, rtol=1e-4)
    low, high = LIKELIHOOD.interval(parameter="s0")
    assert high - low == pytest.approx(2 * reach, rel=2e-3)
    points = LIKELIHOOD.contour("mass", "s0", points=12) - BEST[:2]
    rise = np.einsum("ni,ij,nj->n", points, np.linalg.inv(COVARIANCE[:2, :2]), points)
    np.testing.assert_allclose(rise, 2.2957, rtol=5e-3)
    alone = LIKELIHOOD.interval(stat=True)
    assert alone[1] - alone[0] == pytest.approx(2 / 10, rel=1e-3)


def test_fix_and_constrain():
    held = LIKELIHOOD.fix(s0=0.0, s1=0.0).maximum()
    assert held.error == pytest.approx(0.1, rel=1e-4)
    assert held.names == ("mass",)
    known = LIKELIHOOD.constrain("mass", 2.3, 0.001).maximum()
    assert known.error < 0.0011
    assert "mass (constraint)" in known.budget["mass"]
    with pytest.raises(gl.InputError, match="no parameter 'x'"):
        LIKELIHOOD.fix(x=1.0)
    with pytest.raises(gl.InputError, match="nothing to estimate"):
        LIKELIHOOD.fix(mass=1.0)
    with pytest.raises(gl.InputError, match="outside 0 to 4"):
        LIKELIHOOD.fix(mass=5.0)


def test_parts_add_to_the_whole_and_channels_share_by_name():
    known = measurement(SHIFTS)
    parts = [channel(known, T + d, 50) for d in (0.1, -0.1)]
    both = MeasurementLikelihood([parts[0]]) + MeasurementLikelihood([parts[1]])
    assert len(both.channels) == 1
    assert both.maximum().value == pytest.approx(LIKELIHOOD.maximum().value, rel=1e-6)
    other = measurement([[0.3, 0.2, 0.0], [0.0, 0.1, 0.0]], ["s0", "new"])
    joint = LIKELIHOOD + MeasurementLikelihood([channel(other, T, model="n")])
    assert joint.parameters == ("mass", "s0", "s1", "new")
    rows = np.zeros((4, 6))
    rows[0, [0, 3]] = 1
    rows[1] = [0.3, 0.2, 0.0, 0.3, 0.2, 0.0]
    rows[2, :3], rows[3, 3:] = SHIFTS[1], [0.0, 0.1, 0.0]
    covariance = np.linalg.inv(100 * rows @ rows.T + np.diag([0, 1.0, 1, 1]))
    np.testing.assert_allclose(joint.maximum().full_covariance, covariance, rtol=1e-5, atol=1e-12)
    assert list(joint.maximum().p_values) == ["channel 1", "channel 2"]
    assert sum([LIKELIHOOD]) is LIKELIHOOD


def test_channels_without_systematics_join():
    grid = Grid(np.zeros((0, 1)), np.array([[0.0, 4.0]]), ("mass",))
    # (mass - 2)^2 / (2 0.1^2) as Chebyshev polynomials of 2 t - 1.
    series = np.polynomial.chebyshev.poly2cheb([0.0, 0.0, 0.5 * (2 / 0.1) ** 2])
    plain = gl.Likelihood([Channel(series, grid, 10)])
    for joint in (plain + LIKELIHOOD, LIKELIHOOD + plain):
        estimate = joint.maximum()
        inverse = np.linalg.inv(COVARIANCE)
        inverse[0, 0] += 100
        assert estimate.error == pytest.approx(np.sqrt(np.linalg.inv(inverse)[0, 0]), rel=1e-4)
        assert joint.events == 110


def test_equal_names_need_equal_constraints():
    other = channel(measurement(SHIFTS, constraints=[2.0, 1.0]), T, model="n")
    with pytest.raises(gl.InputError, match=r"a constraint of 1\.0 and of 2\.0"):
        LIKELIHOOD + MeasurementLikelihood([other])
    clash = channel(measurement(SHIFTS, ["mass", "b"]), T, model="n")
    with pytest.raises(gl.InputError, match="a parameter of one model and a systematic"):
        LIKELIHOOD + MeasurementLikelihood([clash])


def test_iminuit_finds_the_same():
    minuit = Minuit(LIKELIHOOD, *[1.0, 0.0, 0.0])
    minuit.migrad()
    minuit.hesse()
    np.testing.assert_allclose(minuit.values, BEST, atol=1e-3)
    np.testing.assert_allclose(minuit.errors, np.sqrt(np.diag(COVARIANCE)), rtol=5e-3)
    step = np.array([1e-5, 0, 0])
    slope = (LIKELIHOOD(*(BEST + step)) - LIKELIHOOD(*(BEST - step))) / 2e-5
    assert LIKELIHOOD.grad(*BEST)[0] == pytest.approx(slope, abs=1e-4)


def test_a_value_at_a_bound_is_told():
    estimate = MeasurementLikelihood([channel(measurement(SHIFTS), [5.0, 0.0, 0.0])]).maximum()
    assert estimate.value == 4.0
    assert estimate["mass"].at_bound
    assert "at_bound" in [warning.name for warning in estimate.warnings]


def test_a_far_pull_is_told():
    estimate = MeasurementLikelihood([channel(measurement(SHIFTS), [2.0, 3.0, 0.0])]).maximum()
    names = [warning.name for warning in estimate.warnings]
    assert "pulled" in names
    assert "bad_fit" in names


def test_a_free_nuisance_parameter_has_no_impact_of_its_own():
    free = measurement(SHIFTS, constraints=[None, 1.0])
    estimate = MeasurementLikelihood([channel(free, T)]).maximum()
    assert "s0" not in estimate.budget["mass"]
    assert estimate.nuisances[0].pull is None
    assert estimate.dof == 1


def test_fifty_nuisance_parameters_take_less_than_a_second():
    random = np.random.default_rng(1)
    shifts = random.normal(0, 0.1, (50, 60))
    slope = random.normal(0, 0.3, 60)
    mean = 2.0 * slope + random.normal(0, 0.1, 60)
    likelihood = MeasurementLikelihood([channel(measurement(shifts, slope=slope), mean)])
    start = time.perf_counter()
    estimate = likelihood.maximum()
    assert time.perf_counter() - start < 3  # 0.2 s alone; tests share a machine
    best, covariance = least_squares(shifts, mean, slope=slope)
    assert estimate.value == pytest.approx(best[0], rel=1e-4)
    assert estimate.error == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-3)
    assert len(estimate.impacts["mass"]) == 50


def test_a_wrong_number_of_values_is_refused():
    likelihood = MeasurementLikelihood([channel(measurement(SHIFTS), T)])
    assert np.isfinite(likelihood(2.0, 0.0, 0.0))
    for values in ((2.0,), (2.0, 0.0), (2.0, 0.0, 0.0, 0.0)):
        with pytest.raises(gl.InputError, match="give one each: mass, s0, s1"):
            likelihood(*values)


def test_the_covariance_is_taken_where_the_estimate_is():
    # What large systematics leave open grows with them: estimates may go to and fro between one
    # covariance and the other.
    random = np.random.default_rng(0)
    for _ in range(70):
        known = measurement(random.normal(0, 0.5, (3, 3)), slope=random.normal(0, 0.5, 3))
        process = replace(known.processes[0], untold=np.full((3, 3), 0.7))
        mean, events = random.normal(0, 1, 3), int(10 ** random.uniform(2, 4))
        part = channel(replace(known, processes=(process,)), mean, events)
        joint = MeasurementLikelihood([part]).joint
        best, errors = joint.best, joint.errors(joint.best)
        joint._terms = joint._make_terms(best, errors)
        again = joint._search(best)
        assert np.abs((again - best) / errors).max() < 1


def test_a_nuisance_parameter_that_nothing_holds_stays_finite():
    # Two free ones do the same, and the events lie far beyond both.
    known = measurement([[1e-7, 0, 0], [1e-7, 1e-12, 0]], constraints=[None, None])
    joint = MeasurementLikelihood([channel(known, [9.0, 5.0, 0.0])]).joint
    assert np.abs(joint.best).max() <= 1e7
