"""From a trained network and every sample to what a measurement needs: mu(theta, alpha)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridless import distributed
from gridless.calibration.calibration import noise_scale
from gridless.calibration.mean_curve import fit_mean_curve
from gridless.calibration.moments import Moments
from gridless.density.network import Network
from gridless.errors import InputError
from gridless.measurement.features import Features, discriminants, make_features
from gridless.measurement.measurement import Measurement, Nuisance, Share
from gridless.measurement.process import Process
from gridless.measurement.shift import Shift, fit_shift
from gridless.model.evaluation import event_features
from gridless.systematics.crossing import crossed_shifts
from gridless.systematics.inputs import Background, Systematic
from gridless.systematics.samples import (
    Events,
    ProcessSamples,
    Varied,
    background_samples,
    signal_samples,
)
from gridless.systematics.statistics import FOLDS, Mean, combined, sample_mean, steadied
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates

MOST_LEARNT = 400_000  # events of a sample from which projections are learnt


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


def measure_network(network: Network, whole: Whole, seed: int) -> Measurement:
    """What the samples say of the network's summary and of a coefficient for each systematic.

    Parameters
    ----------
    network : Network
        Trained.
    whole : Whole
        Templates, systematics and backgrounds.
    seed : int
        Of the random features.

    Returns
    -------
    Measurement
    """
    z = np.concatenate([z for _, _, z in event_features(network, whole.templates.x)])
    reader = _Reader(network, make_features(z, seed))
    names = [one.name for one in whole.nuisances]
    projection = _learn(reader, whole, names)
    return _Builder(reader, projection, names).measurement(whole)


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


class _Reader:
    """Features of events, evaluated in pieces."""

    def __init__(self, network: Network, features: Features) -> None:
        self.network, self.features = network, features

    def raw(self, x: Array) -> Array:
        """The features (events, size); the network's summary comes first."""
        return np.concatenate([self.features(c, z) for _, c, z in event_features(self.network, x)])

    def summary_size(self, x: Array) -> int:
        return int(next(c.shape[1] for _, c, _ in event_features(self.network, x[:2])))


def _folds(key: NDArray[np.int64]) -> NDArray[np.int64]:
    return key % FOLDS


def _learn(reader: _Reader, whole: Whole, names: list[str]) -> Array:
    """Projections (folds, features, nuisances) of the features."""
    samples, shares = whole.samples, whole.shares
    fractions = np.array([1 - sum(one.share for one in shares), *(one.share for one in shares)])
    means, covariance = [], 0.0
    for sample, fraction in zip(samples, fractions, strict=True):
        mean, spread = _nominal_features(reader, sample)
        means.append(mean)
        covariance = covariance + fraction * spread
    # The processes differ in their means too.
    centre = fractions @ np.array([mean.mean(axis=0) for mean in means])
    for mean, fraction in zip(means, fractions, strict=True):
        rest = mean.mean(axis=0) - centre
        covariance = covariance + fraction * np.outer(rest, rest)
    deltas = np.zeros((FOLDS, len(names), len(centre)))
    for sample, fraction in zip(samples, fractions, strict=True):
        for varied in sample.varied:
            change = _feature_change(reader, sample, varied)
            deltas[:, names.index(varied.name)] += fraction * change
    for share, mean in zip(shares, means[1:], strict=True):
        deltas[:, share.nuisance] = mean - means[0]
    sizes = reader.features.sizes(reader.summary_size(whole.templates.x))
    return discriminants(deltas, np.asarray(covariance), sizes)


def _nominal_features(reader: _Reader, sample: ProcessSamples) -> tuple[Array, Array]:
    """Means (folds, features) of the features, and their covariance within a point."""
    events = _some(sample.nominal)
    points = np.unique(events.point)
    means, spread = [], 0.0
    for point in points:
        f, w, fold = _features_at(reader, events, int(point))
        each = np.array([_mean(f, w, fold == k) for k in range(FOLDS)])
        rest = f - each.mean(axis=0)
        spread = spread + (rest * w[:, None]).T @ rest / w.sum()
        means.append(each)
    return np.mean(means, axis=0), np.asarray(spread / len(points))


def _feature_change(reader: _Reader, sample: ProcessSamples, varied: Varied) -> Array:
    """Half the difference of up and down, or up less nominal, by fold; the mean over points."""
    sides = [_some(side) for side in varied.sides]
    if len(sides) == 1:
        if (varied.template < 0).any():
            raise InputError(
                f"systematic {varied.name!r}: only up, at values of theta without a template; give "
                "down too, or simulate it at the templates"
            )
        sides.append(_some(sample.nominal))
    found = []
    for point, template in enumerate(varied.template):
        ends = []
        for number, side in enumerate(sides):
            nominal = len(varied.sides) == 1 and number == 1
            f, w, fold = _features_at(reader, side, int(template) if nominal else point)
            ends.append(np.array([_mean(f, w, fold == k) for k in range(FOLDS)]))
        found.append((ends[0] - ends[1]) / len(varied.sides))
    return np.asarray(np.mean(found, axis=0))


def _features_at(
    reader: _Reader, events: Events, point: int
) -> tuple[Array, Array, NDArray[np.int64]]:
    own = np.flatnonzero(events.point == point)
    return reader.raw(events.x[own]), events.weights[own], _folds(events.key[own])


def _some(events: Events) -> Events:
    """Some of very many events, the same in every sample that shares them."""
    step = len(events.x) // MOST_LEARNT + 1
    if step == 1:
        return events
    keep = np.flatnonzero((events.key // FOLDS) % step == 0)
    return Events(events.x[keep], events.weights[keep], events.point[keep], events.key[keep])


def _mean(f: Array, w: Array, own: NDArray[np.bool_]) -> Array:
    total = w[own].sum()
    return np.asarray(w[own] @ f[own] / total) if total > 0 else np.asarray(w @ f / w.sum())


class _Builder:
    """Means and covariances of the raw summary [c, s_1, s_2, ...] in every sample."""

    def __init__(self, reader: _Reader, projection: Array, names: list[str]) -> None:
        self.reader, self.projection, self.names = reader, projection, names

    def measurement(self, whole: Whole) -> Measurement:
        """Everything that the samples say."""
        samples = whole.samples
        self.size = self.reader.summary_size(whole.templates.x)
        read = [self._read(sample) for sample in samples]
        nominal = read[0][0]
        white, centre, transform = nominal.whitened()
        curve = fit_mean_curve(white, certain=True)
        roots = np.linalg.cholesky(white.mean_covariance * noise_scale(curve))
        terms, d = curve.coefficients.shape
        signal = Process(
            white.t,
            curve.powers,
            curve.coefficients,
            np.einsum("mikj,kjl->mikl", curve.response, roots).reshape(terms, d, -1),
            curve.open,
            white.covariance,
            white.effective,
            *self._shifts(samples[0], read[0][1], transform),
        )
        processes = [signal]
        for sample, (moments, varied) in zip(samples[1:], read[1:], strict=True):
            of_mean = transform.T @ moments.mean_covariance[0] @ transform
            processes.append(
                Process(
                    np.zeros((1, 0)),
                    np.zeros((1, 0), np.int64),
                    (moments.mean - centre) @ transform,
                    _root(of_mean)[None],
                    np.zeros((1, d, 1)),
                    transform.T @ moments.covariance @ transform,
                    moments.effective,
                    *self._shifts(sample, varied, transform),
                )
            )
        return Measurement(
            whole.templates.grid, whole.nuisances, whole.shares, centre, transform,
            tuple(processes), self.reader.features, self.projection,
        )  # fmt: skip

    def _shifts(
        self, sample: ProcessSamples, read: list["_Differences"], transform: Array
    ) -> tuple[NDArray[np.int64], tuple[Shift, ...], tuple[Shift, ...], Array]:
        """Which systematics a process has, the shifts of each, and of pairs."""
        linear, square = [], []
        for varied, found in zip(sample.varied, read, strict=True):
            linear.append(
                fit_shift(
                    varied.t,
                    np.array(found.linear) @ transform,
                    transform.T @ np.array(found.linear_covariance) @ transform,
                    free_constant=True,
                )
            )
            there = np.flatnonzero(varied.template >= 0)
            if len(varied.sides) == 1 or not len(there):
                still = Shift(*(np.zeros_like(a) for a in linear[-1].arrays().values()))
                square.append(still)
                continue
            square.append(
                fit_shift(
                    varied.t[there],
                    np.array(found.square) @ transform,
                    transform.T @ np.array(found.square_covariance) @ transform,
                    free_constant=False,
                )
            )
        which = np.array([self.names.index(v.name) for v in sample.varied], np.int64)
        raw = crossed_shifts(sample, lambda x, key: self._summaries(x, _folds(key)), len(transform))
        return which, tuple(linear), tuple(square), raw @ transform

    def _read(self, sample: ProcessSamples) -> tuple[Moments, list["_Differences"]]:
        """Moments of the nominal summary, and the differences of every variation, by template."""
        differences = [_Differences() for _ in sample.varied]
        means, covariances, of_means = [], [], []
        for template in range(len(sample.t)):
            nominal = self._mean_at(sample.nominal, template, "the templates")
            means.append(nominal.mean)
            covariances.append(nominal.covariance)
            of_means.append(nominal.mean_covariance)
            for varied, found in zip(sample.varied, differences, strict=True):
                for point in np.flatnonzero(varied.template == template):
                    found.add(int(point), self._sides(varied, int(point)), nominal)
        for varied, found in zip(sample.varied, differences, strict=True):
            for point in np.flatnonzero(varied.template < 0):
                found.add(int(point), self._sides(varied, int(point)), None)
            found.sort()
        covariance, of_mean = steadied(np.array(covariances), np.array(of_means))
        return Moments(sample.t, np.array(means), covariance, of_mean), differences

    def _sides(self, varied: Varied, point: int) -> list[Mean]:
        what = f"systematic {varied.name!r}"
        return [self._mean_at(side, point, what) for side in varied.sides]

    def _mean_at(self, events: Events, point: int, what: str) -> Mean:
        own = np.flatnonzero(events.point == point)
        key = events.key[own]
        fold = _folds(key)
        return sample_mean(
            self._summaries(events.x[own], fold), events.weights[own], key, fold, what
        )

    def _summaries(self, x: Array, fold: NDArray[np.int64]) -> Array:
        """[c, s] with the projections of the other fold."""
        size, count = self.size, self.projection.shape[2]
        result = np.empty((len(x), size + count))
        for part, c, z in event_features(self.reader.network, x):
            f = self.reader.features(c, z)
            result[part, :size] = c
            both = np.einsum("nf,kfs->kns", f, self.projection, optimize=True)
            result[part, size:] = both[1 - fold[part], np.arange(len(f))]
        return result


class _Differences:
    """What a variation does to the mean at each of its points."""

    def __init__(self) -> None:
        self.points: list[int] = []
        self.linear: list[Array] = []
        self.linear_covariance: list[Array] = []
        self.square: list[Array] = []
        self.square_covariance: list[Array] = []

    def add(self, point: int, sides: list[Mean], nominal: Mean | None) -> None:
        self.points.append(point)
        if len(sides) == 1:
            assert nominal is not None
            mean, covariance = combined([(1.0, sides[0]), (-1.0, nominal)])
        else:
            mean, covariance = combined([(0.5, sides[0]), (-0.5, sides[1])])
            if nominal is not None:
                parts = [(0.5, sides[0]), (0.5, sides[1]), (-1.0, nominal)]
                square, of_square = combined(parts)
                self.square.append(square)
                self.square_covariance.append(of_square)
        self.linear.append(mean)
        self.linear_covariance.append(covariance)

    def sort(self) -> None:
        """By point; those without a template came last."""
        order = np.argsort(self.points)
        self.linear = [self.linear[i] for i in order]
        self.linear_covariance = [self.linear_covariance[i] for i in order]
        with_template = [i for i in order if i < len(self.square)]
        if len(self.square):
            self.square = [self.square[i] for i in with_template]
            self.square_covariance = [self.square_covariance[i] for i in with_template]


def _root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(values.clip(min=0)))
