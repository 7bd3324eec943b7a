"""Measurements drawn at random, whose profiled likelihood is known exactly.

All processes are mixtures of Gaussians in y whose places, widths and shares change with theta and
with the nuisance parameters, seen as x = view(y).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import gridless as gl
from benchmarks.random_problems import VIEWS
from gridless.templates.arrays import Array

TRUTHS = (0.15, 0.35, 0.6, 0.85)
LEAST_ERRORS = 8  # of the measurement within the range: fewer are not a measurement
MOST_ERRORS = 300
LEAST_SHARE = 0.01  # of a background in truth; its estimate may be negative
STEP = 1e-4  # of theta and alpha, for slopes of places, widths and shares
CONVERGED = 1e-6  # units of log likelihood
FREE_SPREAD = 0.3  # of the true alpha of free nuisance parameters

EFFECTS = ("shift", "scale", "resolution", "share")
GIVEN = ("same", "independent", "weights")
WHERE = ("all", "all", "some", "one")  # values of theta at which samples are given
CONSTRAINTS = (1.0, 1.0, 1.0, 0.5, 2.0, None)


class Change(NamedTuple):
    """A systematic: what it does to y, how far, how it is given, and its constraint."""

    effect: str
    size: Array  # (observables,), or (processes,) of shares
    with_theta: float  # how much of it changes over the range of theta
    given: str
    where: str
    one_sided: bool
    constraint: float | None
    backgrounds: tuple[int, ...]  # which it moves too

    def __str__(self) -> str:
        side = ", one side" if self.one_sided else ""
        return f"{self.effect} ({self.given}, {self.where}{side}, {self.constraint})"


class Shape(NamedTuple):
    """A mixture of Gaussians: shares (c,), places and logs of widths (c, observables)."""

    shares: Array
    places: Array
    log_widths: Array


class Sample(NamedTuple):
    """Simulated events: the mixture as a function of alpha, at 0, the numbers of which events are
    made, and their y."""

    shape: Callable[[Array], Shape]
    nominal: Shape
    numbers: tuple[Array, Array]
    y: Array


class RandomMeasurement:
    """p(x | theta, alpha) of a seed; p = (theta, alpha of systematics, alpha of backgrounds)."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng([seed, 27])
        self.seed = seed
        self.count = int(random.integers(1, 6))
        self.processes = int(random.integers(1, 4))
        shape = (self.processes, self.count)
        depends = random.random(shape) < 0.5
        depends[0, 0] = True
        self.place = random.normal(0, 0.8, shape)
        self.moves = depends * random.normal(0, 1, shape) * 10 ** random.uniform(-0.8, 0.5)
        self.bends = self.moves * random.uniform(-0.4, 0.4, shape)
        self.log_width = random.normal(-0.2, 0.4, shape)
        self.grows = (random.random(shape) < 0.3) * random.normal(0, 0.5, shape)
        self.log_share = random.normal(0, 0.8, self.processes)
        self.shares_move = random.normal(0, 1, self.processes) * (random.random() < 0.4)
        self.views = random.integers(0, len(VIEWS), self.count)
        self.templates = int(random.integers(4, 13))
        self.events = int(10 ** random.uniform(math.log10(3_000), math.log10(30_000)))
        self.observed = int(10 ** random.uniform(math.log10(500), math.log10(20_000)))
        others = int(random.integers(0, 3))
        self.other_place = random.normal(0, 1, (others, self.count))
        self.other_log_width = random.normal(0.4, 0.3, (others, self.count))
        self.share = random.uniform(0.03, 0.25, others)
        self.share_unit = self.share * random.uniform(0.1, 0.5, others)
        self.share_free = random.random(others) < 0.25
        self.share_unit = np.where(self.share_free, self.share, self.share_unit)
        self.changes = [self._change(random) for _ in range(random.integers(1, 7))]
        errors = [np.inf if c.constraint is None else c.constraint for c in self.changes]
        self.errors = np.array([*errors, *np.where(self.share_free, np.inf, 1.0)])

    def _change(self, random: np.random.Generator) -> Change:
        effect = str(random.choice(EFFECTS[: 3 if self.processes == 1 else 4]))
        size = 10 ** random.uniform(-2, -0.7)
        if effect == "share":
            coefficients, given = random.normal(0, 3 * size, self.processes), "weights"
        else:
            which = random.random(self.count).argsort() < random.integers(1, 3)
            coefficients, given = which * random.normal(0, size, self.count), random.choice(GIVEN)
        where = "all" if given == "weights" else str(random.choice(WHERE))
        with_theta = random.normal(0, 0.5) if where == "all" and random.random() < 0.5 else 0.0
        moved = np.flatnonzero(random.random(len(self.share)) < 0.5) if effect != "share" else ()
        constraint = CONSTRAINTS[random.integers(len(CONSTRAINTS))]
        one_sided = bool(random.random() < 0.2)
        return Change(
            effect, coefficients, with_theta, str(given), where, one_sided, constraint,
            tuple(int(b) for b in moved),
        )  # fmt: skip

    def signal(self, t: float, alpha: Array) -> Shape:
        """The signal alone."""
        places = self.place + self.moves * t + self.bends * t**2
        log_widths = self.log_width + self.grows * t
        scores = self.log_share + self.shares_move * t
        for one, a in zip(self.changes, alpha, strict=False):
            by = a * one.size * (1 + one.with_theta * (t - 0.5))
            if one.effect == "share":
                scores = scores + by
            else:
                places, log_widths = _moved(one.effect, by, places, log_widths)
        return Shape(np.exp(scores - np.logaddexp.reduce(scores)), places, log_widths)

    def other(self, number: int, alpha: Array) -> Shape:
        """A background alone."""
        places, log_widths = self.other_place[[number]], self.other_log_width[[number]]
        for one, a in zip(self.changes, alpha, strict=False):
            if number in one.backgrounds:
                places, log_widths = _moved(one.effect, a * one.size, places, log_widths)
        return Shape(np.ones(1), places, log_widths)

    def mixture(self, p: Array) -> Shape:
        """Signal and backgrounds."""
        alpha = p[1:]
        f = self.share + self.share_unit * alpha[len(self.changes) :]
        parts = [self.signal(p[0], alpha), *(self.other(b, alpha) for b in range(len(f)))]
        each = [1 - f.sum(), *f]
        return Shape(
            np.concatenate([part.shares * share for part, share in zip(parts, each, strict=True)]),
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.log_widths for part in parts]),
        )

    def seen(self, y: Array) -> Array:
        """x of y."""
        return np.stack([VIEWS[v](c) for v, c in zip(self.views, y.T, strict=True)], axis=1)

    def draw_alpha(self, random: np.random.Generator) -> Array:
        """True nuisance parameters, with no background less than `LEAST_SHARE`."""
        spread = np.where(np.isfinite(self.errors), self.errors, FREE_SPREAD)
        while True:
            alpha = spread * random.normal(size=len(spread))
            if (self.share + self.share_unit * alpha[len(self.changes) :] > LEAST_SHARE).all():
                return np.asarray(alpha)

    def slopes(self, y: Array, p: Array) -> tuple[float, Array]:
        """The log likelihood of events, and the scores (events, parameters) of each."""
        shape = self.mixture(p)
        steps = STEP * np.eye(len(p))
        ends = [(self.mixture(p + s), self.mixture(p - s)) for s in steps]
        by = [np.array([(up[i] - down[i]) / (2 * STEP) for up, down in ends]) for i in range(3)]
        pulls, densities, total = _densities(y, shape)
        if (total <= 0).any():
            return -np.inf, np.zeros((len(y), len(p)))
        densities /= total[:, None]
        scores = densities @ by[0].T
        of_component = densities * shape.shares
        for weight, slope in ((pulls / np.exp(shape.log_widths), by[1]), (pulls**2 - 1, by[2])):
            weighted = (of_component[:, :, None] * weight).reshape(len(y), -1)
            scores = scores + weighted @ slope.reshape(len(p), -1).T
        return float(np.log(total).sum()), scores

    def exact(self, y: Array, start: Array) -> tuple[Array, Array]:
        """Parameters at the maximum of the profiled likelihood, and their covariance."""
        prior, p = np.diag([0.0, *self.errors**-2.0]), start.copy()

        def cost(q: Array) -> tuple[float, Array]:
            value, scores = self.slopes(y, q)
            return 0.5 * q @ prior @ q - value, scores

        value, scores = cost(p)
        for _ in range(30):
            gradient, hessian = prior @ p - scores.sum(axis=0), scores.T @ scores + prior
            step = np.linalg.solve(hessian, gradient)
            size = 1.0
            while size > 1e-3:
                new_value, new_scores = cost(p - size * step)
                if new_value < value:
                    break
                size *= 0.5
            else:
                break
            p, value, scores = p - size * step, new_value, new_scores
            if gradient @ step < CONVERGED:
                break
        return p, np.linalg.inv(scores.T @ scores + prior)

    def observed_events(self, p: Array, random: np.random.Generator) -> Array:
        """y of observed events."""
        shape = self.mixture(p)
        return _events(shape, *_numbers(shape, self.observed, self.count, random))

    def simulate(self) -> tuple[gl.Templates, list[gl.Systematic], list[gl.Background]]:
        """Templates, systematics and backgrounds, as a user gives them."""
        random = np.random.default_rng([self.seed, 28])
        grid = np.linspace(0, 1, self.templates)
        signals = [self._sample(partial(self.signal, t), self.events, random) for t in grid]
        sizes = [int(self.events * random.uniform(0.5, 2)) for _ in self.share]
        others = [self._sample(partial(self.other, b), n, random) for b, n in enumerate(sizes)]
        systematics: list[gl.Systematic] = []
        of_others: list[list[gl.Systematic]] = [[] for _ in others]
        rows = np.arange(self.templates * self.events).reshape(self.templates, -1)
        for k, one in enumerate(self.changes):
            places = {
                "all": np.arange(self.templates),
                "some": np.unique([0, self.templates // 2, self.templates - 1]),
                "one": np.array([self.templates // 2]),
            }[one.where]
            sides: list[Any] = []
            of_each: dict[int, list[Any]] = {b: [] for b in one.backgrounds}
            for sign in (1.0,) if one.one_sided else (1.0, -1.0):
                alpha = sign * np.eye(len(self.changes))[k]
                x = [self._varied(signals[j], one.given, alpha, random) for j in places]
                theta = np.repeat(grid[places], self.events)
                sides.append(np.concatenate(x) if one.given == "weights" else
                             (np.concatenate(x), theta))  # fmt: skip
                for b, into in of_each.items():
                    x_b = self._varied(others[b], one.given, alpha, random)
                    into.append(x_b if one.given == "weights" else (x_b, None))
            same: Any = None
            if one.given == "same" and one.where != "all":
                same = (rows.ravel(), *[rows[places].ravel()] * len(sides))
            name = f"s{k}"
            systematics.append(gl.Systematic(name, *sides, constraint=one.constraint,
                                             same_events=same))  # fmt: skip
            for b, into in of_each.items():
                of_others[b].append(gl.Systematic(name, *into, constraint=one.constraint))
        x = self.seen(np.concatenate([one.y for one in signals]))
        errors = [None if free else u for free, u in
                  zip(self.share_free, self.share_unit, strict=True)]  # fmt: skip
        backgrounds = [
            gl.Background(f"b{b}", self.seen(one.y), self.share[b], errors[b],
                          systematics=of_others[b])
            for b, one in enumerate(others)
        ]  # fmt: skip
        templates = gl.Templates(x, np.repeat(grid, self.events), bounds=(0, 1))
        return templates, systematics, backgrounds

    def _sample(
        self, shape: Callable[[Array], Shape], events: int, random: np.random.Generator
    ) -> "Sample":
        nominal = shape(np.zeros(len(self.changes)))
        numbers = _numbers(nominal, events, self.count, random)
        return Sample(shape, nominal, numbers, _events(nominal, *numbers))

    def _varied(
        self, sample: "Sample", given: str, alpha: Array, random: np.random.Generator
    ) -> Array:
        """Weights of the events of a sample with nuisance parameters at alpha, or x of others."""
        shape, numbers = sample.shape(alpha), sample.numbers
        if given == "weights":
            return _ratio(sample.y, shape, sample.nominal)
        if given == "independent":
            numbers = _numbers(shape, len(sample.y), self.count, random)
        return self.seen(_events(shape, *numbers))

    def is_measurement(self) -> bool:
        """Whether the parameter is known neither to nearly nothing nor to nearly all."""
        found = []
        for truth in TRUTHS:
            p = np.array([truth, *np.zeros(len(self.errors))])
            y = self.observed_events(p, np.random.default_rng(1))
            covariance = self.exact(y, p)[1]
            found.append(1 / math.sqrt(covariance[0, 0]))
        return LEAST_ERRORS < min(found) < MOST_ERRORS

    def __str__(self) -> str:
        free = ["free" if f else f"{u / s:.0%}" for f, u, s in
                zip(self.share_free, self.share_unit, self.share, strict=True)]  # fmt: skip
        shares = " ".join(f"{s:.2f} +- {e}" for s, e in zip(self.share, free, strict=True))
        return (
            f"{self.count} observables, {self.templates} x {self.events}, {self.observed} observed;"
            f" {'; '.join(str(one) for one in self.changes)}; backgrounds {shares or 'none'}"
        )


def _moved(effect: str, by: Array, places: Array, log_widths: Array) -> tuple[Array, Array]:
    if effect == "shift":
        return places + by, log_widths
    if effect == "scale":
        return places * np.exp(by), log_widths + by
    return places, log_widths + by


def _numbers(
    shape: Shape, events: int, count: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Of which component an event is, and its standard normal numbers: same for all variations."""
    bounds = shape.shares.cumsum()
    component = np.searchsorted(bounds / bounds[-1], random.random(events))
    return component, random.normal(size=(events, count))


def _events(shape: Shape, component: Array, noise: Array) -> Array:
    return np.asarray(shape.places[component] + np.exp(shape.log_widths[component]) * noise)


def _densities(y: Array, shape: Shape) -> tuple[Array, Array, Array]:
    """Pulls (events, c, observables), densities (events, c) and that of the mixture (events,), up
    to a constant."""
    pulls = (y[:, None] - shape.places) / np.exp(shape.log_widths)
    densities = np.exp(-(0.5 * pulls**2 + shape.log_widths).sum(axis=2))
    return pulls, densities, densities @ shape.shares


def _ratio(y: Array, varied: Shape, nominal: Shape) -> Array:
    """Weights that make the varied density of nominal events."""
    return np.asarray(_densities(y, varied)[2] / _densities(y, nominal)[2])
