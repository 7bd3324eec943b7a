"""Networks from outside: any module trains, is saved, counts its uncertainty, or says why not."""

import numpy as np
import pytest
import torch
from helpers import check_event_gradients
from torch import nn

import gridless as gl
from gridless.density.conditioner import ModuleEnsemble
from gridless.density.gaussian import Gaussian
from gridless.density.network import Network, make_conditioner, outputs_needed
from gridless.examples import OneObservable, TwoObservables
from gridless.model.storage.onnx import onnx_bytes

ONE = OneObservable()


class Gated(nn.Module):
    """A layer whose inside is not known, with a buffer, and a linear one at the end."""

    def __init__(self, inputs, outputs, units=5):
        super().__init__()
        self.gate, self.value = nn.Linear(inputs, units), nn.Linear(inputs, units)
        self.last = nn.Linear(units, outputs)
        self.register_buffer("slope", torch.tensor(1.5))

    def forward(self, x):
        return self.last(torch.sigmoid(self.slope * self.gate(x)) * self.value(x))


def small(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 6), nn.Tanh(), nn.Linear(6, outputs))


def make(members=2, components=2):
    generator = torch.Generator().manual_seed(1)
    outputs = outputs_needed(Gaussian(), components)
    conditioner = make_conditioner(Gated, 2, outputs, members, generator=generator)
    network = Network(conditioner, Gaussian(), components, 2)
    network.initialise(generator)
    return network


def test_members_are_the_modules_and_differ():
    network = make(members=3)
    x = torch.randn(7, 2)
    y = network.conditioner(x)
    assert y.shape == (3, 6, 7)
    start = network.conditioner.start
    for e, module in enumerate(network.conditioner.as_modules()):
        torch.testing.assert_close(y[e].T, module(x) + start)
    assert not torch.allclose(y[0], y[1])
    torch.testing.assert_close(network.member(2).conditioner(x)[0], y[2])


def test_event_gradients_are_those_of_single_events():
    check_event_gradients(make())


@pytest.mark.parametrize("options", [{}, {"ensemble": 2}, {"basis": "gaussian", "components": 2}])
def test_it_measures_as_well_as_ours(options):
    templates = ONE.templates(3_000, seed=1)
    x = ONE.quantiles(0.4, 2_000)
    own, ours = (
        gl.fit(templates, network=network, hidden=6, seed=1, **options).likelihood(x).maximum()
        for network in (small, None)
    )
    assert own.value == pytest.approx(ours.value, abs=0.3 * ours.error)
    assert own.stat == pytest.approx(ours.stat, rel=0.05)
    assert 0.3 < own.simulation / ours.simulation < 3


def test_the_seed_decides_and_the_callers_random_numbers_stay(templates):
    state = torch.get_rng_state()
    first, second = (gl.fit(templates, network=small, epochs=1, seed=3) for _ in range(2))
    other = gl.fit(templates, network=small, epochs=1, seed=4)
    assert torch.equal(state, torch.get_rng_state())
    x = ONE.quantiles(0.4, 100)
    assert first.likelihood(x).maximum().value == second.likelihood(x).maximum().value
    assert first.likelihood(x).maximum().value != other.likelihood(x).maximum().value


def test_a_ready_module_is_copied(templates):
    module = small(1, 2)
    before = [p.detach().clone() for p in module.parameters()]
    model = gl.fit(templates, network=module, ensemble=2, epochs=1, replicas=0)
    for p, old in zip(module.parameters(), before, strict=True):
        assert torch.equal(p, old)
    assert "Sequential with 26 parameters" in repr(model)


def test_a_file_holds_its_weights_and_not_its_code(templates, tmp_path):
    x = ONE.quantiles(0.4, 200)
    model = gl.fit(templates, network=Gated, ensemble=2, epochs=1, replicas=2)
    model.save(tmp_path / "own.safetensors")
    with pytest.raises(gl.InputError, match=r"no registered name; give load\(path, network="):
        gl.load(tmp_path / "own.safetensors")
    for network in (Gated, Gated(1, 2)):
        loaded = gl.load(tmp_path / "own.safetensors", network=network)
        found, expected = (m.likelihood(x).maximum() for m in (loaded, model))
        assert found.value == expected.value
        assert found.simulation == expected.simulation
    with pytest.raises(gl.InputError, match="does not fit its header"):
        gl.load(tmp_path / "own.safetensors", network=small)


def test_a_registered_name_is_found_again(templates, tmp_path):
    gl.register_network("small_for_a_test", small)
    model = gl.fit(templates, network="small_for_a_test", epochs=1, replicas=0)
    model.save(tmp_path / "own.safetensors")
    loaded = gl.load(tmp_path / "own.safetensors")
    assert loaded.options.network == "small_for_a_test"
    x = ONE.quantiles(0.4, 200)
    assert loaded.likelihood(x).maximum().value == model.likelihood(x).maximum().value
    with pytest.raises(gl.InputError, match="'perceptron' is taken"):
        gl.register_network("perceptron", small)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Linear(1, 7), r"gives \(2, 7\) for 2 events.* need \(2, 2\)"),
        (nn.Linear(3, 2), "does not take inputs of shape"),
        (nn.Identity(), "no parameters to train"),
        (lambda i, o: nn.Sequential(nn.BatchNorm1d(i), nn.Linear(i, o)), "use torch.nn.LayerNorm"),
        (lambda i, o: nn.Sequential(nn.Linear(i, o), nn.Dropout(0.1)), "dropout makes the cost"),
        (lambda i, o: 3, "let it return a torch.nn.Module"),
        (3, "give a registered name"),
    ],
)
def test_what_cannot_be_trained_says_why(templates, network, message):
    with pytest.raises(gl.InputError, match=message):
        gl.fit(templates, network=network)


def test_modules_that_cannot_begin_apart_say_so(templates):
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.matrix = nn.Parameter(torch.ones(1, 2))

        def forward(self, x):
            return x @ self.matrix

    with pytest.raises(gl.InputError, match="has no reset_parameters"):
        gl.fit(templates, network=Bare(), ensemble=2)
    assert gl.fit(templates, network=Bare(), epochs=1).record.gain > 0


def test_the_ridge_follows_the_modules_own_say():
    module = Gated(2, 2)
    by_default = ModuleEnsemble([module], 2, 2)
    names = [name for name, _ in module.named_parameters()]
    assert by_default.ridged() == [name.endswith("weight") for name in names]
    module.ridged = {"gate.weight"}
    assert ModuleEnsemble([module], 2, 2).ridged() == [name == "gate.weight" for name in names]


class Wide(nn.Module):
    """Some 2,600 parameters, which is too many for Newton steps."""

    def __init__(self, inputs, outputs, linear):
        super().__init__()
        self.first, self.second = nn.Linear(inputs, 50), nn.Linear(50, 50)
        self.last = nn.Linear(50, outputs) if linear else nn.Bilinear(50, 50, outputs)
        self.linear = linear

    def forward(self, x):
        h = torch.tanh(self.second(torch.tanh(self.first(x))))
        return self.last(h) if self.linear else 0.1 * self.last(h, h)


def test_large_networks_move_their_last_layer_or_say_that_they_have_none():
    templates = ONE.templates(2_000, seed=5)
    x, learnt = ONE.quantiles(0.4, 2_000), {"calibrate": False, "replicas": 8}
    model = gl.fit(templates, network=lambda i, o: Wide(i, o, True), epochs=4, seed=1, **learnt)
    assert 0.003 < model.likelihood(x).maximum().simulation < 0.05
    with pytest.warns(gl.GridlessWarning, match="end it with a torch.nn.Linear"):
        model = gl.fit(templates, network=lambda i, o: Wide(i, o, False), epochs=1, **learnt)
    assert model.likelihood(x).maximum().simulation is None


def test_onnx_gives_what_the_model_gives():
    import onnx
    from onnx.reference import ReferenceEvaluator

    templates = TwoObservables().templates(300, seed=1)
    model = gl.fit(templates, network=small, ensemble=2, epochs=1, replicas=0)
    model.network.bend[0], model.network.shift[0] = 0.7, 0.2
    x = templates.x[:50]
    made = onnx.load_model_from_string(onnx_bytes(model))
    (y,) = ReferenceEvaluator(made).run(None, {"x": x.astype(np.float32)})
    standard = model.network.standardise(torch.tensor(x)).float()
    np.testing.assert_allclose(y, model.network.conditioner(standard).detach().mT, atol=1e-4)
    assert {p.key: p.value for p in made.metadata_props}["observables"] == "x1,x2"
