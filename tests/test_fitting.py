"""fit(): options are checked first, results depend on the seed alone."""

import numpy as np
import pytest
import torch
from helpers import make_perceptrons

import gridless as gl
from gridless.examples import HardToTell, OneObservable, TwoObservables
from gridless.training import sizing
from gridless.training.events import split_events

QUICK = {"hidden": (3,), "epochs": 2}


def state(model):
    return torch.cat([p.detach().flatten() for p in model.network.parameters()])


@pytest.mark.parametrize("objective", ["posterior", "penalty", "template"])
def test_same_seed_same_model(templates, objective):
    first, second = (gl.fit(templates, objective=objective, seed=7, **QUICK) for _ in range(2))
    other = gl.fit(templates, objective=objective, seed=8, **QUICK)
    assert torch.equal(state(first), state(second))
    assert not torch.equal(state(first), state(other))
    np.testing.assert_array_equal(first.implied_prior.log_q, second.implied_prior.log_q)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "likelihood"}, "objective: there is no 'likelihood'; known are .*penalty"),
        ({"prior": "jeffreys"}, "prior: there is no 'jeffreys'; give one of 'divide' or 'flat'"),
        ({"basis": "cauchy"}, "basis: there is no 'cauchy'"),
        ({"activation": "gelu"}, "activation"),
        ({"components": 0}, "components: 0; give at least 1"),
        ({"hidden": (16, 0)}, r"hidden: \(16, 0\); give whole"),
        ({"ensemble": 1.5}, "ensemble: 1.5"),
        ({"validation": 1.0}, "validation: 1.0"),
        ({"rate": 0.0}, "rate"),
        ({"ridge": -1.0}, "ridge"),
        ({"epochs": 0}, "epochs: 0"),
        ({"batch": 0}, "batch: 0"),
        ({"hidden": (120, 120)}, "15,000 events to train on for a network of 15,... parameters"),
        ({"hidden": (500, 500)}, "20,000 events for a network of 25.,... parameters"),
        ({"objective": gl.Penalty(at=[0, 2])}, r"outside the bounds of theta in \[0, 1\]"),
        ({"objective": {"penalty": {"density": "kde"}}}, "events, histogram"),
        ({"network": "transformer"}, "network: there is no 'transformer'; known are .*perceptron"),
    ],
)
def test_bad_options_are_refused_before_training(templates, options, message):
    with pytest.raises(gl.InputError, match=message):
        gl.fit(templates, **options)


def test_nothing_is_allocated_for_a_network_that_is_refused(templates, monkeypatch):
    """Three layers of 30,000 units took 7 GB before they were counted."""
    monkeypatch.setattr(sizing, "make_conditioner", None)
    with pytest.raises(gl.InputError, match="events for a network of 1,800,"):
        gl.fit(templates, hidden=(30_000, 30_000, 30_000))


def test_an_array_in_place_of_templates_says_how_to_make_them():
    with pytest.raises(gl.InputError, match=r"templates: ndarray; make Templates of arrays, gl\."):
        gl.fit(np.zeros((5, 1)))


def test_histograms_of_many_observables_are_refused():
    x = np.random.default_rng(1).normal(size=(2000, 4))
    templates = gl.Templates(x, np.repeat([0.25, 0.75], 1000), (0, 1))
    with pytest.raises(gl.InputError, match='use density="events"'):
        gl.fit(templates, objective=gl.Penalty(density="histogram"))


@pytest.mark.parametrize("basis", ["gaussian", "logistic", "exp_polynomial", gl.ExpPolynomial(3)])
def test_every_basis_trains(templates, basis):
    model = gl.fit(templates, basis=basis, hidden=(4,), epochs=6, seed=1)
    assert model.record.history[-1].validation < -0.02
    assert model.likelihood(OneObservable().sample(0.5, 5000, 1)).maximum().valid


def test_named_bases_are_kept_as_wide_as_half_the_spacing(templates):
    assert gl.fit(templates, **QUICK).network.basis.floor == pytest.approx(0.05)
    own = gl.fit(templates, basis=gl.Gaussian(floor=0.01), **QUICK)
    assert own.network.basis.floor == 0.01


def test_the_degree_grows_with_what_is_there(monkeypatch):
    monkeypatch.setattr("gridless.density.exp_polynomial.MIN_EVENTS_FOR_CUBIC", 1_000)
    toy, options = OneObservable(), QUICK | {"basis": "exp_polynomial"}
    degrees = {
        "many": toy.templates(120, seed=1),
        "few events": toy.templates(90, seed=1),
        "few templates": toy.templates(500, seed=1, templates=5),
    }
    weighted = toy.templates(120, seed=1)
    # As many events, half of which count next to nothing.
    weights = np.where(np.arange(len(weighted)) % 2 == 0, 1.0, 1e-6)
    degrees["few effective"] = gl.Templates(
        weighted.x, weighted.grid.values[weighted.template, 0], (0, 1), weights
    )
    found = {name: gl.fit(t, **options).network.basis.degree for name, t in degrees.items()}
    assert found == {"many": 3, "few events": 2, "few templates": 2, "few effective": 2}


def test_unequal_samples_count_equally():
    """A template simulated ten times over pulls the implied prior no more than the others."""
    toy = OneObservable(width=0.3)
    theta = np.concatenate([np.repeat(gl.grid((0, 1), 10), 3000), np.full(27_000, 0.95)])
    x = toy.draw(theta, np.random.default_rng(2))
    templates = gl.Templates(x, theta, (0, 1))
    model = gl.fit(templates, objective="posterior", hidden=(8,), seed=1)
    assert model.implied_prior.max_log < 0.1


def test_a_constant_observable_does_no_harm():
    toy = TwoObservables()
    x = toy.templates(500, seed=1)
    constant = np.column_stack([x.x, np.full(len(x), 7.0)])
    with pytest.warns(gl.GridlessWarning, match="'x_3'"):
        templates = gl.Templates(constant, x.grid.values[x.template], (0, 1))
    model = gl.fit(templates, **QUICK)
    assert torch.isfinite(state(model)).all()


def test_float_offsets_do_not_cost_precision():
    """Observables like 1e5 + small keep their digits through the standardisation."""
    toy = OneObservable()
    plain = toy.templates(1000, seed=3)
    moved = gl.Templates(plain.x + 1e5, plain.grid.values[plain.template], (0, 1))
    a, b = (gl.fit(t, **QUICK) for t in (plain, moved))
    x = toy.sample(0.4, 1000, seed=4)
    assert b.likelihood(x + 1e5).maximum().value == pytest.approx(
        a.likelihood(x).maximum().value, abs=1e-3
    )


def test_history_tells_every_term(templates):
    history = gl.fit(templates, objective="penalty", hidden=(3,), epochs=3).record.history
    assert [(e.stage, e.epoch) for e in history] == [(s, e) for s in (1, 2) for e in (1, 2, 3, 4)]
    assert all(e.strength == 0 for e in history[:4])
    assert all(e.strength > 0 and e.spread > 0 for e in history[4:])


def test_lambda_makes_both_terms_comparable():
    templates = OneObservable().templates(5_000, seed=4)
    history = gl.fit(templates, objective="penalty", hidden=(5,), seed=1).record.history
    first, second = [[e for e in history if e.stage == s] for s in (1, 2)]
    # lambda times the S that stage one left, about 0.013 here, is |C|.
    assert second[0].strength * 0.013 == pytest.approx(-first[-1].validation, rel=0.5)
    assert second[-1].spread < 0.1 * 0.013


def test_one_layer_may_be_a_number(templates):
    assert gl.fit(templates, hidden=3, epochs=1).network.conditioner.hidden == (3,)


def test_nothing_is_printed_in_a_pipe(templates, capfd):
    gl.fit(templates, **QUICK)
    assert capfd.readouterr() == ("", "")


def test_a_cauchy_observable_can_be_used():
    toy, random = OneObservable(), np.random.default_rng(2)
    templates = toy.templates(2_000, seed=1)
    x = np.hstack([templates.x, 1e4 * random.standard_cauchy((len(templates), 1))])
    theta = templates.grid.values[templates.template, 0]
    model = gl.fit(gl.Templates(x, theta, (0, 1)), hidden=(4,), seed=1)
    observed = np.hstack([toy.quantiles(0.4, 2_000), 1e4 * random.standard_cauchy((2_000, 1))])
    estimate = model.likelihood(observed).maximum()
    assert estimate.value == pytest.approx(0.4, abs=4 * estimate.simulation)
    assert estimate.stat == pytest.approx(2_000**-0.5, rel=0.15)


def test_members_of_an_ensemble_hold_out_each_event_once(templates):
    generator = torch.Generator().manual_seed(1)
    network = make_perceptrons(1, gl.Gaussian(), 1, (), members=4)
    split = split_events(templates, templates.mean_weights(), network, 0.25, generator)
    training, held = split.training, split.held_out
    assert len(training) == len(held) == len(templates)
    assert ((training.weights == 0).sum(0) == 1).all()
    assert ((held.weights != 0).sum(0) == 1).all()
    for k in range(len(templates.grid)):
        own = held.weights[:, held.template == k]
        assert (own != 0).sum(1).tolist() == [500] * 4
    assert [len(x) for x, _ in split.unseen] == [len(templates) // 4] * 4


def test_an_ensemble_is_reproducible_and_better_than_nothing(templates):
    models = [gl.fit(templates, hidden=(4,), ensemble=3, epochs=4, seed=2) for _ in range(2)]
    x = OneObservable().quantiles(0.3, 1_000)
    values = [model.likelihood(x).maximum() for model in models]
    assert values[0].value == values[1].value
    assert values[0].value == pytest.approx(0.3, abs=4 * values[0].simulation)


def test_a_single_network_that_was_not_asked_for_is_calibrated_on_all_events():
    # Held-out events of the trial have room for one network, those of the training by chance not.
    model = gl.fit(HardToTell(0.15).templates(2_000, 3, 9), seed=3)
    moments = model.reweighting.moments
    assert model.network.members == 1
    np.testing.assert_allclose(moments.effective, 2_000, rtol=0.1)
