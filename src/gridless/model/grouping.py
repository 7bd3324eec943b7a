"""The likelihood of groups of events: every group a channel with a name."""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.arrays import Array

MAX_GROUPS = 100  # more are a mistake: a number that differs from event to event

Evaluate = Callable[[Array, Array | None], Likelihood]


def grouped(likelihood_of: Evaluate, table: Array, weights: Array | None, by: Any) -> Likelihood:
    """The sum of the likelihoods of the groups, each evaluated once.

    Parameters
    ----------
    likelihood_of : callable
        The likelihood of events and weights.
    table, weights : array (events, observables), array (events,) or None
        The events.
    by : array (events,)
        The group of each: numbers or texts.
    """
    labels = np.asarray(by)
    if labels.shape != (len(table),):
        raise InputError(
            f"by: {labels.shape} for {len(table)} events that are used; give one group per event"
        )
    values, number = np.unique(labels, return_inverse=True)
    if len(values) > MAX_GROUPS:
        raise InputError(
            f"by: {len(values):,} different values; give at most {MAX_GROUPS} groups, such as "
            "run - run % 1000"
        )
    parts = []
    for k, value in enumerate(values):
        own = number == k
        name = f"{value:g}" if np.issubdtype(values.dtype, np.floating) else str(value)
        part = likelihood_of(table[own], None if weights is None else weights[own])
        parts.append(part.named(name))
    return reduce(add, parts)
