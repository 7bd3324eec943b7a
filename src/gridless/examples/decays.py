"""A lifetime and an angle with an efficiency, two scales, a resolution and a background, all of a
known likelihood."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, log_ndtr
from scipy.stats import norm

from gridless.examples.profiled import Profiled
from gridless.systematics.inputs import Background, Systematic
from gridless.templates.arrays import Array
from gridless.templates.templates import Templates

SHARES = (1e-3, 0.9)  # between which the share of the background is held
NODES = np.linspace(-3.0, 25.0, 2801)  # decay times at which the mean efficiency is summed
SIGNAL_MEAN = (1.0, 4.0)  # of the log of the energy, and of the count
OTHER_MEAN = (0.6, 2.0)  # of the background
SPREAD = 0.4  # of the log of the energy


@dataclass(frozen=True)
class Decays(Profiled):
    """Decay time, angle, energy and a count; six systematics and a background of 15 +- 3 percent.

    theta changes the lifetime, 1 + theta / 2, and the slope of the angle. clock and energy are
    scales, resolution smears the decay time: they move events. efficiency (of the decay time),
    polarisation and rate change weights. prompt is the lifetime of the background.

    Examples
    --------
    >>> example = Decays()
    >>> exact = example.exact(example.sample(0.4, 2_000, seed=1))
    >>> bool(abs(exact.value - 0.4) < 4 * exact.error)
    True
    """

    share: float = 0.15
    share_error: float = 0.03
    observables = ("time", "angle", "energy", "count")
    moving = ("clock", "resolution", "energy")
    weighing = ("efficiency", "polarisation", "rate")

    @property
    def nuisances(self) -> tuple[str, ...]:
        return (*self.moving, *self.weighing, "prompt", "background")

    def observed(self, theta: Array, alpha: Array, random: np.random.Generator) -> Array:
        count = len(theta)
        signal, left = np.empty((count, len(self.observables))), np.arange(count)
        while len(left):
            signal[left] = self.signal(self.primary(len(left), random), theta[left], alpha)
            kept = random.random(len(left)) < 0.5 * _efficiency(signal[left, 0], alpha)
            left = left[~kept]
        other = self.other(self.primary(count, random), alpha)
        mixed = random.random(count) < self.share + self.share_error * alpha[-1]
        return np.where(mixed[:, None], other, signal)

    def primary(self, events: int, random: np.random.Generator) -> Array:
        """Standard numbers of which events are made: the same for every variation that moves."""
        uniform = random.random((events, 2))
        return np.stack(
            [random.exponential(size=events), random.normal(size=events), uniform[:, 0],
             random.normal(size=events), uniform[:, 1]],
            axis=1,
        )  # fmt: skip

    def signal(self, u: Array, theta: Any, alpha: Array) -> Array:
        """Signal events of standard numbers u, before the efficiency."""
        life, width, slope, rate = _signal(np.asarray(theta, float), alpha)
        angle = (np.sqrt((1 - slope) ** 2 + 4 * slope * u[:, 2]) - 1) / slope
        energy = np.exp(SIGNAL_MEAN[0] + SPREAD * u[:, 3]) * (1 + 0.02 * alpha[2])
        columns = [life * u[:, 0] + width * u[:, 1], angle, energy, _counts(u[:, 4], rate)]
        return np.stack(columns, axis=1)

    def other(self, u: Array, alpha: Array) -> Array:
        """Background events of standard numbers u."""
        life, width = _other(alpha)
        energy = np.exp(OTHER_MEAN[0] + SPREAD * u[:, 3]) * (1 + 0.02 * alpha[2])
        columns = [life * u[:, 0] + width * u[:, 1], 2 * u[:, 2] - 1, energy,
                   _counts(u[:, 4], OTHER_MEAN[1])]  # fmt: skip
        return np.stack(columns, axis=1)

    def log_profile(self, x: Array, p: Array) -> Array:
        alpha = p[1:]
        f = np.clip(self.share + self.share_error * alpha[-1], *SHARES)
        life, width, slope, rate = _signal(p[0], alpha)
        of_time = np.exp(_log_decay(NODES, life, width)) * _efficiency(NODES, alpha)
        signal = _log_decay(x[:, 0], life, width) + np.log(_efficiency(x[:, 0], alpha))
        signal = signal - np.log(of_time.sum() * (NODES[1] - NODES[0]))
        signal = signal + np.log((1 + slope * x[:, 1]) / 2) + _log_poisson(x[:, 3], rate)
        other = _log_decay(x[:, 0], *_other(alpha)) - np.log(2)
        other = other + _log_poisson(x[:, 3], OTHER_MEAN[1])
        energy = np.log(x[:, 2] / (1 + 0.02 * alpha[2]))
        signal = signal + norm.logpdf(energy, SIGNAL_MEAN[0], SPREAD)
        other = other + norm.logpdf(energy, OTHER_MEAN[0], SPREAD)
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
            Whether variations that move events are made of the "same" or of "independent" ones.
        templates : int
            Values of theta.
        """
        random = np.random.default_rng(seed)
        theta = np.repeat((np.arange(templates) + 0.5) / templates, events)
        none = np.zeros(len(self.nuisances))
        u, v = self.primary(len(theta), random), self.primary(events, random)
        x, other = self.signal(u, theta, none), self.other(v, none)

        def sides(name: str, make: Callable[[Array], Any]) -> Any:
            return [make(sign * np.eye(len(none))[self.nuisances.index(name)]) for sign in (1, -1)]

        def moved(alpha: Array) -> Any:
            own = u if kind == "same" else self.primary(len(theta), random)
            return self.signal(own, theta, alpha), theta

        def moved_other(alpha: Array) -> Any:
            own = v if kind == "same" else self.primary(events, random)
            return self.other(own, alpha), None

        def weights(alpha: Array) -> Array:
            _, _, slope, rate = _signal(theta, alpha)
            _, _, before, usual = _signal(theta, none)
            angle = (1 + slope * x[:, 1]) / (1 + before * x[:, 1])
            count = np.exp(_log_poisson(x[:, 3], rate) - _log_poisson(x[:, 3], usual))
            return np.asarray(_efficiency(x[:, 0], alpha) * angle * count)

        found = [Systematic(name, *sides(name, moved)) for name in self.moving]
        found += [Systematic(name, *sides(name, weights)) for name in self.weighing]
        own = [Systematic(name, *sides(name, moved_other)) for name in (*self.moving, "prompt")]
        background = Background("background", other, self.share, self.share_error, systematics=own)
        made = Templates(x, theta, bounds=(0, 1), observables=self.observables)
        return made, found, [background]


def _signal(theta: Any, alpha: Array) -> tuple[Any, float, Any, float]:
    """Lifetime, resolution, slope of the angle and mean count of the signal."""
    clock = 1 + 0.02 * alpha[0]
    return (
        clock * (1 + 0.5 * theta),
        clock * 0.3 * (1 + 0.1 * alpha[1]),
        0.2 + 0.3 * theta + 0.03 * alpha[4],
        SIGNAL_MEAN[1] * (1 + 0.03 * alpha[5]),
    )


def _other(alpha: Array) -> tuple[float, float]:
    """Lifetime and resolution of the background."""
    clock = 1 + 0.02 * alpha[0]
    return clock * 0.5 * (1 + 0.1 * alpha[6]), clock * 0.3 * (1 + 0.1 * alpha[1])


def _efficiency(time: Array, alpha: Array) -> Array:
    """Relative efficiency at a decay time."""
    return np.asarray(1 + 0.06 * alpha[3] * np.tanh(time - 1))


def _log_decay(time: Array, life: Any, width: float) -> Array:
    """Log density of an exponential decay time with a normal resolution."""
    pull = time / width
    tail = log_ndtr(pull - width / life)
    return np.asarray(tail - time / life + 0.5 * (width / life) ** 2 - np.log(life))


def _log_poisson(count: Array, mean: float) -> Array:
    return np.asarray(count * np.log(mean) - mean - gammaln(count + 1))


def _counts(u: Array, mean: float) -> Array:
    """Poisson numbers of uniform ones."""
    k = np.arange(40.0)
    steps = np.cumsum(np.exp(_log_poisson(k, mean)))
    return np.searchsorted(steps, u).astype(float)
