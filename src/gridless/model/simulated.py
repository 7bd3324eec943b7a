"""Some of the simulated events, kept in the model: simulation at any theta is made of them."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gridless import distributed
from gridless.templates.arrays import Array

MAX_KEPT_EVENTS = 50_000  # that a model keeps: a few megabytes
MAX_KEPT_NUMBERS = (
    1_000_000  # that they may have together: of many observables fewer events are kept
)


@dataclass(frozen=True, eq=False)
class SimulatedEvents:
    """A random part of the templates' events.

    Attributes
    ----------
    x : array (events, observables)
        In float32, as files hold them.
    template : array (events,)
        The number of the template of each event.
    weights : array (events,)
        Their weights, of either sign; every template has a mean of 1.
    """

    x: Array
    template: NDArray[np.int32]
    weights: Array

    def __len__(self) -> int:
        return len(self.x)

    def check(self, templates: int, observables: int) -> None:
        """Refuse, with a ValueError, arrays that fit neither each other nor the grid."""
        events = len(self.template)
        if self.x.shape != (events, observables) or self.weights.shape != (events,):
            raise ValueError("simulated: events, templates and weights differ in number")
        if not 0 < events <= MAX_KEPT_EVENTS:
            raise ValueError(f"simulated: {events} events")
        if self.template.min() < 0 or self.template.max() >= templates:
            raise ValueError("simulated: a template that is not in the grid")
        totals = np.bincount(self.template, self.weights, templates)
        if (totals[np.unique(self.template)] <= 0).any():
            raise ValueError("simulated: a template without weight")


def keep_events(
    x: Array, template: NDArray[np.int64], weights: Array, seed: int
) -> SimulatedEvents:
    """A random part of the events, of the first rank's where there are several.

    Parameters
    ----------
    x, template, weights : array (events, observables), array (events,), array (events,)
        The templates' events, the number of the template of each, and their weights.
    seed : int
        Which part.
    """
    count = min(len(x), MAX_KEPT_EVENTS, max(1_000, MAX_KEPT_NUMBERS // x.shape[1]))
    some = np.sort(np.random.default_rng(seed).choice(len(x), count, replace=False))
    w = weights[some]
    number = template[some]
    totals = np.bincount(number, w)
    sizes = np.bincount(number)
    # Of a template whose few kept weights cancel, none is kept.
    good = totals > 0
    mean = np.where(good, totals / sizes.clip(min=1), 1.0)
    use = good[number]
    rows = (x[some][use], number[use].astype(np.int32), (w / mean[number])[use])
    if distributed.size() == 1:
        kept_x, kept_template, kept_weights = rows
    else:
        width = x.shape[1]
        table = np.hstack([rows[0], rows[1][:, None], rows[2][:, None]])
        size = int(distributed.of_first(torch.tensor([len(table)]))[0])
        first = torch.zeros(size, width + 2, dtype=torch.float64)
        if distributed.rank() == 0:
            first = torch.as_tensor(table)
        table = distributed.of_first(first).numpy()
        kept_x, kept_template, kept_weights = table[:, :width], table[:, width], table[:, -1]
    return SimulatedEvents(
        np.asarray(kept_x, np.float32),
        np.asarray(kept_template, np.int32),
        np.asarray(kept_weights, np.float64),
    )
