"""The network: standardised observables in, coefficients of a mixture out (section 2)."""

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from gridless.basis import Basis
from gridless.errors import InputError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": nn.functional.silu,
    "tanh": torch.tanh,
    "relu": torch.relu,
}


class Network(nn.Module):
    """`members` independent perceptrons evaluated side by side, each with a linear bypass.

    Member e maps standardised observables x to y = A_e x + b_e + MLP_e(x), and y to the log
    coefficients log c_i = log softmax(y)_i and the raw outputs z_i of each component. The bypass
    carries the part of the answer that is linear (for a Gaussian observable, all of it), which a
    small saturating layer learns only slowly.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        inputs: int,
        basis: Basis,
        components: int,
        hidden: Sequence[int],
        activation: str = "tanh",
        members: int = 1,
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
        """(x - mean) / scale: what `forward` takes."""
        return (x - self.mean) / self.scale

    def double_copy(self) -> "Network":
        """The same network in float64, in which likelihoods are evaluated."""
        return copy.deepcopy(self).double()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log c (members, events, components) and z (members, events, components, outputs)."""
        return self.split(self.layers(x)[-1][1])

    def layers(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What enters each layer and what leaves it, before the activation; the last leaves y."""
        activation = ACTIVATIONS[self.activation]
        h = x.expand(self.members, *x.shape)
        layers = []
        last = len(self.biases) - 1
        for layer in range(last):
            a = torch.baddbmm(self.biases[layer], h, self.weights[layer])
            layers.append((h, a))
            h = activation(a)
        y = torch.baddbmm(self.biases[last], h, self.weights[last])
        if last:
            y = y + x @ self.weights[last + 1]
        return [*layers, (h, y)]

    def split(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The log coefficients and the components' outputs in y."""
        z = y[..., self._logits :].reshape(*y.shape[:-1], self.components, self.basis.outputs)
        if not self._logits:
            return torch.zeros_like(z[..., 0]), z
        return torch.log_softmax(y[..., : self._logits], dim=-1), z


def mixture_log_prob(basis: Basis, log_c: Tensor, z: Tensor, t: Tensor) -> Tensor:
    """log sum_i c_i B_i(t; z_i), with `t` broadcast against `log_c` less its last axis."""
    terms = basis.log_prob(t.unsqueeze(-1), z)
    if terms.shape[-1] == 1:
        return (log_c + terms).squeeze(-1)
    return torch.logsumexp(log_c + terms, dim=-1)
