"""Sizes chosen by held-out events."""

import gridless as gl
from gridless.examples import HardToTell, OneObservable, OnlyWidth


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
