"""The audit finds each fault of a grid and proposes the cure."""

import inspect
import json

import numpy as np
import pytest

import gridless as gl
from gridless.examples import OneObservable, TwoParameters
from gridless.templates.audit import Audit


def make(theta, bounds=(0, 1), width=1.0, events=2000, weights=None):
    values = np.repeat(np.asarray(theta, float), events)
    x = np.random.default_rng(1).normal(values, width)
    return gl.Templates(x, values, bounds, weights=weights)


def test_the_papers_grid_passes():
    audit = OneObservable().templates(2000, seed=1).audit(components=2, objective="penalty")
    assert audit.ok, str(audit)


def test_values_whose_squares_overflow_are_refused_with_the_cure():
    with pytest.raises(gl.InputError, match="units in which its values are nearer to 1"):
        make(np.linspace(0, 1, 5), width=1e300).audit()


def test_eleven_templates_from_0_to_1_need_wider_bounds():
    audit = make(np.linspace(0, 1, 11)).audit(objective="penalty")
    finding = audit["margin"]
    assert not finding.met
    assert "set the bounds to -0.05 and 1.05" in finding.text
    assert audit["spacing"].met
    assert "set the bounds to -0.05 and 1.05" in str(audit)
    assert make(np.linspace(0, 1, 11), bounds=(-0.05, 1.05)).audit(objective="penalty").ok


def test_unequal_spacing():
    finding = make([0.05, 0.15, 0.4, 0.95]).audit(objective="posterior")["spacing"]
    assert not finding.met
    assert "from 0.1 to 0.55" in finding.text
    assert 'objective="template"' in finding.text


def test_unequal_weight():
    theta = gl.grid((0, 1), 4)
    weights = np.where(np.repeat(theta, 2000) > 0.8, 3.0, 1.0)
    finding = make(theta, weights=weights).audit(objective="penalty")["weight"]
    assert not finding.met
    assert finding.value == pytest.approx(3)
    assert "theta = 0.875" in finding.text


def test_too_many_components():
    finding = make(gl.grid((0, 1), 10)).audit(components=5)["number"]
    assert not finding.met
    assert "at most 3 components, or at least 15 templates" in finding.text


@pytest.mark.parametrize(("width", "met"), [(1.0, True), (0.05, True), (0.01, False)])
def test_overlap_of_neighbours(width, met):
    finding = make(gl.grid((0, 1), 10), width=width).audit()["overlap"]
    assert finding.met is met
    # Two normal densities 0.1 apart share erfc(0.1 / (2 sqrt(2) width)) of their events.
    if width == 0.05:
        assert finding.value == pytest.approx(0.317, abs=0.05)


def test_templates_that_do_not_differ():
    finding = make(gl.grid((0, 1), 10), width=1000).audit()["difference"]
    assert not finding.met
    assert "differ by" in finding.text
    assert "simulate more events or a wider range, or add observables that depend on theta" in (
        finding.text
    )
    assert make(gl.grid((0, 1), 10), width=4, events=20_000).audit()["difference"].met


def test_prints_in_a_terminal_and_a_notebook():
    audit = make(np.linspace(0, 1, 11)).audit(objective="penalty")
    assert "\n  CHANGE margin " in str(audit)
    assert repr(audit) == str(audit)
    assert str(audit["margin"]).startswith("CHANGE margin 0 below and 0 above")
    assert "✗" in audit._repr_html_()


def test_a_demand_that_was_not_audited_is_named_with_those_that_were():
    audit = make(gl.grid((0, 1), 4)).audit()
    with pytest.raises(gl.InputError, match="no 'margin' in this audit; there are size, number"):
        audit["margin"]


def test_the_default_is_the_objective_that_fit_uses():
    objective = inspect.signature(gl.fit).parameters["objective"].default
    # Unequal gaps and weights, on which the objectives disagree.
    templates = make([0.05, 0.15, 0.4, 0.95])
    assert str(templates.audit()) == str(templates.audit(objective=objective))
    assert str(templates.audit()) != str(templates.audit(objective="penalty"))


def test_it_survives_json():
    audit = make(gl.grid((0, 1), 4)).audit()
    content = json.loads(json.dumps(audit.to_dict()))
    assert content["ok"] is audit.ok
    assert content["findings"][0]["demand"] == "size"
    assert Audit.from_dict(content) == audit


def test_the_default_objective_asks_less():
    templates = make([0, 0.03, 0.08, 0.15, 0.3, 0.5, 0.55, 0.8, 0.95, 1])
    audit = templates.audit()
    assert audit.ok, str(audit)
    assert {f.demand for f in audit.findings}.isdisjoint({"spacing", "margin", "weight"})
    assert not templates.audit(objective="penalty").ok
    with pytest.raises(gl.InputError, match="penalty, posterior, template"):
        templates.audit(objective="tempate")


def test_a_gap_too_wide():
    finding = make([0.1, 0.2, 0.9], width=0.2).audit()["gap"]
    assert not finding.met
    assert finding.value == pytest.approx(0.7 / 0.2, rel=0.1)
    assert "theta = 0.2 and theta = 0.9" in finding.text


def test_bounds_far_beyond_the_templates():
    finding = make([0.4, 0.5, 0.6]).audit()["range"]
    assert not finding.met
    assert finding.value == pytest.approx(4)
    assert "0.4 to 0.6" in finding.text


def test_effective_size():
    random = np.random.default_rng(2)
    theta = gl.grid((0, 1), 3)
    weights = np.where(random.random(3 * 2000) < 0.4, -1.0, 1.0)
    finding = make(theta, weights=weights).audit()["size"]
    assert not finding.met
    assert finding.value == pytest.approx(2000 * 0.2**2, rel=0.5)
    assert "40% of the weights negative" in finding.text


def test_several_parameters():
    toy = TwoParameters()
    full = toy.templates(5000, seed=1, templates=4)
    assert full.audit(objective="penalty").ok, str(full.audit(objective="penalty"))
    assert full.audit()["difference in t2"].met
    scattered = toy.templates(8000, seed=1, at=np.random.default_rng(1).random((16, 2)))
    assert not scattered.audit(objective="penalty")["spacing"].met
    assert scattered.audit().ok, str(scattered.audit())


def test_copies_of_events():
    templates = OneObservable().templates(2_000, seed=1)
    x, theta = (np.concatenate([a, a[:4_000]]) for a in (templates.x, templates.theta))
    finding = gl.Templates(x, theta, (0, 1)).audit()["copies"]
    assert not finding.met
    assert finding.value == pytest.approx(1 / 6, abs=0.02)
    assert "remove the copies" in finding.text


def test_one_file_for_two_templates():
    x = np.random.default_rng(1).normal(size=(3, 2_000))
    theta = np.repeat([0.2, 0.4, 0.6, 0.8], 2_000)
    rows = np.concatenate([x[0], x[1], x[1], x[2]])
    assert not gl.Templates(rows, theta, (0, 1)).audit()["copies"].met


def test_one_sample_with_weights_for_every_template():
    """Weights make several templates of the same events, which then fluctuate together."""
    x = np.random.default_rng(1).normal(0.5, 1.0, 2_000)
    values = np.array([0.2, 0.4, 0.6, 0.8])
    theta = np.repeat(values, 2_000)
    weights = np.exp(-0.5 * ((x - values[:, None]) ** 2 - (x - 0.5) ** 2)).ravel()
    finding = gl.Templates(np.tile(x, 4), theta, (0, 1), weights=weights).audit()["copies"]
    assert not finding.met
    assert finding.value == 0  # no template has an event twice
    assert "75.0% of the events are in several templates" in finding.text


@pytest.mark.parametrize("digits", [1, 2, 4])
def test_rounded_observables_are_no_copies(digits):
    templates = OneObservable().templates(2_000, seed=1)
    assert (
        gl.Templates(np.round(templates.x, digits), templates.theta, (0, 1)).audit()["copies"].met
    )


@pytest.mark.parametrize(
    ("value", "events", "met"),
    [
        (-999.0, 1, False),
        (-1e4, 20, False),
        (999.0, 200, False),
        (-1e4, 1, True),
        (-1.0, 200, True),
    ],
)
def test_marks_of_missing_values(value, events, met):
    templates = OneObservable().templates(2_000, seed=1)
    x = templates.x.copy()
    x[:events] = value
    finding = gl.Templates(x, templates.theta, (0, 1)).audit()["sentinels"]
    assert finding.met is met
    if not met:
        assert f"x = {value:g} in {events} event" in finding.text


def test_categories_are_no_marks():
    theta = np.repeat(gl.grid((0, 1), 4), 2_000)
    random = np.random.default_rng(1)
    for column in (random.choice([0, 1, 100], len(theta)), np.maximum(random.normal(theta), 0.5)):
        assert gl.Templates(column, theta, (0, 1)).audit()["sentinels"].met


def test_one_component_is_not_told_to_become_fewer():
    values = np.repeat([0.25, 0.75], 2_000)
    x = np.random.default_rng(1).normal(values)
    finding = gl.Templates(x, values, bounds=(0, 1)).audit()["number"]
    assert not finding.met
    assert "components, or" not in finding.text
    assert "at least 3 templates" in finding.text


def test_a_parameter_whose_sign_does_not_matter_has_templates_that_differ():
    theta = np.repeat(np.linspace(-1, 1, 9), 2_000)
    x = np.random.default_rng(1).normal(theta**2, 0.5)
    finding = gl.Templates(x, theta, (-1, 1)).audit()["difference"]
    assert finding.met
    assert "theta = -1 and theta = 0 apart" in finding.text


@pytest.mark.parametrize(
    ("factor", "times"), [(1000, "1,000 times larger"), (0.2, "5 times smaller")]
)
def test_a_template_in_other_units_is_named(factor, times):
    theta = np.repeat([88.0, 89, 90, 91, 92], 2000)
    x = np.random.default_rng(1).normal(theta, 2.5)
    x[theta == 91] *= factor
    audit = gl.Templates(x, theta, (87, 93), observables=["mll"], parameters=["mZ"]).audit()
    for demand in ("gap", "overlap"):
        assert audit[demand].text.startswith(f"mll at mZ = 91 is about {times}")
        assert "other units, or a wrong file?" in audit[demand].text


def test_templates_that_are_too_far_apart_are_not_said_to_be_in_other_units():
    for theta in ([0.1, 0.2, 0.3, 0.4, 0.9], np.geomspace(0.01, 1, 6)):
        finding = make(theta, width=0.01)
        assert "simulate" in finding.audit()["gap"].text
