"""The binned check, reliability, templates against each other, and the plan."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.calibration.moments import Moments
from gridless.cli.main import main
from gridless.curves.polynomials import slopes
from gridless.curves.simplest import simplest_polynomial
from gridless.examples import (
    HardToTell,
    OneObservable,
    OnlyTail,
    OnlyWidth,
    TwoParameters,
)
from gridless.model.record import TriedSize
from gridless.validation.binned_check import _counted, _curves, _minimum
from gridless.validation.forecast import Forecast, SimpleCurve, learnt_share, pilot_of
from gridless.validation.plan import _best_shares

EXAMPLE = OnlyWidth()


@pytest.fixture(scope="module")
def templates(width_templates):
    return width_templates


@pytest.fixture(scope="module")
def good(width_model):
    return width_model


@pytest.mark.parametrize("epochs", [None, 1])
def test_bins_of_the_score_agree_whatever_the_network(good, templates, epochs):
    model = good if epochs is None else gl.fit(templates, hidden=6, epochs=epochs, seed=1)
    pulls, own = [], []
    for seed in range(12):
        found = gl.binned_check(model, EXAMPLE.sample(0.4, 2_000, seed=seed))
        pulls.append([fit.pull[0] for fit in found.fits])
        own.append([(fit.value[0] - 0.4) / fit.error[0] for fit in found.fits])
    assert np.abs(np.mean(pulls, axis=0)).max() < 2.0
    assert np.sqrt(np.mean(np.square(pulls))) < 2.0
    assert np.sqrt(np.mean(np.square(own))) < 1.6
    assert "bins: theta =" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("seed", [1, 2])
def test_noise_of_many_bins_is_not_information(seed):
    example = HardToTell()
    model = gl.fit(example.templates(20_000, seed, templates=9), hidden=4, seed=seed)
    for truth in (0.2, 0.5, 0.8):
        x = example.sample(truth, 10_000, seed=10 + seed)
        error = model.likelihood(x).maximum().error
        ratios = [fit.error[0] / error for fit in gl.binned_check(model, x).fits]
        assert min(ratios) > 0.9
        assert max(ratios) < 1.2


def test_what_a_check_does_not_know_is_null_in_json(good):
    found = gl.binned_check(good, EXAMPLE.sample(0.4, 2_000, seed=1))
    unknown = replace(found.fits[0], error=np.array([np.nan]))
    made = replace(found, fits=(unknown, *found.fits[1:])).to_dict()
    assert made["fits"][0]["error"] == [None]
    json.dumps(made, allow_nan=False)


def test_bins_of_two_scores():
    two = TwoParameters()
    model = gl.fit(two.templates(1_000, seed=1, templates=5), hidden=6, seed=1)
    found = gl.binned_check(model, two.sample((0.5, 0.5), 4_000, seed=2))
    assert found.worst < 4


def test_probabilities_are_right_and_wrong_ones_are_told(good):
    found = gl.reliability(good)
    assert found.chi2 / found.dof < 2
    assert found.largest < 0.02


def test_templates_agree_and_a_swapped_one_does_not(good, templates):
    assert gl.template_agreement(good).p_value > 1e-3
    theta = templates.theta[:, 0].copy()
    number = templates.template
    theta[number == 2], theta[number == 7] = templates.grid.values[[7, 2], 0]
    wrong = gl.fit(gl.Templates(templates.x, theta, (0, 1)), hidden=6, seed=1)
    found = gl.template_agreement(wrong)
    assert found.p_value < 1e-6
    assert found.worst[1] == "x"


def test_a_plan_predicts_the_error_of_more_simulation(good):
    pilot = gl.fit(EXAMPLE.templates(400, seed=3), hidden=6, seed=1)
    found = gl.plan(pilot, events=2_000)
    predicted = found.errors[found.factors == 10.0][0, 2]
    there = gl.plan(good, events=2_000)
    assert predicted == pytest.approx(there.errors[there.factors == 1.0][0, 2], rel=0.2)
    want = np.sqrt(
        np.mean(
            [good.expected(t, 2_000).maximum().error ** 2 for t in (0.14, 0.32, 0.5, 0.68, 0.86)]
        )
    )
    assert there.errors[there.factors == 1.0][0, 2] == pytest.approx(want, rel=0.1)
    assert found.shares.sum() == pytest.approx(1)
    assert "best shares" in str(found)
    json.dumps(found.to_dict())


def test_a_plan_of_channels_is_that_of_their_sum(good):
    both = gl.Channels({"soft": good, "hard": gl.fit(EXAMPLE.templates(1_000, seed=5), hidden=3)})
    events = {"soft": 2_000, "hard": 3_000}
    found = gl.plan(both, events, theta=0.4)
    errors = [gl.plan(both[name], events[name], theta=0.4).errors for name in both]
    together = 1 / np.sqrt(sum(1 / one[:, 2] ** 2 for one in errors))
    # Channels are weighted by what events tell, not by their totals: it may be a little larger.
    assert (found.errors[:, 2] > 0.98 * together).all()
    assert found.errors[-1, 2] == pytest.approx(together[-1], rel=0.02)
    assert len(found.shares) == 20
    assert found.shares[10:].sum() > 0.7  # hard has a quarter of the events
    assert found.channel == "hard"
    assert "of hard at theta" in str(found)
    with pytest.raises(gl.InputError, match="nothing for channel hard"):
        gl.plan(both, {"soft": 2_000})


def test_a_network_that_grows_makes_a_plan_rough(good):
    sizes = [
        TriedSize(2, (), 6, 1.0),
        TriedSize(2, (8,), 46, 5.0),
        TriedSize(3, (16,), 99, 9.0, True),
    ]
    grown = replace(good, record=replace(good.record, sizes=tuple(sizes)))
    found = gl.plan(grown, 1_000)
    assert found.growing
    assert found.uncertainty > 0.2
    assert "a larger network learns more" in str(found)


def test_a_plan_counts_simulated_events_as_there_are():
    # Four networks, which disagree: the means of their templates are noisier than one event tells.
    model = gl.fit(HardToTell(0.12).templates(2_000, 5, 9), seed=5)
    made = gl.plan(model, 1_000, simulated=18_000)
    assert model.network.members == 4
    assert made.simulated == pytest.approx(18_000)
    assert made.equal_error == pytest.approx(gl.plan(model, 1_000).equal_error)
    assert made.weak
    assert made.pilot > made.simulated


def test_shares_go_where_events_are_missing():
    shares = _best_shares(np.array([1.0, 1.0, 4.0]), np.array([100.0, 100.0, 100.0]), 100.0)
    np.testing.assert_allclose(shares, [0, 0, 1])
    shares = _best_shares(np.array([1.0, 1.0]), np.array([100.0, 200.0]), 1e6)
    assert shares[0] / shares[1] == pytest.approx(1 / np.sqrt(2), rel=0.01)


def test_the_command_plan(good, tmp_path):
    good.save(tmp_path / "m.safetensors")
    arguments = ["plan", str(tmp_path / "m.safetensors"), "--events", "1000"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0
    assert "simulated events" in done.output
    done = CliRunner().invoke(main, [*arguments, "--at", "theta", "0.3", "--json"])
    assert json.loads(done.output)["parameter"] == "theta"
    for wrong in (["--at", "mass", "0.3"], ["--events", "100"], ["--events", "soft=100"]):
        assert CliRunner().invoke(main, [*arguments, *wrong]).exit_code == 2


def test_what_cannot_be_checked_is_refused():
    plain = gl.fit(
        OneObservable().templates(500, seed=1), hidden=2, epochs=2, calibrate=False, replicas=0
    )
    with pytest.raises(gl.InputError, match="calibrated"):
        gl.binned_check(plain, OneObservable().sample(0.4, 100, seed=1))
    with pytest.raises(gl.InputError, match="calibrate=False"):
        gl.plan(plain, 100)


def test_all_events_correct_the_bins_of_the_kept_ones():
    random = np.random.default_rng(1)
    edges = np.linspace(-1.5, 1.5, 5)
    plain, corrected, stated = [], [], []
    for _ in range(200):
        y = random.normal(size=(10_000, 1))
        kept = y[:500]
        where = np.searchsorted(edges, kept[:, 0])
        found = _counted(kept, where, np.ones(500), 6, (y.mean(axis=0), 10_000.0))
        slope = np.arange(6.0)
        plain.append(slope @ np.bincount(where, minlength=6) / 500)
        corrected.append(slope @ found.shares)
        stated.append(slope @ found.covariance @ slope)
    assert np.std(corrected) < 0.5 * np.std(plain)
    assert np.sqrt(np.mean(stated)) == pytest.approx(np.std(corrected), rel=0.2)
    assert np.isclose(found.shares.sum(), 1)


def test_a_template_with_all_its_events_in_one_bin_has_a_curve():
    random = np.random.default_rng(1)
    counted = []
    for middle in (0.0, 1.0, 2.0, 3.0, 40.0):
        y = random.normal(middle, 1.0, (500, 1))
        where = np.searchsorted([0.5, 1.5, 2.5], y[:, 0])
        counted.append(_counted(y, where, np.ones(500), 4, (y.mean(axis=0), 500.0)))
    curves = _curves(counted, np.linspace(0, 1, 5)[:, None], np.arange(4.0)[:, None])
    found = curves.mean(np.linspace(0, 1, 5)[:, None])
    shares = np.array([one.shares for one in counted])
    assert found[:, 0] == pytest.approx(
        ((shares - curves.centre) @ curves.transform)[:, 0], abs=0.2
    )


def test_a_template_that_fluctuates_asks_for_no_high_degree():
    t = np.linspace(0, 1, 10)[:, None]
    values = t**2
    values[3] += 0.4  # four errors
    powers, _ = simplest_polynomial(t, values, np.full((10, 1, 1), 0.01), 8)
    assert powers.max() <= 2
    wave = np.sin(9 * t)
    powers, _ = simplest_polynomial(t, wave, np.full((10, 1, 1), 1e-4), 8)
    assert powers.max() >= 5


def test_cells_tell_what_a_stiff_network_has_missed():
    model = gl.fit(OnlyTail().templates(4_000, seed=1), hidden=4, seed=1)
    assert learnt_share(model, 0) == 1
    # The summary of a network that is flat in the tail.
    x, number = np.minimum(model.simulated.x[:, 0], 2.0), model.simulated.template
    own = [x[number == k] for k in range(len(model.grid))]
    mean, variance = (np.array([f(one) for one in own]) for f in (np.mean, np.var))
    sizes = np.array([len(one) for one in own])
    of_mean = (variance / sizes)[:, None, None]
    moments = Moments(model.grid.unit, mean[:, None], variance[:, None, None], of_mean)
    parts = {name: getattr(model, name) for name in ("simulated", "cells", "network", "grid")}
    stiff = SimpleNamespace(reweighting=SimpleNamespace(moments=moments), **parts)
    share = learnt_share(stiff, 0)
    assert 0.01 < share < 0.7
    pilot = pilot_of(model, 10_000)._replace(learnt=np.array([share]))
    assert pilot.gain(0, 0.1) == pytest.approx(1)
    assert pilot.gain(0, 1) < pilot.gain(0, 10) < pilot.gain(0, 100) < 1 / share
    grid, place = model.grid, np.array([[0.5]])
    now, all_learnt = (Forecast([one], grid, place, 0) for one in (pilot, pilot_of(model, 10_000)))
    assert now(now.now)[0] == pytest.approx(all_learnt(now.now)[0])
    ratio = now(100 * now.now)[0] / all_learnt(100 * now.now)[0]
    assert ratio == pytest.approx(np.sqrt(share), rel=0.05)


def test_noise_in_the_slope_of_a_pilot_is_not_information():
    random = np.random.default_rng(2)
    t = np.linspace(0, 1, 9)[:, None]
    covariance = np.tile(np.eye(2), (9, 1, 1))
    shares = []
    for _ in range(200):
        # 50 events each, of a slope that they know to two of its errors.
        mean = np.hstack([0.3 * t, 0 * t]) + random.normal(size=(9, 2)) / np.sqrt(50)
        curve = SimpleCurve(Moments(t, mean, covariance, covariance / 50))
        slope = slopes(np.array([[0.5]]), curve.powers)[0, 0] @ curve.coefficients
        information = float(slope @ slope)
        if len(curve.powers) == 2:  # a straight line, as a chi2 of 1 percent lets 99 of 100 be
            shares.append([information, information * curve.true_share(np.array([0.5]), 0)])
    with_noise, without = np.mean(shares, axis=0)
    assert len(shares) > 190
    assert with_noise > 1.3 * 0.3**2
    assert without == pytest.approx(0.3**2, rel=0.2)


class Wave:
    """A mean with many valleys in its distance to any value."""

    def __call__(self, t):
        return np.sin(20 * t)

    def slopes(self, t):
        return 20 * np.cos(20 * t)[:, :, None]


@pytest.mark.parametrize("start", [0.05, 0.33, 0.61, 0.96])
def test_the_binned_fit_stays_in_the_valley_of_the_result(start):
    """A rare signal had a fit that went 45 errors away."""
    for true in (start - 0.02, start + 0.02):
        found = _minimum(np.sin([20 * true]), Wave(), np.eye(1) * 1e6, np.array([start]))
        assert found == pytest.approx(true, abs=1e-4)


def test_a_plan_names_the_nuisance_parameters_that_it_holds(varied):
    found = gl.plan(varied, events=2_000)
    assert found.held == varied.nuisances
    assert "held in all of these: jes, " in str(found)
    now, least = found.totals
    whole = [
        varied.expected(theta, 2_000).maximum().error for theta in (0.14, 0.32, 0.5, 0.68, 0.86)
    ]
    assert now == pytest.approx(np.sqrt(np.mean(np.square(whole))), rel=0.02)
    # Systematics are in it, and simulation is not in the second.
    assert found.errors[found.factors == 1.0][0, 2] < now
    assert found.errors[0, 0] < least < now
    assert f"with them the total is {now:.4f} now" in str(found)
    header, *rows = str(found).splitlines()[1:9]
    assert {len(row.removesuffix("  (now)")) for row in rows[:7]} == {len(header)}
    assert found.to_dict()["held"] == list(varied.nuisances)
