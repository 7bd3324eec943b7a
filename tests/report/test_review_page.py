"""The page of a review: its verdict, its result, its figures."""

from dataclasses import replace

import pytest

import gridless as gl
from gridless.examples import Nuisances
from gridless.likelihood.warnings import EstimateWarning
from gridless.report.review_page import FIGURES
from gridless.validation.review.answer import Answer, Subject
from gridless.validation.review.run import QUESTIONS, Review

GOOD = {"bias": Answer("Is it unbiased?", "chi2/dof = 8/9", "good")}


@pytest.fixture
def subject(varied):
    grid = replace(varied.grid, labels={"theta": "$m_W$ [GeV]"})
    return Subject(replace(varied, grid=grid), Nuisances().sample(0.4, 500, seed=2))


def warn(subject, *warnings):
    """Let the estimate have these warnings and no others."""
    given = replace(subject.estimate, warnings=warnings)
    object.__setattr__(subject.likelihood, "_estimate", given)


@pytest.mark.parametrize(
    ("name", "verdict", "sentence"),
    [
        (None, "good", "Nothing was found that speaks against it."),
        ("audit", "careful", "It stands, with remarks"),
        ("bad_fit", "bad", "Not ready yet"),
    ],
)
def test_warnings_of_the_estimate_count_in_the_verdict(subject, tmp_path, name, verdict, sentence):
    warn(subject, *([] if name is None else [EstimateWarning(name, "soft: a reason")]))
    review = Review(GOOD, subject)
    assert review.verdict == review.to_dict()["verdict"] == verdict
    page = gl.write_review(tmp_path / "r.html", review).read_text()
    assert sentence in page
    report = gl.write_report(tmp_path / "m.html", subject.model, subject.likelihood).read_text()
    for text in (str(review), page, report):
        assert ("soft: a reason" in text) == (name is not None)


def test_the_result_has_units_and_tables(subject, tmp_path):
    page = gl.write_review(tmp_path / "r.html", Review(GOOD, subject)).read_text()
    label = "<i>m</i><sub><i>W</i></sub>"
    assert f"{label} = " in page
    assert "GeV; 500 events, p-value" in page
    assert f"impact on {label} [GeV]" in page
    assert "<pre" not in page
    assert page.count('id="result"') == 1


def test_groups_say_that_errors_are_statistical(subject):
    figure = FIGURES["groups"](QUESTIONS["groups"](subject).numbers, subject)
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert told == ["statistical error", "all together, statistical error"]
