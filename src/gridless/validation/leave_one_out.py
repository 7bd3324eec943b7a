"""Leave one template out: closure between templates, from the simulation at hand.

The likelihood is calibrated without the mean of one template, which then is the data. Its pull
has the statistics of that template, of the others, and what they leave open between them: it
tells whether interpolation can be trusted. Nothing is simulated, and no event is looked at again.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.calibration.calibration import calibrate
from gridless.calibration.moments import Moments
from gridless.errors import InputError, check_kind
from gridless.fitting import fit
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.model import Model
from gridless.model.observed import channel_of_sum
from gridless.model.record import FitOptions
from gridless.parallel import run
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid
from gridless.templates.templates import Templates
from gridless.validation.closure import Closure

LEAST_TEMPLATES = 4  # with fewer nothing is left to interpolate


def leave_one_out(
    model: Model, templates: Templates | None = None, executor: Any = None
) -> Closure:
    """Estimate every inner template by a likelihood that does not know it.

    Parameters
    ----------
    model : Model
        A calibrated model. Its network is kept: what is tested is the calibration between
        templates, which decides whether estimates are biased.
    templates : Templates, optional
        The simulated events. With them the network too is trained anew without each template,
        which takes a fit for each.
    executor : concurrent.futures.Executor or dask client, optional
        Runs those fits; without one, this process does.

    Returns
    -------
    Closure
        One sample per inner template. chi2/dof far above 1: templates are too far apart, or one of
        them is not what it says. Nuisance parameters are held at 0, which `held` names: intervals
        lack what a measurement has of them.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(2_000, seed=1), hidden=3, seed=1)
    >>> found = gl.leave_one_out(model)
    >>> found.dof, found.chi2 / found.dof < 3
    (8, True)
    """
    check_kind(model, Model, "model")
    inner = inner_templates(model.grid)
    if model.calibration is None:
        raise InputError("leave_one_out: the model was fitted with calibrate=False; fit it anew")
    if len(model.grid) < LEAST_TEMPLATES or not len(inner):
        raise InputError(
            f"leave_one_out: {len(model.grid)} templates; at least {LEAST_TEMPLATES} are needed, "
            "with one inside of the others"
        )
    if templates is None:
        moments = model.reweighting.moments
        estimates = [_without(moments, model.grid, int(k)) for k in inner]
    else:
        tasks = [(templates, model.options, int(k)) for k in inner]
        estimates = run(_refitted, tasks, executor, "leave one out")
    intervals = [[one.interval for one in e.results] for e in estimates]
    found = np.array(intervals)
    return Closure(model.grid.values[inner], tuple(estimates), found, held=model.nuisances)


def inner_templates(grid: Grid) -> NDArray[np.int64]:
    """The templates that lie inside of the others, in every parameter."""
    t = grid.unit
    inside = (t > t.min(axis=0) + 1e-9) & (t < t.max(axis=0) - 1e-9)
    return np.flatnonzero(inside.all(axis=1))


def _without(moments: Moments, grid: Grid, k: int) -> Estimate:
    """The estimate of template k by the calibration of the others."""
    rest = np.arange(len(grid)) != k
    calibration = calibrate(moments.of(rest))
    events = float(moments.effective[k])
    y = events * calibration.whitened(moments.mean[k][None])[0]
    less = Grid(grid.values[rest], grid.bounds, grid.parameters)
    channel = channel_of_sum(calibration, less, y, events, round(events))
    return Likelihood([channel]).maximum()


def mean_without(moments: Moments, k: int) -> tuple[Array, Array]:
    """The mean of the summary at template k as the others predict it, and its covariance."""
    rest = np.arange(len(moments.t)) != k
    found = calibrate(moments.of(rest))
    t = moments.t[k][None]
    covariance = found.mean_covariance(t)[0]
    # From the summaries that it has whitened anew to those of the moments.
    return found.centre + found.mean(t)[0] @ found.back, found.back.T @ covariance @ found.back


def _refitted(templates: Templates, options: FitOptions, k: int) -> Estimate:
    """The estimate of template k by a model that was fitted without it."""
    own = templates.template == k
    weights = templates.weights
    less = Templates(
        templates.x[~own],
        templates.theta[~own],
        templates.grid.bounds,
        None if weights is None else weights[~own],
        parameters=templates.grid.parameters,
        query=templates.query,
    )
    model = fit(less, **dict(options))
    kept = None if weights is None else weights[own]
    return model.likelihood_of(templates.x[own], kept).maximum()
