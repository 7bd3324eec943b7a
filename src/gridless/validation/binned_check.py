"""A check that does not trust the network's density: a binned fit of the learnt score.

The score at the estimate is an observable like any other. Templates and observed events are
counted in bins of it. Shares of bins are combined to the few numbers that tell theta: the mean
score, and what else differs between templates by more than noise. These numbers are smooth curves
through the templates alone; their fit to the observed shares gives theta. It shares with the result
nothing but the choice of the observable. Both use the same events, so that their difference is
known much better than either of them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gridless.calibration.calibration import Calibration, noise_scale
from gridless.calibration.mean_curve import MeanCurve, fit_mean_curve
from gridless.calibration.moments import Moments
from gridless.curves.newton import minimise
from gridless.curves.polynomials import terms
from gridless.errors import InputError, check_kind
from gridless.model.model import Model
from gridless.results.printing import Lines
from gridless.templates.arrays import Array, check_total

BINS = {1: (6, 12, 16), 2: (4, 6), 3: (3, 4)}  # of each score, by the number of parameters
# Of what noise alone reaches, from which on differences between templates count.
BEYOND_NOISE = 1.2


@dataclass(frozen=True)
class BinnedFit:
    """One binned fit.

    Attributes
    ----------
    bins, degree : int
        Bins in all, and the highest degree of the curves, which are held back from using it.
    value, error : array (parameters,)
        The estimate, with the statistics of observed events and of templates.
    difference, spread : array (parameters,)
        What it differs from the result by, and how much it should.
    """

    bins: int
    degree: int
    value: Array
    error: Array
    difference: Array
    spread: Array

    @property
    def pull(self) -> Array:
        """The difference in units of its spread."""
        return np.asarray(self.difference / self.spread)


@dataclass(frozen=True)
class BinnedCheck(Lines):
    """Binned fits of the learnt score with several numbers of bins; `gl.binned_check` makes it.

    Attributes
    ----------
    parameters : tuple of str
        Their names.
    fits : tuple of BinnedFit
        One for each number of bins.
    result : array (parameters,)
        The estimate that is checked.

    Examples
    --------
    >>> fit = BinnedFit(6, 2, *(np.array([v]) for v in (0.41, 0.02, 0.01, 0.01)))
    >>> BinnedCheck(("theta",), (fit,), np.array([0.4])).worst
    1.0
    """

    parameters: tuple[str, ...]
    fits: tuple[BinnedFit, ...]
    result: Array

    @property
    def worst(self) -> float:
        """The largest difference in units of its spread."""
        return float(max(np.abs(fit.pull).max() for fit in self.fits))

    def to_dict(self) -> dict[str, Any]:
        """The check in what JSON can hold."""
        rows = [{name: _plain(value) for name, value in vars(fit).items()} for fit in self.fits]
        return {"parameters": list(self.parameters), "fits": rows, "worst": _plain(self.worst)}

    def __str__(self) -> str:
        lines = []
        for fit in self.fits:
            for p, name in enumerate(self.parameters):
                lines.append(
                    f"{fit.bins:4d} bins: {name} = {fit.value[p]:.6g} +- {fit.error[p]:.2g}, "
                    f"difference {fit.difference[p]:+.2g} +- {fit.spread[p]:.2g}"
                )
        return "\n".join(lines)

    __repr__ = __str__


def _plain(value: Any) -> Any:
    """Numbers in what JSON can hold: None for those that are not known."""
    array = np.asarray(value).astype(object)
    array[~np.isfinite(value)] = None
    return array.tolist()


def binned_check(model: Model, x: Any, weights: Any = None) -> BinnedCheck:
    """Fit bins of the learnt score, and compare with the result.

    Parameters
    ----------
    model : Model
        A calibrated model that keeps simulated events.
    x : array (events, observables), data frame or Sample
        The observed events.
    weights : array (events,), optional
        Their weights.

    Returns
    -------
    BinnedCheck

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(2_000, seed=1), hidden=3, seed=1)
    >>> gl.binned_check(model, example.sample(0.4, 2_000, seed=2)).worst < 4
    True
    """
    check_kind(model, Model, "model")
    if model.calibration is None:
        raise InputError("binned_check: needs a calibrated model; fit it with calibrate=True")
    if model.measurement is not None:
        raise InputError("binned_check: of models without systematics and backgrounds; fit one")
    table, given = model.events(x, weights)
    w = np.ones(len(table)) if given is None else given
    if not w.any():
        raise InputError("binned_check: no event, or all weights are 0; give observed events")
    check_total(float(w.sum()))
    best = model.likelihood_of(table, given).unit_best
    y = model.event_vectors(table)[0].double().numpy()
    count = len(model.grid.parameters)
    try:
        fits = tuple(_fit(model, model.calibration, y, w, best, bins) for bins in BINS[count])
    except np.linalg.LinAlgError as error:
        raise InputError(
            "binned_check: some templates fill too few bins of the score; look at closure instead"
        ) from error
    return BinnedCheck(model.grid.parameters, fits, model.grid.from_unit(best))


def _fit(
    model: Model, calibration: Calibration, y: Array, w: Array, best: Array, bins: int
) -> BinnedFit:
    source, kept = model.reweighting, model.simulated
    da = calibration.score_slopes(best[None])[0]  # (parameters, kept)
    simulated, observed = source.y @ da.T, y @ da.T
    at = source.at(best)
    edges = [_edges(s, at, bins) for s in simulated.T]
    where, count = _bins(simulated, edges), bins ** len(edges)
    used = np.unique(where)  # of several scores some bins may be empty
    place = np.full(count, len(used))
    place[used] = np.arange(len(used))
    where, data = place[where], place[_bins(observed, edges)]
    inside = data < len(used)
    n = np.bincount(data[inside], w[inside], len(used)).astype(float)
    check_total(float(n.sum()))  # events in bins that no simulated one fills do not count
    moments = source.moments
    there = np.array([(kept.template == k).any() for k in range(len(model.grid))])
    counted = [
        _counted(
            source.y[kept.template == k],
            where[kept.template == k],
            kept.weights[kept.template == k],
            len(used),
            (moments.mean[k], moments.effective[k]),
        )
        for k in np.flatnonzero(there)
    ]
    shares = np.bincount(where, at, len(used))
    score = np.array([np.bincount(where, at * s, len(used)) for s in simulated.T]).T
    score /= np.where(shares != 0, shares, 1.0)[:, None]
    curves = _curves(counted, model.grid.unit[there], score)
    events = float(w.sum() ** 2 / (w**2).sum())
    of_mean, of_open = _moved(curves.mean, best)
    of_one = curves.squared(np.asarray(np.diag(shares) - np.outer(shares, shares), np.float64))
    of_templates = np.array([curves.squared(one.covariance) for one in counted])
    covariance = of_one / events + of_open @ of_open.T
    poor = noise_scale(curves.mean)
    covariance += poor * np.einsum("ikj,kjl,mkl->im", of_mean, of_templates, of_mean)
    weight = np.asarray(np.linalg.pinv(covariance, hermitian=True), np.float64)
    value = _minimum((n / n.sum() - curves.centre) @ curves.transform, curves.mean, weight, best)
    # Influences of events on either estimate, at the result.
    slope = curves.mean.slopes(best[None])[0]  # (parameters, kept)
    of_kept = np.linalg.pinv(slope @ weight @ slope.T) @ slope @ weight
    of_bins = of_kept @ curves.transform.T
    response = np.linalg.pinv(da @ calibration.mean.slopes(best[None])[0].T)
    unbinned = response @ da @ (source.y - at @ source.y).T  # (parameters, events)
    binned = of_bins[:, where]
    binned = binned - (binned @ at)[:, None]
    stat = (binned**2) @ at / events
    stat_difference = ((binned - unbinned) ** 2) @ at / events
    # What the mean of a template, and what the templates leave open, change in either.
    moved, left_open = _moved(calibration.mean, best)
    sim = ((of_kept @ of_open) ** 2).sum(axis=1)
    sim_difference = sim + ((response @ da @ left_open) ** 2).sum(axis=1)
    for one, here, k in zip(
        counted, np.moveaxis(of_mean, 1, 0), np.flatnonzero(there), strict=True
    ):
        first, second = of_kept @ here @ curves.transform.T, response @ da @ moved[:, k]
        rest = np.einsum("pb,bc,pc->p", first, one.of_rest, first)
        along = first @ one.slopes
        sim += poor * (rest + np.einsum("pi,ij,pj->p", along, one.of_mean, along))
        along = along - second
        sim_difference += poor * (rest + np.einsum("pi,ij,pj->p", along, one.of_mean, along))
    scale = model.grid.range
    spread = np.sqrt((stat_difference + sim_difference).clip(min=1e-30))
    return BinnedFit(
        len(used),
        int(curves.mean.powers.sum(axis=1).max()),
        model.grid.from_unit(value),
        np.sqrt(stat + sim) * scale,
        (value - best) * scale,
        spread * scale,
    )


def _edges(score: Array, weights: Array, bins: int) -> Array:
    """Edges between which lie equal parts of events and of their information, half of each: equal
    numbers alone do not resolve a few events that know much."""
    order = np.argsort(score)
    ordered, w = score[order], weights[order].clip(min=0)
    w = w / w.sum()
    information = w * (ordered - w @ ordered) ** 2
    if not information.any():  # all weight is on events of one score
        information = w
    upto = np.cumsum(w) + np.cumsum(information) / information.sum()
    places = np.searchsorted(upto, 2 * np.linspace(0, 1, bins + 1)[1:-1])
    return np.unique(ordered[places.clip(max=len(score) - 1)])


def _bins(score: Array, edges: list[Array]) -> Any:
    """The number of the bin of each event."""
    number = np.zeros(len(score), np.int64)
    for s, edge in zip(score.T, edges, strict=True):
        number = number * (len(edge) + 1) + np.searchsorted(edge, s)
    return number


class _Counted(NamedTuple):
    """The bins of one template.

    Attributes
    ----------
    shares : array (bins,)
        The share of each bin.
    of_rest : array (bins, bins)
        Their covariance from the kept events, without what the mean of the summary explains.
    slopes, of_mean : array (bins, d), array (d, d)
        How shares go with the mean of the summary, and the covariance of that mean.
    events : float
        How many events without weights the kept ones are worth.
    """

    shares: Array
    of_rest: Array
    slopes: Array
    of_mean: Array
    events: float

    @property
    def covariance(self) -> Array:
        """Of the shares."""
        return np.asarray(self.of_rest + self.slopes @ self.of_mean @ self.slopes.T)


def _counted(
    y: Array, where: Any, weights: Array, bins: int, full: tuple[Array, float]
) -> _Counted:
    """Count the kept events of a template. All its events, of which `full` is the mean summary and
    the effective number, correct the shares by how those go with the mean (a control variate)."""
    size = y.shape[1]
    if not len(y) or weights.sum() <= 0:
        of_rest, slopes = np.zeros((bins, bins)), np.zeros((bins, size))
        return _Counted(np.zeros(bins), of_rest, slopes, np.zeros((size, size)), 0.0)
    w = weights / weights.sum()
    shares, mean = np.bincount(where, w, bins), w @ y
    rest = y - mean
    of_y = (rest * w[:, None]).T @ rest
    crossed = np.array([np.bincount(where, w * column, bins) for column in rest.T]).T
    slopes = crossed @ np.linalg.pinv(of_y, hermitian=True)
    # Squares of weights: what a sum of weighted events fluctuates by.
    squares = w**2
    inside = np.bincount(where, squares, bins)
    left = np.diag(inside) - np.outer(shares, inside) - np.outer(inside, shares)
    left += np.outer(shares, shares) * squares.sum()
    explained = np.array([np.bincount(where, squares * column, bins) for column in rest.T]).T
    explained = explained - np.outer(shares, squares @ rest)
    both = explained @ slopes.T
    spread = (rest * squares[:, None]).T @ rest
    left = left - both - both.T + slopes @ spread @ slopes.T
    whole, effective = full
    of_mean = of_y / max(effective, 1.0)
    return _Counted(
        shares + slopes @ (whole - mean), left, slopes, of_mean, float(1 / squares.sum())
    )


class _Curves(NamedTuple):
    """What the bins say of theta, as functions of it.

    Attributes
    ----------
    mean : MeanCurve
        Of the combinations (shares - centre) @ transform.
    centre, transform : array (bins,), array (bins, kept)
        To these combinations.
    """

    mean: MeanCurve
    centre: Array
    transform: Array

    def squared(self, covariance: Array) -> Array:
        """The covariance of the combinations from that of the shares."""
        return np.asarray(self.transform.T @ covariance @ self.transform)


def _moved(mean: MeanCurve, t: Array) -> tuple[Array, Array]:
    """What changes of the templates' means (d, templates, d), and unit changes that the templates
    leave open (d, changes), change in the mean at one point."""
    row = terms(t[None], mean.powers)[0]
    return np.tensordot(row, mean.response, 1), np.tensordot(row, mean.open, 1)


def _curves(counted: list[_Counted], unit: Array, score: Array) -> _Curves:
    """Smooth curves through what the shares of the templates say of theta. `score` (bins,
    parameters) is the mean score in each bin."""
    shares = np.array([one.shares for one in counted])
    covariance = np.array([one.covariance for one in counted])
    variances = np.einsum("kbb->kb", covariance)
    # A bin without events does not know that its share is 0, nor one with all that it is 1.
    size = np.array([one.events for one in counted]).clip(min=1.0)
    least = 1 / size[:, None]
    covariance += np.eye(shares.shape[1]) * (least**2 - variances).clip(min=0)[:, None]
    filled = np.maximum(shares, least)
    filled /= filled.sum(axis=1, keepdims=True)
    of_one = filled[:, :, None] * (np.eye(shares.shape[1]) - filled[:, None])
    white, centre, transform = Moments(unit, shares, of_one, covariance).whitened()
    pooled = np.tensordot(size / size.sum(), of_one, 1)
    kept = _kept(white, transform.T @ pooled @ score)
    few = Moments(
        unit,
        white.mean @ kept,
        kept.T @ white.covariance @ kept,
        kept.T @ white.mean_covariance @ kept,
    )
    return _Curves(fit_mean_curve(few), centre, transform @ kept)


def _kept(white: Moments, score: Array) -> Array:
    """The combinations (d, kept) of whitened shares that tell theta: the learnt scores, and those
    in which the templates differ by more than noise. Noise in the slopes of the others looks like
    information: with 12 or 16 bins errors came out up to twice too small."""
    parameters = score.shape[1]
    axes = np.linalg.qr(score, mode="complete")[0]
    learnt, rest = axes[:, :parameters], axes[:, parameters:]
    templates, size = white.mean.shape
    variance = np.trace(white.mean_covariance, axis1=1, axis2=2)[:, None] / size
    means = white.mean @ rest
    differ = means - (means / variance).sum(axis=0) / (1 / variance).sum()
    _, values, vectors = np.linalg.svd(differ / np.sqrt(variance), full_matrices=True)
    # What noise alone reaches in so many rows and columns.
    edge = np.sqrt(templates - 1) + np.sqrt(rest.shape[1])
    told = vectors[: int((values > BEYOND_NOISE * edge).sum())]
    return np.hstack([learnt, rest @ told.T])


def _minimum(found: Array, mean: MeanCurve, weight: Array, start: Array) -> Array:
    """The theta at which the combinations `found` are most likely, nearest to `start`; `weight` is
    the inverse of their covariance."""

    def cost(t: Array) -> tuple[float, Array, Array]:
        rest, slopes = found - mean(t[None])[0], mean.slopes(t[None])[0]
        across = slopes @ weight
        return float(rest @ weight @ rest) / 2, -across @ rest, across @ slopes.T

    # Newton steps, whose size the curvature knows, do not leave the valley at once.
    count = len(start)
    return minimise(cost, start, np.zeros(count), np.ones(count), np.ones(count, bool))
