"""What a report is about: the thing that its sections and its card take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.model import Model
from gridless.results.warning import EstimateWarning
from gridless.templates.query import FileRecord
from gridless.validation.closure import Closure


@dataclass(frozen=True)
class Subject:
    """What a report is about; sections take what they need of it.

    `channels` has the model of each channel by name, or the only one by ""; `model` is the one that
    a section of one channel is about. `estimate` is the maximum of `likelihood`, computed once.
    `level` is the confidence level of the wider interval, `command` what was typed to make the
    page, `data` the observed files of each channel, with how many of their events it has,
    `experiment` a label for every figure, such as "Private work".
    """

    model: Model
    likelihood: Likelihood | None = None
    estimate: Estimate | None = None
    closure: Closure | None = None
    level: float = 0.95
    command: str | None = None
    data: Mapping[str, Sequence[FileRecord]] = field(default_factory=dict)
    experiment: str | None = None
    channels: Mapping[str, Model] = field(default_factory=dict)

    def of(self, channel: str) -> Subject:
        """The same with the model and the files of one channel, for a section about it alone."""
        files = {channel: self.data.get(channel, ())}
        return replace(self, model=self.channels[channel], data=files)

    @property
    def events(self) -> int | None:
        """How many observed events `model` has; None without any."""
        channels = () if self.likelihood is None else self.likelihood.channels
        return sum(c.events for c in channels if c.model == self.model.identity) or None

    @property
    def warnings(self) -> tuple[EstimateWarning, ...]:
        """Those of the estimate, or of the models where there is none."""
        if self.estimate is not None:
            return self.estimate.warnings
        return tuple(
            one._replace(text=f"{name}: {one.text}") if name else one
            for name, model in self.channels.items()
            for one in model.warnings
        )
