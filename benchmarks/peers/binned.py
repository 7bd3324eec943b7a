"""Histogram templates: each bin's probability a polynomial in theta, minimised with iminuit.

The polynomials are fitted to the templates by plain least squares, which keeps their sum over the
bins at exactly 1 for every theta.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from iminuit import Minuit
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Trained:
    """Which observables, the edges of their bins, and Chebyshev coefficients (degree + 1, bins)."""

    columns: list[int]
    edges: tuple[Array, ...]
    coefficients: Array
    least: float
    notes: dict[str, Any] = field(default_factory=dict)


def train(
    x: Array,
    theta: Array,
    seed: int,  # noqa: ARG001
    degree: int = 3,
    bins: int = 50,
    columns: list[int] | None = None,
) -> Trained:
    """Count the templates' events in so many bins of each of the observables, or of some `columns`,
    and fit each bin over the templates."""
    columns = list(range(x.shape[1])) if columns is None else columns
    x = x[:, columns]
    # Of equal width where the events are; what is farther out is in the outermost bins.
    low, high = np.quantile(x, [0.001, 0.999], axis=0)
    edges = tuple(np.linspace(low, high, bins + 1)[1:-1].T)
    values, template = np.unique(theta, return_inverse=True)
    cells = bins ** x.shape[1]
    counts = np.bincount(template * cells + _bin(edges, x), minlength=len(values) * cells)
    share = counts.reshape(len(values), cells) / np.bincount(template)[:, None]
    powers = np.polynomial.chebyshev.chebvander(2 * values - 1, degree)
    coefficients = np.linalg.lstsq(powers, share, rcond=None)[0]
    # Less than an event per template cannot be told from none.
    return Trained(columns, edges, coefficients, 0.1 * len(values) / len(x))


def log_density(trained: Trained, x: Array, values: Array) -> Array:
    """log probability of the bin of each event."""
    return _log_p(trained, values).T[_bin(trained.edges, x[:, trained.columns])]


def curve(trained: Trained, x: Array, values: Array) -> Array:
    """The sum over bins."""
    return np.asarray(-_log_p(trained, values) @ _counts(trained, x))


def estimate(trained: Trained, x: Array) -> float:
    """The minimum by iminuit."""
    counts = _counts(trained, x)

    def cost(theta: float) -> float:
        return float(-_log_p(trained, np.array([theta]))[0] @ counts)

    minuit = Minuit(cost, theta=0.5)
    minuit.limits["theta"] = (0, 1)
    minuit.errordef = Minuit.LIKELIHOOD
    minuit.migrad()
    return float(minuit.values["theta"])


def _bin(edges: tuple[Array, ...], x: Array) -> Array:
    """Which bin an event is in, counted over all axes."""
    index = np.zeros(len(x), int)
    for column, inner in zip(x.T, edges, strict=True):
        index = index * (len(inner) + 1) + np.searchsorted(inner, column)
    return index


def _counts(trained: Trained, x: Array) -> Array:
    return np.bincount(
        _bin(trained.edges, x[:, trained.columns]), minlength=trained.coefficients.shape[1]
    )


def _log_p(trained: Trained, values: Array) -> Array:
    """log probability (values, bins) of every bin."""
    degree = len(trained.coefficients) - 1
    powers = np.polynomial.chebyshev.chebvander(2 * values - 1, degree)
    return np.asarray(np.log(np.maximum(powers @ trained.coefficients, trained.least)))
