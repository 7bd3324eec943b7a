"""Calls of Python with an argument of the wrong kind: refused by an InputError that names it."""

from functools import partial

import numpy as np
import pytest

import gridless as gl
from gridless.examples import Nuisances, OneObservable


@pytest.fixture(scope="module")
def model():
    return gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, seed=1)


@pytest.fixture(scope="module")
def joint(varied):
    return varied.likelihood(Nuisances().sample(0.4, 500, seed=2))


X = np.linspace(-1, 2, 50)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.expected(0.4, {}), "events: {}; give a number"),
        (lambda m: m.expected(0.4, 0), "events: 0; give a number of events, at least 1"),
        (lambda m: m.expected("middle", 100), "theta: 'middle'; give a number"),
        (lambda m: m.histograms([[0.4]]), "theta: "),
        (lambda m: m.histograms(0.4, 3), "nuisances: int; give a Mapping"),
        (lambda m: m.at(0.4).sample("ten"), "events: 'ten'; give a whole number from 1"),
        (lambda m: m.at(0.4).sample(True), "events: True; give a whole number"),
        (lambda m: m.at(0.4).shares("x", 0.5), "edges: 0.5; give a list of rising numbers"),
        (lambda m: m.at(0.4).p_value("x", ["a"]), "not a table of numbers"),
        (lambda m: m.likelihood(X, by=[None] * len(X)), "by: object for groups"),
        (lambda m: m.likelihood(X, by=[[1], 2]), "by: .*; give one number or text for each event"),
        (lambda m: m.likelihood(X).belt(toys=2.5), "toys: 2.5; give a whole number"),
        (lambda m: m.likelihood(X).belt(points=2), "points: 2; give a whole number from 3"),
        (lambda m: m.likelihood(X).belt(seed=-1), "seed: -1; give a whole number"),
        (lambda m: m.likelihood(X).named(3), "named: 3 is no name"),
        (lambda m: m.likelihood(X).maximum().blinded(1.5), "blind: float; give a str"),
        (lambda m: gl.closure(m, {0.4: X}, fix=3), "fix: int; give a Mapping"),
        (lambda m: gl.closure(m, {0.4: X}, constrain={"theta": 1}), r"give \(value, error\)"),
        (lambda m: gl.closure(m, {0.4: (X, 0 * X)}), "weights: their sum .* is 0"),
        (lambda m: gl.plan(m, "many"), "events: 'many'; give a number"),
        (lambda m: gl.plan(m, 100, theta=2), "theta: 2 is outside of theta in"),
        (lambda m: gl.plan(3, 100), "model: int; give a Model or Templates"),
        (lambda m: gl.bootstrap(m, X, toys=1), "toys: 1; give a whole number from 2"),
        (lambda m: gl.review(m, toys="few"), "toys: 'few'; give a whole number from 100"),
        (lambda m: gl.write_curve("a.json", m), "likelihood: Model; give a Likelihood"),
        (lambda m: gl.write_curve(3.0, m.likelihood(X)), "path: 3.0; give the name of a file"),
        (lambda m: m.save(None), "path: None; give the name"),
        (lambda m: gl.load(3), "path: 3; give the name"),
        (lambda m: gl.Belt.load(3), "path: 3; give the name"),
        (lambda m: gl.compare(m, X), "likelihood: ndarray; give a Likelihood"),
        (lambda m: gl.audit_systematics(X), "templates: ndarray; give a Templates"),
        (lambda m: gl.audit_systematics(OneObservable().templates(50, 1), 3), "give a list of gl"),
        (lambda m: gl.Systematic("a", [1, [2, 3], 4], None), "lists of different lengths"),
        (lambda m: gl.binned_check(m, X, 0 * X), "all weights are 0"),
        (lambda m: gl.Systematic("a", X, -X, constraint="one"), "constraint: 'one'; give a number"),
        (lambda m: gl.Systematic("a", X, -X, constraint=1e-300), "a constraint of 1e-300"),
        (lambda m: gl.Systematic("a", X, -X, same_events=3.0), "same_events is 3.0; give True"),
        (lambda m: gl.Channels({"a": m, "b": m}).expected("a", {"a": 9, "b": 9}), "theta: 'a'; gi"),
        (lambda m: gl.Background("a", X, share="a tenth", error=None), "share: 'a tenth'; give a"),
        (lambda m: gl.Channels({"a": m, "b": m}).likelihood({"a": X, "b": X}, 3.0), "weights: flo"),
    ],
)
def test_arguments_of_the_wrong_kind(model, call, message):
    with pytest.raises(gl.InputError, match=message):
        call(model)


def _with_events(check, model):
    return check(model, X)


CHECKS = [gl.gaps, gl.reliability, gl.template_agreement, gl.leave_one_out]
CHECKS += [partial(_with_events, f) for f in (gl.bootstrap, gl.binned_check, gl.compare)]
CHECKS += [lambda m: gl.read_likelihood(m, {"x": X}), lambda m: gl.stability(m, m, X), gl.review]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("given", [3, "model.safetensors", None])
def test_something_else_in_place_of_a_model(check, given):
    with pytest.raises(gl.InputError, match=f"model: {type(given).__name__}; give a Model"):
        check(given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda j: j.fix(theta="a"), "fix: theta: 'a'; give a number"),
        (lambda j: j.profile("theta", ["a"]), "values: .*; give a number"),
        (lambda j: j.profile("theta", [np.nan]), "give finite numbers"),
        (lambda j: j.contour("theta", "jes", points=2.5), "points: 2.5; give a whole number"),
        (lambda j: j.to_cabinetry(values="a"), "values: 'a'; give a number"),
        (lambda j: j.named(["a"]), "is no name"),
    ],
)
def test_arguments_of_a_likelihood_with_systematics(joint, call, message):
    with pytest.raises(gl.InputError, match=message):
        call(joint)


MODEL_FIGURES = [gl.draw_history, gl.draw_check, gl.draw_prior, gl.draw_distributions]
MODEL_FIGURES += [lambda m: gl.draw_data(m, m["soft"].likelihood(X))]
MODEL_FIGURES += [partial(gl.write_onnx, "model.onnx")]


@pytest.mark.parametrize("call", MODEL_FIGURES)
def test_channels_in_place_of_a_model(model, call):
    channels = gl.Channels({"soft": model, "hard": model})
    cure = r"model: Channels; give a Model, one of them: channels\['soft'\]"
    with pytest.raises(gl.InputError, match=cure):
        call(channels)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (gl.draw_likelihood, "likelihood: Estimate; give a Likelihood, that whose maximum it is"),
        (gl.draw_channels, "likelihood: Estimate; give a Likelihood"),
        (lambda e: gl.draw_contours(e, "a", "b"), "likelihood: Estimate; give a Likelihood"),
        (gl.draw_closure, "closure: Estimate; give a Closure"),
        (lambda e: gl.save_figure(e, "a.pdf"), "figure: Estimate; give a Figure"),
    ],
)
def test_figures_of_an_estimate_that_need_something_else(model, call, message):
    with pytest.raises(gl.InputError, match=message):
        call(model.likelihood(X).maximum())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (gl.draw_budget, r"estimate: Model; give an Estimate, model.likelihood\(x\).maximum\(\)"),
        (gl.draw_channels, r"likelihood: Model; give a Likelihood, model.likelihood\(x\)"),
        (gl.draw_likelihood, r"likelihood: Model; give a Likelihood, model.likelihood\(x\)"),
        (gl.draw_pulls, "estimate: Model; give an Estimate"),
        (gl.draw_closure, r"closure: Model; give a Closure, gl.closure\(model, samples\)"),
        (lambda m: gl.draw_data(m, m), "likelihood: Model; give a Likelihood"),
    ],
)
def test_figures_of_a_model_that_need_something_else(model, call, message):
    with pytest.raises(gl.InputError, match=message):
        call(model)


@pytest.mark.parametrize("call", [gl.draw_budget, gl.draw_impacts])
def test_figures_of_an_estimate_from_its_likelihood(joint, call):
    cure = r"likelihood.maximum\(\)"
    with pytest.raises(gl.InputError, match=f"Likelihood; give an Estimate, {cure}"):
        call(joint)
