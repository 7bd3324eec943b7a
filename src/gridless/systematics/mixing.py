"""Backgrounds mixed into templates."""

from collections.abc import Sequence

import numpy as np

from gridless.systematics.inputs import Background
from gridless.templates.arrays import weights_or_ones
from gridless.templates.templates import Templates

MOST_EVENTS = 20_000  # of a background in each template


def mixed(templates: Templates, backgrounds: Sequence[Background]) -> Templates:
    """The templates with the backgrounds in each of them, to train a network on.

    The same background events, 20,000 at the most, are in every template: they say
    nothing of theta.
    """
    if not backgrounds:
        return templates
    signal = 1 - sum(one.share for one in backgrounds)
    totals = templates.totals()
    xs, thetas, weights = [templates.x], [templates.theta], [templates.event_weights]
    for one in backgrounds:
        step = -(-len(one.x) // MOST_EVENTS)
        x = one.x[::step]
        w = weights_or_ones(one.weights, len(one.x))[::step]
        if not w.sum() > 0:
            x, w = one.x, weights_or_ones(one.weights, len(one.x))
        for total, value in zip(totals, templates.grid.values, strict=True):
            xs.append(x)
            thetas.append(np.repeat(value[None], len(x), axis=0))
            weights.append(w * (one.share / signal * total / w.sum()))
    return Templates(
        np.concatenate(xs),
        np.concatenate(thetas),
        templates.grid.bounds,
        np.concatenate(weights),
        parameters=templates.grid.parameters,
        query=templates.query,
        files=templates.files,
        labels=templates.grid.labels,
    )
