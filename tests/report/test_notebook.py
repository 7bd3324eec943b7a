"""Every result shows itself in a notebook, as HTML that is well formed and escaped."""

from html.parser import HTMLParser

import pytest

import gridless as gl
from gridless.examples import OneObservable, TwoParameters

VOID = {"br", "line", "rect", "polyline", "polygon", "circle"}


class Checker(HTMLParser):
    """Refuses tags that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def results():
    """One of everything, with names that are hard on HTML."""
    example = OneObservable()
    templates = gl.Templates(
        example.templates(500, seed=1).x,
        example.templates(500, seed=1).theta,
        (0, 1),
        observables=["a<b"],
        parameters=["p&q"],
    )
    model = gl.fit(templates, hidden=3, epochs=2, replicas=4)
    x = example.sample(0.4, 500, seed=2)
    likelihood = model.likelihood(x)
    closure = gl.closure(model, {0.4: x, 0.6: example.sample(0.6, 500, seed=3)})
    return {
        "templates": templates,
        "audit": templates.audit(),
        "model": model,
        "likelihood": likelihood,
        "estimate": likelihood.maximum(),
        "parameter": likelihood.maximum()["p&q"],
        "closure": closure,
        "coverage": gl.coverage(model, {0.4: x}, 5, 100),
        "bootstrap": gl.bootstrap(model, x, toys=5),
        "sample": gl.read({"a<b": x[:, 0]}, "a<b"),
        "histogram": likelihood.histograms()["a<b"],
    }


NAMES = [
    *("templates", "audit", "model", "likelihood", "estimate", "parameter", "closure"),
    *("coverage", "bootstrap", "sample", "histogram"),
]


@pytest.mark.parametrize("name", NAMES)
def test_results_show_themselves(results, name):
    text = results[name]._repr_html_()
    Checker(text)
    assert "<b>" not in text
    assert "p&q" not in text


def test_a_likelihood_of_two_parameters_has_a_curve_of_each_and_contours():
    example = TwoParameters()
    likelihood = example.likelihood(example.sample((0.4, 0.6), 500, seed=1))
    text = likelihood._repr_html_()
    Checker(text)
    assert text.count("<svg") == 3
    assert text.count("<polygon") == 2
    assert "<script" not in text  # values under the pointer without one
