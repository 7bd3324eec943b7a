"""A report is a list of sections, each made of what is there."""

import base64
import csv
import io
import json
import re
from dataclasses import replace

import pytest
from helpers import downloads

import gridless as gl
from gridless.examples import Nuisances, OneObservable, TwoParameters
from gridless.report import measurement_sections, sections
from gridless.report.page import Section

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture(scope="module")
def channels(varied):
    """A channel with systematics and a background, and one without."""
    plain = gl.fit(OneObservable().templates(500, seed=7), hidden=3, epochs=2, replicas=0)
    return gl.Channels({"soft": varied, "hard": plain})


@pytest.fixture(scope="module")
def together(channels):
    x = {"soft": Nuisances().sample(0.4, 500, seed=2), "hard": OneObservable().sample(0.4, 300, 3)}
    return channels.likelihood(x)


def names(page):
    """The sections of a page."""
    return [name for name in sections.SECTIONS if f'id="{name}"' in page.read_text()]


def test_a_model_fitted_in_python_has_audit_and_distributions(model, tmp_path):
    page = gl.write_report(tmp_path / "r.html", model)
    assert names(page) == ["check", "grid", "inputs", "training", "prior", "provenance"]
    assert "20,000 events at 10 values of theta" in page.read_text()


def test_arguments_that_are_something_else_are_refused(model, tmp_path):
    page, x = tmp_path / "r.html", OneObservable().sample(0.4, 500, seed=1)
    wrong = [
        ((page, model, x), r"likelihood: ndarray; give what model\.likelihood"),
        ((model, page), "path: Model; give the name of a file; it comes first"),
        ((page, x), "model: ndarray; give what fit or load returns"),
        ((page, model, None, x), "closure: ndarray; give what closure returns"),
    ]
    for arguments, text in wrong:
        with pytest.raises(gl.InputError, match=text):
            gl.write_report(*arguments)
    assert not page.exists()


def test_the_maximum_is_found_once(model, tmp_path, monkeypatch):
    likelihood = model.likelihood(OneObservable().sample(0.4, 500, seed=1))
    count = []
    maximum = type(likelihood).maximum

    def counted(self):
        count.append(1)
        return maximum(self)

    monkeypatch.setattr(type(likelihood), "maximum", counted)
    monkeypatch.setattr(measurement_sections, "draw_likelihood", lambda *_, **__: None)
    monkeypatch.setattr(measurement_sections, "draw_data", lambda *_, **__: None)
    monkeypatch.setattr(measurement_sections, "compare", lambda *_: {})
    page = gl.write_report(tmp_path / "r.html", model, likelihood)
    assert "measurement" in names(page)
    assert len(count) == 1


def test_two_parameters_are_shown_as_contours(tmp_path):
    example = TwoParameters()
    model = gl.fit(example.templates(400, seed=1, templates=3), hidden=(3,), epochs=2, replicas=0)
    likelihood = model.likelihood(example.sample((0.5, 0.5), 2_000, seed=2))
    page = gl.write_report(tmp_path / "r.html", model, likelihood)
    assert names(page) == [
        "data",
        "measurement",
        "budget",
        "check",
        "grid",
        "inputs",
        "training",
        "provenance",
    ]
    assert "Contours of t1 and t2" in page.read_text()


def test_a_new_section_is_a_function_and_a_line(model, tmp_path, monkeypatch):
    def greeting(subject):
        return Section("A greeting", text=f"hello {subject.model.grid.parameters[0]}")

    monkeypatch.setitem(sections.SECTIONS, "greeting", greeting)
    assert "hello theta" in gl.write_report(tmp_path / "r.html", model).read_text()


@pytest.mark.parametrize("command", [None, "gridless report m.safetensors"])
def test_the_command_is_shown_if_there_is_one(model, tmp_path, command):
    text = gl.write_report(tmp_path / "r.html", model, command=command).read_text()
    assert ("this page" in text) == (command is not None)


def test_the_card_has_the_result_and_no_doubt(model, tmp_path):
    example = OneObservable()
    likelihood = model.likelihood(example.sample(0.5, 500, seed=1))
    closure = gl.closure(model, {t: example.sample(t, 500, seed=2) for t in (0.4, 0.6)})
    text = gl.write_report(tmp_path / "r.html", model, likelihood, closure).read_text()
    assert "Measurement of θ" in text
    assert " ± 0." in text
    assert "From 500 events" in text
    assert "No reason was found to doubt this result." in text
    assert text.index("No reason") < text.index("Data against simulation</h2>")


def test_the_card_has_every_warning_with_its_cure(model, tmp_path):
    likelihood = model.likelihood(OneObservable().sample(1.0, 500, seed=1) + 3)
    estimate = likelihood.maximum()
    text = gl.write_report(tmp_path / "r.html", model, likelihood).read_text()
    assert "Do not use this result yet" in text
    for warning in estimate.warnings:
        assert f"<b>{warning.name}.</b>" in text
    assert "widen the bounds and simulate there" in text
    assert "There was no closure test." in text


def test_selected_events_are_counted_of_all(model, tmp_path):
    x = OneObservable().sample(0.5, 500, seed=1)[:, 0]
    likelihood = gl.read_likelihood(model, {"x": x}, where="x > 0")
    count = int((x > 0).sum())
    assert str(likelihood.maximum()).splitlines()[1].startswith(f"  {count} of 500 events")
    assert likelihood.maximum().to_dict()["events_read"] == 500
    text = gl.write_report(tmp_path / "r.html", model, likelihood).read_text()
    assert f"From {count} of 500 events" in text


def test_tables_can_be_downloaded(model, tmp_path):
    likelihood = model.likelihood(OneObservable().sample(0.5, 500, seed=1))
    text = gl.write_report(tmp_path / "r.html", model, likelihood).read_text()
    found = re.findall(
        r'href="data:(text/csv|application/json);base64,([^"]+)" download="(\w+)', text
    )
    names = {name for _, _, name in found}
    assert {"result", "estimate_with_intervals", "events_in_every_bin", "provenance"} <= names
    for kind, content, name in found:
        decoded = base64.b64decode(content).decode()
        if kind == "application/json":
            assert json.loads(decoded)
        elif name == "events_in_every_bin":
            rows = list(csv.DictReader(io.StringIO(decoded)))
            assert (
                sum(float(row["data"]) for row in rows)
                == likelihood.histograms()["x"].values().sum()
            )


def test_every_channel_has_its_own_number_of_events(channels, together, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(sections, "draw_check", lambda *_, events, **__: drawn.append(events))
    files = {
        name: [gl.FileRecord("d.root", events, "0f" * 32, 900)]
        for name, events in (("soft", 500), ("hard", 300))
    }
    page = gl.write_report(tmp_path / "r.html", channels, together, data=files)
    assert drawn == [500, 300]
    _, soft, hard = page.read_text().split("Versions, files and commands: ")[-3:]
    counts = [re.findall("[0-9]+ of 900 events", text) for text in (soft, hard)]
    assert counts == [["500 of 900 events"], ["300 of 900 events"]]
    with pytest.raises(gl.InputError, match="data: list; give it by channel"):
        gl.write_report(tmp_path / "r.html", channels, together, data=files["soft"])


def test_nuisance_parameters_say_what_they_are(channels, together, tmp_path):
    estimate = together.maximum()
    page = gl.write_report(tmp_path / "r.html", channels, together).read_text()
    found = {one["nuisance"]: one for one in downloads(page)["what_nuisance_parameters_are"]}
    assert list(found) == [one.name for one in estimate.nuisances]
    assert {one["what it is"] for one in found.values()} == {"systematic", "background"}
    assert {one["channel"] for one in found.values()} == {"soft"}
    assert found["jes"]["share"] is None
    example = Nuisances()
    one, after = found["background"], estimate["background"]
    assert (one["share"], one["share_error"]) == (example.share, example.share_error)
    assert one["share_after"] == pytest.approx(example.share + example.share_error * after.value)
    assert (
        "What nuisance parameters are" in gl.write_report(tmp_path / "m.html", channels).read_text()
    )


def test_impacts_are_on_the_label_of_the_parameter(varied, tmp_path):
    grid = replace(varied.grid, labels={"theta": "$m_W$ [GeV]"})
    labelled = replace(varied, grid=grid)
    likelihood = labelled.likelihood(Nuisances().sample(0.4, 500, seed=2))
    page = gl.write_report(tmp_path / "r.html", labelled, likelihood).read_text()
    assert "impact on <i>m</i><sub><i>W</i></sub> [GeV]" in page


def test_notes_of_a_closure_are_parts_of_a_sentence(varied, tmp_path):
    closure = gl.closure(varied, {0.4: Nuisances().sample(0.4, 500, seed=2)})
    page = gl.write_report(tmp_path / "r.html", varied, closure=closure).read_text()
    assert "; pull = (estimated - true) / error without constraints" in page
    assert "1 sample of known parameters" in page
