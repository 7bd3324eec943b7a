"""What a network is inside: functions from standardised observables to raw outputs.

Every conditioner holds the `members` of an ensemble side by side: each of its parameters has them
on the first axis. `Perceptron` is ours; `ModuleEnsemble` makes one of any `torch.nn.Module`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from gridless.density.activations import ACTIVATIONS
from gridless.errors import InputError

# Numbers in the gradients that are made at once where layers are unknown (64 MB).
MAX_GRADIENT_NUMBERS = 2**24


class Conditioner(nn.Module, ABC):
    """Members evaluated side by side: x (events, observables) -> y (members, outputs, events).

    With events last, products with matrices of few rows are several times faster.
    """

    name: str
    """What it is called in `fit(network=...)` and in a saved model; "" if it has no name."""
    members: int

    @abstractmethod
    def initialise(self, generator: torch.Generator, start: Tensor) -> None:
        """Draw the weights anew, the outputs nearly at `start` (outputs)."""

    @abstractmethod
    def event_gradients(self, x: Tensor, cost: Callable[[Tensor], Tensor]) -> Tensor:
        """The gradient of each event's share in cost(y), (members, parameters, events)."""

    @abstractmethod
    def ridged(self) -> list[bool]:
        """Whether each of `parameters()` is a weight that the ridge holds back."""

    @abstractmethod
    def last_layer(self) -> Tensor | None:
        """Which of the flattened parameters of a member belong to the last layer, in which the
        outputs are linear; None if that is not known."""

    @abstractmethod
    def describe(self) -> str:
        """A few words, such as "16 tanh units"."""

    def options(self) -> dict[str, object]:
        """The constructor's arguments, so that a saved model can be rebuilt."""
        return {}

    def stacked(self) -> Iterable[Tensor]:
        """Every tensor that has the members on its first axis."""
        return self.parameters()

    def chosen(self, members: Tensor) -> "Conditioner":
        """A copy with those of the members, in that order."""
        result = copy.deepcopy(self)
        result.members = len(members)
        for tensor in result.stacked():
            tensor.data = tensor.data[members]
        return result


class Perceptron(Conditioner):
    """Perceptrons with a linear bypass: y = A x + b + MLP(x).

    The bypass carries the part of the answer that is linear (for a Gaussian observable, all of
    it), which a small saturating layer learns only slowly.

    Parameters
    ----------
    inputs, outputs : int
        Numbers of observables and of outputs.
    hidden : Sequence[int]
        Units of each hidden layer; none for a linear network.
    activation : str
        "tanh", "silu" or "relu".
    members : int
        Number of networks side by side.
    """

    name = "perceptron"

    def __init__(
        self,
        inputs: int,
        outputs: int,
        hidden: Sequence[int] = (16,),
        activation: str = "tanh",
        members: int = 1,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise InputError(f"activation: there is no {activation!r}; known are {known}")
        self.members = members
        self.hidden = tuple(hidden)
        self.activation = activation
        sizes = [inputs, *hidden, outputs]
        shapes = list(pairwise(sizes))
        if hidden:
            shapes.append((inputs, outputs))
        self.weights = nn.ParameterList(torch.zeros(members, *shape) for shape in shapes)
        self.biases = nn.ParameterList(torch.zeros(members, 1, size) for size in sizes[1:])

    def options(self) -> dict[str, object]:
        return {"hidden": list(self.hidden), "activation": self.activation}

    def describe(self) -> str:
        if not self.hidden:
            return "no hidden units"
        return f"{' x '.join(str(size) for size in self.hidden)} {self.activation} units"

    def initialise(self, generator: torch.Generator, start: Tensor) -> None:
        """Every unit starts with unit variance, the outputs nearly at `start`."""
        last = len(self.biases) - 1
        for layer in range(last):
            fan_in = self.weights[layer].shape[1]
            nn.init.normal_(self.weights[layer], std=fan_in**-0.5, generator=generator)
            nn.init.uniform_(self.biases[layer], -1, 1, generator=generator)
        fan_in = self.weights[last].shape[1]
        nn.init.normal_(self.weights[last], std=0.1 * fan_in**-0.5, generator=generator)
        with torch.no_grad():
            self.biases[last][:, 0] = start

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)[-1][1]

    def layers(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Input and output of each layer, (members, units, events) each. Outputs are those before
        the activation; the last is y."""
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

    def event_gradients(self, x: Tensor, cost: Callable[[Tensor], Tensor]) -> Tensor:
        """Backpropagation by hand, event by event: the gradient of a weight is the input of its
        layer times the gradient by the output of its layer."""
        layers = self.layers(x)
        back = torch.autograd.grad(cost(layers[-1][1]).sum(), [leaving for _, leaving in layers])
        entered = [entering.detach() for entering, _ in layers]
        by_weight = list(zip(entered, back, strict=True))
        if len(self.weights) > len(layers):  # the bypass, from the observables to the last layer
            by_weight.append((entered[0], back[-1]))
        sizes = [e.shape[1] * b.shape[1] for e, b in by_weight] + [b.shape[1] for b in back]
        gradients = back[0].new_empty(len(back[0]), sum(sizes), len(x))
        parts = torch.split(gradients, sizes, dim=1)
        for part, (e, b) in zip(parts, by_weight, strict=False):
            shape = (len(e), e.shape[1], b.shape[1], len(x))
            torch.mul(e.unsqueeze(2), b.unsqueeze(1), out=part.view(shape))
        for part, b in zip(parts[len(by_weight) :], back, strict=True):
            part.copy_(b)
        return gradients

    def ridged(self) -> list[bool]:
        """The weights of the layers; the bypass and the biases are free."""
        held = {id(weight) for weight in list(self.weights)[: len(self.biases)]}
        return [id(p) in held for p in self.parameters()]

    def last_layer(self) -> Tensor:
        last = len(self.biases) - 1
        own = {id(self.biases[last]), *(id(w) for w in list(self.weights)[last:])}
        return _positions(self, [id(p) in own for p in self.parameters()])


def _affine(weight: Tensor, h: Tensor, bias: Tensor) -> Tensor:
    """W^T h + b of every member, with events on the last axis."""
    return torch.baddbmm(bias.mT, weight.mT, h)


def _positions(conditioner: Conditioner, chosen: Sequence[bool]) -> Tensor:
    """Where the chosen parameters are in a member's flattened ones."""
    rows = zip(conditioner.parameters(), chosen, strict=True)
    mask = torch.cat([torch.full((p[0].numel(),), mine) for p, mine in rows])
    return torch.nonzero(mask).squeeze(1)


class ModuleEnsemble(Conditioner):
    """Copies of any module that maps (events, observables) to (events, outputs).

    y = start + module(x), so that a module with small outputs begins at the basis' own start.

    Parameters
    ----------
    modules : Sequence[nn.Module]
        One of each member, alike but for their weights.
    inputs, outputs : int
        Numbers of observables and of outputs.
    name : str
        The name under which the factory is registered; "" if it is not.
    """

    start: Tensor

    def __init__(
        self, modules: Sequence[nn.Module], inputs: int, outputs: int, name: str = ""
    ) -> None:
        super().__init__()
        for module in modules:
            _check_module(module, inputs, outputs)
        self.name = name
        self.members = len(modules)
        # In a tuple, so that torch does not count the pattern's own weights.
        self._pattern = (copy.deepcopy(modules[0]).eval().requires_grad_(False),)
        self._names = [n for n, _ in modules[0].named_parameters()]
        self._buffer_names = [n for n, _ in modules[0].named_buffers()]
        rows = [dict(m.named_parameters()) for m in modules]
        self.values = nn.ParameterList(
            torch.stack([row[n].detach() for row in rows]).float() for n in self._names
        )
        state = [dict(m.named_buffers()) for m in modules]
        for i, n in enumerate(self._buffer_names):
            self.register_buffer(f"buffer_{i}", torch.stack([row[n] for row in state]))
        self.register_buffer("start", torch.zeros(outputs))

    def describe(self) -> str:
        kind = self.name or type(self._pattern[0]).__name__
        return f"{kind} with {sum(p[0].numel() for p in self.parameters()):,} parameters"

    def initialise(self, generator: torch.Generator, start: Tensor) -> None:  # noqa: ARG002
        """The modules come with their weights."""
        self.start = start

    def stacked(self) -> Iterable[Tensor]:
        return [*self.parameters(), *self._buffers_of_modules()]

    def _buffers_of_modules(self) -> list[Tensor]:
        return [getattr(self, f"buffer_{i}") for i in range(len(self._buffer_names))]

    def as_modules(self) -> list[nn.Module]:
        """Each member as a module with its own weights, without `start`."""
        modules = [copy.deepcopy(self._pattern[0]) for _ in range(self.members)]
        tensors = [*self.parameters(), *self._buffers_of_modules()]
        for e, module in enumerate(modules):
            own = [*module.parameters(), *module.buffers()]
            for target, value in zip(own, tensors, strict=True):
                target.data = value.data[e].clone()
        return modules

    def _evaluate(self, values: Sequence[Tensor], buffers: Sequence[Tensor], x: Tensor) -> Tensor:
        """One member's outputs (events, outputs)."""
        state = dict(zip([*self._names, *self._buffer_names], [*values, *buffers], strict=True))
        result: Tensor = functional_call(self._pattern[0], state, (x,))
        return result

    def forward(self, x: Tensor) -> Tensor:
        values, buffers = list(self.values), self._buffers_of_modules()
        if self.members == 1:
            y = self._evaluate([p[0] for p in values], [b[0] for b in buffers], x).unsqueeze(0)
        else:
            y = vmap(self._evaluate, in_dims=(0, 0, None))(values, buffers, x)
        return (y + self.start).mT

    def event_gradients(self, x: Tensor, cost: Callable[[Tensor], Tensor]) -> Tensor:
        """By torch.func: the gradient of y_i . b_i, with b_i = d cost / d y_i of event i."""
        y = self(x).detach().requires_grad_()
        (back,) = torch.autograd.grad(cost(y).sum(), y)

        def share(
            values: Sequence[Tensor], buffers: Sequence[Tensor], event: Tensor, back: Tensor
        ) -> Tensor:
            return (self._evaluate(values, buffers, event.unsqueeze(0))[0] * back).sum()

        of_events = vmap(grad(share), in_dims=(None, None, 0, 1), out_dims=-1)
        of_members = vmap(of_events, in_dims=(0, 0, None, 0))
        values = [p.detach() for p in self.values]
        size = max(1, MAX_GRADIENT_NUMBERS // sum(p.numel() for p in values))
        parts = []
        for first in range(0, len(x), size):
            part = slice(first, first + size)
            rows = of_members(values, self._buffers_of_modules(), x[part], back[..., part])
            parts.append(torch.cat([r.flatten(1, -2) for r in rows], dim=1))
        return torch.cat(parts, dim=-1)

    def ridged(self) -> list[bool]:
        """Those that the module names in its attribute `ridged`; without that, every parameter of
        two or more axes."""
        named = getattr(self._pattern[0], "ridged", None)
        if named is None:
            return [p.dim() > 2 for p in self.values]
        return [name in set(named) for name in self._names]

    def last_layer(self) -> Tensor | None:
        """The last linear module with as many outputs as are asked for."""
        found = [
            name
            for name, module in self._pattern[0].named_modules()
            if isinstance(module, nn.Linear) and module.out_features == len(self.start)
        ]
        if not found:
            return None
        own = {f"{found[-1]}.{n}".removeprefix(".") for n in ("weight", "bias")}
        return _positions(self, [name in own for name in self._names])


def _check_module(module: nn.Module, inputs: int, outputs: int) -> None:
    """A module that gives each event its outputs, whatever the other events are."""
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            raise InputError(
                "network: batch normalisation mixes events; use torch.nn.LayerNorm, or none"
            )
        if isinstance(part, nn.modules.dropout._DropoutNd) and part.p > 0:
            raise InputError(
                "network: dropout makes the cost random, which Newton steps cannot lower; leave it "
                "out and set fit(ridge=...) instead"
            )
    if not any(True for _ in module.parameters()):
        raise InputError("network: the module has no parameters to train; give one that has")
    try:
        with torch.no_grad():
            y = copy.deepcopy(module).float().eval()(torch.zeros(2, inputs))
    except Exception as error:
        raise InputError(
            f"network: the module does not take inputs of shape (events, {inputs}) ({error}); make "
            "it for as many inputs as there are observables"
        ) from error
    if not isinstance(y, Tensor) or y.shape != (2, outputs):
        shape = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise InputError(
            f"network: the module gives {shape} for 2 events, but basis and components need "
            f"(2, {outputs}); give a function network(inputs, outputs) that makes the module, or a "
            f"module with {outputs} outputs"
        )
