"""What a question of the review gets: a number, a verdict, and what to do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gridless.files.read import Sample
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.combined import Channels
from gridless.model.model import Model
from gridless.templates.arrays import Array

GOOD = "good"
CAREFUL = "careful"
BAD = "bad"
OPEN = "open"  # could not be asked of what was given
ALL_CHANNELS = "all channels"  # where an answer has one of each channel, that of all together
BAD_P_VALUE = 1e-3
CAREFUL_P_VALUE = 0.01


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Attributes
    ----------
    question : str
        What was asked.
    text : str
        What was found, in a sentence with its number.
    verdict : str
        "good", "careful", "bad", or "open" where something was not given.
    cure : str
        What to do, if it is not good.
    numbers : dict
        What was found, for machines and for the figure.
    number : str
        The one that decides, in a few words.
    """

    question: str
    text: str
    verdict: str
    cure: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    number: str = ""


@dataclass(frozen=True, eq=False)
class Subject:
    """What is reviewed: a model, or those of several channels.

    Attributes
    ----------
    model : Model or Channels
        The model. Of several channels, the following are by channel.
    x, weights : array (events, observables) or None, array (events,) or None
        The observed events, checked and selected.
    groups : array (events,), optional
        The group of each event.
    templates : Templates, optional
        What the model was fitted on.
    events : float
        How many events will be observed, if none were.
    toys : int
        Pseudo-experiments.
    together : Estimate, optional
        Of a channel: the estimate of all of them.
    """

    model: Any
    x: Any = None
    weights: Any = None
    groups: Any = None
    templates: Any = None
    events: Any = 10_000.0
    toys: int = 2_000
    together: Estimate | None = None

    @cached_property
    def channels(self) -> dict[str, "Subject"]:
        """Every channel; of one model itself, without a name."""
        if not isinstance(self.model, Channels):
            return {"": self}
        return {name: self._channel(name) for name in self.model}

    def _channel(self, name: str) -> "Subject":
        given = ("x", "weights", "groups", "templates", "events")
        every = {field: getattr(self, field) for field in given}
        own: dict[str, Any] = {f: None if one is None else one[name] for f, one in every.items()}
        return replace(self, model=self.model[name], **own)

    @cached_property
    def likelihood(self) -> Likelihood:
        """Of the observed events; without them the expected one in the middle of the templates."""
        model: Model | Channels = self.model
        if self.x is None:
            return model.expected(_middle(model), self.events)
        if isinstance(model, Channels):
            return model.summed({name: one.likelihood for name, one in self.channels.items()})
        return model.likelihood_of(self.x, self.weights)

    @property
    def sample(self) -> Sample:
        """The observed events of a channel, with how they were selected."""
        assert self.x is not None
        return Sample(self.x, self.weights, self.model.query, "observed events", None)

    @property
    def estimate(self) -> Estimate:
        """Of the likelihood."""
        return self.likelihood.maximum()

    @property
    def place(self) -> Array:
        """The estimate of the parameters of interest, that of all channels, between the bounds."""
        grid, estimate = self.model.grid, self.together or self.estimate
        values = np.array([estimate[name].value for name in grid.parameters])
        return np.asarray(values.clip(grid.bounds[:, 0], grid.bounds[:, 1]))

    @property
    def plain(self) -> bool:
        """Whether a channel has neither systematics nor backgrounds."""
        return self.model.measurement is None

    @property
    def number(self) -> Any:
        """Events that are observed, in effective numbers; of several channels those of each."""
        if isinstance(self.model, Channels):
            return {name: one.number for name, one in self.channels.items()}
        if self.x is None:
            return float(self.events)
        if self.weights is None:
            return max(1.0, float(len(self.x)))
        return max(1.0, float(np.sum(self.weights) ** 2 / np.sum(self.weights**2)))


Ask = Callable[[Subject], Answer]


def of_each(ask: Ask, of_all: Ask | None = None) -> Ask:
    """A question about a channel as one about all of them, with `of_all` that of their sum."""

    def asked(subject: Subject) -> Answer:
        if list(subject.channels) == [""]:
            return ask(subject)
        together = subject.estimate
        found = {n: ask(replace(one, together=together)) for n, one in subject.channels.items()}
        if of_all is not None:
            found[ALL_CHANNELS] = of_all(subject)
        return _joined(found)

    return asked


def _joined(found: Mapping[str, Answer]) -> Answer:
    """The answers of channels as one: the worst verdict, and what each of them says."""
    order = (GOOD, OPEN, CAREFUL, BAD)
    verdict = max((one.verdict for one in found.values()), key=order.index)
    cures = {name: one.cure if one.verdict == verdict else "" for name, one in found.items()}
    return Answer(
        next(iter(found.values())).question,
        _by_name({name: one.text for name, one in found.items()}),
        verdict,
        _by_name(cures),
        {name: one.numbers for name, one in found.items()},
        _by_name({name: one.number for name, one in found.items()}),
    )


def _by_name(texts: Mapping[str, str]) -> str:
    """Texts with the names of their channels; one that all have without."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{name}: {text}" for name, text in texts.items() if text)


def _middle(model: Model | Channels) -> Array:
    """The middle of the templates; of several channels that of the common bounds."""
    edges = model.grid.bounds.T if isinstance(model, Channels) else model.grid.values
    return np.asarray(0.5 * (edges.min(axis=0) + edges.max(axis=0)))


def by_p_value(p: float) -> str:
    """The verdict of a p-value."""
    return BAD if p < BAD_P_VALUE else CAREFUL if p < CAREFUL_P_VALUE else GOOD


def by_size(size: float, careful: float, bad: float) -> str:
    """The verdict of a number that should be small."""
    return BAD if size > bad else CAREFUL if size > careful else GOOD
