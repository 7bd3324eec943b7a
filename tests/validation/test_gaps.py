"""Gaps between templates: told where they are too wide for the observed events, and only there."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.cli.main import main
from gridless.examples import OneObservable, OnlyWidth, TwoParameters

EXAMPLE = OnlyWidth()


@pytest.fixture(scope="module")
def close(width_model):
    return width_model


@pytest.fixture(scope="module")
def far_apart():
    return gl.fit(EXAMPLE.templates(20_000, seed=1, at=(0.05, 0.5, 0.95)), hidden=6, seed=1)


def test_templates_that_are_close_have_none(close):
    found = gl.gaps(close, 4_000)
    assert len(found.gaps) == 9
    assert not found.wide
    assert found.advice == "the templates are close enough"
    estimate = close.likelihood(EXAMPLE.sample(0.3, 4_000, seed=2)).maximum()
    assert "wide_gap" not in {warning.name for warning in estimate.warnings}


def test_templates_that_are_far_apart_have_some(far_apart):
    found = gl.gaps(far_apart, 10_000)
    assert found.widest.ends == ("theta = 0.05", "theta = 0.5")
    assert found.widest.ratio > 2
    assert "between theta = 0.05 and theta = 0.5" in found.advice
    json.dumps(found.to_dict(), allow_nan=False)
    # What is open does not depend on the events; the statistical error does.
    assert gl.gaps(far_apart, 100).widest.ratio == pytest.approx(found.widest.ratio / 10)


def test_the_estimate_says_where_a_template_is_missing(far_apart):
    estimate = far_apart.likelihood(EXAMPLE.sample(0.25, 10_000, seed=2)).maximum()
    texts = [warning.text for warning in estimate.warnings if warning.name == "wide_gap"]
    assert len(texts) == 1
    assert "between theta = 0.05 and theta = 0.5" in texts[0]
    assert estimate.budget["theta"]["model"] > estimate.stat


def test_what_is_open_is_what_the_budget_says(far_apart):
    estimate = far_apart.expected(0.275, 10_000).maximum()
    found = gl.gaps(far_apart, 10_000).gaps[0]
    assert found.left_open == pytest.approx(estimate.budget["theta"]["model"], rel=0.5)
    assert found.stat == pytest.approx(estimate.stat, rel=0.5)


def test_of_several_parameters():
    model = gl.fit(TwoParameters().templates(1_000, seed=1, templates=5), hidden=6, seed=1)
    found = gl.gaps(model, 1_000)
    assert {gap.parameter for gap in found.gaps} == {"t1", "t2"}
    assert np.isfinite([gap.ratio for gap in found.gaps]).all()


def test_the_review_asks_for_a_template(far_apart, tmp_path):
    answer = gl.review(far_apart, events=10_000, toys=100)
    assert answer.answers["bias"].verdict == "bad"
    assert "simulate a template between theta = 0.05" in answer.answers["bias"].cure
    assert gl.write_review(tmp_path / "review.html", answer).is_file()


def test_what_cannot_be_asked_is_refused(close):
    with pytest.raises(gl.InputError, match="events: 0"):
        gl.gaps(close, 0)
    plain = gl.fit(
        OneObservable().templates(500, seed=1), hidden=2, epochs=2, calibrate=False, replicas=0
    )
    with pytest.raises(gl.InputError, match="calibrate=False"):
        gl.gaps(plain)


def test_the_command_tells_them(close, tmp_path):
    close.save(tmp_path / "m.safetensors")
    command = ["closure", str(tmp_path / "m.safetensors"), "--leave-one-out", "--events", "4000"]
    done = CliRunner().invoke(main, command)
    assert "the templates are close enough" in done.output
    done = CliRunner().invoke(main, [*command, "--json"])
    assert json.loads(done.stdout)["gaps"]["events"] == 4_000
