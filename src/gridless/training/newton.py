"""Newton steps for small networks: from nearly converged to converged.

Ten thousand observed events resolve differences of 1e-8 in the cost per event, which the noise of
mini-batches hides for a long time. But a network of some hundred parameters has a curvature matrix
that is cheap to solve, and a few steps with it on all events end at the optimum.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from gridless.density.network import Network

# The damping of the first step, relative to the curvature's own units.
FIRST_DAMPING = 1e-4
# Shares of the predicted gain: above the first the damping is halved, below the second doubled.
GOOD_GAIN = 0.75
POOR_GAIN = 0.25


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Tensors with a leading axis of members as one matrix (members, parameters) in float64, on
    the CPU."""
    return torch.cat([t.detach().flatten(1).cpu().double() for t in tensors], dim=1)


def restore(network: Network, flat: Tensor, which: Tensor) -> None:
    """Set the parameters of some members (a mask) to rows of what `flatten` gave."""
    start = 0
    with torch.no_grad():
        for p in network.parameters():
            size = p[0].numel()
            values = flat[:, start : start + size].reshape(p.shape).to(p)
            mask = which.to(p.device)
            p[mask] = values[mask]
            start += size


def gradient(cost: Tensor, network: Network) -> Tensor:
    """The gradient (members, parameters) of each member's cost by its own parameters."""
    parameters = list(network.parameters())
    return flatten(torch.autograd.grad(cost.sum(), parameters, retain_graph=True))


def newton(
    network: Network,
    objective: Callable[[], tuple[Tensor, Tensor]],
    curvature: Callable[[], Tensor],
    tolerance: float,
    steps: int,
) -> Tensor:
    """Lower each member's objective by damped Newton steps; gives the value reached.

    `objective` gives value and gradient at the network as it is, `curvature` a matrix for each
    member. The damping on its diagonal (Levenberg and Marquardt) follows how well the last step's
    gain was predicted. Ends after `steps`, or when no member expects to gain more than `tolerance`.
    """
    value, slope = objective()
    matrix = curvature()
    damping = torch.full_like(value, FIRST_DAMPING)
    for _ in range(steps):
        here = flatten(network.parameters())
        unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
        damped = matrix + damping[:, None, None] * unit
        step = torch.linalg.solve(damped, slope.unsqueeze(-1)).squeeze(-1)
        predicted = 0.5 * (slope * step).sum(-1)
        if bool((predicted < tolerance).all()):
            break
        restore(network, here - step, torch.ones_like(value, dtype=torch.bool))
        new_value, new_slope = objective()
        gain = (value - new_value) / predicted
        better = gain > 0
        restore(network, here, ~better)
        value = torch.where(better, new_value, value)
        slope = torch.where(better.unsqueeze(-1), new_slope, slope)
        factor = torch.where(gain > GOOD_GAIN, 0.5, torch.where(gain > POOR_GAIN, 1.0, 2.0))
        damping = damping * factor
        if bool(better.any()):
            matrix = curvature()
    return value
