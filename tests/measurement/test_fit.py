"""Fits with systematics and a background, beside the exact profiled likelihood."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from iminuit.cost import NormalConstraint

import gridless as gl
from gridless.examples import Nuisances
from gridless.fitting import with_backgrounds
from gridless.measurement.archive import arrays_of, header_of, measurement_of

EXAMPLE = Nuisances()
X = EXAMPLE.sample(0.4, 4_000, seed=11)
EXACT = EXAMPLE.exact(X)


@pytest.fixture(scope="module")
def model():
    return EXAMPLE.fit(5_000, seed=1, hidden=8, epochs=5)


@pytest.fixture(scope="module")
def estimate(model):
    return model.likelihood(X).maximum()


def test_value_error_and_impacts_are_near_the_exact_ones(estimate):
    assert abs(estimate.value - EXACT.value) < EXACT.error
    assert 0.85 < estimate.error / EXACT.error < 1.4
    for name, right in zip(EXAMPLE.nuisances, EXACT.impacts, strict=True):
        assert abs(abs(estimate.impacts["theta"][name]) - abs(right)) < 0.15 * EXACT.error


def test_the_observed_events_constrain_what_they_can(estimate):
    errors = np.sqrt(np.diag(EXACT.covariance))[1:]
    for (name, (_, error)), right in zip(estimate.pulls.items(), errors, strict=True):
        assert 0.85 < error / right < 1.6, name


def test_a_constraint_that_is_added_is_no_knowledge_of_the_events(model):
    known = model.likelihood(X).constrain("jes", 0.0, 0.01).maximum()
    assert known.pulls["jes"][1] < 0.02
    assert "over_constrained" not in [warning.name for warning in known.warnings]


def test_the_budget_adds_up_and_names_every_source(estimate):
    budget = estimate.budget["theta"]
    assert list(budget) == ["stat", "simulation", "model", *EXAMPLE.nuisances]
    assert np.sqrt(sum(v**2 for v in budget.values())) == pytest.approx(estimate.error)
    assert estimate["theta"].systematic > 0
    assert estimate.correlation.shape == (1, 1)
    assert estimate.full_correlation.shape == (10, 10)
    assert 0 <= estimate.p_value <= 1
    content = estimate.to_dict()
    assert content["nuisances"]["jes"]["impacts"] == {"theta": estimate.impacts["theta"]["jes"]}
    again = pickle.loads(pickle.dumps(estimate))
    assert again.pulls == estimate.pulls


def test_names_that_are_no_text_are_spelt_out(estimate):
    odd = replace(
        estimate,
        results=tuple(replace(one, name="\udcff") for one in estimate.results),
        nuisances=tuple(
            replace(one, impacts={"\udcff": one.impacts["theta"]}) for one in estimate.nuisances
        ),
    )
    content = json.loads(json.dumps(odd.to_dict()))
    assert content["parameters"]["\\udcff"]["stat_low"] < estimate.value


def test_events_that_are_left_out_or_repeated_are_told_as_without_systematics(model, estimate):
    assert not estimate.warnings
    far = model.likelihood(np.concatenate([X, np.full((3, X.shape[1]), 1e6)])).maximum()
    assert far.value == pytest.approx(estimate.value)
    assert "3 of 4,003 events" in {w.name: w.text for w in far.warnings}["outside_simulation"]
    twice = model.likelihood(np.concatenate([X, X[:400]])).maximum()
    assert "9% of the events" in {w.name: w.text for w in twice.warnings}["repeated_events"]


def test_the_expected_likelihood_has_its_maximum_where_it_was_made(model, estimate):
    expected = model.expected(0.4, len(X)).maximum()
    # What noise in the slopes pretends to know is taken out, which moves it a little.
    assert expected.value == pytest.approx(0.4, abs=0.1 * expected.error)
    assert max(abs(pull) for pull, _ in expected.pulls.values()) < 0.1
    assert expected.error == pytest.approx(estimate.error, rel=0.2)
    # Nothing fluctuates that could agree or not.
    assert expected.p_value is None
    assert not expected.p_values
    assert "p-value" not in str(expected)


def test_the_profile_is_a_curve_too(model, estimate):
    likelihood = model.likelihood(X)
    rise = likelihood.curve.value(likelihood.grid.to_unit([estimate.interval[1]]))
    assert rise - likelihood.joint.floor == pytest.approx(0.5, abs=0.02)
    content = likelihood.to_dict()
    assert content["parameters"] == ["theta"]
    assert content["lowest"] == pytest.approx(likelihood.joint.floor, abs=0.01)
    assert likelihood.channel_alone(0).maximum().value == pytest.approx(estimate.value)


def test_parts_add_to_the_whole(model, estimate):
    parts = model.likelihood(X[:1_500]) + model.likelihood(X[1_500:])
    assert parts.maximum().value == pytest.approx(estimate.value, rel=1e-9)
    assert parts.maximum().error == pytest.approx(estimate.error, rel=1e-9)
    weighted = model.likelihood(X, weights=np.full(len(X), 2.0)).maximum()
    assert weighted.error == pytest.approx(estimate.error, rel=0.1)


def test_a_saved_model_is_the_same(model, estimate, tmp_path):
    model.save(tmp_path / "model.safetensors")
    again = gl.load(tmp_path / "model.safetensors")
    assert again.identity == model.identity
    assert again.likelihood(X).maximum().value == estimate.value
    assert pickle.loads(pickle.dumps(model)).identity == model.identity


@pytest.mark.parametrize("name", ["0.coefficients", "1.linear.0.response", "projection", "offsets"])
def test_arrays_of_a_wrong_shape_are_refused(model, name):
    arrays = arrays_of(model.measurement)
    arrays[name] = arrays[name][..., :-1]
    with pytest.raises((ValueError, KeyError)):
        measurement_of(header_of(model.measurement), arrays, model.grid, 6)


def test_a_cost_of_iminuit_adds(model):
    likelihood = model.likelihood(X)
    both = likelihood + NormalConstraint("theta", 0.4, 0.1)
    assert both.ndata == np.inf
    assert both(*likelihood.joint.best) >= likelihood(*likelihood.joint.best)


def test_closure_and_coverage_know_the_nuisance_parameters(model):
    pool = {0.4: EXAMPLE.sample(0.4, 20_000, seed=3)}
    closed = gl.closure(model, pool)
    assert abs(float(np.ravel(closed.pull)[0])) < 4
    (one,) = closed.estimates
    budget = one.budget["theta"]
    varying = np.hypot.reduce([budget[name] for name in ("stat", "simulation", "model")])
    assert closed["theta"].scatter[0] < 0.95 * closed["theta"].error[0]
    assert closed["theta"].scatter[0] / closed["theta"].error[0] == pytest.approx(
        varying / one.error
    )
    assert "pull = (estimated - true) / error without constraints" in str(closed)
    covered = gl.coverage(model, pool, toys=6, events=2_000, seed=1)
    assert covered.toys == 6
    assert np.isfinite(covered.bias).all()


@pytest.mark.parametrize("kind", ["weights", "independent"])
def test_other_kinds_of_variations(kind, estimate):
    model = EXAMPLE.fit(2_500, seed=2, kind=kind, hidden=8, epochs=5)
    found = model.likelihood(X).maximum()
    # Independent samples cost precision: there the fit's own error, which says so, must hold.
    error = found.error if kind == "independent" else EXACT.error
    assert abs(found.value - EXACT.value) < 2 * error
    assert 0.8 < found.error / EXACT.error < 2
    if kind == "independent":
        assert found.error > estimate.error


def test_one_side_one_theta_and_a_free_share():
    templates, _, backgrounds = EXAMPLE.simulate(2_000, seed=3)
    systematics = [
        gl.Systematic("jes", up=(np.column_stack([1.02 * templates.x[:, :2], templates.x[:, 2:]]),
                                 templates.theta)),
        gl.Systematic("off", *((templates.x[:900] + d, np.full(900, 0.33)) for d in (0.2, -0.2))),
    ]  # fmt: skip
    free = gl.Background("background", backgrounds[0].x, 0.1, None)
    model = gl.fit(
        templates, systematics=systematics, backgrounds=[free], hidden=4, epochs=3, seed=1
    )
    estimate = model.likelihood(X).maximum()
    assert "background" not in estimate.budget["theta"]
    assert "off" in estimate.budget["theta"]
    assert abs(estimate["background"].value) < 1  # a share of 0 to 0.2


def test_a_scale_at_one_theta_leaves_open_what_it_does_elsewhere():
    random = np.random.default_rng(4)
    theta = np.repeat(np.linspace(0, 1, 5), 2_000)
    x = random.normal(1 + 3 * theta, 1)[:, None]
    templates = gl.Templates(x, theta, bounds=(0, 1))
    here = theta == 0.5
    numbers = np.arange(len(x))
    sides = [(scale * x[here], theta[here]) for scale in (1.1, 0.9)]
    same = (numbers, numbers[here], numbers[here])
    some, every = (
        gl.fit(templates, systematics=[scale], hidden=4, epochs=3, seed=1)
        for scale in (
            gl.Systematic("scale", *sides, same_events=same),
            gl.Systematic("scale", 1.1 * x, 0.9 * x),
        )
    )
    observed = 1.1 * random.normal(1 + 3 * 0.75, 1, 2_000)[:, None]
    # The events are 0.33 farther out: 0.11 of theta, of which the change at 0.5 explains 0.08.
    told, known = (model.likelihood(observed).maximum() for model in (some, every))
    assert abs(known.value - 0.75) < 2 * known.error
    assert abs(told.value - 0.75) < 2 * told.error
    assert told.budget["theta"]["model"] > 3 * known.budget["theta"]["model"]
    assert "scale" in {w.name: w.text for w in told.warnings}["wide_gap"]
    assert "wide_gap" not in {w.name for w in known.warnings}


def test_many_systematics_that_leave_something_open_are_told_in_one_line():
    random = np.random.default_rng(4)
    theta = np.repeat(np.linspace(0, 1, 5), 1_000)
    x = random.normal(1 + 3 * theta, 1)[:, None]
    here = np.flatnonzero(theta == 0.5)
    systematics = [
        gl.Systematic(
            f"scale_{k}",
            *(((1 + sign * (0.06 + 0.01 * k)) * x[here], theta[here]) for sign in (1, -1)),
            same_events=(np.arange(len(x)), here, here),
        )
        for k in range(5)
    ]
    templates = gl.Templates(x, theta, bounds=(0, 1))
    model = gl.fit(templates, systematics=systematics, hidden=3, epochs=3, seed=1)
    told = model.expected(0.75, 100_000).maximum().warnings
    (text,) = [w.text for w in told if w.name == "wide_gap" and "scale" in w.text]
    assert "scale_4, scale_3, scale_2 and 2 others" in text


def test_only_up_needs_templates_there():
    templates, _, _ = EXAMPLE.simulate(1_000, seed=3)
    off = gl.Systematic("off", (templates.x[:1_000], np.full(1_000, 0.33)))
    with pytest.raises(gl.InputError, match="only up, at values of theta without a template"):
        gl.fit(templates, systematics=[off], epochs=1, seed=1)


def test_templates_with_backgrounds_have_their_shares():
    templates, _, backgrounds = EXAMPLE.simulate(1_000, seed=3)
    both = with_backgrounds(templates, backgrounds)
    assert len(both) == len(templates) + 10 * 1_000
    shares = both.totals() / templates.totals()
    np.testing.assert_allclose(shares, 1 / 0.9)
    assert with_backgrounds(templates, []) is templates


def test_the_audit_names_what_is_wrong():
    templates, systematics, _ = EXAMPLE.simulate(1_000, seed=3)
    x, theta = templates.x, templates.theta
    fresh = [EXAMPLE.primary(len(x), np.random.default_rng(n)) for n in (1, 2)]
    still = [(EXAMPLE.signal(u, theta[:, 0], np.zeros(9)), theta) for u in fresh]
    strange = [
        gl.Systematic("one_way", (1.02 * x, theta), (1.01 * x, theta)),
        gl.Systematic("nothing", (x * (1 + 1e-15), theta), (x + 0.0, theta)),
        gl.Systematic("fresh", *still),
        gl.Systematic("nominal_up", (x, theta), (0.99 * x, theta)),
        gl.Systematic("one_side", (1.01 * x, theta)),
    ]
    audit = gl.audit_systematics(templates, [*systematics, *strange])
    assert not audit["one_way: same sign"].met
    assert not audit["nothing: vanishing"].met
    assert not audit["nominal_up: vanishing"].met
    assert "up changes nothing, as if it were the templates" in audit["nominal_up: vanishing"].text
    assert audit["one_side: vanishing"].met
    assert "one side" in audit["one_side: same sign"].text
    assert not audit["fresh: noise"].met
    assert not audit["fresh: independent"].met
    assert all(audit[f"{name}: {question}"].met for name in EXAMPLE.systematics
               for question in ("vanishing", "noise", "same sign", "independent"))  # fmt: skip


def test_a_group_without_an_event_near_the_simulation_is_refused(model):
    absurd = np.vstack([X, np.full((1, X.shape[1]), 1e9)])
    group = np.append(np.zeros(len(X)), 1.0)
    text = "channel 1: x: all 1 events lie farther outside .* such as x1 = 1e.09 in row 0 where "
    with pytest.raises(gl.InputError, match=text):
        model.likelihood(absurd, by=group)
