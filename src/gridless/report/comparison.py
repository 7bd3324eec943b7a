"""Observed events against the simulation in bins: at the best fit, and before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gridless.errors import InputError, check_kind
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.measurement.estimate import MeasurementEstimate
from gridless.measurement.likelihood import MeasurementLikelihood
from gridless.model.model import Model
from gridless.templates.arrays import Array
from gridless.templates.histograms import Histogram

LEAST_EXPECTED = 5.0  # events per bin that a ratio is drawn and a chi2 taken of
MERGE_BELOW = 25.0  # expected events per bin on average: with fewer, bins are merged in pairs
LEAST_BINS = 10  # that are never merged
STEP = 0.5  # of the error of a parameter, by which it is moved to see what bins do


class Comparison(NamedTuple):
    """Observed events and the simulation at the estimate, in the same bins.

    Attributes
    ----------
    observed, expected : Histogram
        Numbers of events; those of the simulation are scaled to the total of the data. The variance
        of what is expected has the statistics of the simulation and what the parameters may move
        after the fit, with their correlations.
    chi2 : float
        Sum of (observed - expected)^2 / (variance of data and simulation) over bins of at least
        five events; what parameters may move does not enter: they are at their best.
    bins : int
        The number of these bins.
    before : Histogram or None
        Expected before the fit: nuisance parameters at 0, with the spread of their constraints;
        parameters of interest, of which nothing is known before, at the estimate. Free nuisance
        parameters have no spread before the fit. None without nuisance parameters.
    """

    observed: Histogram
    expected: Histogram
    chi2: float
    bins: int
    before: Histogram | None = None


@dataclass(frozen=True)
class Expected:
    """Shares of events in the bins of an observable, with the statistics of the simulation, and how
    far independent sources of uncertainty move them (sources, bins)."""

    shares: Histogram
    shifts: Array

    def merged(self, count: int) -> Expected:
        """The same with every `count` bins taken together; shifts of a source add up."""
        starts = np.arange(0, self.shifts.shape[1], count)
        return Expected(self.shares.merged(count), np.add.reduceat(self.shifts, starts, axis=1))

    def histogram(self, total: float) -> Histogram:
        """Numbers of events out of a total, with every uncertainty."""
        one = self.shares * total
        variances = one.variances() + total**2 * (self.shifts**2).sum(axis=0)
        return Histogram(one.axes, one.total, one.values(), variances)


def compare(model: Model, likelihood: Likelihood) -> dict[str, Comparison]:
    """Data against simulation before and after the fit, for every observable.

    Parameters
    ----------
    model : Model
        The model; it has distributions of its templates.
    likelihood : Likelihood
        Of observed events, made by this model alone or in a sum.

    Returns
    -------
    dict of str to Comparison

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(2_000, seed=1), hidden=3, replicas=0, seed=1)
    >>> found = gl.compare(model, model.likelihood(example.sample(0.4, 1_000, seed=2)))
    >>> found["x"].chi2 / found["x"].bins < 2
    True
    """
    check_kind(model, Model, "model")
    check_kind(likelihood, Likelihood, "likelihood")
    own = [c for c in likelihood.channels if c.model == model.identity and c.observed is not None]
    if not own:
        raise InputError(
            "likelihood: it has no events of this model in bins; make it with "
            "model.likelihood(x) of a model that has a summary of its templates"
        )
    binned = own[0].observed
    for channel in own[1:]:
        binned = binned and channel.observed and binned + channel.observed
    assert binned is not None
    values = _values(model, likelihood)
    covariance = _covariance(model, likelihood.maximum())
    after = _expected(model, values, covariance)
    before = None
    if model.nuisances and model.binned:
        nominal = values | dict.fromkeys(model.nuisances, 0.0)
        before = _expected(model, nominal, _constraints(model))
    found = {}
    for name, observed in binned.histograms().items():
        merge = 1
        while len(observed.axes[0]) > LEAST_BINS and (
            observed.total / len(observed.axes[0]) < MERGE_BELOW
        ):
            observed, merge = observed.merged(2), 2 * merge
        total = observed.total
        simulated = after[name].merged(merge)
        shares = simulated.shares * total
        variance = shares.values() * _spread(observed) + shares.variances()
        use = shares.values() > LEAST_EXPECTED
        off = (observed.values() - shares.values())[use] ** 2 / variance[use]
        found[name] = Comparison(
            observed,
            simulated.histogram(total),
            float(off.sum()),
            int(use.sum()),
            None if before is None else before[name].merged(merge).histogram(total),
        )
    return found


def _spread(observed: Histogram) -> float:
    """Variance of a weighted count over the count: 1 without weights."""
    total = float(observed.values().sum())
    return float(observed.variances().sum()) / total if total > 0 else 1.0


def _values(model: Model, likelihood: Likelihood) -> dict[str, float]:
    """The estimate of each parameter and nuisance parameter of the model; of one that is held,
    where it is; of one that was taken out, the middle of its range."""
    estimate = likelihood.maximum()
    found = dict(zip(model.grid.parameters, model.grid.bounds.mean(axis=1).tolist(), strict=True))
    found |= dict.fromkeys(model.nuisances, 0.0)
    if isinstance(likelihood, MeasurementLikelihood):
        found |= {name: value for name, value in likelihood.held.items() if name in found}
    known = estimate.names if isinstance(estimate, MeasurementEstimate) else estimate.parameters
    return found | {name: estimate[name].value for name in known if name in found}


def _covariance(model: Model, estimate: Estimate) -> dict[tuple[str, str], float]:
    """The covariance after the fit of all parameters that the model has."""
    if isinstance(estimate, MeasurementEstimate):
        names, matrix = estimate.names, estimate.full_covariance
    else:
        names = estimate.parameters
        matrix = np.sum(list(estimate.covariances.values()), axis=0)
    own = {*model.grid.parameters, *model.nuisances}
    return {
        (first, second): float(matrix[i, j])
        for i, first in enumerate(names)
        for j, second in enumerate(names)
        if first in own and second in own
    }


def _constraints(model: Model) -> dict[tuple[str, str], float]:
    """The covariance before the fit of nuisance parameters that have a constraint."""
    known = () if model.measurement is None else model.measurement.nuisances
    return {(one.name, one.name): one.constraint**2 for one in known if one.constraint is not None}


def _expected(
    model: Model, values: dict[str, float], covariance: dict[tuple[str, str], float]
) -> dict[str, Expected]:
    """The simulation at these values, and how far each combination of parameters that varies on its
    own moves it."""
    names = list(dict.fromkeys(first for first, _ in covariance))
    matrix = np.array([[covariance.get((a, b), 0.0) for b in names] for a in names])
    if not names or not np.isfinite(matrix).all():
        names, matrix = [], np.zeros((0, 0))
    nominal = _at(model, values)
    sizes, axes = np.linalg.eigh(matrix) if names else (np.zeros(0), np.zeros((0, 0)))
    moves = axes * np.sqrt(sizes.clip(min=0))  # (names, sources)
    slopes = [_slopes(model, values, name, matrix[i, i] ** 0.5) for i, name in enumerate(names)]
    return {
        observable: Expected(
            shares,
            sum(
                (np.outer(moves[i], slope[observable]) for i, slope in enumerate(slopes)),
                np.zeros((len(names), len(shares.axes[0]))),
            ),
        )
        for observable, shares in nominal.items()
    }


def _slopes(model: Model, values: dict[str, float], name: str, error: float) -> dict[str, Array]:
    """What bins change per unit of a parameter."""
    low = high = values[name]
    step = STEP * error
    if name in model.grid.parameters:
        least, most = model.grid.bounds[model.grid.parameters.index(name)]
        low, high = max(low - step, least), min(high + step, most)
    else:
        low, high = low - step, high + step
    if not high > low:
        return {key: 0 * one.values() for key, one in _at(model, values).items()}
    below, above = (_at(model, values | {name: value}) for value in (low, high))
    return {key: (above[key].values() - below[key].values()) / (high - low) for key in above}


def _at(model: Model, values: dict[str, float]) -> dict[str, Histogram]:
    theta = [values[name] for name in model.grid.parameters]
    return model.histograms(theta, {name: values[name] for name in model.nuisances})
