"""Sums over events of the log of a mixture, at many values of theta: most of a likelihood's time.

    log sum_i exp(e_i) = e_1 + log(1 + sum_i exp(u_i)),    u_i = e_i - e_1.

Where e_i are polynomials in theta, the first are summed as such, and only the differences are
evaluated. One logarithm serves the product of as many events as does not overflow; where exp(u)
itself might, the sum is taken relative to the largest term.
"""

import math
from functools import reduce

import torch
from torch import Tensor

from gridless.density.basis import Basis, as_polynomial

# Numbers evaluated at once: large enough to be fast, small enough for the cache of a processor.
_BLOCK, _LEAST = 2**18, 256
# Exponentials of less make float32 very slow, of more than the opposite overflow; and what is small
# enough for products of some.
_NEGLIGIBLE, _MODEST = -80.0, 35.0
# Factors of a product, from which on the logarithm takes next to no time.
_ENOUGH = 16


def sum_log_mixture(
    basis: Basis, log_c: Tensor, z: Tensor, t: Tensor, weights: Tensor | None = None
) -> Tensor:
    """sum_n w_n log sum_i c_ni S(t_j; z_ni), S the basis' shape, in float64: (..., values).

    `log_c` (..., events, components), `z` (..., events, components, outputs), `t` (values,
    parameters), `weights` (events) in float64.
    """
    polynomial = as_polynomial(basis)
    if polynomial is None:
        at = basis.log_shape_at(t[:, 0] if basis.parameters == 1 else t, z) + log_c.unsqueeze(-2)
        # Events last, as they are in memory: (..., components, values, events).
        first, others = _relative(at.mT.movedim(-3, -1))
        return _weighted(first, weights) + _sum_log_one_plus(others, weights)
    constant = (log_c + polynomial.constant(z)).mT.unsqueeze(-2)
    c = torch.cat([constant, polynomial.coefficients(z).movedim(-3, -1)], dim=-2)
    terms = torch.cat([torch.ones_like(t[:, :1]), polynomial.terms(t)], dim=-1)
    first, others = _relative(c)
    total = _weighted(first, weights) @ terms.double().T
    groups, events = others[..., 0, 0].numel(), others.shape[-1]
    size = max(_LEAST, _BLOCK // max(1, groups * len(t)))
    for start in range(0, events, size):
        part = slice(start, start + size)
        of_part = None if weights is None else weights[part]
        total += _sum_log_one_plus(terms @ others[..., part], of_part)
    return total


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
        # Of two, the share of the larger.
        u = u.squeeze(-3)
        return _weighted(u.clamp(min=0), weights) - _sum_log(
            u.abs_().sigmoid_(), math.log(2), weights
        )
    highest = float(u.amax())
    if highest < _MODEST:
        sums = _exp_(u).sum(-3).add_(1)
        return _sum_log(sums, max(highest, 0) + math.log(1 + others), weights)
    largest = reduce(torch.maximum, u.unbind(-3)).clamp_(min=0)
    sums = _exp_(u.sub_(largest.unsqueeze(-3))).sum(-3).add_(_exp_(-largest))
    return _weighted(largest, weights) + _sum_log(sums, math.log(1 + others), weights)


def _exp_(exponent: Tensor) -> Tensor:
    return exponent.clamp_(min=_NEGLIGIBLE).exp_()


def _sum_log(sums: Tensor, largest_log: float, weights: Tensor | None) -> Tensor:
    """sum_n w_n log of numbers whose logs are of one sign and at most so large."""
    if weights is not None:
        return _weighted(torch.log(sums), weights)
    size = min(int(-_NEGLIGIBLE / largest_log), _ENOUGH)
    whole = sums.shape[-1] // size * size
    products = sums[..., :whole].reshape(*sums.shape[:-1], size, -1).prod(-2)
    rest = sums[..., whole:]
    return _weighted(torch.log(products), None) + _weighted(torch.log(rest), None)
