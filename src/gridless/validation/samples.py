"""Samples whose theta is known, in every form that closure and coverage take them."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gridless.errors import InputError
from gridless.files.read import Sample
from gridless.model.model import Model
from gridless.templates.arrays import Array, as_numbers
from gridless.templates.templates import Templates

Samples = Templates | Mapping[Any, Any] | Iterable[tuple[Any, Any]]


class KnownSample(NamedTuple):
    """Checked events (events, observables), their weights or None, and their true theta."""

    truth: Array
    x: Array
    weights: Array | None


def known_samples(model: Model, samples: Samples) -> list[KnownSample]:
    """The events of every sample, checked and selected as the model asks.

    Parameters
    ----------
    model : Model
        Its query says which observables and events are used.
    samples : Templates, mapping or iterable of pairs
        True theta, a tuple for several parameters, and events: an array, a data frame, a `Sample`,
        or a pair (events, weights).

    Returns
    -------
    list of KnownSample
        One per sample.
    """
    if not isinstance(model, Model):
        raise InputError(f"model: {type(model).__name__}; give what fit or load returns")
    names = model.grid.parameters
    known = []
    for theta, events in _pairs(samples):
        truth = np.atleast_1d(as_numbers(theta, "samples: a true value"))
        if truth.shape != (len(names),):
            raise InputError(
                f"samples: a true value {truth.tolist()}; give {', '.join(names)} of each sample"
            )
        x, weights = events if isinstance(events, tuple) else (events, None)
        known.append(KnownSample(truth, *model.events(x, weights)))
    if not known:
        raise InputError("samples: none; give at least one value of theta with its events")
    return known


def _pairs(samples: Samples) -> Iterable[tuple[Any, Any]]:
    """Pairs of the true theta and the events."""
    if isinstance(samples, Templates):
        return _templates_apart(samples)
    pairs = samples.items() if isinstance(samples, Mapping) else samples
    try:
        return [(theta, events) for theta, events in pairs]
    except (TypeError, ValueError):
        raise InputError(
            f"samples: {type(samples).__name__}; give Templates, or pairs of true theta and events"
        ) from None


def _templates_apart(templates: Templates) -> Iterable[tuple[Array, Sample]]:
    """Every template as a sample, which remembers how it was read."""
    for number, theta in enumerate(templates.grid.values):
        own = templates.template == number
        weights = None if templates.weights is None else templates.weights[own]
        label = templates.grid.label(number)
        yield theta, Sample(templates.x[own], weights, templates.query, label, None)
