"""Terms that an objective adds to the cost of the events; the paper's is the spread of q."""

import copy

import numpy as np
import torch
from torch import Tensor

from gridless import distributed
from gridless.density.mixture import Mixture
from gridless.density.network import Network
from gridless.templates.arrays import Array
from gridless.training.checkpoint import State
from gridless.training.events import Events
from gridless.training.newton import gradient

# Below this spread the implied prior is flat within the statistics of any sample.
MIN_SPREAD = 0.002


class Term:
    """A term that is added to the cost per event. This one is 0.

    A term with `active = True` is added in a second stage of the training, after `begin`.
    """

    active = False

    def __init__(self, members: int) -> None:
        self.strength = torch.zeros(members)

    def to(self, device: torch.device) -> None:
        """Move all that it holds to a device."""

    def begin(self, network: Network, cost: Tensor) -> None:
        """Set the strength for a network whose cost per event, of each member, is known."""

    def anchor(self, network: Network, events: Events) -> None:
        """Look at all training events, at the start of an epoch."""

    def spread(self, network: Network) -> Tensor:  # noqa: ARG002
        """The term of each member, without its strength."""
        return torch.zeros(())

    def value(self, network: Network) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """The term without its strength, detached, and what is added to the cost."""
        return torch.zeros(()), torch.zeros(())

    def with_gradient(self, network: Network) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """What is added to the cost, and its gradient (members, parameters), in float64."""
        return torch.zeros(()), torch.zeros(())

    def curvature(self, network: Network) -> Tensor:  # noqa: ARG002
        """Second derivatives of what is added: (members, parameters, parameters)."""
        return torch.zeros(())

    def slopes(self, network: Network, events: Events, change: Tensor) -> Tensor:  # noqa: ARG002
        """How the gradient changes with other weights w (1 + change) of the events:
        (members, changes, parameters)."""
        return torch.zeros(())

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return {"strength": self.strength}

    def restore(self, state: State) -> None:
        """Go on from what `tensors` gave."""
        self.strength = state.tensors["strength"]


class Flatness(Term):
    """lambda S: the spread S = std_j q(t_j) of the implied prior, with its gradient.

    q is a mean over all training events, too many to evaluate at every step, while the spread of a
    noisy mean over a batch is biased upwards: a network that minimises it flattens its posteriors
    because of the noise. So q is followed on `reference` points only, as a change from an `anchor`:

        q(t_j) = q_all(t_j; anchor) + [q_reference(t_j; now) - q_reference(t_j; anchor)],

    where the anchor, the network at the start of the epoch, is evaluated on all events. For the
    histogram of the paper the reference is the filled bins: `complete`, it needs no anchor.

    Parameters
    ----------
    at : Tensor (values, parameters)
        The values t_j.
    reference : tuple of Tensor (points, observables) and Tensor (members or 1, points)
        Points and their weights.
    complete : bool
        Whether the reference stands for all events.
    members : int
        Number of networks.
    given : float, optional
        lambda; by default |C| / S at the end of the first stage.
    """

    active = True

    def __init__(
        self,
        at: Tensor,
        reference: tuple[Tensor, Tensor],
        complete: bool,
        members: int,
        given: float | None = None,
    ) -> None:
        super().__init__(members)
        self.at = at
        self.reference = reference
        self.complete = complete
        self.given = given
        self.offset = torch.zeros(members, len(at))
        self.rounding = torch.zeros(members)

    def to(self, device: torch.device) -> None:
        x, weights = self.reference
        self.reference = x.to(device), weights.to(device)
        self.at = self.at.to(device)
        self.offset = self.offset.to(device)
        self.rounding = self.rounding.to(device)

    def begin(self, network: Network, cost: Tensor) -> None:
        """lambda = |C| / S makes both terms of C + lambda S comparable (section 5)."""
        with torch.no_grad():
            spread = self.spread(network).cpu().clamp(min=MIN_SPREAD)
        strength = cost.abs() / spread
        self.strength = strength if self.given is None else torch.full_like(strength, self.given)
        self.rounding = spread.to(self.at.device)

    def implied_prior(self, network: Network, x: Tensor, weights: Tensor) -> Tensor:
        """q(t_j) = mean of p(t_j | x) over the given points, (members, values)."""
        return self._mean_density(network(x), weights)

    def _mean_density(self, mixture: Mixture, weights: Tensor) -> Tensor:
        density = torch.exp(mixture.log_prob_at(self.at))
        share = (weights / weights.sum(-1, keepdim=True)).expand(len(density), -1)
        return torch.einsum("enj,en->ej", density, share)

    @torch.no_grad()
    def anchor(self, network: Network, events: Events) -> None:
        """Take the network as it is as anchor, from all events."""
        if self.complete:
            return
        q = torch.zeros_like(self.offset)
        total = self.offset.new_zeros(len(self.offset), 1)
        for part in events.chunks():
            of_chunk = part.weights.sum(-1, keepdim=True)
            q += self.implied_prior(network, part.x, part.weights) * of_chunk
            total += of_chunk
        q, total = distributed.totals([q, total])
        self.offset = q / total - self.implied_prior(network, *self.reference)

    def spread(self, network: Network) -> Tensor:
        """S of the network as it is now."""
        return _std(self.implied_prior(network, *self.reference) + self.offset)

    def _rounded(self, network: Network) -> tuple[Tensor, Tensor]:
        """S, and sqrt(S^2 + rounding^2): S itself has no gradient to settle by where it is 0."""
        s = self.spread(network)
        return s.detach(), torch.sqrt(s**2 + self.rounding**2)

    def value(self, network: Network) -> tuple[Tensor, Tensor]:
        s, rounded = self._rounded(network)
        return s, self.strength.to(rounded) * rounded

    def with_gradient(self, network: Network) -> tuple[Tensor, Tensor]:
        added = self.value(network)[1]
        return added.detach().cpu(), gradient(added, network)

    def curvature(self, network: Network) -> Tensor:
        """Without the second derivatives of q itself:
        lambda mean_j (grad q_j - mean)(grad q_j - mean)^T / sqrt(S^2 + rounding^2)."""
        x, weights = self.reference
        q = self._mean_density(network(x).with_linear_integral(), weights) + self.offset
        rows = torch.stack([gradient(q[:, j], network) for j in range(len(self.at))], dim=1)
        rows = rows - rows.mean(1, keepdim=True)
        scale = torch.sqrt(_std(q.detach()) ** 2 + self.rounding**2).cpu()
        matrix = rows.transpose(1, 2) @ rows / (len(self.at) * scale[:, None, None])
        return self.strength[:, None, None] * matrix

    def slopes(self, network: Network, events: Events, change: Tensor) -> Tensor:
        plain = copy.copy(self)
        plain.complete, plain.offset = True, torch.zeros_like(self.offset)
        slopes = []
        for row in [torch.zeros_like(change[0]), *change]:
            plain.reference = events.x, events.weights * (1 + row)
            slopes.append(gradient(plain._rounded(network)[1], network))
        difference = torch.stack(slopes[1:], dim=1) - slopes[0].unsqueeze(1)
        return self.strength[:, None, None] * difference

    def tensors(self) -> dict[str, Tensor]:
        return super().tensors() | {"rounding": self.rounding}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.rounding = state.tensors["rounding"].to(self.at.device)


def _std(q: Tensor) -> Tensor:
    """S = std_j q(t_j) of each member."""
    return q.std(dim=-1, correction=0)


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
