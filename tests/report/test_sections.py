"""A report is a list of sections, each made of what is there."""

import pytest

import gridless as gl
from gridless.examples import OneObservable, TwoParameters
from gridless.report import sections
from gridless.report.page import Section


def names(page):
    """The sections of a page."""
    return [name for name in sections.SECTIONS if f'id="{name}"' in page.read_text()]


def test_a_model_fitted_in_python_has_audit_and_distributions(model, tmp_path):
    page = gl.write_report(tmp_path / "r.html", model)
    assert names(page) == ["grid", "inputs", "training", "prior", "provenance"]
    assert "20,000 events at 10 values of theta" in page.read_text()


def test_the_maximum_is_found_once(model, tmp_path, monkeypatch):
    likelihood = model.likelihood(OneObservable().sample(0.4, 500, seed=1))
    count = []
    maximum = type(likelihood).maximum

    def counted(self):
        count.append(1)
        return maximum(self)

    monkeypatch.setattr(type(likelihood), "maximum", counted)
    monkeypatch.setattr(sections, "draw_likelihood", lambda *_: None)
    page = gl.write_report(tmp_path / "r.html", model, likelihood)
    assert "measurement" in names(page)
    assert len(count) == 1


def test_two_parameters_are_shown_as_contours(tmp_path):
    example = TwoParameters()
    model = gl.fit(example.templates(400, seed=1, templates=3), hidden=(3,), epochs=2, replicas=0)
    likelihood = model.likelihood(example.sample((0.5, 0.5), 2_000, seed=2))
    page = gl.write_report(tmp_path / "r.html", model, likelihood)
    assert names(page) == ["measurement", "grid", "inputs", "training", "provenance"]
    assert "t2: " in page.read_text()


def test_a_new_section_is_a_function_and_a_line(model, tmp_path, monkeypatch):
    def greeting(subject):
        return Section("A greeting", text=f"hello {subject.model.grid.parameters[0]}")

    monkeypatch.setitem(sections.SECTIONS, "greeting", greeting)
    assert "hello theta" in gl.write_report(tmp_path / "r.html", model).read_text()


@pytest.mark.parametrize("command", [None, "gridless report m.safetensors"])
def test_the_command_is_shown_if_there_is_one(model, tmp_path, command):
    text = gl.write_report(tmp_path / "r.html", model, command=command).read_text()
    assert ("this page" in text) == (command is not None)
