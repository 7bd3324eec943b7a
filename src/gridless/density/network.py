"""The network: standardised observables in, a mixture of components out (section 2)."""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gridless.density.basis import Basis, PolynomialBasis
from gridless.density.conditioner import Conditioner, ModuleEnsemble
from gridless.density.mixture import Mixture
from gridless.errors import InputError
from gridless.registry import NETWORKS

Factory = Callable[[int, int], nn.Module]
# The least bend that counts as one: asinh(b y) / b loses its digits below.
MIN_BEND = 1e-6
# Standardised: where inputs end if nobody knows what was simulated, as in files of version 0.1.
UNLIMITED = 1e30


def outputs_needed(basis: Basis, components: int) -> int:
    """Outputs of a network: those of every component, and a coefficient of each where there are
    several."""
    # A single component has coefficient 1: no output is spent on it.
    return (components if components > 1 else 0) + components * basis.outputs


class Network(nn.Module):
    """Standardises observables, evaluates a conditioner and reads its outputs as a mixture.

    The members of an ensemble are evaluated side by side. Member e maps standardised x to outputs
    y, and those to the log coefficients log c_i = log softmax(y)_i and the raw outputs z_i of each
    component.

    Parameters
    ----------
    conditioner : Conditioner
        What maps standardised observables to outputs.
    basis : Basis
        The shape of the components.
    components : int
        Their number.
    inputs : int
        The number of observables.
    templates, log_share : Tensor (templates, parameters), Tensor (templates), optional
        Values of the templates in units of the range and the logs of their shares s_k in all
        events. If given, they normalise densities: sum_k s_k p(t_k | x) = 1, instead of the range.

    Examples
    --------
    >>> import torch, gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(500, seed=1), epochs=1, replicas=0)
    >>> mixture = model.network.of_observables(torch.tensor([[0.3], [1.2]]))
    >>> mixture.log_prob_at(torch.tensor([[0.2], [0.8]])).shape  # members, events, values
    torch.Size([1, 2, 2])
    """

    mean: Tensor
    mean_rest: Tensor
    scale: Tensor
    bend: Tensor
    shift: Tensor
    low: Tensor
    high: Tensor
    templates: Tensor | None
    log_share: Tensor | None

    def __init__(
        self,
        conditioner: Conditioner,
        basis: Basis,
        components: int,
        inputs: int,
        templates: Tensor | None = None,
        log_share: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.conditioner = conditioner
        self.basis = basis
        self.components = components
        self.members = conditioner.members
        self._logits = components if components > 1 else 0
        self.register_buffer("mean", torch.zeros(inputs))
        # What float32 leaves of the mean: observables may be far from 0, and some devices have no
        # float64.
        self.register_buffer("mean_rest", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        self.register_buffer("bend", torch.zeros(inputs))
        self.register_buffer("shift", torch.zeros(inputs))
        # The least and the largest of every standardised observable in the simulation.
        self.register_buffer("low", torch.full((inputs,), -UNLIMITED))
        self.register_buffer("high", torch.full((inputs,), UNLIMITED))
        self.register_buffer("templates", templates)
        if templates is not None and log_share is None:
            log_share = torch.full((len(templates),), -math.log(len(templates)))
        self.register_buffer("log_share", log_share)

    @property
    def size(self) -> int:
        """The number of parameters of each member."""
        return sum(p[0].numel() for p in self.parameters())

    @property
    def dtype(self) -> torch.dtype:
        """The precision in which it is evaluated."""
        return next(self.parameters()).dtype

    @property
    def integrated(self) -> bool:
        """Whether components are divided by their integrals over the range.

        They must be where densities are normalised over the range. Where they are normalised over
        the templates, the integral of a single component cancels. Several components of one
        parameter train better with their integrals, which are cheap there.
        """
        return self.templates is None or (self.basis.parameters == 1 and self.components > 1)

    def polynomial(self, members: int | None = None) -> PolynomialBasis | None:
        """The basis, if log p(t | x) of that many members (or all) is a polynomial in t, up to a
        term without t."""
        terms = (members or self.members) * self.components
        return self.basis if terms == 1 and isinstance(self.basis, PolynomialBasis) else None

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights, the outputs nearly at the basis' own starting point."""
        start = torch.zeros(outputs_needed(self.basis, self.components))
        start[self._logits :] = self.basis.start(self.components).reshape(-1)
        self.conditioner.initialise(generator, start)

    def set_inputs(self, mean: Tensor, scale: Tensor, bend: Tensor, shift: Tensor) -> None:
        """Set how observables are standardised: see `Standardisation`."""
        self.mean, self.mean_rest = mean.float(), (mean - mean.float()).float()
        self.scale, self.bend, self.shift = scale.float(), bend.float(), shift.float()

    def standardise(self, x: Tensor) -> Tensor:
        """Observables in units of their spread, clamped to the range of the simulation: what
        `forward` takes. Nothing was learnt beyond that range: an event there counts as one at its
        end."""
        return self.unlimited(x).clamp(self.low, self.high)

    def unlimited(self, x: Tensor) -> Tensor:
        """(x - mean) / scale, with heavy tails bent in.

        y = asinh(b (x - mean) / scale) / b - shift for an observable with b > 0.
        """
        y = (x - self.mean - self.mean_rest) / self.scale
        if not bool(self.bend.any()):
            return y
        b = self.bend.clamp(min=MIN_BEND)
        return torch.where(self.bend > 0, torch.asinh(b * y) / b, y) - self.shift

    def far(self, x: Tensor) -> Tensor:
        """Which observables (events, observables) lie farther outside of the simulation than it is
        wide. One that is constant in the simulation never does: clamped, it has no effect."""
        y, width = self.unlimited(x), self.high - self.low
        return ((y < self.low - width) | (y > self.high + width)) & (width > 0)

    def member(self, number: int) -> "Network":
        """One of the members as a network of its own."""
        return self._with(self.conditioner.chosen(torch.tensor([number])))

    def repeated(self, times: int) -> "Network":
        """All members, that many times one after the other."""
        return self._with(self.conditioner.chosen(torch.arange(self.members).repeat(times)))

    def _with(self, conditioner: Conditioner) -> "Network":
        other = copy.deepcopy(self)
        other.conditioner, other.members = conditioner, conditioner.members
        return other

    def double_copy(self) -> "Network":
        """The same network in float64, in which likelihoods are evaluated."""
        return copy.deepcopy(self).double()

    def of_observables(self, x: Tensor) -> Mixture:
        """The mixture of each member and event, of observables as they are measured."""
        mixture: Mixture = self(self.standardise(x).to(self.dtype))
        return mixture

    def forward(self, x: Tensor) -> Mixture:
        """The mixture of each member and event, of standardised observables."""
        return self.mixture(self.conditioner(x))

    def mixture(self, y: Tensor) -> Mixture:
        """The mixture that outputs y (members, outputs, events) stand for."""
        members, _, events = y.shape
        z = y[:, self._logits :].reshape(members, self.components, self.basis.outputs, events)
        z = z.permute(0, 3, 1, 2)
        if self._logits:
            log_c = torch.log_softmax(y[:, : self._logits], dim=1).mT
        else:
            log_c = torch.zeros_like(z[..., 0])
        return Mixture(self.basis, log_c, z, self.integrated, self.templates, self.log_share)


def register_network(name: str, factory: Factory) -> Factory:
    """Make a network known by name to `fit(network=name)` and to `load`.

    Parameters
    ----------
    name : str
        A name that nothing else has.
    factory : function (inputs: int, outputs: int) -> torch.nn.Module
        Makes a module that maps (events, inputs) to (events, outputs).

    Returns
    -------
    function
        The factory.

    Examples
    --------
    >>> import gridless as gl
    >>> from torch import nn
    >>> def two_layers(inputs, outputs):
    ...     return nn.Sequential(nn.Linear(inputs, 8), nn.GELU(), nn.Linear(8, outputs))
    >>> _ = gl.register_network("two_layers", two_layers)
    """
    return NETWORKS.register(name, factory)  # type: ignore[no-any-return]


def make_conditioner(
    network: str | nn.Module | Factory,
    inputs: int,
    outputs: int,
    members: int = 1,
    options: dict[str, Any] | None = None,
    generator: torch.Generator | None = None,
) -> Conditioner:
    """The conditioner of a name, a module or a function that makes modules.

    Parameters
    ----------
    network : str, torch.nn.Module or function (inputs, outputs) -> torch.nn.Module
        What to evaluate. Of a single module, members are copies with weights drawn anew.
    inputs, outputs, members : int
        Numbers of observables, of outputs and of networks.
    options : dict
        Further arguments of a `Conditioner`.
    generator : torch.Generator, optional
        Where the seeds of the modules' own random numbers come from. Without it all members are
        alike, for weights that are set afterwards.
    """
    name = network if isinstance(network, str) else ""
    factory: Any = NETWORKS.find(network) if isinstance(network, str) else network
    if isinstance(factory, type) and issubclass(factory, Conditioner):
        made: Conditioner = factory(inputs, outputs, members=members, **(options or {}))
        return made
    if not isinstance(factory, nn.Module) and not callable(factory):
        raise InputError(
            f"network: {type(factory).__name__}; give a registered name, a torch.nn.Module, or a "
            "function (inputs, outputs) that makes one"
        )
    modules: list[nn.Module] = []
    for member in range(members):
        if member and generator is None:
            modules.append(modules[0])
        elif not isinstance(factory, nn.Module):
            modules.append(_made(factory, inputs, outputs, _seed(generator)))
        else:
            modules.append(_drawn_anew(factory, _seed(generator)) if member else factory)
    return ModuleEnsemble(modules, inputs, outputs, name)


def _made(factory: Factory, inputs: int, outputs: int, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = factory(inputs, outputs)
    if not isinstance(module, nn.Module):
        raise InputError(
            f"network: the function gave {type(module).__name__}; let it return a torch.nn.Module"
        )
    return module


def _drawn_anew(module: nn.Module, seed: int) -> nn.Module:
    """A copy whose parts have drawn their weights again."""
    other = copy.deepcopy(module)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in other.modules():
            if not any(True for _ in part.parameters(recurse=False)):
                continue
            if not hasattr(part, "reset_parameters"):
                raise InputError(
                    f"network: {type(part).__name__} has no reset_parameters, by which members of "
                    "an ensemble begin apart; give a function (inputs, outputs) that makes a module"
                )
            part.reset_parameters()  # type: ignore[operator]
    return other


def _seed(generator: torch.Generator | None) -> int:
    return 0 if generator is None else int(torch.randint(2**62, (), generator=generator))
