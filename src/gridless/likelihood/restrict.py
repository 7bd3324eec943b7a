"""Constraints and fixed parameters of a likelihood, as the command line and `closure` take them."""

from collections.abc import Mapping

from gridless.likelihood.likelihood import Likelihood


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
