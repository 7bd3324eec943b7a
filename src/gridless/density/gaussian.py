"""Gaussian components truncated to the range, of one parameter or of several that correlate."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridless.density.basis import BOX_NODES, Basis, PolynomialBasis, box_rule
from gridless.density.location_scale import LocationScale, check_floor, floor_for, width_from
from gridless.density.truncated import gaussian_exponent, log_gaussian_integral
from gridless.errors import InputError
from gridless.templates.grid import Grid


class Gaussian(LocationScale, PolynomialBasis):
    """Gaussian of one parameter truncated to the range; outputs: its mean and the log of its width.

    log B = -(t - mean)^2 / 2 width^2 - log(integral), with width = floor + exp(output).

    Parameters
    ----------
    floor : float
        Least width, in units of the range: it keeps components from collapsing onto templates.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.Gaussian(floor=0.05).options()
    {'floor': 0.05}
    """

    name = "gaussian"
    degree = 2

    @classmethod
    def from_options(cls, options: dict[str, float]) -> Basis:
        # Format 2 of a model file calls correlated Gaussians by this name too.
        parameters = int(options.get("parameters", 1))
        if parameters > 1:
            return CorrelatedGaussian(options["floor"], parameters)
        return cls(options["floor"])

    @classmethod
    def for_templates(cls, grid: Grid, events: float) -> Basis:
        if len(grid.parameters) > 1:
            return CorrelatedGaussian.for_templates(grid, events)
        return cls(floor_for(grid))

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        return self.log_shape(t, z) - self.log_integral(z)

    def log_integral(self, z: Tensor) -> Tensor:
        return log_gaussian_integral(*self.mean_width(z))

    def log_shape(self, t: Tensor, z: Tensor) -> Tensor:
        return gaussian_exponent(t, *self.mean_width(z))

    def log_shape_at(self, t: Tensor, z: Tensor) -> Tensor:
        # Events last, as the network has them in memory: (..., components, values, events).
        mean, width = (v.movedim(-2, -1).unsqueeze(-2) for v in self.mean_width(z))
        return gaussian_exponent(t.unsqueeze(-1), mean, width).movedim(-1, -3).mT

    def coefficients(self, z: Tensor) -> Tensor:
        mean, width = self.mean_width(z)
        precision = width**-2
        c = torch.empty_like(z)  # with events last in memory if z has them so
        c[..., 0] = (mean - 0.5) * precision
        c[..., 1] = -0.5 * precision
        return c

    def constant(self, z: Tensor) -> Tensor:
        return self.log_shape(torch.full_like(z[..., 0], 0.5), z)

    def terms(self, t: Tensor) -> Tensor:
        """(t - 1/2) and its square: about the middle the numbers to add up stay small."""
        return torch.cat([t - 0.5, (t - 0.5) ** 2], dim=-1)


class CorrelatedGaussian(PolynomialBasis):
    """Gaussian of P parameters truncated to the box.

    log B = -y^2 / 2 - log(integral), y_p = (d_p + sum_{r<p} a_pr d_r) / width_p, d = t - mean.
    Outputs: the P means, the P logs of the widths and the P (P - 1) / 2 slopes a that correlate.

    Parameters
    ----------
    floor : float
        Least width, in units of the range.
    parameters : int
        2 or 3.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.CorrelatedGaussian(parameters=2).outputs
    5
    """

    name = "correlated_gaussian"
    degree = 2

    def __init__(self, floor: float = 0.0, parameters: int = 2) -> None:
        if parameters not in BOX_NODES:
            raise InputError(f"parameters: {parameters}; give 2 or 3, or use Gaussian for one")
        self.floor = check_floor(floor)
        self.parameters = int(parameters)
        self.outputs = 2 * parameters + parameters * (parameters - 1) // 2

    @classmethod
    def for_templates(cls, grid: Grid, events: float) -> Basis:  # noqa: ARG003
        return cls(floor_for(grid), len(grid.parameters))

    def options(self) -> dict[str, float]:
        return {"floor": self.floor, "parameters": self.parameters}

    def start(self, components: int) -> Tensor:
        start = torch.zeros(components, self.outputs)
        start[:, : self.parameters] = ((torch.arange(components) + 0.5) / components).unsqueeze(-1)
        return start

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        return self.log_shape(t, z) - self.log_integral(z)

    def log_integral(self, z: Tensor) -> Tensor:
        c = self.coefficients(z)
        # s is half of the argument of Legendre polynomials, and s^2 = (T_2 + 1) / 8.
        powers = self._powers
        share = np.where(powers.max(axis=1) == 2, 1 / 8, 0.5 ** powers.sum(axis=1))
        largest = share * c.detach().abs().reshape(-1, self.outputs).amax(0).cpu().double().numpy()
        nodes, log_weights = (v.to(z) for v in box_rule(powers, largest, z.dtype))
        at_nodes = c @ self.terms(nodes).T
        return self.constant(z) + torch.logsumexp(at_nodes + log_weights, dim=-1)

    def coefficients(self, z: Tensor) -> Tensor:
        precision, off = self._precision(z), z[..., : self.parameters] - 0.5
        linear = (precision @ off.unsqueeze(-1)).squeeze(-1)
        p, q = self._pairs
        square = precision[..., p, q] * torch.where(p == q, -0.5, -1.0).to(z)
        return torch.cat([linear, square], dim=-1)

    def constant(self, z: Tensor) -> Tensor:
        return self.log_shape(torch.full_like(z[..., : self.parameters], 0.5), z)

    def terms(self, t: Tensor) -> Tensor:
        """s = t - 1/2 and its products: about the middle the numbers to add up stay small."""
        s = t - 0.5
        p, q = self._pairs
        return torch.cat([s, s[..., p] * s[..., q]], dim=-1)

    def _precision(self, z: Tensor) -> Tensor:
        """A of log_shape = -d^T A d / 2: (..., parameters, parameters)."""
        count = self.parameters
        rows = torch.eye(count).to(z).expand(*z.shape[:-1], count, count).clone()
        p, r = torch.tril_indices(count, count, -1)
        rows[..., p, r] = z[..., 2 * count :]
        rows = rows / width_from(z[..., count : 2 * count], self.floor).unsqueeze(-1)
        return rows.mT @ rows

    @property
    def _powers(self) -> NDArray[np.int64]:
        """The powers of each parameter in `terms`."""
        unit = np.eye(self.parameters, dtype=np.int64)
        p, q = self._pairs.numpy()
        return np.concatenate([unit, unit[p] + unit[q]])

    @property
    def _pairs(self) -> Tensor:
        """The pairs of parameters p <= q, (2, pairs)."""
        return torch.triu_indices(self.parameters, self.parameters)

    def log_shape(self, t: Tensor, z: Tensor) -> Tensor:
        count = self.parameters
        d = t - z[..., :count]
        width = width_from(z[..., count : 2 * count], self.floor)
        exponent = torch.zeros_like(d[..., 0] + z[..., 0])
        slope = 2 * count
        for p in range(count):
            y = d[..., p]
            for r in range(p):
                y = y + z[..., slope] * d[..., r]
                slope += 1
            exponent = exponent - 0.5 * (y / width[..., p]) ** 2
        return exponent
