"""The tuples that cabinetry's plots take; cabinetry itself is not needed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class FitResults(NamedTuple):
    """The fields of `cabinetry.fit.FitResults`: for `visualize.pulls` and
    `visualize.correlation_matrix`. Nuisance parameters are in units of their constraints."""

    bestfit: Array
    uncertainty: Array
    labels: list[str]
    corr_mat: Array
    best_twice_nll: float
    goodness_of_fit: float = -1
    minos_uncertainty: dict[str, tuple[float, float]] = {}  # noqa: RUF012


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


class ScanResults(NamedTuple):
    """The fields of `cabinetry.fit.ScanResults`: for `visualize.scan`. `delta_nlls` is twice the
    rise of -log L."""

    name: str
    bestfit: float
    uncertainty: float
    parameter_values: Array
    delta_nlls: Array
