"""The page of a review: its figures."""

from dataclasses import replace

import pytest

from gridless.examples import Nuisances
from gridless.report.review_page import FIGURES
from gridless.validation.review.answer import Subject
from gridless.validation.review.run import QUESTIONS


@pytest.fixture
def subject(varied):
    grid = replace(varied.grid, labels={"theta": "$m_W$ [GeV]"})
    return Subject(replace(varied, grid=grid), Nuisances().sample(0.4, 500, seed=2))


def test_groups_say_that_errors_are_statistical(subject):
    figure = FIGURES["groups"](QUESTIONS["groups"](subject).numbers, subject)
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert told == ["statistical error", "all together, statistical error"]
