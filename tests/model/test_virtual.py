"""Simulation at any theta, made of the events that a model keeps; expected likelihoods."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import gridless as gl
from gridless.examples import Nuisances, OneObservable, OnlyWidth, TwoObservables, TwoParameters
from gridless.model.reweighting import SimulatedEvents, tilted
from gridless.model.storage.file import model_bytes, model_from
from gridless.model.virtual import VirtualTemplate

EXAMPLE = OnlyWidth()


@pytest.fixture(scope="module")
def width(width_model):
    return width_model


def p_value(first, weights, second, bins=15):
    edges = np.quantile(second, np.linspace(0, 1, bins + 1)[1:-1])
    one, two = np.searchsorted(edges, first), np.searchsorted(edges, second)
    share = np.bincount(one, weights, bins)
    other = np.bincount(two, minlength=bins) / len(second)
    variance = np.bincount(one, weights**2, bins) + other / len(second)
    return chi2.sf(((share - other) ** 2 / variance).sum(), bins - 1)


@pytest.mark.parametrize("theta", [0.1, 0.43, 0.8])
def test_distributions_are_those_of_simulation(width, theta):
    found = width.at(theta)
    assert found.weights.sum() == pytest.approx(1)
    assert found.effective_size > 10_000
    fresh = EXAMPLE.sample(theta, 20_000, seed=3)
    assert p_value(found.x[:, 0], found.weights, fresh[:, 0]) > 1e-3
    drawn = found.sample(20_000, seed=4)
    assert drawn.std() == pytest.approx(0.5 + theta, rel=0.03)


def test_distributions_are_right_whatever_the_network_learnt():
    example = TwoObservables()
    stiff = gl.fit(
        example.templates(4_000, seed=1), hidden=2, basis=gl.ExpPolynomial(1), epochs=1, seed=1
    )
    weights, at = stiff.reweighting.at(np.array([0.43])), stiff.at(0.43)
    fresh = example.sample(0.43, 50_000, seed=3)
    before, after = replace(at, weights=weights, corrected=()), at
    names = at.observables
    assert min(before.p_value(n, x) for n, x in zip(names, fresh.T, strict=True)) < 1e-4
    assert min(after.p_value(n, x) for n, x in zip(names, fresh.T, strict=True)) > 1e-3
    with pytest.raises(gl.InputError, match="observable: no 'z'"):
        at.shares("z", [0.0])


def test_the_mean_of_summaries_is_the_calibrated_one(width):
    t = np.array([0.37])
    weights = width.reweighting.at(t)
    want = width.calibration.mean(t[None])[0]
    np.testing.assert_allclose(weights @ width.reweighting.y, want, atol=1e-5)


def test_tilting_is_exact_and_survives_what_cannot_be_had():
    random = np.random.default_rng(1)
    y = random.normal(size=(5_000, 2))
    found = tilted(np.ones(len(y)), y, np.array([0.3, -0.2]))
    np.testing.assert_allclose(found @ y, [0.3, -0.2], atol=1e-5)
    far = tilted(np.ones(len(y)), y, np.array([50.0, 0.0]))
    assert np.isfinite(far).all()


def test_a_file_keeps_the_events(width):
    again = model_from(model_bytes(width), "copy")
    np.testing.assert_array_equal(again.at(0.3).weights, width.at(0.3).weights)
    assert len(again.simulated) == 40_000


def test_a_damaged_file_is_refused(width):
    kept = width.simulated
    for bad in (
        replace(kept, template=np.full_like(kept.template, 99)),
        replace(kept, template=kept.template[:-1]),
        replace(kept, x=kept.x[:, [0, 0]]),
        replace(kept, weights=-kept.weights),
    ):
        with pytest.raises(gl.InputError, match="damaged"):
            model_from(model_bytes(replace(width, simulated=bad)), "copy")


def test_where_simulation_is_thin_it_warns_and_refuses(width):
    few = SimulatedEvents(*(value[:3_000] for value in vars(width.simulated).values()))
    thin = replace(width, simulated=few)  # of the lowest template alone
    with pytest.raises(gl.InputError, match="simulate templates nearer"):
        thin.at(0.99)
    small = SimulatedEvents(*(value[::50] for value in vars(width.simulated).values()))
    with pytest.warns(gl.GridlessWarning, match="coarse"):
        replace(width, simulated=small).at(0.5)
    with pytest.raises(gl.InputError, match="outside"):
        width.at(1.5)
    with pytest.raises(gl.InputError, match="give one number each: theta"):
        width.at((0.1, 0.2))


def test_weights_of_either_sign():
    templates = OneObservable().templates(4_000, seed=1)
    signs = np.where(np.random.default_rng(2).random(len(templates)) < 0.2, -1.0, 1.0)
    made = gl.Templates(templates.x, templates.theta, (0, 1), weights=signs)
    found = gl.fit(made, hidden=3, seed=1).at(0.4)
    assert found.weights @ found.x[:, 0] == pytest.approx(0.4, abs=0.05)


def test_expected_error_and_budget_are_those_of_pseudo_experiments(width):
    expected = width.expected(0.4, 2_000).maximum()
    assert expected.value == pytest.approx(0.4, abs=1e-6)
    pool = EXAMPLE.sample(0.4, 400_000, seed=5)
    found = [width.likelihood(part).maximum() for part in np.split(pool, 200)]
    mean = np.mean([one.error for one in found])
    assert expected.error == pytest.approx(mean, rel=0.02)
    simulation = np.mean([one.simulation for one in found])
    assert expected.simulation == pytest.approx(simulation, rel=0.1)


def test_expected_without_calibration_and_of_two_parameters():
    plain = gl.fit(EXAMPLE.templates(1_000, seed=1), hidden=3, calibrate=False, replicas=0, seed=1)
    assert plain.expected(0.5, 100).maximum().value == pytest.approx(0.5, abs=0.1)
    two = gl.fit(TwoParameters().templates(500, seed=1, templates=5), hidden=4, seed=1)
    estimate = two.expected((0.5, 0.6), 1_000).maximum()
    np.testing.assert_allclose(estimate.values, [0.5, 0.6], atol=1e-3)
    with pytest.raises(gl.InputError, match="events"):
        two.expected((0.5, 0.6), 0)


def test_expected_and_review_of_a_model_with_systematics():
    example = Nuisances()
    model = example.fit(events=500, seed=1)
    estimate = model.expected(0.4, 2_000).maximum()
    assert estimate["theta"].value == pytest.approx(0.4, abs=0.02)
    observed = example.sample(0.4, 2_000, seed=2)
    found = gl.review(model, observed, toys=200)
    assert found.answers["coverage"].verdict == "good"
    assert found.answers["expected"].verdict == "good"
    groups = model.likelihood(observed, by=np.arange(2_000) % 2).by()
    assert groups.dof == 1


@pytest.mark.parametrize("events", [3, 20, 200])
@pytest.mark.parametrize("kind", ["none", "gamma", "signed"])
def test_few_events_and_weights_are_not_called_unlike_the_simulation(events, kind):
    random = np.random.default_rng(events)
    x = random.normal(size=(5_000, 1))
    at = VirtualTemplate(np.array([0.4]), x, np.full(5_000, 1 / 5_000), ("x",))
    found = []
    for _ in range(200):
        weights = {
            "none": None,
            "gamma": random.gamma(1.0, 1.0, events),
            "signed": np.where(np.arange(events) % 4 == 1, -1.0, 1.0),
        }[kind]
        found.append(at.p_value("x", random.normal(size=events), weights))
    assert np.mean(np.array(found) < 0.01) < 0.03
