"""From a trained network and every sample to what a measurement needs: mu(theta, alpha)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gridless import distributed
from gridless.calibration.calibration import noise_scale
from gridless.calibration.mean_curve import MeanCurve, fit_mean_curve
from gridless.calibration.moments import Moments
from gridless.density.network import Network
from gridless.errors import InputError
from gridless.measurement.archive import arrays_of, header_of, measurement_of
from gridless.measurement.features import make_features
from gridless.measurement.measurement import Measurement, Nuisance, Share
from gridless.measurement.process import Process
from gridless.measurement.shift import Shift, fit_shift, shift_powers, shift_terms
from gridless.model.evaluation import event_features
from gridless.systematics.course import NODES, courses, knows_course
from gridless.systematics.crossing import crossings
from gridless.systematics.inputs import Background, Systematic
from gridless.systematics.samples import (
    Events,
    ProcessSamples,
    Varied,
    background_samples,
    check_events,
    only_nominal,
    signal_samples,
)
from gridless.templates.arrays import Array, covariance_root, worth
from gridless.templates.templates import Templates
from gridless.training.carried import LEAST, carried
from gridless.training.projections import learn_projections, straight
from gridless.training.sample_means import Differences, Summaries, read_process

# Terms of second order that no sample tells, in units of the product of two changes, each in
# spreads of one event: 0.5 to 1 in problems drawn at random, of which half is left open.
BENDS = 0.35
# Of pairs that are known as far as they are like a change of theta.
BENDS_CARRIED = 0.2
# Of pairs of the same events, told in every template to first order in both.
BENDS_TOLD = 0.1
# alpha^3 - alpha of a shift whose course is not known, in units of its cube: 0.2 to 0.3 where peaks
# are shifted by up to their width, or made as much wider.
CUBES = 0.3
# Events per component of a summary that halve a change of its covariance.
STEADY = 100
NOWHERE = np.zeros(0)


class _Shifts(NamedTuple):
    """Which systematics a process has, and what they do: as in `Process`."""

    systematics: NDArray[np.int64]
    linear: tuple[Shift, ...]
    square: tuple[Shift, ...]
    pairs: NDArray[np.int64]
    crossed: Array
    untold: Array
    cubes: Array
    coursed: NDArray[np.int64]
    course: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class Whole:
    """Everything that a measurement is made of, checked."""

    templates: Templates
    samples: tuple[ProcessSamples, ...]
    nuisances: tuple[Nuisance, ...]
    shares: tuple[Share, ...]


def check_measurement(
    templates: Templates,
    systematics: Sequence[Systematic],
    backgrounds: Sequence[Background],
    calibrate: bool,
) -> Whole | None:
    """The samples of a measurement, checked before anything is trained; None without any."""
    if not systematics and not backgrounds:
        return None
    if not calibrate:
        raise InputError("systematics and backgrounds need the calibration; leave calibrate=True")
    if distributed.size() > 1:
        raise InputError("systematics and backgrounds are for one process; start a single rank")
    samples = [signal_samples(templates, tuple(systematics))]
    samples += [background_samples(one, templates.x.shape[1]) for one in backgrounds]
    nuisances = _nuisances(systematics, backgrounds, templates.grid.parameters)
    names = [one.name for one in nuisances]
    shares = tuple(
        Share(names.index(b.name), b.share, b.share if b.error is None else b.error)
        for b in backgrounds
    )
    return Whole(templates, tuple(samples), nuisances, shares)


def measure_network(network: Network, whole: Whole, seed: int, fold: Tensor | None) -> Measurement:
    """What the samples say of the network's summary and of the coefficients of `projections`.

    Parameters
    ----------
    network : Network
        Trained.
    whole : Whole
        Templates, systematics and backgrounds.
    seed : int
        Of the random features.
    fold : Tensor (events), optional
        The member that has not seen each event of the templates, or -1 where all have; backgrounds
        that were mixed into them come after. Means are then taken over events that the network did
        not see; without it, over all.

    Returns
    -------
    Measurement
    """
    signal, *others = whole.samples
    member = None
    if fold is not None:
        member = fold.numpy()[: len(whole.templates)]
        kept_out = np.flatnonzero(member >= 0)
        signal, member = only_nominal(signal, kept_out), member[kept_out]
        for what, events, points in _held_out(signal):
            check_events(events, points, f"{what}, events that are held out")
    samples = [signal, *others]
    z = np.concatenate([z for _, _, z in event_features(network, whole.templates.x)])
    features = make_features(z, seed)
    names = [one.name for one in whole.nuisances]
    projection = learn_projections(network, features, samples, whole.shares, names)
    of_signal = Summaries(network, features, projection, member)
    moments, differences = read_process(of_signal, signal)
    # Where folds or members disagree, observed events, which take their mean, vary less than the
    # means know: units of that spread alone may be nothing but rounding.
    noise = replace(moments, covariance=moments.noise_per_event)
    white, centre, transform = noise.whitened()
    white = replace(white, covariance=transform.T @ moments.covariance @ transform)
    apart = np.linalg.norm(straight(white.t, white.mean), axis=1)
    curve = fit_mean_curve(white, shared=False)
    shifts = _shifts(signal, differences, of_signal, names, transform, apart, curve)
    processes = [_signal(white, curve, shifts)]
    # The events of a background are in every template: no member has seen them as of one theta.
    of_others = Summaries(network, features, projection)
    for sample in others:
        moments, differences = read_process(of_others, sample)
        shifts = _shifts(sample, differences, of_others, names, transform)
        processes.append(_background(moments, centre, transform, shifts))
    made = Measurement(
        whole.templates.grid, whole.nuisances, whole.shares, centre, transform, tuple(processes),
        features, projection,
    )  # fmt: skip
    # As from a file: the order of numbers in memory decides the last digits of products.
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays_of(made).items()}
    try:
        return measurement_of(header_of(made), arrays, made.grid, z.shape[1])
    except ValueError as error:
        raise InputError(
            f"fit: the samples give numbers that no model can hold ({error}); look for absurd "
            "values and weights"
        ) from error


def _held_out(sample: ProcessSamples) -> Iterator[tuple[str, Events, int]]:
    """The nominal events and those of every variation, with their names and numbers of points."""
    yield "the templates", sample.nominal, len(sample.t)
    for varied in sample.varied:
        for side in varied.sides:
            yield f"systematic {varied.name!r}", side, len(varied.t)


def _nuisances(
    systematics: Sequence[Systematic], backgrounds: Sequence[Background], parameters: Sequence[str]
) -> tuple[Nuisance, ...]:
    """Systematics of all processes, then the shares of the backgrounds."""
    found: dict[str, Nuisance] = {}
    for one in [*systematics, *(s for b in backgrounds for s in b.systematics)]:
        known = found.setdefault(one.name, Nuisance(one.name, one.constraint))
        if known.constraint != one.constraint:
            raise InputError(
                f"systematic {one.name!r}: a constraint of {known.constraint} and of "
                f"{one.constraint}; give the same in every process"
            )
    for background in backgrounds:
        if background.name in found:
            raise InputError(f"{background.name!r} is a systematic and a background; rename one")
        found[background.name] = Nuisance(
            background.name, None if background.error is None else 1.0
        )
    for name in parameters:
        if name in found:
            raise InputError(f"{name!r} is a parameter and a systematic or background; rename one")
    return tuple(found.values())


def _signal(white: Moments, curve: MeanCurve, shifts: _Shifts) -> Process:
    """The templates, whose mean is a curve in theta."""
    roots = np.linalg.cholesky(white.mean_covariance * noise_scale(curve))
    terms, d = curve.coefficients.shape
    noise = np.einsum("mikj,kjl->mikl", curve.response, roots).reshape(terms, d, -1)
    return Process(
        white.t, curve.powers, curve.coefficients, noise, curve.open, white.covariance,
        white.effective, *shifts,
    )  # fmt: skip


def _background(
    moments: Moments,
    centre: Array,
    transform: Array,
    shifts: _Shifts,
) -> Process:
    """A process that knows nothing of theta: one point, a constant."""
    noise = covariance_root(transform.T @ moments.mean_covariance[0] @ transform)[None]
    return Process(
        np.zeros((1, 0)),
        np.zeros((1, 0), np.int64),
        (moments.mean - centre) @ transform,
        noise,
        np.zeros((1, transform.shape[1], 1)),
        transform.T @ moments.covariance @ transform,
        moments.effective,
        *shifts,
    )


def _shifts(
    sample: ProcessSamples,
    differences: Sequence[Differences],
    summaries: Summaries,
    names: list[str],
    transform: Array,
    apart: Array = NOWHERE,
    curve: MeanCurve | None = None,
) -> _Shifts:
    """What the systematics of a process do; `apart` (parameters,) is how far the mean moves over
    the range, along a curve."""
    linear, square, spread = [], [], []
    told = np.ones(len(sample.varied), bool)
    for number, (varied, found) in enumerate(zip(sample.varied, differences, strict=True)):
        of_linear = transform.T @ found.linear_covariance @ transform
        values = found.linear @ transform
        slope = np.outer(apart, _spread(varied, values[0], of_linear[0]))
        linear.append(fit_shift(varied.t, values, of_linear, True, slope))
        spread.append(_steady_spread(varied, transform.T @ found.spread @ transform))
        there = np.flatnonzero(varied.template >= 0)
        if len(varied.sides) == 1 or not len(there):
            square.append(Shift(*(np.zeros_like(a) for a in linear[-1].arrays().values())))
            told[number] = False
            continue
        of_square = transform.T @ found.square_covariance[there] @ transform
        values = found.square[there] @ transform
        square.append(fit_shift(varied.t[there], values, of_square, free_constant=False))
    which = np.array([names.index(v.name) for v in sample.varied], np.int64)

    def of_events(x: Array, key: NDArray[np.int64]) -> Array:
        if not len(x):
            return np.zeros((0, transform.shape[1]))
        return np.asarray(summaries(x, key).unseen @ transform)

    together = crossings(sample, of_events)
    every = {(k, j) for k in range(len(which)) for j in range(k)}
    missing = sorted(every - {one.pair for one in together})
    seen = [one for one in together if one.seen]
    told_together = [
        (one.pair, _curve(sample.t[one.points], one.differences, one.variances)) for one in seen
    ]
    phi = shift_terms(sample.t, shift_powers(sample.t.shape[1]))
    large = [pair for pair in told_together if np.linalg.norm(phi @ pair[1], axis=1).max() > LEAST]
    pairs, crossed = [pair for pair, _ in large], [polynomial for _, polynomial in large]
    if curve is not None:
        for pair, polynomial in carried(sample.t, curve, linear, missing):
            pairs.append(pair)
            crossed.append(polynomial)
    untold = np.full((len(which), len(which)), BENDS_TOLD)
    for k, j in missing:
        untold[k, j] = untold[j, k] = BENDS if curve is None else BENDS_CARRIED
    np.fill_diagonal(untold, np.where(told, 0.0, BENDS))
    d = transform.shape[1]
    shape = len(pairs), len(shift_powers(sample.t.shape[1])), d
    polynomials = np.array(crossed).reshape(shape)
    both = np.array(pairs, np.int64).reshape(-1, 2)
    coursed = [one for one in courses(sample, of_events) if one.seen]
    course = [
        [
            _curve(sample.t[one.points], *node)
            for node in zip(one.differences, one.variances, strict=True)
        ]
        for one in coursed
    ]
    return _Shifts(
        which, tuple(linear), tuple(square), both, polynomials, untold,
        np.array([0.0 if knows_course(sample, k) else CUBES for k in range(len(which))]),
        np.array([one.number for one in coursed], np.int64),
        np.array(course).reshape(-1, len(NODES), *shape[1:]),
        np.array(spread).reshape(-1, 2, *[transform.shape[1]] * 2),
    )  # fmt: skip


def _steady_spread(varied: Varied, changes: Array) -> Array:
    """The mean change of the covariance over all points (points, 2, d, d), held back as far as few
    events make it noise."""
    events = min(worth(side.weights.sum(), side.weights @ side.weights) for side in varied.sides)
    size = changes.shape[-1]
    return np.asarray(changes.mean(axis=0) * events / (events + STEADY * size))


def _curve(t: Array, differences: Array, variances: Array) -> Array:
    """Differences (points, d) with variances as polynomials (terms, d) in t."""
    covariance = variances[:, :, None] * np.eye(variances.shape[1])
    return fit_shift(t, differences, covariance, free_constant=False).coefficients


def _spread(varied: Varied, change: Array, covariance: Array) -> Array:
    """How much the change (d,) at the first point differs from event to event: over a range in
    which the mean moves by one spread of an event, the change moves by so much at the most.

    Of the same events it is seen. Others tell it by the score of the change, whose spread is the
    size of the change: a component of it moves by about half of that.
    """
    if not varied.same:
        return np.full(len(change), 0.5 * np.linalg.norm(change))
    side = varied.sides[0]
    w = side.weights[side.point == 0]
    return np.asarray(np.sqrt(np.diag(covariance).clip(min=0) * w.sum() ** 2 / (w @ w)))
