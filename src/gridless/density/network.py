"""The network: standardised observables in, coefficients of a mixture out (section 2)."""

import copy
import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise

import torch
from torch import Tensor, nn

from gridless.density.activations import tanh
from gridless.density.basis import Basis
from gridless.errors import InputError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": nn.functional.silu,
    "tanh": tanh,
    "relu": torch.relu,
}


class Network(nn.Module):
    """`members` independent perceptrons evaluated side by side, each with a linear bypass.

    Member e maps standardised observables x to y = A_e x + b_e + MLP_e(x), and y to the log
    coefficients log c_i = log softmax(y)_i and the raw outputs z_i of each component. The bypass
    carries the part of the answer that is linear (for a Gaussian observable, all of it), which a
    small saturating layer learns only slowly.

    With `templates`, their values in units of the range, densities are normalised over those
    values instead of the range: sum_k s_k p(t_k | x) = 1, `log_share` the logs of the shares s_k of
    the templates in all events.
    """

    mean: Tensor
    scale: Tensor
    bend: Tensor
    templates: Tensor | None
    log_share: Tensor | None

    def __init__(
        self,
        inputs: int,
        basis: Basis,
        components: int,
        hidden: Sequence[int],
        activation: str = "tanh",
        members: int = 1,
        templates: Tensor | None = None,
        log_share: Tensor | None = None,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise InputError(f"activation: there is no {activation!r}; known are {known}")
        self.basis, self.components, self.members = basis, components, members
        self.activation, self.hidden = activation, tuple(hidden)
        # A single component has coefficient 1: no output is spent on it.
        self._logits = components if components > 1 else 0
        outputs = self._logits + components * basis.outputs
        sizes = [inputs, *hidden, outputs]
        shapes = list(pairwise(sizes))
        if hidden:
            shapes.append((inputs, outputs))
        self.weights = nn.ParameterList(torch.zeros(members, *shape) for shape in shapes)
        self.biases = nn.ParameterList(torch.zeros(members, 1, size) for size in sizes[1:])
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        self.register_buffer("bend", torch.zeros(inputs))
        self.register_buffer("templates", templates)
        if templates is not None and log_share is None:
            log_share = torch.full((len(templates),), -math.log(len(templates)))
        self.register_buffer("log_share", log_share)

    @property
    def normalised(self) -> bool:
        """Whether components count as densities: where the range normalises, and else for several
        components of one parameter, whose integrals are cheap and with which training does better.
        A single component's integral would cancel."""
        return self.templates is None or (self.basis.parameters == 1 and self.components > 1)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights so that every unit starts with unit variance, the output nearly at
        the basis' own starting point."""
        layers = len(self.biases)
        for layer in range(layers - 1):
            fan_in = self.weights[layer].shape[1]
            nn.init.normal_(self.weights[layer], std=fan_in**-0.5, generator=generator)
            nn.init.uniform_(self.biases[layer], -1, 1, generator=generator)
        fan_in = self.weights[layers - 1].shape[1]
        nn.init.normal_(self.weights[layers - 1], std=0.1 * fan_in**-0.5, generator=generator)
        with torch.no_grad():
            start = self.basis.start(self.components).reshape(-1)
            self.biases[layers - 1][:, 0, self._logits :] = start

    def standardise(self, x: Tensor) -> Tensor:
        """(x - mean) / scale, with heavy tails bent in: what `forward` takes.

        y = asinh(b (x - mean) / scale) / b for an observable with b > 0.
        """
        y = (x - self.mean) / self.scale
        if not bool(self.bend.any()):
            return y
        b = self.bend.clamp(min=1e-6)
        return torch.where(self.bend > 0, torch.asinh(b * y) / b, y)

    def member(self, number: int) -> "Network":
        """One of the members as a network of its own."""
        single = copy.deepcopy(self)
        single.members = 1
        for p in single.parameters():
            p.data = p.data[number : number + 1].clone()
        return single

    def double_copy(self) -> "Network":
        """The same network in float64, in which likelihoods are evaluated."""
        return copy.deepcopy(self).double()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log c (members, events, components) and z (members, events, components, outputs)."""
        return self.split(self.layers(x)[-1][1])

    def layers(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What enters each layer and what leaves it, before the activation; the last leaves y.

        (members, units, events) each: with events last, products with matrices of few rows are
        several times faster.
        """
        activation = ACTIVATIONS[self.activation]
        rows = x.T.contiguous().expand(self.members, -1, -1)
        h, layers = rows, []
        last = len(self.biases) - 1
        for layer in range(last):
            a = _affine(self.weights[layer], h, self.biases[layer])
            layers.append((h, a))
            h = activation(a)
        y = _affine(self.weights[last], h, self.biases[last])
        if last:
            y = torch.baddbmm(y, self.weights[last + 1].mT, rows)
        return [*layers, (h, y)]

    def last_layer(self) -> Tensor:
        """Which of the flattened parameters of a member belong to the last layer and the bypass."""
        last = len(self.biases) - 1
        own = {id(self.biases[last]), *(id(w) for w in list(self.weights)[last:])}
        sizes = [(id(p) in own, p[0].numel()) for p in self.parameters()]
        mask = torch.cat([torch.full((size,), mine) for mine, size in sizes])
        return torch.nonzero(mask).squeeze(1)

    def split(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The log coefficients and the components' outputs in y (members, units, events)."""
        members, _, events = y.shape
        z = y[:, self._logits :].reshape(members, self.components, self.basis.outputs, events)
        z = z.permute(0, 3, 1, 2)
        if not self._logits:
            return torch.zeros_like(z[..., 0]), z
        return torch.log_softmax(y[:, : self._logits], dim=1).mT, z


def _affine(weight: Tensor, h: Tensor, bias: Tensor) -> Tensor:
    """W^T h + b of every member, with events on the last axis."""
    return torch.baddbmm(bias.mT, weight.mT, h)


def mixture_log_prob(
    basis: Basis, log_c: Tensor, z: Tensor, t: Tensor, normalised: bool = True
) -> Tensor:
    """log sum_i c_i B_i(t; z_i), with `t` (..., parameters) at one value for each event.

    Not `normalised`, the components count with their shapes only: the same family of functions
    of t up to a factor, which is all that a likelihood needs, without integrals over the box.
    """
    t = t if basis.parameters == 1 else t.unsqueeze(-2)
    return _sum_components(log_c + (basis.log_prob if normalised else basis.log_shape)(t, z))


def mixture_log_prob_at(
    basis: Basis, log_c: Tensor, z: Tensor, t: Tensor, normalised: bool = True
) -> Tensor:
    """The same of every event at every one of the values t (values, parameters)."""
    terms = basis.log_shape_at(t[:, 0] if basis.parameters == 1 else t, z)
    if normalised:
        log_c = log_c - basis.log_integral(z)
    return _sum_components(log_c.unsqueeze(-2) + terms)


def _sum_components(terms: Tensor) -> Tensor:
    """The log of a sum of exponentials over the last axis, which is short."""
    return reduce(torch.logaddexp, terms.unbind(-1))
