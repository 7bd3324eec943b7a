"""Closure: what it computes, what does not count, and that any form of samples will do."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import closure_of

import gridless as gl
from gridless.examples import OneObservable, TwoParameters

TOY = OneObservable()


def test_pull_slope_and_chi2_by_hand():
    table = closure_of([0.21, 0.50, 0.78], [0.2, 0.5, 0.8])
    np.testing.assert_allclose(table.pull, [1, 0, -2], atol=1e-6)
    assert table.chi2 == pytest.approx(5, abs=1e-5)
    assert table.dof == 3
    assert table.slope == pytest.approx(0.95)
    assert table.intercept == pytest.approx(0.5 - 0.95 * 0.5 - 0.01 / 3, abs=1e-4)
    assert table["theta"].slope == table.slope
    assert "chi2/dof = 5.0/3" in str(table)
    assert "<table>" in table._repr_html_()
    with pytest.raises(gl.InputError, match="no parameter 'mass'; there is theta"):
        table["mass"]


def test_every_form_of_samples(model):
    samples = {t: TOY.sample(t, 500, seed=i) for i, t in enumerate((0.3, 0.6))}
    pooled = gl.Templates(
        np.concatenate(list(samples.values())), np.repeat([0.3, 0.6], 500), (0, 1)
    )
    read = {t: gl.read({"x": x[:, 0]}, "x") for t, x in samples.items()}
    weighted = {t: (x, np.full(len(x), 2.0)) for t, x in samples.items()}
    forms = [samples, list(samples.items()), pooled, read, weighted]
    tables = [gl.closure(model, form) for form in forms]
    for table in tables:
        np.testing.assert_allclose(table.value, tables[0].value, rtol=1e-6)
        assert table.true.tolist() == [0.3, 0.6]


def test_templates_that_were_selected_as_the_model_asks_give_no_warning(recwarn):
    theta = np.repeat(gl.grid((0, 1), 3), 500)
    x = TOY.sample(0.5, 1_500, seed=1)[:, 0] + theta
    sources = [(t, {"x": x[theta == t]}) for t in np.unique(theta)]
    templates = gl.read_templates(sources, "x", (0, 1), selection="x > -1")
    model = gl.fit(templates, hidden=2, epochs=1, replicas=0)
    gl.closure(model, templates)
    gl.coverage(model, templates, toys=2)
    assert not [w for w in recwarn if issubclass(w.category, gl.GridlessWarning)]


def test_a_true_value_outside_of_the_bounds_is_refused(model):
    for truth in (1.5, -0.01):
        samples = {0.5: TOY.sample(0.5, 500, seed=1), truth: TOY.sample(truth, 500, seed=1)}
        for test in (gl.closure, gl.coverage):
            with pytest.raises(
                gl.InputError, match=f"theta = {truth:g} is outside the bounds 0 to 1"
            ):
                test(model, samples)
    # Between the outermost template, at 0.95, and the bound.
    assert gl.closure(model, {1.0: TOY.sample(0.97, 500, seed=1)}).true == 1


def test_one_sample_is_enough(model):
    table = gl.closure(model, {0.5: TOY.sample(0.5, 2_000, seed=1)})
    assert table.dof == 1
    assert table.slope is None
    assert abs(table.pull[0]) < 4
    assert "slope" not in str(table)
    with pytest.raises(gl.InputError, match="at least one value"):
        gl.closure(model, {})


def test_an_interval_that_a_bound_cuts_has_the_error_of_its_other_side():
    # The upper side is cut to 0.02 by the bound; the lower one has the full 0.1.
    table = closure_of([0.98, 0.5], [1.0, 0.5], width=0.1)
    assert table.pull[0] == pytest.approx(-0.2, abs=1e-6)
    assert table.dof == 2


def test_estimates_at_a_bound_do_not_count_and_are_named():
    """Eight of nine samples pinned used to give pulls of 0 and a chi2/dof of 0.31."""
    true = np.linspace(0.1, 0.9, 9)
    table = closure_of([-1.0] * 4 + [0.53] + [2.0] * 4, true, width=0.03)
    assert table.usable.tolist() == [False] * 4 + [True] + [False] * 4
    assert np.isnan(table.pull[~table.usable]).all()
    assert (table.chi2, table.dof) == (pytest.approx(1, abs=1e-6), 1)
    assert table.slope is None
    last = str(table).splitlines()[-1]
    assert last.startswith(
        "8 of 9 samples not counted, their estimates are at a bound: theta = 0.1,"
    )
    content = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert content["at_bound"] == pytest.approx(true[~table.usable][:, None])
    assert content["pull"][0] is None
    assert content["dof"] == 1


def test_with_all_estimates_at_a_bound_nothing_is_claimed():
    table = closure_of([-1.0, 2.0], [0.3, 0.6], width=0.03)
    assert table.dof == 0
    assert "chi2" not in str(table)
    assert "2 of 2 samples not counted" in str(table)
    assert "chi2" not in table._repr_html_()


def test_results_cannot_be_changed_by_accident():
    table = closure_of([0.2, 0.5], [0.2, 0.5])
    for values in (table.true, table.value, table.pull, table.error, table.interval, table.usable):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0


def test_intervals_at_another_level_leave_pulls_as_they_are(model):
    samples = {0.4: TOY.sample(0.4, 2_000, seed=1)}
    table, wide = gl.closure(model, samples), gl.closure(model, samples, level=0.95)
    np.testing.assert_array_equal(wide.pull, table.pull)
    assert np.ptp(wide.interval) / np.ptp(table.interval) == pytest.approx(1.96, abs=0.05)
    assert wide.to_dict()["level"] == 0.95
    with pytest.raises(gl.InputError, match="between 0 and 1"):
        gl.closure(model, samples, level=95)


def test_constrained_and_fixed_parameters():
    example = TwoParameters()
    model = gl.fit(example.templates(1_000, seed=1, templates=3), hidden=4, epochs=5, replicas=0)
    samples = {(0.4, 0.6): example.sample((0.4, 0.6), 500, seed=2)}
    free = gl.closure(model, samples)
    constrained = gl.closure(model, samples, constrain={"t2": (0.6, 0.01)})
    fixed = gl.closure(model, samples, fix={"t2": 0.6})
    assert constrained["t2"].error[0] < 0.011 < free["t2"].error[0]
    assert fixed.parameters == ("t1",)
    assert fixed.true.tolist() == [0.4]
    assert fixed.value[0] == pytest.approx(constrained["t1"].value[0], abs=0.02)


@pytest.mark.parametrize("covariance", [np.zeros((2, 2)), np.ones((2, 2))])
def test_a_maximum_without_correlations_has_a_chi2_all_the_same(covariance):
    example = TwoParameters()
    model = gl.fit(example.templates(1_000, seed=1, templates=3), hidden=4, epochs=5, replicas=0)
    found = gl.closure(model, {(0.4, 0.6): example.sample((0.4, 0.6), 500, seed=2)})
    estimate = replace(found.estimates[0], covariances={"stat": covariance})
    closure = replace(found, estimates=(estimate,))
    pulls = np.array([closure[name].pull[0] for name in closure])
    alone = pulls @ pulls if not covariance.any() else pulls.sum() ** 2 / 4
    assert closure.chi2 == pytest.approx(alone)
    json.dumps(closure.to_dict(), allow_nan=False)
