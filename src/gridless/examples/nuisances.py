"""A measurement with eight systematics and a background whose profiled likelihood is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import gamma, logistic, norm

from gridless.examples.profiled import Profiled
from gridless.systematics.inputs import Background, Systematic
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates

SHAPES = (9.0, 2.0)  # of the gamma distributions of x3 and x5 of the signal
OTHER_SHAPES = (6.0, 2.0)  # of the background
SHARES = (1e-3, 0.9)  # between which the share of the background is held


@dataclass(frozen=True)
class Nuisances(Profiled):
    """Six observables, eight systematics and a background of 10 +- 3 percent.

    x1 ~ scale N(5 + theta, width) carries the parameter; scales (jes, bjes), the width (jer),
    shifts
    (pileup, fsr, isr) and shapes (lepton, tail) move it and the others, which constrain them.

    Examples
    --------
    >>> example = Nuisances()
    >>> exact = example.exact(example.sample(0.4, 2_000, seed=1))
    >>> bool(abs(exact.value - 0.4) < 4 * exact.error)
    True
    """

    share: float = 0.1
    share_error: float = 0.03
    observables = ("x1", "x2", "x3", "x4", "x5", "x6")
    systematics = ("jes", "bjes", "jer", "pileup", "lepton", "isr", "fsr", "tail")

    @property
    def nuisances(self) -> tuple[str, ...]:
        """The systematics, and the background."""
        return (*self.systematics, "background")

    def observed(self, theta: Array, alpha: Array, random: np.random.Generator) -> Array:
        """One event for each theta with the nuisance parameters at alpha."""
        signal = self.signal(self.primary(len(theta), random), theta, alpha)
        other = self.other(self.primary(len(theta), random, OTHER_SHAPES), alpha)
        mixed = random.random(len(theta)) < self.share + self.share_error * alpha[-1]
        return np.where(mixed[:, None], other, signal)

    def primary(
        self, events: int, random: np.random.Generator, shapes: tuple[float, float] = SHAPES
    ) -> Array:
        """Standard numbers of which events are made: the same for every variation."""
        first, second = shapes
        return np.stack(
            [
                random.normal(size=events),
                random.normal(size=events),
                random.gamma(first, size=events),
                random.logistic(size=events),
                random.gamma(second, size=events),
                random.normal(size=events),
            ],
            axis=1,
        )

    def signal(self, u: Array, theta: Any, alpha: Array) -> Array:
        """Signal events of standard numbers u."""
        location, scale, _ = self._signal(np.asarray(theta, float), alpha)
        return self._events(u, location, scale)

    def other(self, u: Array, alpha: Array) -> Array:
        """Background events of standard numbers u."""
        location, scale, _ = self._other(alpha)
        return self._events(u, location, scale)

    def log_profile(self, x: Array, p: Array) -> Array:
        """log p(x | theta, alpha) of each event, p = (theta, alpha)."""
        alpha = p[1:]
        f = np.clip(self.share + self.share_error * alpha[-1], *SHARES)
        signal = self._log_pdf(x, *self._signal(p[0], alpha))
        other = self._log_pdf(x, *self._other(alpha))
        return np.asarray(np.logaddexp(np.log1p(-f) + signal, np.log(f) + other))

    def simulate(
        self, events: int, seed: int, kind: str = "same", templates: int = 10
    ) -> tuple[Templates, list[Systematic], list[Background]]:
        """Signal templates of `events` events each, with systematics and the background.

        Parameters
        ----------
        events : int
            Of each template, and of the background.
        seed : int
            Fixes everything random.
        kind : str
            How variations are made: of the "same" events, of "independent" ones, or as "weights"
            of the nominal ones.
        templates : int
            Values of theta.
        """
        random = np.random.default_rng(seed)
        theta = np.repeat((np.arange(templates) + 0.5) / templates, events)
        none = np.zeros(len(self.nuisances))
        u, v = self.primary(len(theta), random), self.primary(events, random, OTHER_SHAPES)
        x, other = self.signal(u, theta, none), self.other(v, none)
        found, of_other = [], []
        for number, name in enumerate(self.systematics):
            sides: list[Any] = []
            others: list[Any] = []
            for sign in (1.0, -1.0):
                alpha = none.copy()
                alpha[number] = sign
                if kind == "weights":
                    sides.append(
                        self._ratio(x, self._signal(theta, alpha), self._signal(theta, none))
                    )
                    others.append(self._ratio(other, self._other(alpha), self._other(none)))
                    continue
                if kind == "independent":
                    u, v = (
                        self.primary(len(theta), random),
                        self.primary(events, random, OTHER_SHAPES),
                    )
                sides.append((self.signal(u, theta, alpha), theta))
                others.append((self.other(v, alpha), None))
            found.append(Systematic(name, sides[0], sides[1]))
            if name == "jes":
                of_other.append(Systematic(name, others[0], others[1]))
        background = Background(
            "background", other, self.share, self.share_error, systematics=of_other
        )
        made = Templates(x, theta, bounds=(0, 1), observables=self.observables)
        return made, found, [background]

    def _signal(self, theta: Any, a: Array) -> tuple[list[Any], list[Any], list[float]]:
        """Location, scale and shape of every observable of the signal."""
        jes, bjes, jer, pileup, lepton, isr, fsr, tail = a[:8]
        k1, k2 = (1 + 0.02 * jes) * (1 + 0.01 * bjes), 1 + 0.02 * jes
        k3 = (1 + 0.01 * bjes) * (1 + 0.005 * fsr)
        location = [
            k1 * (5 + theta + 0.01 * isr - 0.02 * fsr),
            k2 * (4 + 0.02 * pileup),
            0.0,
            (1 + 0.01 * lepton) * (3 + 0.05 * pileup),
            0.0,
            0.3 * theta,
        ]
        scale = [
            k1 * (1 + 0.15 * jer), k2 * 0.5, k3, (1 + 0.01 * lepton) * 0.6, 1 + 0.05 * isr,
            1 + 0.1 * tail,
        ]  # fmt: skip
        return location, scale, [0.0, 0.0, SHAPES[0], 0.0, SHAPES[1], 0.0]

    def _other(self, a: Array) -> tuple[list[Any], list[Any], list[float]]:
        """The same of the background, which only the first systematic moves."""
        k = 1 + 0.02 * a[0]
        location = [k * 5.5, k * 4.0, 0.0, 3.0, 0.0, 0.0]
        return (
            location,
            [k * 2.0, k * 1.2, 1.2, 1.0, 1.5, 1.5],
            [0.0, 0.0, OTHER_SHAPES[0], 0.0, OTHER_SHAPES[1], 0.0],
        )

    def _events(self, u: Array, location: list[Any], scale: list[Any]) -> Array:
        columns = [location[j] + scale[j] * u[:, j] for j in range(len(self.observables))]
        return np.stack(columns, axis=1)

    def _log_pdf(
        self, x: Array, location: list[Any], scale: list[Any], shape: list[float]
    ) -> Array:
        total = np.zeros(len(x))
        for j, kind in enumerate((norm, norm, gamma, logistic, gamma, norm)):
            y = (x[:, j] - location[j]) / scale[j]
            total += _log_base(kind, y, shape[j]) - np.log(scale[j])
        return total

    def _ratio(self, x: Array, varied: Any, nominal: Any) -> Array:
        """Weights that make the varied density of nominal events."""
        return np.asarray(np.exp(self._log_pdf(x, *varied) - self._log_pdf(x, *nominal)))


def _log_base(kind: Any, y: Array, shape: float) -> Array:
    """The log density of a standard normal, logistic or gamma number, up to a constant."""
    if kind is norm:
        return np.asarray(-0.5 * y**2 - 0.5 * np.log(2 * np.pi))
    if kind is logistic:
        return np.asarray(-y - 2 * np.logaddexp(0, -y))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y > 0, (shape - 1) * np.log(y) - y - gammaln(shape), -np.inf)
