"""Basis densities: the shapes whose mixture is the posterior (sections 2 and 4 of the paper).

Every component lives on the unit interval, `t = (theta - low) / (high - low)`, or on the unit box
of several parameters, and is normalised there, so that bounds, units and Jacobians appear in one
place only (`gridless.model.posterior`). A basis turns raw network outputs `z` into a log density
of `t`:

    log B(t; z),   with   integral B(t; z) dt = 1   over the box for every z.
"""

from abc import ABC, abstractmethod
from functools import cache
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridless.curves import chebyshev
from gridless.errors import InputError
from gridless.registry import BASES, call_of
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

# Most Gauss-Legendre nodes along each of several parameters, by their number.
BOX_NODES = {2: 24, 3: 12}
# Numbers of Gauss-Legendre nodes to choose from, along each parameter.
NODE_NUMBERS = (*range(8, 24, 2), *range(24, 64, 8), 64, 96, 128, 192)
# Relative error of an integral in float64.
INTEGRAL_ERROR = 1e-10
# Ellipses on which the error of a quadrature is bounded (see `box_rule`).
ELLIPSE_RADII = np.geomspace(0.02, 3, 60)


class Basis(ABC):
    """One shape of component; a subclass of your own is made known by `register_basis`.

    For one parameter `t` is a number per event; several parameters are on the last axis of `t`.

    Examples
    --------
    >>> import torch, gridless as gl
    >>> basis = gl.Gaussian()
    >>> basis
    Gaussian(floor=0.0)
    >>> basis.outputs  # the mean and the log of the width
    2
    >>> basis.log_prob(torch.tensor([0.0, 0.5]), torch.tensor([0.5, 0.0])).exp()
    tensor([0.9194, 1.0418])
    """

    name: str
    """What the basis is called in `fit(basis=...)` and in a saved model."""
    outputs: int
    """How many network outputs one component takes."""
    parameters: int = 1
    """How many parameters t has."""

    def options(self) -> dict[str, float]:
        """The constructor's arguments, so that a saved model can be rebuilt."""
        return {}

    def __repr__(self) -> str:
        return call_of(self)

    @classmethod
    def from_options(cls, options: dict[str, float]) -> "Basis":
        """The basis whose `options` were saved."""
        return cls(**options)

    @classmethod
    def for_templates(cls, grid: Grid, events: float) -> "Basis":  # noqa: ARG003
        """The basis with options that suit templates.

        Parameters
        ----------
        grid : Grid
            The values of the templates.
        events : float
            Effective number of simulated events.
        """
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


class PolynomialBasis(Basis):
    """A basis whose `log_shape` is a polynomial in t: `constant` plus the sum of `coefficients`
    times `terms`. Sums over events are then sums of coefficients, which is several times faster.

    Examples
    --------
    >>> import torch, gridless as gl
    >>> basis = gl.ExpPolynomial(degree=2)
    >>> t, z = torch.tensor([[0.25], [0.75]]), torch.tensor([1.0, -1.0])
    >>> shape = basis.constant(z) + basis.terms(t) @ basis.coefficients(z)
    >>> bool(torch.allclose(shape, basis.log_shape(t[:, 0], z)))
    True
    """

    degree: int
    """The highest power of a parameter."""

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

    def chebyshev_terms(self) -> Array:
        """Chebyshev coefficients (outputs, ...) of each of the `terms`."""
        return np.array([self.chebyshev(unit) for unit in np.eye(self.outputs)])


def register_basis(basis: type[Basis]) -> type[Basis]:
    """Make a basis known to `fit` and `load` by its `name`; also as a decorator of the class.

    Parameters
    ----------
    basis : type[Basis]
        The class. A name that another basis has is refused.

    Returns
    -------
    type[Basis]
        The same class.

    Examples
    --------
    >>> import torch, gridless as gl
    >>> @gl.register_basis
    ... class Flat(gl.Basis):
    ...     name, outputs = "flat", 1
    ...     def start(self, components):
    ...         return torch.zeros(components, 1)
    ...     def log_prob(self, t, z):
    ...         return torch.zeros_like(t + z[..., 0])
    """
    BASES.register(basis.name, basis)
    return basis


@cache
def box_quadrature(parameters: int, nodes: int) -> tuple[Tensor, Tensor]:
    """Points (nodes^parameters, parameters) and log weights of Gauss-Legendre on the unit box."""
    axis, weights = np.polynomial.legendre.leggauss(nodes)
    points = np.array(list(product(0.5 + 0.5 * axis, repeat=parameters)))
    total = np.array([np.prod(w) for w in product(weights / 2, repeat=parameters)])
    return torch.as_tensor(points), torch.as_tensor(np.log(total))


def box_rule(
    powers: NDArray[np.int64], largest: Array, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """As few nodes as integrate exponentials of polynomials over the unit box; points and log
    weights as of `box_quadrature`.

    On the ellipse of Bernstein around [-1, 1] with half axes cosh r and sinh r the real part of
    the polynomial sum_k c_k P_k rises by no more than s = sum_k |c_k| (cosh k r - 1), and its slope
    on [-1, 1] is at most sum_k |c_k| k^2. Gauss-Legendre with n nodes thus errs, relative to the
    integral, by less than 2 (1 + 2 slope) exp(s - 2 n r) / (1 - exp(-2 r)) for any r. The same
    holds along each of several parameters, k being the power of that one, since the polynomials
    of the others are within 1. Of several parameters there are at most `BOX_NODES`.

    Parameters
    ----------
    powers : array (terms, parameters) of int
        The degrees of the Legendre (or Chebyshev) polynomials whose product a term is.
    largest : array (terms,)
        The largest |c_k|.
    dtype : torch.dtype
        Of the integral, which decides how exact it can be.
    """
    parameters = powers.shape[1]
    r, needed = ELLIPSE_RADII, 0.0
    error = max(INTEGRAL_ERROR, torch.finfo(dtype).eps)
    for k in powers.T:
        rise = np.log(2 + 4 * largest @ k**2) + (np.cosh(np.outer(r, k)) - 1) @ largest
        rise -= np.log(-np.expm1(-2 * r))
        needed = max(needed, float(((rise - np.log(error)) / (2 * r)).min()))
    most = BOX_NODES.get(parameters, NODE_NUMBERS[-1])
    nodes = next((n for n in NODE_NUMBERS if n >= needed), most)
    return box_quadrature(parameters, min(nodes, most))
