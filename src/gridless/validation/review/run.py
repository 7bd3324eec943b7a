"""Running the review, question by question; interrupted, it goes on where it was."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from gridless import strict_json
from gridless.errors import InputError, check_kind
from gridless.files.sources import as_path
from gridless.files.write import write_whole
from gridless.likelihood.warnings import rule_of
from gridless.model.combined import Channels
from gridless.model.model import Model
from gridless.parallel import progress_bar
from gridless.results import printing
from gridless.results.warning import EstimateWarning
from gridless.templates.arrays import as_count, as_size
from gridless.templates.templates import Templates
from gridless.validation.limits import MAX_EXPERIMENTS
from gridless.validation.review import of_data, of_model
from gridless.validation.review.answer import (
    BAD,
    CAREFUL,
    GOOD,
    OPEN,
    Answer,
    Ask,
    Subject,
    of_each,
)

# In the order of the page; a further question is a function and a line.
QUESTIONS: dict[str, Ask] = {
    "bias": of_each(of_model.bias),
    "coverage": of_data.coverage,
    "bounds": of_data.bounds,
    "simulation": of_model.simulation,
    "data": of_each(of_data.data),
    "templates": of_each(of_model.templates),
    "probabilities": of_each(of_model.probabilities),
    "stability": of_each(of_data.stable),
    "groups": of_each(of_data.groups, of_data.channels),
    "expected": of_data.expected,
    "binned": of_each(of_data.binned),
    "reproducible": of_each(of_model.reproducible),
}


@dataclass(frozen=True, eq=False)
class Review(printing.Lines):
    """Answers to the twelve questions; `gl.review` makes it.

    Attributes
    ----------
    answers : dict of str to Answer
        By the name of the question.
    subject : Subject
        What was reviewed.

    Examples
    --------
    >>> Review({"bias": Answer("Is it unbiased?", "chi2/dof = 8/9", "good")}, None)
    good     bias: chi2/dof = 8/9
    """

    answers: dict[str, Answer]
    subject: Any

    @property
    def warnings(self) -> tuple[EstimateWarning, ...]:
        """Those of the estimate that is reviewed, observed or expected."""
        return () if self.subject is None else tuple(self.subject.estimate.warnings)

    @property
    def verdict(self) -> str:
        """The worst of all answers; with a warning of the estimate no better than careful, with one
        that forbids its use bad."""
        found = {answer.verdict for answer in self.answers.values()}
        found |= {BAD if rule_of(one.name).serious else CAREFUL for one in self.warnings}
        return next((one for one in (BAD, CAREFUL) if one in found), GOOD)

    def to_dict(self) -> dict[str, Any]:
        """The review in what JSON can hold."""
        return {
            "verdict": self.verdict,
            "answers": {name: asdict(answer) for name, answer in self.answers.items()},
            "warnings": [one._asdict() for one in self.warnings],
        }

    def __str__(self) -> str:
        lines = []
        for name, answer in self.answers.items():
            lines.append(f"{answer.verdict:8} {name}: {answer.text}")
            if answer.verdict != GOOD and answer.cure:
                lines.append(f"{'':8}   to do: {answer.cure}")
        return "\n".join([*lines, *printing.warning_lines(self.warnings)])

    __repr__ = __str__


def review(  # noqa: PLR0913
    model: Model | Channels,
    x: Any = None,
    weights: Any = None,
    *,
    by: Any = None,
    templates: Templates | Mapping[str, Templates] | None = None,
    events: float | Mapping[str, float] = 10_000,
    toys: int = 2_000,
    state: str | Path | None = None,
) -> Review:
    """Ask what a statistics committee asks, and answer with numbers.

    Parameters
    ----------
    model : Model or Channels
        The model, or those of several channels. Of these, the following are given by channel.
    x : array (events, observables), data frame or Sample, optional
        The observed events. Without them, questions about data stay open.
    weights : array (events,), optional
        Their weights.
    by : array (events,), optional
        The group of each event; by default quarters in their order.
    templates : Templates, optional
        What the model was fitted on: adds fits with other seeds, sizes, observables and halves, if
        it has no systematics and no backgrounds.
    events : float
        Without observed events: how many there will be; a number is that of every channel.
    toys : int
        Pseudo-experiments.
    state : str or Path, optional
        A file that keeps answers as they come. After an interruption the same call goes on.

    Returns
    -------
    Review
        Answers by name, each with a text, a verdict, a cure and numbers.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(1_000, seed=1), hidden=3, seed=1)
    >>> gl.review(model, events=1_000, toys=200).answers["data"].verdict
    'open'
    """
    if not isinstance(model, Channels):
        check_kind(model, Model, "model")
    as_count(toys, "toys", 100, MAX_EXPERIMENTS)
    state = None if state is None else as_path(state)
    subject = _subject(model, (x, weights, by, templates, events), toys)
    key = _key(subject)
    answers = _kept(state, key)
    with progress_bar("review", len(QUESTIONS)) as report:
        for name, ask in QUESTIONS.items():
            if name not in answers:
                answers[name] = ask(subject)
                if state is not None:
                    content = {"key": key, "answers": {n: asdict(a) for n, a in answers.items()}}
                    write_whole(state, strict_json.dumps(content).encode())
            report(name)
    return Review({name: answers[name] for name in QUESTIONS}, subject)


def _subject(model: Model | Channels, given: tuple[Any, ...], toys: int) -> Subject:
    """What was given, checked; of several channels by their names."""
    x, weights, by, templates, events = given
    if isinstance(model, Model):
        table = checked = None
        if x is not None:
            table, checked = model.events(x, weights)
        if templates is not None:
            check_kind(templates, Templates, "templates")
        return Subject(model, table, checked, by, templates, as_size(events), toys)
    if not isinstance(events, Mapping):
        events = dict.fromkeys(model, events)
    named = {"x": x, "weights": weights, "by": by, "templates": templates, "events": events}
    for name, one in named.items():
        if one is not None:
            model.check_names(one, name)
    parts = {
        name: _subject(one, tuple(None if g is None else g[name] for g in named.values()), toys)
        for name, one in model.items()
    }
    own: dict[str, Any] = {
        field: {name: getattr(part, field) for name, part in parts.items()}
        for field, one in (("x", x), ("weights", x), ("groups", by), ("templates", templates))
        if one is not None
    }
    return Subject(model, **own, events={n: p.events for n, p in parts.items()}, toys=toys)


def _key(subject: Subject) -> str:
    """What the answers depend on, as a checksum."""
    digest = sha256(str(subject.toys).encode())
    for name, one in subject.channels.items():
        digest.update(f"{name} {one.model.identity}".encode())
        for part in (one.x, one.weights, one.groups):
            array = np.asarray(0 if part is None else part)
            digest.update(str(array.dtype).encode() + np.ascontiguousarray(array).tobytes())
        digest.update(f"{one.templates is None} {one.events}".encode())
    return digest.hexdigest()


def _kept(state: Path | None, key: str) -> dict[str, Answer]:
    """Answers of an earlier call, if they are of the same subject."""
    if state is None or not state.is_file():
        return {}
    try:
        content = strict_json.loads(state.read_bytes(), str(state))
        if content["key"] != key:
            return {}
        found = {name: Answer(**answer) for name, answer in content["answers"].items()}
    except (InputError, OSError, KeyError, TypeError, AttributeError):
        return {}  # a damaged file costs time only
    known = {GOOD, CAREFUL, BAD, OPEN}
    return {n: a for n, a in found.items() if n in QUESTIONS and a.verdict in known}
