"""Coverage by pseudo-experiments, of a model whose answer is known."""

import json

import numpy as np
import pytest

import gridless as gl
from gridless.examples import Nuisances, OneObservable, TwoParameters
from gridless.validation import coverage as coverage_module

TOY = OneObservable()


@pytest.fixture(scope="module")
def good(linear_model):
    return linear_model


def test_it_covers(good):
    pools = {t: TOY.sample(t, 20_000, seed=i) for i, t in enumerate((0.3, 0.6))}
    found = gl.coverage(good, pools, toys=300, events=300, seed=2)
    assert found.covered.shape == (2, 1)
    assert found.total == pytest.approx(0.683, abs=0.07)
    np.testing.assert_allclose(found.pull_width, 1, atol=0.12)
    assert "300 pseudo-experiments of 300 events" in str(found)
    again = gl.coverage(good, pools, toys=300, events=300, seed=2)
    np.testing.assert_array_equal(again.covered, found.covered)


def test_weights_are_the_chance_to_be_drawn(good):
    x = np.concatenate([TOY.sample(0.2, 5_000, seed=1), TOY.sample(0.7, 5_000, seed=2)])
    weights = np.repeat([0.0, 1.0], 5_000)
    found = gl.coverage(good, [(0.7, (x, weights))], toys=50, events=200)
    assert abs(found.pull_mean[0, 0]) < 0.6


def test_negative_weights_are_refused_before_any_work(good, monkeypatch):
    x = TOY.sample(0.7, 100, seed=2)
    monkeypatch.setattr(coverage_module, "run", None)
    with pytest.raises(
        gl.InputError, match=r"theta = 0.7 has events of negative weight.*--weight 1"
    ):
        gl.coverage(good, {0.3: x, 0.7: (x, np.linspace(-1, 5, 100))}, toys=5)


def test_one_toy_is_too_few(good):
    with pytest.raises(gl.InputError, match="from 2 to"):
        gl.coverage(good, {0.5: TOY.sample(0.5, 10, seed=1)}, toys=1)


def test_results_add_up_and_go_on(good):
    pools = {t: TOY.sample(t, 4_000, seed=i) for i, t in enumerate((0.3, 0.6))}
    whole = gl.coverage(good, pools, toys=250, events=200, seed=3)
    first = gl.coverage(good, pools, toys=150, events=200, seed=3)
    rest = gl.coverage(good, pools, toys=100, events=200, seed=3, first=150)
    total = first + rest
    assert total.toys == 250
    for name in ("covered", "bias", "pull_mean", "pull_width", "error", "bias_error"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-9)
    again = gl.Coverage.from_dict(json.loads(json.dumps(whole.to_dict())))
    np.testing.assert_array_equal(again.covered, whole.covered)
    assert str(again) == str(whole)
    with pytest.raises(gl.InputError, match="does not add"):
        whole + gl.coverage(good, pools, toys=10, events=100)


def test_one_experiment_is_the_likelihood_of_its_events(good):
    """Drawn from a pool of one event, an experiment of n events is that event n times."""
    x = np.array([[0.7]])
    with pytest.warns(
        gl.GridlessWarning, match=r"50 events are drawn from a sample of 1, theta = 0.5"
    ):
        found = gl.coverage(good, [(0.5, x)], toys=2, events=50)
    alone = good.likelihood(np.repeat(x, 50, axis=0)).maximum()
    assert found.bias[0, 0] == pytest.approx(alone.value - 0.5, abs=1e-6)
    assert found.pull_mean[0, 0] == pytest.approx((alone.value - 0.5) / alone.stat, abs=1e-4)


def test_experiments_larger_than_the_sample_are_told(good):
    x = TOY.sample(0.5, 200, seed=1)
    gl.coverage(good, {0.5: x}, toys=2, events=200)
    with pytest.warns(gl.GridlessWarning, match="201 events are drawn from a sample of 200"):
        gl.coverage(good, {0.5: x}, toys=2, events=201)
    weights = np.repeat([0.0, 1.0], 100)
    with pytest.warns(gl.GridlessWarning, match="101 events are drawn from a sample of 100"):
        gl.coverage(good, {0.5: (x, weights)}, toys=2, events=101)


def test_constraints_that_do_not_vary_are_told(varied, good):
    found = gl.coverage(varied, {0.4: Nuisances().sample(0.4, 400, seed=1)}, toys=3, events=40)
    assert found.constrained == varied.nuisances
    assert (
        str(found)
        .splitlines()[-1]
        .startswith(f"errors contain the constraints of {', '.join(varied.nuisances)}")
    )
    assert "constraints" in found._repr_html_()
    again = gl.Coverage.from_dict(json.loads(json.dumps(found.to_dict())))
    assert str(again + found).splitlines()[-1] == str(found).splitlines()[-1]
    plain = gl.coverage(good, {0.5: TOY.sample(0.5, 400, seed=1)}, toys=3)
    assert "constraints" not in str(plain)


def test_two_parameters():
    toy = TwoParameters()
    model = gl.fit(toy.templates(1_500, seed=1, templates=4), hidden=4, seed=1, replicas=0)
    found = gl.coverage(model, [((0.5, 0.5), toy.sample((0.5, 0.5), 5_000, 1))], toys=20)
    assert found.covered.shape == (1, 2)
    assert (np.abs(found.pull_mean) < 3).all()
    assert "t2" in str(found)
