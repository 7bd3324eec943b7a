"""Basis densities: the shapes whose mixture is the posterior (sections 2 and 4 of the paper).

Every component lives on the unit interval, `t = (theta - low) / (high - low)`, and is
normalised there, so that bounds, units and Jacobians appear in one place only
(`gridless.posterior`). A basis turns raw network outputs `z` into a log density of `t`:

    log B(t; z),   with   integral_0^1 B(t; z) dt = 1   for every z.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from gridless.errors import InputError
from gridless.truncated import log_gaussian, log_logistic

# Widths from 1e-8 to 1e8 of the range; beyond, their squares overflow in float32.
_LOG_WIDTH = 18.0


class Basis(ABC):
    """One kind of component. Subclass it, and the class is known to `fit` and `load` by `name`."""

    name: str
    """What the basis is called in `fit(basis=...)` and in a saved model."""
    outputs: int
    """How many network outputs one component takes."""

    def options(self) -> dict[str, float]:
        """The constructor's arguments, so that a saved model can be rebuilt."""
        return {}

    @classmethod
    def for_spacing(cls, spacing: float) -> "Basis":  # noqa: ARG003
        """The basis with options that suit templates `spacing` of the range apart."""
        return cls()

    @abstractmethod
    def start(self, components: int) -> Tensor:
        """Outputs (components, outputs) of a broad mixture over the range, to begin from."""

    @abstractmethod
    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        """log B(t; z), normalised on [0, 1]; `t` broadcasts against `z` less its last axis."""


def basis_kind(name: str) -> type[Basis]:
    """The basis class called `name`: one of ours or any subclass of `Basis` that was imported."""
    kinds = {kind.name: kind for kind in _subclasses(Basis)}  # type: ignore[type-abstract]
    if name not in kinds:
        known = ", ".join(sorted(kinds))
        raise InputError(
            f"basis: there is no {name!r}; known are {known}; import the module of your own first"
        )
    return kinds[name]


def _subclasses(kind: type[Basis]) -> list[type[Basis]]:
    direct = kind.__subclasses__()
    return [k for k in direct if hasattr(k, "name")] + [g for k in direct for g in _subclasses(k)]


class _LocationScale(Basis):
    """Components with a mean z_0 and a width = floor + exp(z_1), in units of the range.

    The floor keeps components from collapsing onto the templates.
    """

    outputs = 2

    def __init__(self, floor: float = 0.0) -> None:
        if not 0 <= floor < 1:
            raise InputError(f"floor: {floor} of the range; give a number from 0 to below 1")
        self.floor = float(floor)

    @classmethod
    def for_spacing(cls, spacing: float) -> Basis:
        return cls(floor=min(0.5 * spacing, 0.25))

    def options(self) -> dict[str, float]:
        return {"floor": self.floor}

    def start(self, components: int) -> Tensor:
        centres = (torch.arange(components) + 0.5) / components
        return torch.stack([centres, torch.zeros(components)], dim=-1)

    def mean_width(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and width of the component before truncation, in units of the range."""
        return z[..., 0], self.floor + torch.exp(z[..., 1].clamp(-_LOG_WIDTH, _LOG_WIDTH))


class Gaussian(_LocationScale):
    """Gaussian truncated to the range; outputs: its mean and the log of its width."""

    name = "gaussian"

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        return log_gaussian(t, *self.mean_width(z))


class Logistic(_LocationScale):
    """Logistic density truncated to the range: a Gaussian's shape with exponential tails."""

    name = "logistic"

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        return log_logistic(t, *self.mean_width(z))


class ExpPolynomial(Basis):
    """Exponential of a polynomial: log B = sum_k c_k P_k(2t - 1) - log(integral), k = 1..degree.

    P_k are Legendre polynomials and c_k = l_k tanh(z_k / l_k), where the limits l_k keep every
    structure wider than `floor`: then 64 Gauss-Legendre nodes give the integral exactly. Flat for
    z = 0, of either curvature, and smooth in its outputs everywhere.
    """

    name = "exp_polynomial"

    def __init__(self, degree: int = 2, floor: float = 0.05) -> None:
        if not 1 <= degree <= 8:
            raise InputError(f"degree: {degree}; give a whole number from 1 to 8 (2 suits most)")
        if not 0.02 <= floor < 1:
            raise InputError(f"floor: {floor} of the range; give a number from 0.02 to below 1")
        self.degree, self.floor = int(degree), float(floor)
        self.outputs = self.degree
        k = np.arange(1, self.degree + 1)
        # |P_k''| <= (k-1)k(k+1)(k+2)/8 bounds the curvature by (2 floor)^-2 for each term; the
        # linear term may be as steep as a Gaussian of that width centred on a bound.
        bend = np.maximum((k - 1) * k * (k + 1) * (k + 2) / 8, 1)
        self._limits = torch.as_tensor((2 * self.floor) ** -2 / bend)
        nodes, weights = np.polynomial.legendre.leggauss(64)
        self._at_nodes = torch.as_tensor(np.polynomial.legendre.legvander(nodes, degree)[:, 1:])
        self._log_weights = torch.as_tensor(np.log(weights / 2))

    @classmethod
    def for_spacing(cls, spacing: float) -> Basis:
        return cls(floor=min(max(0.5 * spacing, 0.02), 0.25))

    def options(self) -> dict[str, float]:
        return {"degree": self.degree, "floor": self.floor}

    def start(self, components: int) -> Tensor:
        start = torch.zeros(components, self.degree)
        start[:, 0] = torch.linspace(-1, 1, components) if components > 1 else 0.0
        return start

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        limits = self._limits.to(z)
        c = limits * torch.tanh(z / limits)
        u = 2 * t - 1
        polynomial, before, p = 0.0 * u, torch.ones_like(u), u
        for k in range(1, self.degree + 1):
            polynomial = polynomial + c[..., k - 1] * p
            before, p = p, ((2 * k + 1) * u * p - k * before) / (k + 1)
        log_integral = torch.logsumexp(c @ self._at_nodes.to(z).T + self._log_weights.to(z), dim=-1)
        return polynomial - log_integral
