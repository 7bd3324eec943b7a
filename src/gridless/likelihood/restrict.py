"""Constraints and fixed parameters of a likelihood, as the command line and `closure` take them."""

from collections.abc import Mapping

import numpy as np

from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.grid import Grid


def restricted(
    likelihood: Likelihood,
    constrain: Mapping[str, tuple[float, float]] | None = None,
    fix: Mapping[str, float] | None = None,
) -> Likelihood:
    """The likelihood with Gaussian constraints, name -> (value, error), and with parameters held,
    name -> value.

    Examples
    --------
    >>> from gridless.examples import TwoParameters
    >>> example = TwoParameters()
    >>> likelihood = example.likelihood(example.sample((0.4, 0.6), 1_000, seed=1))
    >>> restricted(likelihood, {"t1": (0.4, 0.01)}, {"t2": 0.6})
    Likelihood of t1 in [0, 1] from 1,000 events, t1 = 0.4 +- 0.01
    """
    for name, (value, error) in (constrain or {}).items():
        likelihood = likelihood.constrain(name, value, error)
    return likelihood.fix(**fix) if fix else likelihood


def check_restricted(
    grid: Grid,
    constrain: Mapping[str, tuple[float, float]] | None = None,
    fix: Mapping[str, float] | None = None,
) -> None:
    """Refuse what `restricted` would refuse of a likelihood of these parameters, which need not be
    known yet."""
    flat = np.zeros((1,) * len(grid.parameters))
    restricted(Likelihood([Channel(flat, grid, 0)]), constrain, fix)
