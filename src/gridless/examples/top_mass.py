"""A top-quark mass from six observables, with a density that is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, expon, gamma, norm

from gridless.examples.example import Example
from gridless.templates.arrays import Array

LEAST_MASS = 165.0  # GeV, at theta = 0
MASS_RANGE = 15.0  # GeV, from theta = 0 to 1
USUAL_MASS = 172.5  # GeV, where the scales below are given
W_MASS = 80.4  # GeV


@dataclass(frozen=True)
class TopMass(Example):
    """m_t = (165 + 15 theta) GeV from three masses, two momenta and a quality of the pairing.

    In a share of the events the jets are paired rightly: m_jj is a Gaussian around the mass of the
    W, m_jjb one around m_t that moves with m_jj, m_lb one below its end point. In the others all
    three are broad. `quality` tells the two kinds apart, though not event by event. The momenta
    grow a little with m_t. Masses and momenta are in GeV.

    Examples
    --------
    >>> TopMass().sample(0.5, 3, seed=1).shape
    (3, 6)
    """

    right: float = 0.55
    smear: float = 0.09
    narrow: float = 0.05
    observables = ("m_jjb", "m_jj", "m_lb", "pt_lepton", "pt_b", "quality")

    def draw(self, theta: Array, random: np.random.Generator) -> Array:
        events, mass = len(theta), _mass(theta)
        right = random.random(events) < self.right
        off = random.normal(0, self.smear, events)
        return np.stack(
            [
                np.where(
                    right,
                    mass * (1 + 0.6 * off + random.normal(0, self.narrow, events)),
                    90 + random.gamma(3.5, 38 * mass / USUAL_MASS),
                ),
                np.where(right, W_MASS * (1 + off), 30 + random.gamma(3, 28, events)),
                np.where(
                    right,
                    random.normal(0.62 * _end(mass), 0.2 * _end(mass)),
                    35 + random.gamma(3, 32, events),
                ),
                25 + random.exponential(35 * mass / USUAL_MASS),
                30 + random.gamma(2, 22 * mass / USUAL_MASS),
                np.where(right, random.beta(5, 2, events), random.beta(2, 3, events)),
            ],
            axis=1,
        )

    def log_density(self, x: Array, theta: Any) -> Array:
        m_jjb, m_jj, m_lb, pt_lepton, pt_b, quality = x.T
        mass = float(_mass(theta))
        off = m_jj / W_MASS - 1
        paired = (
            norm.logpdf(m_jjb, mass * (1 + 0.6 * off), self.narrow * mass)
            + norm.logpdf(m_jj, W_MASS, self.smear * W_MASS)
            + norm.logpdf(m_lb, 0.62 * _end(mass), 0.2 * _end(mass))
            + beta.logpdf(quality, 5, 2)
        )
        wrong = (
            gamma.logpdf(m_jjb, 3.5, 90, 38 * mass / USUAL_MASS)
            + gamma.logpdf(m_jj, 3, 30, 28)
            + gamma.logpdf(m_lb, 3, 35, 32)
            + beta.logpdf(quality, 2, 3)
        )
        both = np.logaddexp(np.log(self.right) + paired, np.log1p(-self.right) + wrong)
        momenta = expon.logpdf(pt_lepton, 25, 35 * mass / USUAL_MASS)
        return np.asarray(both + momenta + gamma.logpdf(pt_b, 2, 30, 22 * mass / USUAL_MASS))


def _mass(theta: Any) -> Any:
    """m_t in GeV."""
    return LEAST_MASS + MASS_RANGE * theta


def _end(mass: Any) -> Any:
    """Where the mass of lepton and b jet ends, in GeV."""
    return np.sqrt(mass**2 - W_MASS**2)
