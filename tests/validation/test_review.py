"""The review: twelve answers, faults that it finds, pages, and going on after an interruption."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.cli.main import main
from gridless.examples import Nuisances, OneObservable, TwoObservables
from gridless.report.review_page import _figures
from gridless.validation.review import run as run_module
from gridless.validation.review.answer import Answer, Subject
from gridless.validation.review.run import QUESTIONS
from gridless.validation.stability import Stability, Variant

EXAMPLE = TwoObservables()


@pytest.fixture(scope="module")
def templates():
    return EXAMPLE.templates(4_000, seed=1)


@pytest.fixture(scope="module")
def good(templates):
    return gl.fit(templates, hidden=6, seed=1)


@pytest.fixture(scope="module")
def observed():
    return EXAMPLE.sample(0.4, 4_000, seed=3)


def test_of_a_right_model_and_right_data(good, observed, tmp_path):
    found = gl.review(good, observed, toys=500)
    assert list(found.answers) == list(QUESTIONS)
    verdicts = {name: answer.verdict for name, answer in found.answers.items()}
    assert "bad" not in verdicts.values(), str(found)
    assert verdicts["stability"] == "open"
    json.dumps(found.to_dict(), allow_nan=False)
    page = gl.write_review(tmp_path / "review.html", found, "gridless review").read_text()
    assert page.count("<svg") >= 8
    assert "Do the total intervals cover" in page
    assert "Bounds and few events" in page
    assert "Not asked: 1 of 12 questions." in page


def test_without_data(good, tmp_path):
    found = gl.review(good, events=1_000, toys=200)
    assert found.answers["data"].verdict == "open"
    assert "expected of 1,000 events" in found.answers["expected"].text
    assert gl.write_review(tmp_path / "review.html", found).is_file()


def test_at_a_bound_errors_and_groups_tell_nothing(good):
    found = gl.review(good, EXAMPLE.sample(0.0, 2_000, seed=3) - 2, toys=200)
    for name in ("simulation", "groups"):
        assert found.answers[name].verdict == "open", name
        assert "bound" in found.answers[name].text + found.answers[name].cure


def test_of_good_data_of_few_events_with_weights_nothing_about_data_is_bad(good):
    weights = np.random.default_rng(1).gamma(1.0, 1.0, 40)
    for seed in range(8):
        subject = Subject(good, EXAMPLE.sample(0.5, 40, seed=seed), weights, toys=200)
        for name in ("data", "expected"):
            answer = QUESTIONS[name](subject)
            assert answer.verdict != "bad", f"{name}, seed {seed}: {answer.text}"


def test_intervals_that_are_too_long_are_no_more_than_a_reason_to_look(good):
    subject = Subject(good, EXAMPLE.sample(0.5, 400, seed=1), toys=500)
    estimate = subject.estimate
    for factor, verdict in ((1.0, "good"), (2.0, "careful"), (0.5, "bad")):
        one = replace(estimate.results[0], budget={"stat": factor * estimate.error})
        stretched = replace(estimate, results=(one,))
        object.__setattr__(subject.likelihood, "_estimate", stretched)
        assert QUESTIONS["coverage"](subject).verdict == verdict


@pytest.mark.parametrize("events", [20, 2_000])
def test_a_good_estimate_at_a_bound_is_no_more_than_a_reason_to_look(good, events):
    data = [EXAMPLE.sample(0.0, events, seed=seed) for seed in range(20)]
    subjects = [Subject(good, x, toys=300) for x in data]
    pinned = [one for one in subjects if one.estimate["theta"].at_bound]
    assert pinned
    assert QUESTIONS["coverage"](pinned[0]).verdict != "bad"
    assert QUESTIONS["expected"](pinned[0]).verdict == "careful"


def test_with_systematics_coverage_and_bounds_are_answered(varied):
    subject = Subject(varied, Nuisances().sample(0.4, 500, seed=2), toys=200)
    assert QUESTIONS["coverage"](subject).verdict == "good"
    answer = QUESTIONS["bounds"](subject)
    assert answer.verdict in ("good", "careful")
    assert list(answer.numbers) == ["theta"]


def test_data_that_are_not_simulated_are_found(good, observed):
    strange = observed.copy()
    strange[:400, 1] = strange[:400, 1] * 0.1 + 2.0
    assert QUESTIONS["data"](Subject(good, strange, toys=200)).verdict == "bad"
    shifted = observed.copy()
    shifted[:1_000, 0] += 0.5
    assert gl.review(good, shifted, toys=200).verdict == "bad"


def test_stability_of_a_small_fit(observed):
    small = EXAMPLE.templates(1_000, seed=4)
    model = gl.fit(small, hidden=3, epochs=3, seed=1)
    found = gl.stability(model, small, observed)
    names = [variant.name for variant in found.variants]
    assert "half 2 of the simulation" in names
    assert "without x2" in names
    assert max(np.abs(variant.pull).max() for variant in found.variants) < 5
    assert "difference" in str(found)


def test_fits_that_go_together_have_a_p_value_that_holds():
    """Ten fits that differ in the same way are one: the chi2 of all is no chi2."""
    random, found = np.random.default_rng(1), []
    for _ in range(2_000):
        same = [np.array([v]) for v in (0.4, 0.02, random.normal(0, 0.01), 0.01)]
        variants = tuple(Variant(f"seed {i}", *same) for i in range(10))
        found.append(Stability(("theta",), variants).p_value)
    assert (np.array(found) < 0.05).mean() < 0.05
    alone = Stability(("theta",), (Variant("seed 1", *(np.array([v]) for v in (0.4, 1, 0, 1))),))
    assert alone.p_value == 1


def test_it_goes_on_after_an_interruption(good, tmp_path, monkeypatch):
    state, asked, real = tmp_path / "state", [], ("templates", "expected", "reproducible")

    def watch(name, ask):
        def asking(subject):
            if name == "templates" and "templates" not in asked:
                asked.append(name)
                raise KeyboardInterrupt
            asked.append(name)
            # What takes long is answered at once: here it matters what is asked again.
            return ask(subject) if name in real else Answer("?", name, "good")

        return asking

    watched = {name: watch(name, ask) for name, ask in QUESTIONS.items()}
    monkeypatch.setattr(run_module, "QUESTIONS", watched)
    with pytest.raises(KeyboardInterrupt):
        gl.review(good, toys=200, state=state)
    before = list(asked)
    gl.review(good, toys=200, state=state)
    assert asked.count("bias") == 1
    assert asked.count("templates") == 2
    assert len(asked) == len(QUESTIONS) + 1
    assert before == asked[: len(before)]
    state.write_text("{")
    assert len(gl.review(good, toys=200, state=state).answers) == 12


def test_the_command(good, observed, tmp_path):
    good.save(tmp_path / "m.safetensors")
    np.savez(tmp_path / "d.npz", x1=observed[:, 0], x2=observed[:, 1], run=np.arange(4_000))
    page = tmp_path / "r.html"
    files = [str(tmp_path / name) for name in ("m.safetensors", "d.npz")]
    flags = ["--toys", "200", "-o", str(page), "--by", "run - run % 2000"]
    done = CliRunner().invoke(main, ["review", *files, *flags, "--json"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.output)
    assert set(content["answers"]) == set(QUESTIONS)
    assert list(content["answers"]["groups"]["numbers"]["groups"]) == ["0", "2000"]
    assert page.is_file()
    assert not (tmp_path / "r.html.state").exists()


@pytest.fixture(scope="module")
def channels():
    soft = gl.fit(EXAMPLE.templates(1_000, seed=1), hidden=3, epochs=3, seed=1)
    hard = gl.fit(OneObservable().templates(1_000, seed=2), hidden=3, epochs=3, seed=2)
    return gl.Channels({"soft": soft, "hard": hard})


@pytest.fixture(scope="module")
def both():
    return {"soft": EXAMPLE.sample(0.4, 500, seed=3), "hard": OneObservable().sample(0.4, 800, 4)}


@pytest.fixture(scope="module")
def reviewed(channels, both):
    return gl.review(
        channels, both, toys=200, by={n: np.arange(len(x)) % 2 for n, x in both.items()}
    )


def test_of_channels(channels, reviewed, tmp_path):
    assert list(reviewed.answers) == list(QUESTIONS)
    assert "bad" not in {answer.verdict for answer in reviewed.answers.values()}, str(reviewed)
    groups = reviewed.answers["groups"].numbers
    assert list(groups) == ["soft", "hard", "all channels"]
    assert list(groups["hard"]["groups"]) == ["0", "1"]
    assert list(groups["all channels"]["groups"]) == ["soft", "hard"]
    before = channels.expected(reviewed.subject.place, {"soft": 500, "hard": 800}).maximum()
    found = reviewed.answers["expected"].numbers["theta"]["expected"]
    assert found == pytest.approx(before.error)
    page = gl.write_review(tmp_path / "review.html", reviewed).read_text()
    assert "The channels soft, hard of " in page
    assert "1,300 observed events." in page
    assert page.count("<svg") >= 14
    figures = _figures("data", reviewed.answers["data"], reviewed.subject)
    for name, figure in zip(("soft", "hard"), (figures[0], figures[-1]), strict=True):
        observable = channels[name].observables[0 if name == "soft" else -1]
        alone = gl.draw_data(channels[name], reviewed.subject.likelihood, observable)
        lines = [one.axes[0].texts[0].get_text() for one in (figure, alone)]
        assert lines[0] == lines[1]


def test_a_channel_is_asked_as_one_model_is(channels, both, reviewed):
    alone = Subject(channels["soft"], *channels["soft"].events(both["soft"]))
    # What does not depend on the estimate of the other is the same.
    for name in ("templates", "probabilities", "binned"):
        assert reviewed.answers[name].numbers["soft"] == QUESTIONS[name](alone).numbers


def test_channels_that_do_not_agree_are_told(channels, both):
    x = both | {"hard": both["hard"] + 0.4}
    told = QUESTIONS["groups"](Subject(channels, x, dict.fromkeys(x), events=dict.fromkeys(x)))
    assert told.verdict == "bad"
    assert told.cure == "all channels: find out what differs before combining them"
    with pytest.raises(gl.InputError, match="nothing for channel hard"):
        gl.review(channels, {"soft": both["soft"]}, toys=200)


def test_the_command_of_channels(channels, both, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "QUESTIONS", {"expected": QUESTIONS["expected"]})
    channels.save(tmp_path / "m.safetensors")
    np.savez(tmp_path / "s.npz", x1=both["soft"][:, 0], x2=both["soft"][:, 1])
    np.savez(tmp_path / "h.npz", x=both["hard"][:, 0])
    model, page = str(tmp_path / "m.safetensors"), str(tmp_path / "r.html")
    files = [f"soft={tmp_path}/s.npz", f"hard={tmp_path}/h.npz"]
    done = CliRunner().invoke(main, ["review", model, *files, "-o", page, "--json"])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.output)["answers"]) == {"expected"}
    done = CliRunner().invoke(main, ["review", model, files[0], "-o", page])
    assert done.exit_code == 2
    assert "DATA: nothing for channel hard" in done.output
