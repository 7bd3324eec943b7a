"""The mixture p(t | x) = sum_i c_i B(t; z_i) that a network gives for every event.

Sums over many events of its logarithm are most of a likelihood's time. They are taken as

    log sum_i exp(e_i) = e_1 + log(1 + sum_i exp(u_i)),    u_i = e_i - e_1.

Where e_i are polynomials in theta, the first are summed as such, and only the differences are
evaluated. One logarithm serves the product of as many events as does not overflow; where exp(u)
itself might, the sum is taken relative to the largest term.
"""

import math
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from gridless.density.basis import Basis, PolynomialBasis

# Numbers evaluated at once: large enough to be fast, small enough for the cache of a CPU.
BLOCK_NUMBERS = 2**18
# Events evaluated at once are no fewer, however many values of theta there are.
MIN_BLOCK_EVENTS = 256
# Keeps exp() away from float32's denormals (below exp(-87)), which are slow.
MIN_EXPONENT = -80.0
# Below this a product of two exp() cannot overflow float32.
MAX_UNSHIFTED_EXPONENT = 35.0
# Events whose product shares a logarithm: with more, the logarithm takes next to no time.
MAX_FACTORS = 16


@dataclass(frozen=True)
class Mixture:
    """p(t | x) of each event, as a mixture of components of one basis.

    Leading axes, if any, are the members of an ensemble. `t` has its parameters on the last axis
    throughout, also where there is one.

    Parameters
    ----------
    basis : Basis
        The shape of the components.
    log_c : Tensor (..., events, components)
        The logs of their coefficients.
    z : Tensor (..., events, components, outputs)
        What the basis makes of them.
    integrated : bool
        Whether components are divided by their integrals. If not, they count with their shapes:
        the same family of functions of t up to a factor of x, which is all that a likelihood needs.
    templates, log_share : Tensor (templates, parameters), Tensor (templates)
        If given, what normalises: sum_k share_k p(t_k | x) = 1 instead of the integral over t.

    Examples
    --------
    >>> import torch, gridless as gl
    >>> from gridless.density.mixture import Mixture
    >>> z = torch.tensor([[[0.5, 0.0]], [[0.2, -1.0]]])  # two events, one Gaussian each
    >>> mixture = Mixture(gl.Gaussian(), torch.zeros(2, 1), z)
    >>> mixture.log_prob_at(torch.tensor([[0.2], [0.5], [0.9]])).shape
    torch.Size([2, 3])
    """

    basis: Basis
    log_c: Tensor
    z: Tensor
    integrated: bool = True
    templates: Tensor | None = None
    log_share: Tensor | None = None

    def __len__(self) -> int:
        """The number of events."""
        return self.log_c.shape[-2]

    def __getitem__(self, member: int) -> "Mixture":
        """The mixture of one member of the ensemble."""
        return replace(self, log_c=self.log_c[member], z=self.z[member])

    @property
    def components(self) -> int:
        """The number of components of each event."""
        return self.log_c.shape[-1]

    def log_prob(self, t: Tensor) -> Tensor:
        """log p(t | x) at one value of each event, t (..., events, parameters)."""
        # One parameter: the axis of parameters takes the place of that of components.
        t = t if self.basis.parameters == 1 else t.unsqueeze(-2)
        of_components = self.basis.log_prob if self.integrated else self.basis.log_shape
        return _log_sum(self.log_c + of_components(t, self.z))

    def log_prob_at(self, t: Tensor) -> Tensor:
        """log p(t_j | x) of every event at every one of the values t (values, parameters):
        (..., events, values)."""
        return _log_sum(self._log_weights().unsqueeze(-2) + self._log_shape_at(t))

    def at_templates(self) -> Tensor:
        """log p(t_k | x) at the values of the templates (..., events, templates), up to a factor
        of x: a single component's coefficient and integral are left out."""
        assert self.templates is not None
        t = self.templates.to(self.z)
        return self._log_shape_at(t).squeeze(-1) if self.components == 1 else self.log_prob_at(t)

    def over_templates(self) -> "Mixture":
        """The same divided by the mean density over the templates, where those normalise it."""
        if self.templates is None or self.log_share is None:
            return self
        at = self.log_prob_at(self.templates.to(self.z)) + self.log_share.to(self.z)
        return replace(self, log_c=self.log_c - torch.logsumexp(at, -1, keepdim=True))

    def with_linear_integral(self) -> "Mixture":
        """The same, and the same gradients, the integral being replaced by its tangent: of many
        gradients each would go through its nodes again."""
        log_integral = self.basis.log_integral(self.z)
        if not self.integrated or not log_integral.requires_grad:
            return self  # shapes that are not, or need not be, integrated
        (slope,) = torch.autograd.grad(log_integral.sum(), self.z, retain_graph=True)
        change = (slope * (self.z - self.z.detach())).sum(-1)
        return replace(self, log_c=self.log_c - log_integral.detach() - change, integrated=False)

    def averaged(self) -> "Mixture":
        """The members' densities, normalised, averaged: one mixture of all their components."""
        each = self.over_templates()
        log_c = each.log_c - math.log(len(self.log_c))
        return replace(each, log_c=log_c).merged(1)[0]

    def merged(self, groups: int) -> "Mixture":
        """The components of all members of each group on one axis, (groups, events, components)."""
        events = len(self)
        log_c = self.log_c.mT.reshape(groups, -1, events).mT
        # Events stay last in memory.
        rows = self.z.movedim(1, -1).reshape(groups, -1, self.z.shape[-1], events)
        return replace(self, log_c=log_c, z=rows.movedim(-1, 1))

    def coefficients(self) -> Tensor:
        """The coefficients (..., events, outputs) of the polynomial that log p is in t, where there
        is one component of a polynomial basis."""
        assert isinstance(self.basis, PolynomialBasis)
        assert self.components == 1
        return self.basis.coefficients(self.z[..., 0, :])

    def sum_log_prob(self, t: Tensor, weights: Tensor | None = None) -> Tensor:
        """sum_n w_n log p(t_j | x_n) in float64 (..., values), of t (values, parameters) and
        weights (events) in float64."""
        basis = self.basis
        if not isinstance(basis, PolynomialBasis):
            at = self._log_shape_at(t) + self._log_weights().unsqueeze(-2)
            # Events last, as they are in memory: (..., components, values, events).
            first, others = _relative(at.mT.movedim(-3, -1))
            return _weighted(first, weights) + _sum_log_one_plus(others, weights)
        terms, first, others = self._polynomials(basis, t)
        total = _weighted(first, weights) @ terms.double().T
        groups, events = others[..., 0, 0].numel(), others.shape[-1]
        size = max(MIN_BLOCK_EVENTS, BLOCK_NUMBERS // max(1, groups * len(t)))
        for start in range(0, events, size):
            part = slice(start, start + size)
            of_part = None if weights is None else weights[part]
            total += _sum_log_one_plus(terms @ others[..., part], of_part)
        return total

    def projected(self, t: Tensor, matrix: Tensor) -> Tensor:
        """sum_j log p(t_j | x) M_jk of every event (..., events, k), of t (values, parameters) and
        M (values, k)."""
        if not isinstance(self.basis, PolynomialBasis) or self.components == 1:
            return self.log_prob_at(t) @ matrix
        terms, first, others = self._polynomials(self.basis, t)
        of_first = (matrix.T @ terms) @ first
        zero = torch.zeros((), dtype=terms.dtype)
        above = reduce(torch.logaddexp, (terms @ others).unbind(-3), zero)
        return (of_first + matrix.T @ above).mT

    def _polynomials(self, basis: PolynomialBasis, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The terms of a polynomial at t, and the coefficients of the first component's and of the
        others' differences from it, events last: (values, k), (..., k, events),
        (..., components - 1, k, events)."""
        constant = (self._log_weights() + basis.constant(self.z)).mT.unsqueeze(-2)
        c = torch.cat([constant, basis.coefficients(self.z).movedim(-3, -1)], dim=-2)
        terms = torch.cat([torch.ones_like(t[:, :1]), basis.terms(t)], dim=-1)
        return terms, *_relative(c)

    def _log_weights(self) -> Tensor:
        """What is added to the shapes of the components."""
        return self.log_c - self.basis.log_integral(self.z) if self.integrated else self.log_c

    def _log_shape_at(self, t: Tensor) -> Tensor:
        """The shapes of all components at the values t: (..., events, values, components)."""
        return self.basis.log_shape_at(t[:, 0] if self.basis.parameters == 1 else t, self.z)


def _log_sum(terms: Tensor) -> Tensor:
    """The log of a sum of exponentials over the last axis, which is short."""
    return reduce(torch.logaddexp, terms.unbind(-1))


def _relative(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The first component's rows and the others' differences from them."""
    return rows[..., 0, :, :], rows[..., 1:, :, :] - rows[..., :1, :, :]


def _weighted(rows: Tensor, weights: Tensor | None) -> Tensor:
    return rows.sum(-1, dtype=torch.float64) if weights is None else rows.double() @ weights


def _sum_log_one_plus(u: Tensor, weights: Tensor | None) -> Tensor:
    """sum_n w_n log(1 + sum_i exp(u_i)) of u (..., components, values, events), overwritten."""
    others = u.shape[-3]
    if others == 0:
        return torch.zeros(u.shape[-2], dtype=torch.float64)
    if others == 1:
        # log(1 + exp(u)) = max(u, 0) - log sigmoid(|u|), which cannot overflow.
        u = u.squeeze(-3)
        return _weighted(u.clamp(min=0), weights) - _sum_log(
            u.abs_().sigmoid_(), math.log(2), weights
        )
    highest = float(u.amax())
    if highest < MAX_UNSHIFTED_EXPONENT:
        sums = _exp_(u).sum(-3).add_(1)
        return _sum_log(sums, max(highest, 0) + math.log(1 + others), weights)
    largest = reduce(torch.maximum, u.unbind(-3)).clamp_(min=0)
    sums = _exp_(u.sub_(largest.unsqueeze(-3))).sum(-3).add_(_exp_(-largest))
    return _weighted(largest, weights) + _sum_log(sums, math.log(1 + others), weights)


def _exp_(exponent: Tensor) -> Tensor:
    return exponent.clamp_(min=MIN_EXPONENT).exp_()


def _sum_log(sums: Tensor, largest_log: float, weights: Tensor | None) -> Tensor:
    """sum_n w_n log of numbers whose logs have one sign and are at most `largest_log` in size."""
    if weights is not None:
        return _weighted(torch.log(sums), weights)
    size = min(int(-MIN_EXPONENT / largest_log), MAX_FACTORS)
    whole = sums.shape[-1] // size * size
    products = sums[..., :whole].reshape(*sums.shape[:-1], size, -1).prod(-2)
    rest = sums[..., whole:]
    return _weighted(torch.log(products), None) + _weighted(torch.log(rest), None)
