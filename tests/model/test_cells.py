"""Warnings come when they should, and only then."""

import numpy as np
import pytest
from scipy.stats import kstest

import gridless as gl
from gridless.examples import OneObservable, TwoObservables

TOY = OneObservable()


def names(estimate):
    return [warning.name for warning in estimate.warnings]


@pytest.fixture(scope="module")
def good():
    """A model good enough for its p-values to mean something."""
    toy = TwoObservables()
    return gl.fit(toy.templates(20_000, seed=1), seed=1, replicas=0)


def test_p_values_are_uniform(good):
    toy, random = TwoObservables(), np.random.default_rng(3)
    estimates = [
        good.likelihood(toy.sample(random.uniform(0.2, 0.8), 2_000, seed)).maximum()
        for seed in range(150)
    ]
    p_values = np.array([estimate.p_value for estimate in estimates])
    assert kstest(p_values, "uniform").pvalue > 0.01
    assert sum("bad_fit" in names(estimate) for estimate in estimates) <= 2
    assert sum("outside_simulation" in names(estimate) for estimate in estimates) <= 2


def test_p_values_of_weighted_events(good):
    toy, random = TwoObservables(), np.random.default_rng(4)
    p_values = [
        good.likelihood(toy.sample(0.5, 2_000, seed), random.exponential(1, 2_000))
        .maximum()
        .p_value
        for seed in range(500, 600)
    ]
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_events_from_elsewhere(good):
    x = TwoObservables().sample(0.5, 2_000, seed=1)
    x[:100] += 20
    estimate = good.likelihood(x).maximum()
    assert "outside_simulation" in names(estimate)
    assert estimate.outside == pytest.approx(0.05, abs=0.005)
    texts = [w.text for w in estimate.warnings if w.name == "outside_simulation"]
    assert texts[0].startswith("100 of 2,000 events lie farther outside of the simulation than")
    assert "5." in texts[1]


def test_a_shape_that_the_templates_do_not_have(good):
    x = TwoObservables().sample(0.5, 2_000, seed=2)
    x[:, 1] += 0.3
    estimate = good.likelihood(x).maximum()
    assert "bad_fit" in names(estimate)
    assert estimate.p_value < 1e-3


def test_adding_up(good):
    x = TwoObservables().sample(0.5, 2_000, seed=3)
    whole = good.likelihood(x).maximum()
    parts = (good.likelihood(x[:700]) + good.likelihood(x[700:])).maximum()
    assert parts.p_value == pytest.approx(whole.p_value, abs=1e-5)
    assert parts.outside == whole.outside


def test_an_implied_prior_that_is_not_flat(templates):
    model = gl.fit(
        templates, hidden=(4,), epochs=4, objective="posterior", prior="flat", calibrate=False
    )
    assert "implied_prior" in names(model.likelihood(TOY.quantiles(0.2)).maximum())
    assert "implied_prior" not in names(model.likelihood(TOY.quantiles(0.2, 5)).maximum())


def test_a_network_that_learnt_nothing():
    theta = np.repeat(gl.grid((0, 1), 10), 500)
    x = np.random.default_rng(1).normal(size=len(theta))
    model = gl.fit(gl.Templates(x, theta, (0, 1)), hidden=(4,), replicas=0)
    assert "no_information" in [warning.name for warning in model.warnings]
    assert "no_information" in names(model.likelihood(x[:100]).maximum())


def test_components_that_collapsed():
    """Eight narrow Gaussians for four templates, and a cost that rewards it."""
    theta = np.repeat(gl.grid((0, 1), 4), 1_500)
    x = np.random.default_rng(1).normal(theta, 0.3)
    options = {"objective": "posterior", "hidden": (8,), "epochs": 20, "calibrate": False}
    narrow = {"basis": gl.Gaussian(floor=0.0), "components": 8, "replicas": 0}
    model = gl.fit(gl.Templates(x, theta, (0, 1)), **narrow, **options)
    assert "collapsed" in [warning.name for warning in model.warnings]


def test_an_estimate_beyond_the_templates():
    theta = np.repeat([0.4, 0.5, 0.6], 4_000)
    x = np.random.default_rng(1).normal(theta, 0.3)
    model = gl.fit(gl.Templates(x, theta, (0, 1)), hidden=(), replicas=0)
    assert "extrapolated" in names(model.likelihood(0.85 + 0.3 * TOY.quantiles(0.0, 500)).maximum())
    assert "extrapolated" not in names(
        model.likelihood(0.5 + 0.3 * TOY.quantiles(0.0, 500)).maximum()
    )


def test_a_good_measurement_has_no_warnings(good):
    estimate = good.likelihood(TwoObservables().sample(0.5, 5_000, seed=9)).maximum()
    assert estimate.warnings == ()
    assert 0 < estimate.p_value < 1


@pytest.mark.parametrize("value", [-999.0, 1e6, 1e39, 1e300, -1e308])
@pytest.mark.parametrize(("events", "absurd"), [(1_000, 1), (1_000, 30), (5_000, 3), (50_000, 10)])
def test_absurd_events_hardly_move_the_estimate_and_are_named(good, value, events, absurd):
    x = TwoObservables().sample(0.42, events, seed=7)
    before = good.likelihood(x).maximum()
    x[:absurd, 0] = value
    after = good.likelihood(x).maximum()
    assert abs(after.value - before.value) < 0.2 * before.error
    assert after.events == events - absurd
    text = next(w.text for w in after.warnings if w.name == "outside_simulation")
    assert f"x1 = {value:g} in row 0" in text
    assert text.startswith(f"{absurd} of {events:,} events lie farther outside")


def test_rows_of_absurd_events_are_counted_through_all_parts(good):
    x = TwoObservables().sample(0.5, 2_000, seed=7)
    x[[3, 1500], 1] = -999
    likelihood = good.likelihood(x[:1000]) + good.likelihood(x[1000:])
    text = next(w.text for w in likelihood.maximum().warnings if w.name == "outside_simulation")
    assert "2 of 2,000" in text
    assert "x2 = -999 in row 3, x2 = -999 in row 1,500;" in text


def test_events_of_which_none_is_near_the_simulation_are_refused(good):
    x = TwoObservables().sample(0.5, 2_000, seed=1)
    x[:, 1] = 1000 * x[:, 1] + 5_000
    edges = good.summary.edges["x2"]
    message = "all 2,000 events lie farther outside .*, such as x2 = .* in row 0 where "
    message += f"{edges[0]:g} to {edges[-1]:g} was simulated; check units"
    with pytest.raises(gl.InputError, match=message):
        good.likelihood(x)
    with pytest.raises(gl.InputError, match=message):
        gl.read_likelihood(good, {"x1": x[:, 0], "x2": x[:, 1]})


def test_inputs_are_held_at_the_ends_of_the_simulation(good):
    most = TwoObservables().templates(20_000, seed=1).x.max(axis=0)
    inside, outside = good.posterior(most[None]), good.posterior(most[None] + 1)
    np.testing.assert_allclose(outside.mean, inside.mean, rtol=1e-5)


def test_heavy_tails_are_not_absurd():
    random = np.random.default_rng(3)
    theta = np.repeat(gl.grid((0, 1), 5), 4_000)
    x = theta + random.standard_t(1.5, len(theta))
    model = gl.fit(gl.Templates(x, theta, (0, 1)), hidden=(4,), epochs=5, replicas=0, seed=1)
    estimate = model.likelihood(0.4 + random.standard_t(1.5, 100_000)).maximum()
    assert "outside_simulation" not in names(estimate)


def test_observables_far_from_zero():
    toy = OneObservable()
    templates, x = toy.templates(2_000, seed=1), toy.sample(0.4, 2_000, seed=2)
    estimates = []
    for shift in (0.0, 1e11):
        moved = gl.Templates(templates.x + shift, templates.theta, (0, 1))
        model = gl.fit(moved, hidden=(4,), replicas=0, seed=1)
        estimates.append(model.likelihood(x + shift).maximum())
    assert estimates[1].value == pytest.approx(estimates[0].value, abs=0.1 * estimates[0].error)


@pytest.mark.parametrize("per_template", [500, 3_000])
def test_goodness_of_fit_at_any_ratio_of_observed_to_simulated_events(per_template):
    toy, random = TwoObservables(), np.random.default_rng(5)
    found = {events: [] for events in (50, 1_000, 20_000, 150_000)}
    for seed in range(6):
        model = gl.fit(toy.templates(per_template, seed=seed), seed=seed, replicas=0)
        for events, p_values in found.items():
            for sample in range(5 if events < 20_000 else 2):
                x = toy.sample(random.uniform(0.2, 0.8), events, 100 * seed + sample)
                p_values.append(model.likelihood(x).maximum().p_value)
    for events, p_values in found.items():
        assert min(p_values) > 1e-3, events
        assert np.mean(p_values) > 0.3, events


def test_every_event_twice(good):
    x = TwoObservables().sample(0.5, 2_000, seed=1)
    assert "repeated_events" not in names(good.likelihood(x).maximum())
    apart = good.likelihood(x) + good.likelihood(x)
    for likelihood in (apart, good.likelihood(np.repeat(x, 2, axis=0))):
        text = next(w.text for w in likelihood.maximum().warnings if w.name == "repeated_events")
        assert text.startswith("50% of the events")


def test_the_same_events_in_two_channels(good):
    other = gl.fit(TwoObservables().templates(2_000, seed=9), hidden=3, seed=1, replicas=0)
    x, y = (TwoObservables().sample(0.5, 2_000, seed=seed) for seed in (1, 2))
    own = good.likelihood(x).named("soft")
    both = own + other.likelihood(np.concatenate([y, x[:500]])).named("hard")
    text = next(w.text for w in both.maximum().warnings if w.name == "repeated_events")
    assert text.startswith("25% of the events of hard are in soft too")
    apart = own + other.likelihood(y).named("hard")
    assert "repeated_events" not in names(apart.maximum())


def test_observables_of_few_values_are_no_copies():
    theta = np.repeat(gl.grid((0, 1), 4), 2_000)
    random = np.random.default_rng(1)
    templates = gl.Templates(random.poisson(5 + theta), theta, (0, 1))
    assert templates.audit()["copies"].met
    model = gl.fit(templates, hidden=(3,), epochs=3, replicas=0)
    assert "repeated_events" not in names(model.likelihood(random.poisson(5.4, 5_000)).maximum())


def test_a_failed_audit_is_told_with_every_estimate():
    model = gl.fit(TOY.templates(300, seed=1), hidden=(3,), epochs=2, replicas=0)
    estimate = model.likelihood(TOY.sample(0.5, 500, seed=1)).maximum()
    texts = [w.text for w in estimate.warnings if w.name == "audit"]
    assert any(text.startswith("size: at least 300 effective events") for text in texts)
