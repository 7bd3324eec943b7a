"""Basis densities: the shapes whose mixture is the posterior (sections 2 and 4 of the paper).

Every component lives on the unit interval, `t = (theta - low) / (high - low)`, or on the unit box
of several parameters, and is normalised there, so that bounds, units and Jacobians appear in one
place only (`gridless.posterior`). A basis turns raw network outputs `z` into a log density of `t`:

    log B(t; z),   with   integral B(t; z) dt = 1   over the box for every z.
"""

from abc import ABC, abstractmethod
from functools import cache
from itertools import product

import numpy as np
import torch
from torch import Tensor

from gridless.density.activations import tanh
from gridless.density.truncated import gaussian_exponent, log_gaussian_integral, log_logistic
from gridless.errors import InputError
from gridless.likelihood import chebyshev
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

# Widths from 1e-8 to 1e8 of the range; beyond, their squares overflow in float32.
_LOG_WIDTH = 18.0
# From here on the finer structure of a posterior is worth its noise.
_MANY_TEMPLATES, _MANY_EVENTS = 6, 200_000
# Gauss-Legendre nodes per parameter, with 2 or 3 parameters.
_NODES = {2: 24, 3: 12}
# With one parameter, as many as it takes: to what accuracy, and radii of ellipses that tell.
_CHOICE = (*range(8, 24, 2), *range(24, 64, 8), 64, 96, 128, 192)
_EXACT, _RADII = 1e-10, np.geomspace(0.02, 3, 60)
# The exponential of what is smaller is far from overflow in float32.
_NO_OVERFLOW = 80.0


class Basis(ABC):
    """One kind of component. Subclass it, and the class is known to `fit` and `load` by `name`."""

    name: str
    """What the basis is called in `fit(basis=...)` and in a saved model."""
    outputs: int
    """How many network outputs one component takes."""
    parameters: int = 1
    """How many parameters t has. One: t is a number; more: they are on the last axis of t."""

    def options(self) -> dict[str, float]:
        """The constructor's arguments, so that a saved model can be rebuilt."""
        return {}

    @classmethod
    def for_templates(cls, grid: Grid, events: float) -> "Basis":  # noqa: ARG003
        """The basis with options that suit templates on a grid with so many (effective) events."""
        if len(grid.parameters) > 1:
            raise InputError(
                f"basis: {cls.name!r} is a density of one parameter, the templates have "
                f"{len(grid.parameters)}; use 'gaussian' or 'exp_polynomial'"
            )
        return cls()

    @abstractmethod
    def start(self, components: int) -> Tensor:
        """Outputs (components, outputs) of a broad mixture over the range, to begin from."""

    @abstractmethod
    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        """log B(t; z), normalised on [0, 1]; `t` broadcasts against `z` less its last axis."""

    # log_prob in two parts, for bases where the second is expensive and not always needed.

    def log_shape(self, t: Tensor, z: Tensor) -> Tensor:
        """log B(t; z) + `log_integral(z)`."""
        return self.log_prob(t, z)

    def log_integral(self, z: Tensor) -> Tensor:
        """What normalises `log_shape`: a term without t."""
        return torch.zeros_like(z[..., 0])

    def log_shape_at(self, t: Tensor, z: Tensor) -> Tensor:
        """`log_shape` of every component at each of the values t: (..., values, components)."""
        return self.log_shape(t.unsqueeze(1), z.unsqueeze(-3))


class Polynomial(Basis):
    """A basis whose `log_shape` is a polynomial in t: `constant` plus the sum of `coefficients`
    times `terms`. Sums over events are then sums of coefficients."""

    degree: int
    """The highest power of a parameter."""

    @property
    def polynomial(self) -> bool:
        """Whether it is one with these options."""
        return True

    @abstractmethod
    def coefficients(self, z: Tensor) -> Tensor:
        """What `terms` are multiplied with, as many as outputs: (..., outputs)."""

    @abstractmethod
    def terms(self, t: Tensor) -> Tensor:
        """The terms of the polynomial at t (..., parameters): (..., outputs)."""

    def constant(self, z: Tensor) -> Tensor:
        """The part of `log_shape` without t."""
        return torch.zeros_like(z[..., 0])

    def chebyshev(self, c: Array) -> Array:
        """Chebyshev coefficients, one axis per parameter, of the sum of c times `terms`."""
        sizes = [self.degree + 1] * self.parameters
        terms = self.terms(torch.as_tensor(chebyshev.box_points(sizes))).numpy()
        return chebyshev.coefficients((terms @ c).reshape(sizes))


def as_polynomial(basis: Basis) -> Polynomial | None:
    """The basis, if it is a polynomial with its options."""
    return basis if isinstance(basis, Polynomial) and basis.polynomial else None


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


@cache
def box_quadrature(parameters: int, nodes: int) -> tuple[Tensor, Tensor]:
    """Points (nodes^parameters, parameters) and log weights of Gauss-Legendre on the unit box."""
    axis, weights = np.polynomial.legendre.leggauss(nodes)
    points = np.array(list(product(0.5 + 0.5 * axis, repeat=parameters)))
    total = np.array([np.prod(w) for w in product(weights / 2, repeat=parameters)])
    return torch.as_tensor(points), torch.as_tensor(np.log(total))


def _quadrature(parameters: int) -> tuple[Tensor, Tensor]:
    return box_quadrature(parameters, _NODES[parameters])


def _check_parameters(parameters: int) -> int:
    if parameters not in (1, *_NODES):
        raise InputError(f"parameters: {parameters}; give 1, 2 or 3")
    return int(parameters)


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
    def for_templates(cls, grid: Grid, events: float) -> Basis:
        super().for_templates(grid, events)
        return cls(floor=min(0.5 * grid.spacing, 0.25))

    def options(self) -> dict[str, float]:
        return {"floor": self.floor}

    def start(self, components: int) -> Tensor:
        centres = (torch.arange(components) + 0.5) / components
        return torch.stack([centres, torch.zeros(components)], dim=-1)

    def mean_width(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and width of the component before truncation, in units of the range."""
        return z[..., 0], self._width(z[..., 1])

    def _width(self, z: Tensor) -> Tensor:
        return self.floor + torch.exp(z.clamp(-_LOG_WIDTH, _LOG_WIDTH))


class Gaussian(_LocationScale, Polynomial):
    """Gaussian truncated to the range; outputs: its mean and the log of its width.

    With P parameters: exp(-y^2 / 2), y_p = (d_p + sum_{r<p} a_pr d_r) / width_p, d = t - mean;
    outputs: the P means, the P logs of the widths and the P (P - 1) / 2 slopes a that correlate.
    """

    name = "gaussian"

    def __init__(self, floor: float = 0.0, parameters: int = 1) -> None:
        super().__init__(floor)
        self.parameters = _check_parameters(parameters)
        self.outputs = 2 * parameters + parameters * (parameters - 1) // 2
        self.degree = 2

    @property
    def polynomial(self) -> bool:
        return self.parameters == 1

    @classmethod
    def for_templates(cls, grid: Grid, events: float) -> Basis:  # noqa: ARG003
        return cls(floor=min(0.5 * grid.spacing, 0.25), parameters=len(grid.parameters))

    def options(self) -> dict[str, float]:
        return {"floor": self.floor, "parameters": self.parameters}

    def start(self, components: int) -> Tensor:
        if self.parameters == 1:
            return super().start(components)
        start = torch.zeros(components, self.outputs)
        start[:, : self.parameters] = ((torch.arange(components) + 0.5) / components).unsqueeze(-1)
        return start

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        return self.log_shape(t, z) - self.log_integral(z)

    def log_integral(self, z: Tensor) -> Tensor:
        if self.parameters == 1:
            return log_gaussian_integral(*self.mean_width(z))
        nodes, log_weights = (v.to(z) for v in _quadrature(self.parameters))
        return torch.logsumexp(self.log_shape(nodes, z.unsqueeze(-2)) + log_weights, dim=-1)

    def log_shape(self, t: Tensor, z: Tensor) -> Tensor:
        count = self.parameters
        if count == 1:
            return gaussian_exponent(t, *self.mean_width(z))
        d = t - z[..., :count]
        width = self._width(z[..., count : 2 * count])
        exponent, slope = torch.zeros_like(d[..., 0] + z[..., 0]), 2 * count
        for p in range(count):
            y = d[..., p]
            for r in range(p):
                y = y + z[..., slope] * d[..., r]
                slope += 1
            exponent = exponent - 0.5 * (y / width[..., p]) ** 2
        return exponent

    def log_shape_at(self, t: Tensor, z: Tensor) -> Tensor:
        if self.parameters > 1:
            return super().log_shape_at(t, z)
        # Events last, as the network has them in memory: (..., components, values, events).
        mean, width = (v.movedim(-2, -1).unsqueeze(-2) for v in self.mean_width(z))
        return gaussian_exponent(t.unsqueeze(-1), mean, width).movedim(-1, -3).mT

    def coefficients(self, z: Tensor) -> Tensor:
        mean, width = self.mean_width(z)
        precision = width**-2
        c = torch.empty_like(z)  # with events last in memory if z has them so
        c[..., 0], c[..., 1] = (mean - 0.5) * precision, -0.5 * precision
        return c

    def constant(self, z: Tensor) -> Tensor:
        return self.log_shape(torch.full_like(z[..., 0], 0.5), z)

    def terms(self, t: Tensor) -> Tensor:
        """(t - 1/2) and its square, of one parameter: the numbers to add up stay small."""
        return torch.cat([t - 0.5, (t - 0.5) ** 2], dim=-1)


class Logistic(_LocationScale):
    """Logistic density truncated to the range: a Gaussian's shape with exponential tails."""

    name = "logistic"

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        return log_logistic(t, *self.mean_width(z))


class ExpPolynomial(Polynomial):
    """Exponential of a polynomial: log B = sum_k c_k P_k(2t - 1) - log(integral), k = 1..degree.

    P_k are Legendre polynomials (with several parameters their products of total degree k) and
    c_k = l_k tanh(z_k / l_k), where the limits l_k keep every structure wider than `floor`: then
    Gauss-Legendre gives the integral exactly. Flat for z = 0, of either curvature, and smooth in
    its outputs everywhere.
    """

    name = "exp_polynomial"

    def __init__(self, degree: int = 2, floor: float = 0.05, parameters: int = 1) -> None:
        if not 1 <= degree <= 8:
            raise InputError(f"degree: {degree}; give a whole number from 1 to 8 (2 suits most)")
        if not 0.02 <= floor < 1:
            raise InputError(f"floor: {floor} of the range; give a number from 0.02 to below 1")
        self.degree, self.floor = int(degree), float(floor)
        self.parameters = _check_parameters(parameters)
        every = product(range(self.degree + 1), repeat=self.parameters)
        self._powers = np.array(sorted((p for p in every if 0 < sum(p) <= degree), key=sum))
        self.outputs = len(self._powers)
        # |P_k''| <= (k-1)k(k+1)(k+2)/8 bounds the curvature by (2 floor)^-2 for each term; the
        # linear term may be as steep as a Gaussian of that width centred on a bound.
        k = self._powers
        bend = np.maximum((k - 1) * k * (k + 1) * (k + 2) / 8, 1).prod(axis=1)
        self._limits = torch.as_tensor((2 * self.floor) ** -2 / bend)

    @classmethod
    def for_templates(cls, grid: Grid, events: float) -> Basis:
        # What few events, or few templates in each parameter, do not determine would be noise.
        parameters = len(grid.parameters)
        large = len(grid) >= _MANY_TEMPLATES and events >= _MANY_EVENTS
        degree = 3 if large and parameters == 1 else 2
        return cls(degree, min(max(0.5 * grid.spacing, 0.02), 0.25), parameters)

    def options(self) -> dict[str, float]:
        return {"degree": self.degree, "floor": self.floor, "parameters": self.parameters}

    def start(self, components: int) -> Tensor:
        start = torch.zeros(components, self.outputs)
        start[:, 0] = torch.linspace(-1, 1, components) if components > 1 else 0.0
        return start

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        return self.log_shape(t, z) - self.log_integral(z)

    def log_integral(self, z: Tensor) -> Tensor:
        c = self.coefficients(z)
        # Events last, as in `log_shape_at`: (..., components, coefficients, events).
        rows = c[(None,) * (3 - c.dim())].movedim(-3, -1)
        largest = rows.detach().abs().amax(-1).flatten(0, -2).amax(0).cpu().double().numpy()
        exact = max(_EXACT, torch.finfo(z.dtype).eps)
        nodes, log_weights = (v.to(z) for v in self._quadrature(largest, exact))
        at_nodes = self.terms(nodes) @ rows
        if largest.sum() < _NO_OVERFLOW:
            # The mean of the polynomial is 0: its exponential's is neither small nor, here, large.
            result = torch.log(log_weights.exp() @ at_nodes.exp_())
        else:
            result = torch.logsumexp(at_nodes + log_weights.unsqueeze(-1), dim=-2)
        return result.movedim(-1, -2).reshape(z.shape[:-1])

    def _quadrature(self, largest: Array, exact: float) -> tuple[Tensor, Tensor]:
        """As few nodes as integrate the exponential of polynomials of such |c_k| so exactly; for
        several parameters always the same.

        On the ellipse of Bernstein around [-1, 1] with half axes cosh r and sinh r the real part of
        the polynomial rises by no more than s = sum_k |c_k| (cosh k r - 1), and its slope on
        [-1, 1] is at most sum_k |c_k| k^2. Gauss-Legendre with n nodes thus errs, relative to the
        integral, by less than 2 (1 + 2 slope) exp(s - 2 n r) / (1 - exp(-2 r)) for any r.
        """
        if self.parameters > 1:
            return _quadrature(self.parameters)
        k = self._powers[:, 0]
        rise = np.log(2 + 4 * largest @ k**2) + (np.cosh(np.outer(_RADII, k)) - 1) @ largest
        rise -= np.log(-np.expm1(-2 * _RADII))
        needed = ((rise - np.log(exact)) / (2 * _RADII)).min()
        return box_quadrature(1, next((n for n in _CHOICE if n >= needed), _CHOICE[-1]))

    def log_shape(self, t: Tensor, z: Tensor) -> Tensor:
        t = t.unsqueeze(-1) if self.parameters == 1 else t
        return (self.coefficients(z) * self.terms(t)).sum(-1)

    def log_shape_at(self, t: Tensor, z: Tensor) -> Tensor:
        t = t.unsqueeze(-1) if self.parameters == 1 else t
        # Events last, as the network has them in memory: (..., components, values, events).
        c = self.coefficients(z).movedim(-3, -1)
        return (self.terms(t) @ c).movedim(-1, -3).mT

    def coefficients(self, z: Tensor) -> Tensor:
        """c_k of every component."""
        limits = self._limits.to(z)
        return limits * tanh(z / limits)

    def terms(self, t: Tensor) -> Tensor:
        """The products of Legendre polynomials at t (..., parameters): (..., outputs)."""
        u = 2 * t - 1
        legendre = [torch.ones_like(u), u]
        for k in range(1, self.degree):
            legendre.append(((2 * k + 1) * u * legendre[k] - k * legendre[k - 1]) / (k + 1))
        table = torch.stack(legendre, dim=-1)
        columns = [table[..., p, self._powers[:, p]] for p in range(self.parameters)]
        return torch.stack(columns).prod(dim=0)
