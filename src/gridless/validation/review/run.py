"""Running the review, question by question; interrupted, it goes on where it was."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from gridless import strict_json
from gridless.errors import InputError, check_kind
from gridless.files.table import as_path
from gridless.files.write import write_whole
from gridless.model.model import Model
from gridless.parallel import progress_bar
from gridless.results.printing import Lines
from gridless.templates.arrays import as_count, as_size
from gridless.templates.templates import Templates
from gridless.validation.limits import MAX_EXPERIMENTS
from gridless.validation.review import of_data, of_model
from gridless.validation.review.answer import BAD, CAREFUL, GOOD, OPEN, Answer, Subject

# In the order of the page; a further question is a function and a line.
QUESTIONS: dict[str, Callable[[Subject], Answer]] = {
    "bias": of_model.bias,
    "coverage": of_data.coverage,
    "bounds": of_data.bounds,
    "simulation": of_model.simulation,
    "data": of_data.data,
    "templates": of_model.templates,
    "probabilities": of_model.probabilities,
    "stability": of_data.stable,
    "groups": of_data.groups,
    "expected": of_data.expected,
    "binned": of_data.binned,
    "reproducible": of_model.reproducible,
}


@dataclass(frozen=True, eq=False)
class Review(Lines):
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
    def verdict(self) -> str:
        """The worst of all."""
        found = [answer.verdict for answer in self.answers.values()]
        return next((one for one in (BAD, CAREFUL) if one in found), GOOD)

    def to_dict(self) -> dict[str, Any]:
        """The review in what JSON can hold."""
        return {
            "verdict": self.verdict,
            "answers": {name: asdict(answer) for name, answer in self.answers.items()},
        }

    def __str__(self) -> str:
        lines = []
        for name, answer in self.answers.items():
            lines.append(f"{answer.verdict:8} {name}: {answer.text}")
            if answer.verdict != GOOD and answer.cure:
                lines.append(f"{'':8}   to do: {answer.cure}")
        return "\n".join(lines)

    __repr__ = __str__


def review(  # noqa: PLR0913
    model: Model,
    x: Any = None,
    weights: Any = None,
    *,
    by: Any = None,
    templates: Templates | None = None,
    events: float = 10_000,
    toys: int = 2_000,
    state: str | Path | None = None,
) -> Review:
    """Ask what a statistics committee asks, and answer with numbers.

    Parameters
    ----------
    model : Model
        The model.
    x : array (events, observables), data frame or Sample, optional
        The observed events. Without them, questions about data stay open.
    weights : array (events,), optional
        Their weights.
    by : array (events,), optional
        The group of each event; by default quarters in their order.
    templates : Templates, optional
        What the model was fitted on: adds fits with other seeds, sizes, observables and halves.
    events : float
        Without observed events: how many there will be.
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
    check_kind(model, Model, "model")
    if templates is not None:
        check_kind(templates, Templates, "templates")
    as_count(toys, "toys", 100, MAX_EXPERIMENTS)
    events = as_size(events)
    state = None if state is None else as_path(state)
    table = given = None
    if x is not None:
        table, given = model.events(x, weights)
    subject = Subject(model, table, given, by, templates, events, toys)
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


def _key(subject: Subject) -> str:
    """What the answers depend on, as a checksum."""
    digest = sha256(subject.model.identity.encode())
    for part in (subject.x, subject.weights, subject.groups):
        array = np.asarray(0 if part is None else part)
        digest.update(str(array.dtype).encode() + np.ascontiguousarray(array).tobytes())
    digest.update(f"{subject.templates is None} {subject.events} {subject.toys}".encode())
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
