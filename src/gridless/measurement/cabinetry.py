"""A measurement as the tuples that cabinetry's plots take; cabinetry itself is not needed."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridless.templates.arrays import Array

if TYPE_CHECKING:
    from gridless.measurement.estimate import MeasurementEstimate


class FitResults(NamedTuple):
    """The fields of `cabinetry.fit.FitResults`: for `visualize.pulls` and
    `visualize.correlation_matrix`."""

    bestfit: Array
    uncertainty: Array
    labels: list[str]
    corr_mat: Array
    best_twice_nll: float
    goodness_of_fit: float = -1
    minos_uncertainty: dict[str, tuple[float, float]] = {}  # noqa: RUF012
    minuit_obj: Any = None


class RankingResults(NamedTuple):
    """The fields of `cabinetry.fit.RankingResults`: for `visualize.ranking`. Impacts are those of
    nuisance parameters moved by their errors before and after the fit."""

    bestfit: Array
    uncertainty: Array
    labels: list[str]
    prefit_up: Array
    prefit_down: Array
    postfit_up: Array
    postfit_down: Array


def fit_results(estimate: "MeasurementEstimate") -> FitResults:
    """Values, errors and correlations of all parameters, those of interest first."""
    every = [estimate[name] for name in estimate.names]
    return FitResults(
        np.array([one.value for one in every]),
        np.sqrt(np.diag(estimate.full_covariance)),
        list(estimate.names),
        np.asarray(estimate.full_correlation),
        estimate.chi2,
        -1 if estimate.p_value is None else estimate.p_value,
        {
            one.name: (one.interval[0] - one.value, one.interval[1] - one.value)
            for one in estimate.results
        },
    )


def ranking_results(estimate: "MeasurementEstimate", parameter: str) -> RankingResults:
    """Impacts on a parameter: its covariance with a nuisance parameter over the variance of that,
    times the error of the nuisance parameter; without free ones, which have no error before."""
    place = estimate.names.index(parameter)
    kept = [one for one in estimate.nuisances if one.constraint is not None]
    columns = [estimate.names.index(one.name) for one in kept]
    covariance = estimate.full_covariance
    slopes = covariance[place, columns] / np.diag(covariance)[columns]
    before = np.array([one.constraint for one in kept], float)
    after = np.array([one.error for one in kept], float)
    return RankingResults(
        np.array([one.value for one in kept], float),
        after,
        [one.name for one in kept],
        slopes * before,
        -slopes * before,
        slopes * after,
        -slopes * after,
    )
