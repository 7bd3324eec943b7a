"""Checks of the simulation against itself: probabilities of templates, and each template against
all others weighted to its theta."""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from gridless.errors import check_kind
from gridless.model.model import Model
from gridless.model.reweighting import SimulatedEvents, tilted, weight_changes
from gridless.results.printing import Lines
from gridless.templates.arrays import Array
from gridless.validation.leave_one_out import inner_templates, mean_without

BINS = 20  # of an observable
PROBABILITY_BINS = 10
LEAST_OTHERS = 3  # templates between which the mean of one can be predicted
LEAST_EFFECTIVE = 200  # effective events of the others: fewer say nothing of a template


@dataclass(frozen=True, eq=False)
class Reliability(Lines):
    """Whether events to which the network gives a template's probability p are from it as often.

    Attributes
    ----------
    predicted, found, error : array (bins,)
        Mean probability, share of events that are from the template, and its error; over all
        templates together.
    chi2, dof : float
        Of the single templates.

    Examples
    --------
    >>> round(Reliability(*np.array([[0.1], [0.12], [0.01]]), 4.0, 1).largest, 2)
    0.02
    """

    predicted: Array
    found: Array
    error: Array
    chi2: float
    dof: int

    def __str__(self) -> str:
        return (
            f"Reliability of the network's probabilities: off by at most {self.largest:.3f}, "
            f"chi2/dof = {self.chi2:.1f}/{self.dof}, p-value {self.p_value:.2g}"
        )

    __repr__ = __str__

    @property
    def largest(self) -> float:
        """The largest difference."""
        return float(np.abs(self.found - self.predicted).max())

    @property
    def p_value(self) -> float:
        """The chance of a chi2 at least as large."""
        return float(chdtrc(self.dof, self.chi2))


def reliability(model: Model) -> Reliability:
    """How often events are from the templates that the network takes them to be from.

    Parameters
    ----------
    model : Model
        It keeps the simulated events that are counted.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(2_000, seed=1), hidden=3, seed=1)
    >>> bool(gl.reliability(model).largest < 0.05)
    True
    """
    kept, source = source_events(model), model.reweighting
    count = len(model.grid)
    totals = np.bincount(kept.template, kept.weights, count)
    there = np.flatnonzero(totals > 0)
    log_p = source.log_ratios(model.grid.unit[there]) + np.log(totals[there] / totals.sum())
    p = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True))
    own = kept.template[:, None] == there
    chi2, dof = 0.0, 0
    w = kept.weights
    for k in range(len(there)):
        edges = np.quantile(p[:, k], np.linspace(0, 1, PROBABILITY_BINS + 1)[1:-1])
        where = np.searchsorted(edges, p[:, k])
        rest = np.bincount(where, w * (own[:, k] - p[:, k]), PROBABILITY_BINS)
        variance = np.bincount(where, w**2 * p[:, k] * (1 - p[:, k]), PROBABILITY_BINS)
        use = variance > 0
        chi2 += float((rest[use] ** 2 / variance[use]).sum())
        # The probabilities of all templates sum to 1.
        dof += int(use.sum())
    dof = max(1, round(dof * (1 - 1 / len(there))))
    flat, hits, each = p.ravel(), own.ravel(), np.repeat(w, len(there))
    edges = np.unique(np.quantile(flat, np.linspace(0, 1, PROBABILITY_BINS + 1)[1:-1]))
    where, bins = np.searchsorted(edges, flat), len(edges) + 1
    # Bins may have no event, or events whose weights cancel.
    total = np.bincount(where, each, bins)
    use = total > 0
    predicted = np.bincount(where, each * flat, bins)[use] / total[use]
    found = np.bincount(where, each * hits, bins)[use] / total[use]
    error = np.sqrt(np.bincount(where, each**2 * flat * (1 - flat), bins))[use] / total[use]
    return Reliability(predicted, found, error, chi2, dof)


def source_events(model: Model) -> SimulatedEvents:
    """The kept events, or an error that says what to do."""
    check_kind(model, Model, "model")
    return model.simulated


@dataclass(frozen=True, eq=False)
class TemplateAgreement(Lines):
    """p-values of every template against all others weighted to its theta.

    Attributes
    ----------
    labels, observables : tuple of str
        Templates and observables.
    p_values : array (templates, observables)
        NaN where the others do not reach it, as of the outermost.
    effective : array (templates,)
        Effective events of the others there.

    Examples
    --------
    >>> TemplateAgreement(("a", "b"), ("x",), np.array([[0.5], [0.02]]), np.ones(2)).p_value
    0.04
    """

    labels: tuple[str, ...]
    observables: tuple[str, ...]
    p_values: Array
    effective: Array

    @property
    def p_value(self) -> float:
        """The smallest, times the number of tests."""
        known = self.p_values[np.isfinite(self.p_values)]
        return float(min(1.0, known.min() * len(known))) if len(known) else 1.0

    def __str__(self) -> str:
        return (
            f"Agreement of {len(self.labels)} templates with all others weighted to them: p-value "
            f"{self.p_value:.2g}, least for {' in '.join(self.worst)}"
        )

    __repr__ = __str__

    @property
    def worst(self) -> tuple[str, str]:
        """The template and observable of the smallest."""
        if not np.isfinite(self.p_values).any():
            return self.labels[0], self.observables[0]
        k, j = np.unravel_index(np.nanargmin(self.p_values), self.p_values.shape)
        return self.labels[k], self.observables[j]


def template_agreement(model: Model) -> TemplateAgreement:
    """Compare every template with all other simulation weighted to its theta.

    Parameters
    ----------
    model : Model
        It keeps the simulated events that are compared.

    Returns
    -------
    TemplateAgreement
        A p-value for each template and observable.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(2_000, seed=1), hidden=3, seed=1)
    >>> gl.template_agreement(model).p_value > 1e-3
    True
    """
    kept, source = source_events(model), model.reweighting
    grid, count = model.grid, len(model.grid)
    log_r = source.log_ratios(grid.unit)
    sizes = np.bincount(kept.template, minlength=count)
    moments = None if model.calibration is None else source.moments
    found = np.full((count, len(model.observables)), np.nan)
    effective = np.zeros(count)
    # Outermost templates are left out: the others would have to be weighted beyond themselves.
    for k in inner_templates(grid):
        own = kept.template == k
        others = np.flatnonzero((sizes > 0) & (np.arange(count) != k))
        if not own.any() or len(others) < LEAST_OTHERS:
            continue
        log_share = np.log(sizes[others] / sizes[others].sum())
        mixture = np.logaddexp.reduce(log_r[~own][:, others] + log_share, axis=1)
        log_w = log_r[~own, k] - mixture
        weights = kept.weights[~own] * np.exp(log_w - log_w.max())
        weights, y = weights / weights.sum(), source.y[~own]
        uncertain = np.zeros((y.shape[1], y.shape[1]))
        if moments is not None:
            mean, uncertain = mean_without(moments, k)
            weights = tilted(weights, y, mean)
        effective[k] = 1 / (weights**2).sum()
        if effective[k] < LEAST_EFFECTIVE:
            continue
        mine = kept.weights[own] / kept.weights[own].sum()
        # What a change of the mean, which the others do not know exactly, does to an event.
        changes = weight_changes(y, weights, uncertain)
        for j in range(found.shape[1]):
            pair = (source.x[own, j], mine), (source.x[~own, j], weights)
            found[k, j] = _p_value(pair, changes)
    return TemplateAgreement(
        tuple(grid.label(k) for k in range(count)), model.observables, found, effective
    )


def _p_value(pair: tuple[tuple[Array, Array], tuple[Array, Array]], changes: Array) -> float:
    """Whether two weighted samples, each of total weight 1, are alike in bins of the first.

    `changes` (events, changes) are independent relative changes of the second sample's weights,
    each of one standard deviation.
    """
    first = pair[0][0]
    edges = np.unique(np.quantile(first, np.linspace(0, 1, BINS + 1)[1:-1]))
    bins = len(edges) + 1
    if bins < 2:
        return 1.0
    difference, covariance = np.zeros(bins), np.zeros((bins, bins))
    for sign, (x, w) in zip((1, -1), pair, strict=True):
        where = np.searchsorted(edges, x, side="right")
        share, squares = np.bincount(where, w, bins), np.bincount(where, w**2, bins)
        difference += sign * share
        crossed = np.outer(share, squares)
        covariance += np.diag(squares) - crossed - crossed.T
        covariance += np.outer(share, share) * squares.sum()
    x, w = pair[1]
    where = np.searchsorted(edges, x, side="right")
    for change in changes.T:
        moved = np.bincount(where, w * change, bins)
        covariance += np.outer(moved, moved)
    # Shares sum to 1: the last bin says nothing more.
    chi2 = float(difference[:-1] @ np.linalg.pinv(covariance[:-1, :-1]) @ difference[:-1])
    return float(chdtrc(bins - 1, chi2))
