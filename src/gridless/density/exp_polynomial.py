"""Exponentials of polynomials: flat, Gaussian or skewed, of either curvature."""

from itertools import product

import numpy as np
import torch
from torch import Tensor

from gridless.density.activations import tanh
from gridless.density.basis import BOX_NODES, Basis, PolynomialBasis, box_rule
from gridless.density.location_scale import floor_for
from gridless.errors import InputError
from gridless.templates.grid import Grid

# Templates and effective events from which on a cubic exponent is more than noise.
MIN_TEMPLATES_FOR_CUBIC = 6
MIN_EVENTS_FOR_CUBIC = 200_000
# The least floor: narrower structures would need more nodes than there are to choose from.
MIN_FLOOR = 0.02
# The exponential of less is far from overflow in float32 (exp(88)).
MAX_EXPONENT = 80.0


class ExpPolynomial(PolynomialBasis):
    """Exponential of a polynomial: log B = sum_k c_k P_k(2t - 1) - log(integral), k = 1..degree.

    P_k are Legendre polynomials (with several parameters their products of total degree k) and
    c_k = l_k tanh(z_k / l_k), where the limits l_k keep every structure wider than `floor`: then
    Gauss-Legendre gives the integral exactly. Flat for z = 0, of either curvature, and smooth in
    its outputs everywhere.

    Parameters
    ----------
    degree : int
        Degree of the polynomial, 1 to 8.
    floor : float
        Least width of a structure, in units of the range, from 0.02.
    parameters : int
        1, 2 or 3.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.ExpPolynomial(degree=3).outputs
    3
    >>> gl.ExpPolynomial(degree=2, parameters=2).outputs
    5
    """

    name = "exp_polynomial"

    def __init__(self, degree: int = 2, floor: float = 0.05, parameters: int = 1) -> None:
        if not 1 <= degree <= 8:
            raise InputError(f"degree: {degree}; give a whole number from 1 to 8 (2 suits most)")
        if not MIN_FLOOR <= floor < 1:
            raise InputError(f"floor: {floor} of the range; give a number from 0.02 to below 1")
        if parameters not in (1, *BOX_NODES):
            raise InputError(f"parameters: {parameters}; give 1, 2 or 3")
        self.degree = int(degree)
        self.floor = float(floor)
        self.parameters = int(parameters)
        powers = product(range(self.degree + 1), repeat=self.parameters)
        self._powers = np.array(sorted((p for p in powers if 0 < sum(p) <= degree), key=sum))
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
        large = len(grid) >= MIN_TEMPLATES_FOR_CUBIC and events >= MIN_EVENTS_FOR_CUBIC
        return cls.suited(3 if large and parameters == 1 else 2, grid)

    @classmethod
    def suited(cls, degree: int, grid: Grid) -> "ExpPolynomial":
        """The basis of a degree whose structures are as wide as half a gap between templates."""
        floor = max(floor_for(grid), MIN_FLOOR)
        return cls(degree, floor, len(grid.parameters))

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
        nodes, log_weights = (v.to(z) for v in box_rule(self._powers, largest, z.dtype))
        at_nodes = self.terms(nodes) @ rows
        if largest.sum() < MAX_EXPONENT:
            # The polynomial has mean 0, so the integral is at least 1; it is too small to overflow.
            result = torch.log(log_weights.exp() @ at_nodes.exp_())
        else:
            result = torch.logsumexp(at_nodes + log_weights.unsqueeze(-1), dim=-2)
        return result.movedim(-1, -2).reshape(z.shape[:-1])

    def log_shape(self, t: Tensor, z: Tensor) -> Tensor:
        return (self.coefficients(z) * self.terms(self._with_axis(t))).sum(-1)

    def log_shape_at(self, t: Tensor, z: Tensor) -> Tensor:
        # Events last, as the network has them in memory: (..., components, values, events).
        c = self.coefficients(z).movedim(-3, -1)
        return (self.terms(self._with_axis(t)) @ c).movedim(-1, -3).mT

    def _with_axis(self, t: Tensor) -> Tensor:
        """t with its parameters on the last axis."""
        return t.unsqueeze(-1) if self.parameters == 1 else t

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
