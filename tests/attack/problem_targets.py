"""Whole problems drawn at random: odd templates, options, systematics, groups and channels at once.

Each part is taken alone by other targets; here they meet. What a problem gives must be finite, in
its bounds, and the same after a model is saved and loaded.
"""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.attack.mutations import Generator, choose
from tests.attack.run import begin_call

import gridless as gl

Array = NDArray[np.float64]
FEW = (1, 2, 3, 5, 20)  # events: too few for anything
SOME = (40, 100, 300)
OPTIONS: dict[str, tuple[Any, ...]] = {
    "hidden": (1, 2, 3, (2, 2), ()),
    "ensemble": (1, 2, 4),
    "components": (1, 1, 1, 2),
    "basis": (None, "exp_polynomial", "gaussian", "logistic", {"exp_polynomial": {"degree": 5}}),
    "objective": ("template", "template", "posterior", "penalty"),
    "prior": ("divide", "divide", "flat"),
    "activation": ("tanh", "silu", "relu"),
    "validation": (None, 0.01, 0.5, 0.9),
    "epochs": (1, 2, 4),
    "batch": (None, 9, 10**6),
    "rate": (0.03, 1e-30, 10.0),
    "ridge": (None, 0.0, 1e12),
    "replicas": (0, 2, 3),
    "calibrate": (True, True, False),
}
# What an observable may be, given theta and random numbers of unit width.
COLUMNS: tuple[Callable[[Array, Array], Array], ...] = (
    lambda theta, z: theta + z,
    lambda theta, z: theta + z,
    lambda theta, z: theta + z,
    lambda theta, z: z,
    lambda theta, z: 0 * z + 3,
    lambda theta, z: theta,
    lambda theta, z: theta + 1e-9 * z,
    lambda theta, z: np.round(theta + z),
    lambda theta, z: (z > theta).astype(float),
    lambda theta, z: np.exp(3 * z + theta),
    lambda theta, z: 1 / (z + theta),
    lambda theta, z: 1e30 * (theta + z),
    lambda theta, z: 1e-30 * (theta + z),
    lambda theta, z: 1e10 + theta + z,
    lambda theta, z: np.where(z > 2, -999.0, theta + z),
    lambda theta, z: np.where(z > -2, 7.0, theta),
)
WEIGHTS: tuple[Callable[[Generator, int], Array | None], ...] = (
    lambda rng, n: None,
    lambda rng, n: None,
    lambda rng, n: np.ones(n),
    lambda rng, n: rng.choice([1.0, 1.0, 1.0, -1.0], n),
    lambda rng, n: rng.exponential(1, n),
    lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, 1.0),
    lambda rng, n: np.arange(n) == n - 1.0,
    lambda rng, n: 10 ** rng.uniform(-8, 8, n),
    lambda rng, n: 1e-90 * rng.random(n),
    lambda rng, n: 1e90 * rng.random(n),
    lambda rng, n: rng.normal(0.01, 1, n),
)
WHERE: tuple[Callable[[Array, Generator], Array], ...] = (
    lambda x, rng: x,
    lambda x, rng: x,
    lambda x, rng: x[:1],
    lambda x, rng: x[:2],
    lambda x, rng: np.repeat(x[:1], 30, axis=0),
    lambda x, rng: np.where(np.arange(len(x))[:, None] == 0, -999.0, x),
    lambda x, rng: np.where(np.arange(len(x))[:, None] < 3, 1e38, x),
    lambda x, rng: x + 50.0,
    lambda x, rng: 1.5 * x,
    lambda x, rng: np.sort(x, axis=0),
    lambda x, rng: 0 * x,
)


def odd_weights(rng: Generator, count: int) -> Array | None:
    """Often harmless ones: where weights are refused, nothing else is tried."""
    kind = choose(rng, WEIGHTS[:5] if rng.random() < 0.7 else WEIGHTS)
    return kind(rng, count)


class Problem:
    """A simulation whose templates, weights and observables are odd."""

    def __init__(self, rng: Generator) -> None:
        self.rng = rng
        self.columns = [choose(rng, COLUMNS) for _ in range(int(choose(rng, (1, 1, 2, 3))))]
        values = np.sort(rng.choice(np.linspace(0, 1, 21), int(choose(rng, (2, 3, 5))), False))
        self.values = values[:, None]
        if rng.random() < 0.2:
            self.values = np.array([(a, b) for a in values[:3] for b in values[:3]])
        counts = [int(choose(rng, SOME)) for _ in self.values]
        if rng.random() < 0.1:
            counts[int(rng.integers(len(counts)))] = int(choose(rng, FEW))
        if rng.random() < 0.05:
            counts = [int(choose(rng, FEW)) for _ in counts]
        self.theta = np.repeat(self.values, counts, axis=0)
        self.x = self.events(self.theta)
        self.weights = odd_weights(rng, len(self.x))
        low, high = choose(rng, ((-1, 2), (0, 1), (-9, 11), (-1e-3, 1.001)))
        width = self.values.shape[1]
        self.templates = gl.Templates(
            self.x, self.theta, [(low, high)] * width if width > 1 else (low, high), self.weights
        )

    def events(self, theta: Array) -> Array:
        """Events at theta (events, parameters): each observable looks at one of them."""
        width = theta.shape[1]
        z = self.rng.normal(0, 1, (len(self.columns), len(theta)))
        parts = [f(theta[:, k % width], z[k]) for k, f in enumerate(self.columns)]
        return np.stack(parts, axis=1)

    def systematic(self, name: str) -> gl.Systematic:
        """One of some kinds."""
        rng, n = self.rng, len(self.x)
        constraint = choose(rng, (1.0, 1.0, None, 1e-6, 1e3))
        tilt = 1 + 0.1 * np.tanh(self.x[:, 0])
        base = np.ones(n) if self.weights is None else self.weights
        kind = int(rng.integers(9))
        given: Any = (
            lambda: (base * tilt, base / tilt),
            lambda: (base * tilt, None),
            lambda: (base * (1 + 1e-12), base * (1 - 1e-12)),
            lambda: (1e3 * base, base),
            lambda: (rng.choice([1.0, 1.0, -1.0], n), base),
            lambda: (1.01 * self.x, 0.99 * self.x),
            lambda: (self.x + rng.normal(0, 1, self.x.shape), None),
            lambda: ((self.x[:40] + 0.1, self.theta[:40]), (self.x[:40] - 0.1, self.theta[:40])),
            lambda: ((self.events(self.theta), self.theta), (self.events(self.theta), self.theta)),
        )[kind]()
        return gl.Systematic(name, *given, constraint=constraint)

    def background(self, name: str) -> gl.Background:
        """Few or many events, of any weights."""
        rng = self.rng
        count = int(choose(rng, (choose(rng, FEW), *SOME, *SOME)))
        x = self.events(np.full((count, self.values.shape[1]), 0.5))
        share, error = choose(rng, ((0.1, 0.03), (0.4, None), (1e-6, 1e-6), (0.48, 0.5)))
        return gl.Background(name, x, share, error, odd_weights(rng, count))

    def fit(self) -> gl.Model:
        """With some options, systematics and backgrounds."""
        rng = self.rng
        options = {"hidden": 2, "epochs": 2, "replicas": 2, "ensemble": int(choose(rng, (1, 4)))}
        for name in rng.choice(list(OPTIONS), int(choose(rng, (0, 0, 1, 2, 4))), False):
            options[str(name)] = choose(rng, OPTIONS[str(name)])
        if self.values.shape[1] > 1 and options.get("batch") == 9:
            options["batch"] = 90  # a thousand steps with two parameters take half a minute
        more = int(choose(rng, (0, 0, 1, 2)))
        self.said = repr((options, more))
        return gl.fit(
            self.templates,
            **options,
            systematics=[self.systematic(f"s{k}") for k in range(more)],
            backgrounds=[
                self.background(f"b{k}") for k in range(int(choose(rng, (0, 0, 0, 1, 2))))
            ],
        )

    def observed(self) -> tuple[Array, Array | None, Any]:
        """Events, weights and groups."""
        rng = self.rng
        x = self.events(np.full((int(choose(rng, (*FEW, *SOME))), self.values.shape[1]), 0.4))
        x = choose(rng, WHERE)(x, rng)
        groups = choose(rng, (None, None, np.arange(len(x)) % 3, x[:, 0] > np.median(x[:, 0]),
                              np.where(np.arange(len(x)) == 0, "one", "others")))  # fmt: skip
        return x, odd_weights(rng, len(x)), groups


def problems(ground: Any, rng: Generator, folder: Path) -> str:
    """An odd problem is refused by an InputError, or gives finite and consistent results."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", gl.GridlessWarning)
        problem = Problem(rng)
        model = problem.fit()
        str(model), model._repr_html_(), str(model.warnings)
        x, weights, by = problem.observed()
        begin_call()
        likelihood = model.likelihood(x, weights, by)
        if rng.random() < 0.2:
            likelihood = likelihood + _other(problem).named("b")
        name = model.grid.parameters[0]
        likelihood = choose(rng, (lambda one: one,) * 3 + CHANGES)(likelihood)
        estimate = likelihood.maximum()
        shown(estimate)
        begin_call()
        choose(rng, USES)(problem, model, likelihood, name)
        if by is None and rng.random() < 0.3:
            path = folder / "model.safetensors"
            model.save(path)
            again = gl.load(path).likelihood(x, weights).maximum().to_dict()
            if again != model.likelihood(x, weights).maximum().to_dict():
                return "different"
    return "any"


def _other(problem: Problem) -> gl.Likelihood:
    """A second channel."""
    model = problem.fit()
    x, weights, _ = problem.observed()
    return model.likelihood(x, weights)


def shown(result: Any) -> None:
    """Print a result in all ways; its JSON is strict, its values lie within their bounds."""
    str(result), repr(result)
    if hasattr(result, "_repr_html_"):
        result._repr_html_()
    if hasattr(result, "to_dict"):
        json.dumps(result.to_dict(), allow_nan=False)
    if isinstance(result, gl.Estimate | gl.MeasurementEstimate):
        for name in result:
            one = result[name]
            low, high = one.interval
            if not (np.isfinite(one.value) and low <= one.value <= high and one.error >= 0):
                raise RuntimeError(f"{name} = {one.value} +- {one.error} in {one.interval}")


def _nuisance(likelihood: gl.Likelihood) -> str:
    return str(likelihood.parameters[-1])


CHANGES: tuple[Callable[[Any], Any], ...] = (
    lambda one: one.constrain(one.parameters[0], 0.3, 0.1),
    lambda one: one.constrain(one.parameters[0], 0.3, 1e-9),
    lambda one: one.constrain(_nuisance(one), 3.0, 0.5),
    lambda one: one.fix(**{_nuisance(one): 0.3}),
)
USES: tuple[Callable[[Problem, gl.Model, Any, str], Any], ...] = (
    lambda p, m, one, name: one.interval(0.95),
    lambda p, m, one, name: one.interval(0.999999, name, stat=True),
    lambda p, m, one, name: one.profile(name, np.linspace(0, 1, 3)),
    lambda p, m, one, name: one.contour(name, one.parameters[-1], points=8),
    lambda p, m, one, name: one.scan(np.linspace(0, 1, 3)) if len(m.grid.parameters) == 1 else None,
    lambda p, m, one, name: one.by() if len(one.channels) > 1 else None,
    lambda p, m, one, name: shown(one.maximum().blinded("a key")),
    lambda p, m, one, name: one.to_cabinetry(name),
    lambda p, m, one, name: shown(m.expected(p.values[0], 50).maximum()),
    lambda p, m, one, name: shown(gl.closure(m, p.templates)),
    # 25 estimates with odd backgrounds, and a plan of two parameters, take some ten seconds, which
    # is no hang.
    lambda p, m, one, name: shown(gl.coverage(m, p.templates, toys=2, events=20)),
    lambda p, m, one, name: shown(gl.plan(m, 100)) if len(m.grid.parameters) == 1 else None,
    lambda p, m, one, name: shown(gl.gaps(m, 100)),
    lambda p, m, one, name: shown(gl.reliability(m)),
    lambda p, m, one, name: shown(gl.template_agreement(m)),
    lambda p, m, one, name: shown(gl.bootstrap(m, p.observed()[0], toys=20)),
    lambda p, m, one, name: shown(gl.binned_check(m, *p.observed()[:2])),
    lambda p, m, one, name: shown(gl.compare(m, one)),
    lambda p, m, one, name: shown(p.templates.audit()),
    lambda p, m, one, name: m.at(p.values[0]).sample(20),
    lambda p, m, one, name: m.histograms(p.values[0]),
    lambda p, m, one, name: one.belt(name, toys=20, points=5),
    lambda p, m, one, name: one.minuit().migrad() if hasattr(one, "minuit") else None,
)
