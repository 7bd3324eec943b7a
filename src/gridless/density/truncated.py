"""Log densities of Gaussian and logistic components truncated to the unit interval.

The textbook form, `log pdf - log(cdf(1) - cdf(0))`, is 0 - log 0 as soon as the mean is some
widths outside the range, and loses all digits for widths far above it. Both happen: in the first
epochs, and for events that say nothing about theta. The forms here lose no digits anywhere.
"""

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

# Gauss-Legendre points that integrate exp(-y) over [0, 40] and exp(-y^2 / 2) over [-9, 9] to 1e-10.
STEEP_NODES = 32
# Points that are as exact for components wider than two ranges with a slope below MAX_GENTLE_SLOPE.
GENTLE_NODES = 10
# Steepest exponent over the range, in units of exp(-y), that GENTLE_NODES integrate.
MAX_GENTLE_SLOPE = 8


def log_gaussian(t: Tensor, mean: Tensor, width: Tensor) -> Tensor:
    """log of exp(-(t - mean)^2 / 2 width^2) normalised on [0, 1].

    With r the point of the range nearest to the mean, and d = t - r, the exponent relative to
    its largest value is e(t) = -d^2 / (2 width^2) - d (r - mean) / width^2, and

        log B(t) = e(t) - log I,    I = integral_0^1 exp(e(t)) dt.

    No term is large when the result is small, so nothing cancels.
    """
    return gaussian_exponent(t, mean, width) - log_gaussian_integral(mean, width)


def gaussian_exponent(t: Tensor, mean: Tensor, width: Tensor) -> Tensor:
    """e(t) of `log_gaussian`: at most 0 on the range, and 0 at its highest point there."""
    nearest, precision = mean.clamp(0, 1), width**-2
    d = t - nearest
    return d * torch.addcmul((mean - nearest) * precision, -0.5 * precision, d)


def log_gaussian_integral(mean: Tensor, width: Tensor) -> Tensor:
    """log I of `log_gaussian`."""
    result: Tensor = _LogIntegral.apply(mean, width)  # type: ignore[no-untyped-call]
    return result


class _LogIntegral(torch.autograd.Function):
    """log I of `log_gaussian`, with the derivatives in closed form.

    They are averages over the component itself, with d = t - r and a = (r - mean) / width^2:
        d log I / d mean  = E[d] / width^2,
        d log I / d width = (E[d^2] / width^2 + 2 a E[d]) / width.
    """

    @staticmethod
    def forward(ctx: Any, mean: Tensor, width: Tensor) -> Tensor:
        outside = (mean - 0.5).abs() - 0.5
        if not any(ctx.needs_input_grad):
            # Digits are lost with the distance from the range, in ranges and in widths.
            hard = outside > 4 * width.clamp(max=1)
            integral = _integral_by_erf(mean, width)
            _replace((integral,), hard, mean, width, STEEP_NODES)
            return torch.log(integral)
        # Moments lose them with the width as well.
        wide = width >= 2
        steep = outside > torch.where(wide, MAX_GENTLE_SLOPE * width**2, 4 * width)
        moments = _moments_by_erf(mean, width)
        _replace(moments, wide & ~steep, mean, width, GENTLE_NODES)
        _replace(moments, steep, mean, width, STEEP_NODES)
        integral, *others = moments
        ctx.save_for_backward(mean, width, *others)
        return torch.log(integral)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        mean, width, first, second = ctx.saved_tensors
        precision = width**-2
        slope = (mean.clamp(0, 1) - mean) * precision
        by_mean = first * precision
        by_width = (second * precision + 2 * slope * first) / width
        return grads[0] * by_mean, grads[0] * by_width


def _replace(
    moments: tuple[Tensor, ...], where: Tensor, mean: Tensor, width: Tensor, nodes: int
) -> None:
    """Moments, I or all three, of the chosen components by quadrature."""
    if not bool(where.any()):
        return
    mean, width = mean.masked_select(where), width.masked_select(where)
    found = _moments_by_quadrature(mean, width, nodes, len(moments))
    for result, value in zip(moments, found, strict=True):
        result.masked_scatter_(where, value)


def _integral_by_erf(mean: Tensor, width: Tensor) -> Tensor:
    """I, for any width: within a width of the mean by erf, which is exact near 0, and beyond by
    erfc, which is exact in the tail."""
    low = ((mean - 0.5).abs() - 0.5) / width
    z_low, z_high = ((z * math.sqrt(0.5)).clamp(max=9) for z in (low, low + 1 / width))
    middle = torch.erf(z_high.clamp(max=1)) - torch.erf(z_low.clamp(max=1))
    tail = torch.erfc(z_low.clamp(min=1)) - torch.erfc(z_high.clamp(min=1))
    highest = torch.exp(z_low.clamp(min=0) ** 2)
    return math.sqrt(math.pi / 2) * width * (middle + tail) * highest


def _moments_by_erf(mean: Tensor, width: Tensor) -> tuple[Tensor, ...]:
    """I, E[d] and E[d^2] from the error function, mirrored to have the mean in the lower half."""
    mirrored = mean > 0.5
    mean = 0.5 - (mean - 0.5).abs()
    steep = 1 / width
    low = -mean * steep
    z_low, z_high = low.clamp(max=4), (low + steep).clamp(min=-4)
    scale = math.sqrt(math.pi / 2)
    mass = scale * (torch.erfc(z_low * math.sqrt(0.5)) - torch.erfc(z_high * math.sqrt(0.5)))
    integral = width * mass * torch.exp(0.5 * z_low.clamp(min=0) ** 2)
    edge_low, edge_high = torch.exp(-0.5 * z_low**2), torch.exp(-0.5 * z_high**2)
    outside = mean.clamp(max=0)
    # Moments about the mean, then about the nearest point of the range.
    first = width * (edge_low - edge_high) / mass
    second = width**2 * (1 + (z_low * edge_low - z_high * edge_high) / mass)
    second = second + 2 * outside * first + outside**2
    first = first + outside
    return integral, torch.where(mirrored, -first, first), second


@cache
def _rule(nodes: int) -> tuple[Tensor, Tensor]:
    """Points and weights of Gauss-Legendre on [-1, 1], as columns."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return torch.as_tensor(points).unsqueeze(-1), torch.as_tensor(weights).unsqueeze(-1)


def _moments_by_quadrature(
    mean: Tensor, width: Tensor, nodes: int, count: int
) -> tuple[Tensor, ...]:
    """The first `count` of I, E[d] and E[d^2] by Gauss-Legendre on the part of the range where
    e(t) > -40, for a vector of components."""
    points, weights = (v.to(mean) for v in _rule(nodes))
    nearest = mean.clamp(0, 1)
    # How far from the nearest point e(t) stays above -40: 40 / a from outside, 9 widths at most.
    slope = (nearest - mean).abs() / width
    reach = width * (40 / slope.clamp(min=1e-6)).clamp(max=9)
    low, high = torch.maximum(-reach, -nearest), torch.minimum(reach, 1 - nearest)
    half = 0.5 * (high - low)
    d = half * (points + 1) + low
    scaled = d / width
    density = weights * torch.exp(-scaled * (0.5 * scaled + (nearest - mean) / width))
    mass = density.sum(0)
    moments = (half * mass,)
    if count == 1:
        return moments
    return *moments, (density * d).sum(0) / mass, (density * d**2).sum(0) / mass


def log_logistic(t: Tensor, mean: Tensor, width: Tensor) -> Tensor:
    """log of sech^2((t - mean) / 2 width) normalised on [0, 1].

    Mirrored so that the mean is in the upper half, and with sp(y) = log(1 + e^y),
        log B(t) = (t - 1)/w - 2 sp((t - m)/w) + sp(-m/w) + sp((1 - m)/w) - log(w (1 - e^(-1/w))).
    """
    mirrored = mean < 0.5
    t = torch.where(mirrored, 1 - t, t)
    mean = torch.where(mirrored, 1 - mean, mean)
    rate = 1 / width
    tails = _softplus(-mean * rate) + _softplus((1 - mean) * rate)
    norm = torch.log(width) + torch.log(-torch.expm1(-rate))
    return (t - 1) * rate - 2 * _softplus((t - mean) * rate) + tails - norm


def _softplus(y: Tensor) -> Tensor:
    """log(1 + e^y), exact at every y (torch's own softplus is cut at 20)."""
    return -logsigmoid(-y)
