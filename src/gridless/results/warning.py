"""A reason to doubt an estimate."""

from typing import NamedTuple


class EstimateWarning(NamedTuple):
    """A reason to doubt an estimate.

    Attributes
    ----------
    name : str
        One of those in docs/warnings.md.
    text : str
        What it means for this estimate.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> estimate = example.likelihood(example.quantiles(0.4, 10)).maximum()
    >>> [warning.name for warning in estimate.warnings]
    ['near_bound', 'near_bound']
    """

    name: str
    text: str
