"""What training minimises: the cost of section 2, the penalty of section 5, the template score.

All work on a batch of network outputs and give one number per member of the ensemble. Weights are
(members, events), or (1, events) for all members alike. Parameter values are in units of the range,
so a flat posterior costs exactly 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gridless import distributed
from gridless.density.network import Network, mixture_log_prob, mixture_log_prob_at
from gridless.errors import InputError
from gridless.templates.arrays import Array
from gridless.training.newton import gradient

OBJECTIVES = ("posterior", "penalty", "template")
DENSITIES = ("events", "histogram")


def log_prob_at(network: Network, log_c: Tensor, z: Tensor, t: Tensor) -> Tensor:
    """log p(t_j | x) for every event and every one of the values t: (members, events, values).

    For a network normalised over the templates, up to a term of x alone.
    """
    return mixture_log_prob_at(network.basis, log_c, z, t, network.normalised)


def posterior_cost(
    network: Network, log_c: Tensor, z: Tensor, t: Tensor, weights: Tensor
) -> Tensor:
    """C = -sum_i w_i log p(t_i | x_i), the paper's cost."""
    log_p = mixture_log_prob(network.basis, log_c, z, t)
    return -(weights * log_p).sum(-1)


def template_cost(
    network: Network, log_c: Tensor, z: Tensor, template: Tensor, weights: Tensor
) -> Tensor:
    """-sum_i w_i [log p(t_k | x_i) - log sum_l s_l p(t_l | x_i)], k the template of event i.

    Normalised over the templates, with their shares s_l in all events, instead of over the range,
    it asks nothing of their placement and sizes, and every event counts alike.
    """
    assert network.templates is not None
    assert network.log_share is not None
    if network.components == 1:  # A single component's coefficient and integral cancel.
        t = network.templates
        at = t[:, 0] if network.basis.parameters == 1 else t
        log_p = network.basis.log_shape_at(at, z).squeeze(-1)
    else:
        log_p = log_prob_at(network, log_c, z, network.templates)
    cost: Tensor = _TemplateCost.apply(  # type: ignore[no-untyped-call]
        log_p, network.log_share, template.expand(len(log_p), -1).unsqueeze(-1), weights
    )
    return cost


class _TemplateCost(torch.autograd.Function):
    """-sum_i w_i [f_ik - log sum_l s_l exp f_il], with its gradient -w_i [1 - p_ik] or w_i p_il,
    p_il = s_l exp f_il / sum, in half as many passes over memory as from its parts."""

    @staticmethod
    def forward(ctx: Any, f: Tensor, log_share: Tensor, own: Tensor, weights: Tensor) -> Tensor:
        p = f + log_share
        top = p.amax(-1, keepdim=True)
        p.sub_(top).exp_()
        total = p.sum(-1)
        ctx.save_for_backward(p, total, own, weights)
        score = f.gather(-1, own).squeeze(-1) - top.squeeze(-1) - total.log()
        return -(weights * score).sum(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        p, total, own, weights = ctx.saved_tensors
        weights = (weights * grads[0].unsqueeze(-1)).expand_as(total)
        slope = p * (weights / total).unsqueeze(-1)
        return slope.scatter_add_(-1, own, -weights.unsqueeze(-1)), None, None, None


@dataclass(frozen=True)
class Penalty:
    """The correction of section 5: C -> C + lambda S, S = std_j of integral p(theta_j, x) dx.

    Parameters
    ----------
    at
        The values theta_j; by default seven, from bound to bound. With several parameters, tuples;
        by default five per parameter.
    density
        How the integral is taken: `events`, a mean of p(theta_j | x) over training events, in any
        number of observables; or `histogram`, over a histogram of p(x) as in the paper.
    strength
        lambda; by default |C| / S at the end of the first stage, so that both terms are comparable.
    bins
        Bins per observable of the histogram.
    """

    at: Sequence[float | Sequence[float]] | None = None
    density: str = "events"
    strength: float | None = None
    bins: int = 50

    def __post_init__(self) -> None:
        if self.density not in DENSITIES:
            raise InputError(f"density: {self.density!r}; give one of {', '.join(DENSITIES)}")
        if self.at is not None:
            values = np.asarray(self.at, float)
            object.__setattr__(self, "at", tuple(values.tolist()))
            if len(self.at) < 2:
                raise InputError(f"at: {len(self.at)} value(s) of theta; give at least two")
        if self.strength is not None and not self.strength > 0:
            raise InputError(f"strength: lambda = {self.strength}; give a positive number")
        if self.bins < 2:
            raise InputError(f"bins: {self.bins}; give at least 2 per observable")


def spread(q: Tensor) -> Tensor:
    """S = std_j q(t_j) of each member."""
    return q.std(dim=-1, correction=0)


class Flatness:
    """S as training meets it: the spread of the implied prior q(t_j), with its gradient.

    q is a mean over all training events, too many to evaluate at every step, while the spread of a
    noisy mean over a batch is biased upwards, and a network that follows it flattens its posteriors
    to please the noise. So q is followed on `reference` points only, as a change from an `anchor`:

        q(t_j) = q_all(t_j; anchor) + [q_reference(t_j; now) - q_reference(t_j; anchor)],

    where the anchor, the network at the start of the epoch, is evaluated on all events. For the
    histogram of the paper the reference is the filled bins: `complete`, it needs no anchor.
    """

    def __init__(
        self, at: Tensor, reference: tuple[Tensor, Tensor], complete: bool, members: int
    ) -> None:
        self.at, self.reference, self.complete = at, reference, complete
        self.offset = torch.zeros(members, len(at))
        self.rounding = torch.zeros(members)

    def to(self, device: torch.device) -> None:
        """Move all that it holds to a device."""
        x, weights = self.reference
        self.reference = x.to(device), weights.to(device)
        self.at, self.offset = self.at.to(device), self.offset.to(device)
        self.rounding = self.rounding.to(device)

    def implied_prior(self, network: Network, x: Tensor, weights: Tensor) -> Tensor:
        """q(t_j) = mean of p(t_j | x) over the given points, (members, values)."""
        log_c, z = network(x)
        density = torch.exp(log_prob_at(network, log_c, z, self.at))
        share = (weights / weights.sum(-1, keepdim=True)).expand(len(density), -1)
        return torch.einsum("enj,en->ej", density, share)

    @torch.no_grad()
    def anchor(self, network: Network, chunks: Iterator[tuple[Tensor, Tensor]]) -> None:
        """Take the network as it is as anchor, from all events (x, weights), chunk by chunk."""
        if self.complete:
            return
        q, total = torch.zeros_like(self.offset), self.offset.new_zeros(len(self.offset), 1)
        for x, weights in chunks:
            of_chunk = weights.sum(-1, keepdim=True)
            q += self.implied_prior(network, x, weights) * of_chunk
            total += of_chunk
        q, total = distributed.totals([q, total])
        self.offset = q / total - self.implied_prior(network, *self.reference)

    def spread(self, network: Network) -> Tensor:
        """S of the network as it is now."""
        return spread(self.implied_prior(network, *self.reference) + self.offset)

    def curvature(self, network: Network) -> Tensor:
        """The matrix of second derivatives of `term`, leaving out those of q itself:
        mean_j (grad q_j - mean)(grad q_j - mean)^T / sqrt(S^2 + rounding^2)."""
        q = self.implied_prior(network, *self.reference) + self.offset
        rows = torch.stack([gradient(q[:, j], network) for j in range(len(self.at))], dim=1)
        rows = rows - rows.mean(1, keepdim=True)
        scale = torch.sqrt(spread(q.detach()) ** 2 + self.rounding**2).cpu()
        return rows.transpose(1, 2) @ rows / (len(self.at) * scale[:, None, None])

    def term(self, network: Network) -> tuple[Tensor, Tensor]:
        """S, and sqrt(S^2 + rounding^2): S itself has no gradient to settle by where it is 0."""
        s = self.spread(network)
        return s.detach(), torch.sqrt(s**2 + self.rounding**2)


def histogram_density(x: Array, weights: Array, bins: int) -> tuple[Array, Array]:
    """Filled bins of the histogram of p(x): the mean x of the events in each, and its content.

    The events' own mean in a bin, rather than its centre, removes the error linear in the slope of
    p(x). Outermost bins hold the tails beyond the 0.1 and 99.9 percent quantiles.
    """
    index = np.zeros(len(x), dtype=np.int64)
    for column in x.T:
        low, high = np.quantile(column, [0.001, 0.999])
        edges = np.linspace(low, high, bins + 1)[1:-1]
        index = index * bins + np.searchsorted(edges, column, side="right")
    _, where = np.unique(index, return_inverse=True)
    content = np.bincount(where, weights).astype(float)
    centres = np.stack([np.bincount(where, weights * column) for column in x.T], axis=1)
    keep = content > 0
    return centres[keep] / content[keep, None], content[keep]
