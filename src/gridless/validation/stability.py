"""Stability: the result with other seeds, sizes, observables and halves of the simulation.

All variants use the same observed events. So their differences are known much better than each
of them: with the influence h_i of event i on an estimate, the variance of a difference is
sum_i (h_i - h_i')^2, as a bootstrap of the events would find.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from gridless.curves import minimum
from gridless.errors import InputError, check_kind
from gridless.fitting import fit
from gridless.likelihood.estimate import STAT
from gridless.model.model import Model
from gridless.parallel import run
from gridless.results.printing import Lines
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates

SEEDS = 2  # other seeds that are tried
WIDER = 2  # times the hidden units, as another size
MOST_DROPPED = 12  # observables that are left out one by one, at the most


@dataclass(frozen=True, eq=False)
class Variant:
    """The result of another fit.

    Attributes
    ----------
    name : str
        What was changed.
    value, error : array (parameters,)
        Its result.
    difference, spread : array (parameters,)
        What it differs from the result by, and by how much it should.
    """

    name: str
    value: Array
    error: Array
    difference: Array
    spread: Array

    @property
    def pull(self) -> Array:
        """The difference in units of its spread."""
        return np.asarray(self.difference / self.spread)


@dataclass(frozen=True, eq=False)
class Stability(Lines):
    """Variants of a result; `gl.stability` makes it.

    Attributes
    ----------
    parameters : tuple of str
        Their names.
    variants : tuple of Variant
        One for each other fit.

    Examples
    --------
    >>> one = Variant("seed 1", *(np.array([v]) for v in (0.41, 0.02, 0.01, 0.01)))
    >>> Stability(("theta",), (one,))
    seed 1: theta = 0.41 +- 0.02, difference +0.01 +- 0.01
    at most 1.0 of the expected spread, p-value 0.32
    """

    parameters: tuple[str, ...]
    variants: tuple[Variant, ...]

    @property
    def chi2(self) -> float:
        """The sum of squared pulls; variants have events in common, so it is a rough measure."""
        return float(sum((variant.pull**2).sum() for variant in self.variants))

    @property
    def dof(self) -> int:
        """How many pulls there are."""
        return len(self.variants) * len(self.parameters)

    @property
    def worst(self) -> float:
        """The largest difference, in units of its expected spread."""
        return max(float(np.abs(variant.pull).max()) for variant in self.variants)

    @property
    def p_value(self) -> float:
        """The chance that the largest of so many is at least as large, at the most: it is less
        where they go together (Sidak)."""
        return float(1 - (1 - 2 * ndtr(-self.worst)) ** self.dof)

    def to_dict(self) -> dict[str, Any]:
        """The variants in what JSON can hold."""
        rows = [
            {k: v if isinstance(v, str) else np.asarray(v).tolist() for k, v in vars(one).items()}
            for one in self.variants
        ]
        return {"parameters": list(self.parameters), "variants": rows, "p_value": self.p_value}

    def __str__(self) -> str:
        lines = [
            f"{one.name}: {name} = {one.value[p]:.6g} +- {one.error[p]:.2g}, "
            f"difference {one.difference[p]:+.2g} +- {one.spread[p]:.2g}"
            for one in self.variants
            for p, name in enumerate(self.parameters)
        ]
        last = f"at most {self.worst:.1f} of the expected spread, p-value {self.p_value:.2g}"
        return "\n".join([*lines, last])

    __repr__ = __str__


def stability(
    model: Model, templates: Templates, x: Any, weights: Any = None, executor: Any = None
) -> Stability:
    """Fit again with other seeds, another size, without each observable, and on halves of the
    simulation; and compare.

    Parameters
    ----------
    model : Model
        A calibrated model.
    templates : Templates
        What it was fitted on.
    x : array (events, observables), data frame or Sample
        The observed events.
    weights : array (events,), optional
        Their weights.
    executor : concurrent.futures.Executor or dask client, optional
        Runs the fits; without one, this process does.

    Returns
    -------
    Stability

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import TwoObservables
    >>> example = TwoObservables()
    >>> templates = example.templates(500, seed=1)
    >>> model = gl.fit(templates, hidden=3, epochs=2, seed=1)
    >>> found = gl.stability(model, templates, example.sample(0.4, 500, seed=2))
    >>> [variant.name for variant in found.variants][:3]
    ['seed 2', 'seed 3', 'hidden 6']
    """
    check_kind(model, Model, "model")
    check_kind(templates, Templates, "templates")
    if model.calibration is None:
        raise InputError("stability: the model was fitted with calibrate=False; fit it anew")
    if model.measurement is not None:
        raise InputError("stability: of models without systematics and backgrounds; fit one")
    if templates.x.shape[1] != len(model.observables):
        raise InputError("stability: templates of other observables; give those of the model")
    table, given = model.events(x, weights)
    w = np.ones(len(table)) if given is None else given
    centre = _result(model, table, given, w)
    tasks = [(templates, table, given, change) for change in _changes(model)]
    found = run(_variant, tasks, executor, "stability")
    variants = []
    for (name, *_), (value, influence, beyond, error) in zip(_changes(model), found, strict=True):
        variance = ((influence - centre[1]) ** 2).sum(axis=0) + np.abs(beyond - centre[2])
        difference = value - centre[0]
        spread = np.sqrt(variance.clip(min=1e-30))
        variants.append(Variant(name, value, error, difference, spread))
    return Stability(model.grid.parameters, tuple(variants))


def _changes(model: Model) -> list[tuple[str, dict[str, Any], int | None, int | None]]:
    """Name, options of the fit, the observable that is left out, and the half that is used."""
    options = model.options
    given, seed = dict(options), options.seed
    found: list[tuple[str, dict[str, Any], int | None, int | None]] = [
        (f"seed {seed + i}", given | {"seed": seed + i}, None, None) for i in range(1, SEEDS + 1)
    ]
    hidden = options.hidden
    if hidden:
        units = tuple(WIDER * n for n in hidden)
        text = ", ".join(str(n) for n in units)
        found.append((f"hidden {text}", given | {"hidden": units}, None, None))
    found += [(f"half {half + 1} of the simulation", given, None, half) for half in range(2)]
    if len(model.observables) > 1:
        found += [
            (f"without {name}", given, j, None)
            for j, name in enumerate(model.observables[:MOST_DROPPED])
        ]
    return found


def _variant(
    templates: Templates, table: Array, given: Array | None, change: tuple[Any, ...]
) -> tuple[Array, Array, Array, Array]:
    _, options, dropped, half = change
    events = np.ones(len(templates), bool)
    if half is not None:
        events = np.arange(len(templates)) % 2 == half
    columns = [j for j in range(templates.x.shape[1]) if j != dropped]
    weights = templates.weights
    less = Templates(
        templates.x[events][:, columns],
        templates.theta[events],
        templates.grid.bounds,
        None if weights is None else weights[events],
        observables=[templates.observables[j] for j in columns],
        parameters=templates.grid.parameters,
    )
    model = fit(less, **options)
    w = np.ones(len(table)) if given is None else given
    return _result(model, table[:, columns], given, w)


def _result(
    model: Model, table: Array, given: Array | None, w: Array
) -> tuple[Array, Array, Array, Array]:
    """Value, influence of every event, variance beyond that of the events, and total error."""
    calibration = model.calibration
    assert calibration is not None
    likelihood = model.likelihood_of(table, given)
    estimate, best = likelihood.maximum(), likelihood.unit_best
    y = model.event_vectors(table)[0].double().numpy()
    score = (y - calibration.mean(best[None])[0]) @ calibration.score_slopes(best[None])[0].T
    inverse = minimum.covariance(likelihood.curve, best)
    influence = w[:, None] * score @ inverse * model.grid.range
    beyond = sum(np.diag(matrix) for name, matrix in estimate.covariances.items() if name != STAT)
    return estimate.values, influence, np.asarray(beyond + np.zeros(len(best))), estimate.errors
