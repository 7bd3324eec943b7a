"""Sizes chosen by held-out events."""

from dataclasses import replace

import pytest

import gridless as gl
from gridless.examples import HardToTell, ManyObservables, OneObservable, OnlyWidth
from gridless.model.record import TriedSize

TEN = ManyObservables()


@pytest.fixture(scope="module")
def small_templates():
    return TEN.templates(1_000, seed=2)


def test_a_linear_problem_gets_a_linear_network():
    model = gl.fit(OneObservable().templates(2_000, seed=1), seed=1)
    assert model.network.conditioner.hidden == ()
    assert [size.chosen for size in model.record.sizes].count(True) == 1


def test_where_there_is_much_to_learn_the_network_is_larger():
    model = gl.fit(OnlyWidth().templates(4_000, seed=1), seed=1)
    assert sum(model.network.conditioner.hidden) >= 8
    gains = [size.gain for size in model.record.sizes]
    assert gains[1] > gains[0] + 100


def test_where_events_say_little_members_are_calibrated_on_events_they_have_not_seen():
    model = gl.fit(HardToTell().templates(2_000, seed=1, templates=5), seed=1)
    assert model.network.members == 4
    assert model.network.conditioner.hidden == ()


def test_where_events_say_little_the_mean_of_several_networks_is_tried(small_templates):
    sizes = gl.fit(small_templates, seed=1).record.sizes
    alone, together = (
        {one.hidden: one.gain for one in sizes if one.members == members and one.ridge == 1}
        for members in (1, 4)
    )
    assert together[(8,)] > alone[(8,)] + 10


def test_what_is_given_by_hand_is_honoured():
    templates = OneObservable().templates(1_000, seed=1)
    model = gl.fit(templates, hidden=5, epochs=2)
    assert model.network.conditioner.hidden == (5,)
    assert model.record.sizes == ()
    assert gl.fit(templates, ensemble=2, epochs=2).network.members == 2


def test_the_sizes_are_saved(tmp_path):
    model = gl.fit(OneObservable().templates(500, seed=1), epochs=2)
    model.save(tmp_path / "model.safetensors")
    assert gl.load(tmp_path / "model.safetensors").record.sizes == model.record.sizes


def test_a_size_that_was_tried_with_more_networks_than_trained_says_so(model):
    tried = TriedSize(2, (8,), 46, 5.0, True, 0.1, 4), TriedSize(2, (8,), 46, 4.0, False, 1.0, 4)
    model = replace(model, record=replace(model.record, sizes=tried))
    text = "degree 2, 8 hidden units, ridge 0.1, 4 networks +5.0 (taken; 1 network trained)\n"
    assert text in repr(model)
    assert repr(model).count("trained)") == 1


def closure_of(model):
    fresh = {v: TEN.sample(v, 2_000, seed=i) for i, v in enumerate((0.1, 0.3, 0.5, 0.7, 0.9))}
    return gl.closure(model, fresh)


def test_a_network_that_memorises_costs_precision_and_not_validity(small_templates):
    """Without folds: slope 0.83, chi2/dof 7.2."""
    model = gl.fit(small_templates, hidden=32, ridge=0.0, seed=1)
    assert model.network.members == 4
    closure = closure_of(model)
    assert closure.slope == pytest.approx(1, abs=0.12)
    assert closure.chi2 / closure.dof < 2.5


def test_a_single_network_by_hand_is_calibrated_on_what_it_kept_out(small_templates):
    loose = gl.fit(small_templates, hidden=32, ridge=0.0, ensemble=1, seed=1)
    assert loose.network.members == 1
    closure = closure_of(loose)
    assert closure.chi2 / closure.dof < 2.5
    more = gl.fit(small_templates, hidden=32, ridge=0.0, ensemble=1, validation=0.5, seed=1)
    x = TEN.sample(0.5, 2_000, seed=9)
    errors = [m.likelihood(x).maximum().simulation for m in (loose, more)]
    assert errors[0] > 1.5 * errors[1]
