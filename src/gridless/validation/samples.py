"""Samples whose theta is known, in every form that closure and coverage take them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridless.errors import InputError
from gridless.files.read import Sample
from gridless.likelihood.likelihood import Likelihood
from gridless.model.combined import Channels
from gridless.model.model import Model
from gridless.templates.arrays import Array, as_numbers, check_total
from gridless.templates.templates import Templates

ROUNDING = 1e-9  # of the range, by which a true value may miss a bound

Samples = Templates | Mapping[Any, Any] | Iterable[tuple[Any, Any]]


class KnownSample(NamedTuple):
    """Checked events (events, observables), their weights or None, and their true theta."""

    truth: Array
    x: Array
    weights: Array | None


class ChannelSample(NamedTuple):
    """The events of every channel, and their true theta."""

    truth: Array
    parts: Mapping[str, KnownSample]


AnySample = KnownSample | ChannelSample


def likelihood_of(model: Model | Channels, sample: AnySample) -> Likelihood:
    """The likelihood of a sample, of one model or of channels."""
    if isinstance(sample, KnownSample):
        assert isinstance(model, Model)
        return model.likelihood_of(sample.x, sample.weights)
    assert isinstance(model, Channels)
    parts = {name: likelihood_of(model[name], part) for name, part in sample.parts.items()}
    return model.summed(parts)


def samples_of(model: Model | Channels, samples: Any) -> Sequence[AnySample]:
    """The samples of a model, or of all channels at once."""
    if isinstance(model, Channels):
        return channel_samples(model, samples)
    return known_samples(model, samples)


def channel_samples(channels: Channels, samples: Mapping[str, Samples]) -> list[ChannelSample]:
    """The events of every sample in all channels, checked and selected as their models ask.

    Parameters
    ----------
    channels : Channels
        With the same parameters in each.
    samples : mapping from str to samples
        Those of each channel, at the same values of theta.

    Returns
    -------
    list of ChannelSample
        One per value of theta.
    """
    channels.check_names(samples, "samples")
    for name, model in channels.items():
        if model.grid.parameters != channels.grid.parameters:
            raise InputError(
                f"samples: channel {name} has not all of {', '.join(channels.grid.parameters)}; "
                "close on each channel alone"
            )
    by_name: dict[str, dict[Any, KnownSample]] = {}
    for name, model in channels.items():
        found = known_samples(model, samples[name])
        by_name[name] = {tuple(sample.truth.tolist()): sample for sample in found}
        if len(by_name[name]) < len(found):
            raise InputError(f"samples: channel {name} has two of one theta; give one of each")
    first, *others = by_name.values()
    for name, found_here in zip(list(by_name)[1:], others, strict=True):
        if set(found_here) != set(first):
            raise InputError(f"samples: channel {name} has other values of theta; give the same")
    return [
        ChannelSample(sample.truth, {name: own[theta] for name, own in by_name.items()})
        for theta, sample in first.items()
    ]


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
        of = "; give one of its models" if isinstance(model, Channels) else ""
        raise InputError(f"model: {type(model).__name__}{of or '; give what fit or load returns'}")
    names = model.grid.parameters
    known = []
    for theta, events in _pairs(samples):
        truth = np.atleast_1d(as_numbers(theta, "samples: a true value"))
        if truth.shape != (len(names),):
            raise InputError(
                f"samples: a true value {truth.tolist()}; give {', '.join(names)} of each sample"
            )
        _check_inside(model, truth)
        x, weights = events if isinstance(events, tuple) else (events, None)
        sample = KnownSample(truth, *model.events(x, weights))
        if sample.weights is not None:
            check_total(float(sample.weights.sum()))
        known.append(sample)
    if not known:
        raise InputError("samples: none; give at least one value of theta with its events")
    return known


def _check_inside(model: Model, truth: Array) -> None:
    """Refuse a true value that no estimate can have."""
    t = model.grid.to_unit(truth)
    for name, value, one, (low, high) in zip(
        model.grid.parameters, truth, t, model.grid.bounds, strict=True
    ):
        if not -ROUNDING <= one <= 1 + ROUNDING:
            raise InputError(
                f"samples: {name} = {value:g} is outside the bounds {low:g} to {high:g}, between "
                "which estimates are; leave the sample out, or fit with wider bounds"
            )


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
