"""What a question of the review gets: a number, a verdict, and what to do."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gridless.files.read import Sample
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.model import Model
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates

GOOD = "good"
CAREFUL = "careful"
BAD = "bad"
OPEN = "open"  # could not be asked of what was given
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
    """What is reviewed.

    Attributes
    ----------
    model : Model
        The model.
    x, weights : array (events, observables) or None, array (events,) or None
        The observed events, checked and selected.
    groups : array (events,), optional
        The group of each event.
    templates : Templates, optional
        What the model was fitted on.
    events : float
        How many events are observed, or will be.
    toys : int
        Pseudo-experiments.
    """

    model: Model
    x: Array | None = None
    weights: Array | None = None
    groups: Any = None
    templates: Templates | None = None
    events: float = 10_000.0
    toys: int = 2_000

    @cached_property
    def likelihood(self) -> Likelihood:
        """Of the observed events; without them the expected one in the middle of the templates."""
        if self.x is not None:
            return self.model.likelihood_of(self.x, self.weights)
        values = self.model.grid.values
        return self.model.expected(0.5 * (values.min(axis=0) + values.max(axis=0)), self.events)

    @property
    def sample(self) -> Sample:
        """The observed events, with how they were selected."""
        assert self.x is not None
        return Sample(self.x, self.weights, self.model.query, "observed events", None)

    @property
    def estimate(self) -> Estimate:
        """Of the likelihood."""
        return self.likelihood.maximum()

    @property
    def place(self) -> Array:
        """The estimate of the parameters of interest, between the bounds."""
        grid = self.model.grid
        values = np.array([self.estimate[name].value for name in grid.parameters])
        return np.asarray(values.clip(grid.bounds[:, 0], grid.bounds[:, 1]))

    @property
    def plain(self) -> bool:
        """Whether there are neither systematics nor backgrounds."""
        return self.model.measurement is None

    @property
    def number(self) -> float:
        """Events that are observed, in effective numbers."""
        if self.x is None:
            return self.events
        if self.weights is None:
            return float(len(self.x))
        return float(np.sum(self.weights) ** 2 / np.sum(self.weights**2))


def by_p_value(p: float) -> str:
    """The verdict of a p-value."""
    return BAD if p < BAD_P_VALUE else CAREFUL if p < CAREFUL_P_VALUE else GOOD


def by_size(size: float, careful: float, bad: float) -> str:
    """The verdict of a number that should be small."""
    return BAD if size > bad else CAREFUL if size > careful else GOOD
