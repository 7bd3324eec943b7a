"""What training minimises: the template score, the cost of section 2, the penalty of section 5."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gridless import distributed
from gridless.density.mixture import Mixture
from gridless.errors import InputError, check_choice, counted
from gridless.registry import OBJECTIVES, call_of
from gridless.templates.arrays import Array
from gridless.templates.grid import Grid
from gridless.templates.templates import Templates
from gridless.training.events import Events
from gridless.training.flatness import Flatness, Term, histogram_density

DENSITIES = ("events", "histogram")
# Events on which the change of q is followed between two evaluations on all events.
REFERENCE_EVENTS = 4096
# Values theta_j of the penalty by default, for each parameter: of one, and of several.
PENALTY_VALUES = 7
PENALTY_VALUES_OF_SEVERAL = 5
# With more observables a histogram has too many bins.
MAX_HISTOGRAM_OBSERVABLES = 3


class Objective(ABC):
    """What a fit minimises; a subclass of your own is made known by `register_objective`.

    A flat posterior should cost 0: then the gain on held-out events says what was learnt.

    Examples
    --------
    The cost of section 2 of the paper, by hand:

    >>> import gridless as gl
    >>> class Plain(gl.Objective):
    ...     name, needs_flat_grid = "plain", True
    ...     def cost(self, mixture, events):
    ...         return -(events.weights * mixture.log_prob(events.t)).sum(-1)
    >>> from gridless.examples import OneObservable
    >>> templates = OneObservable().templates(500, seed=1)
    >>> gl.fit(templates, objective=Plain(), epochs=1, replicas=0).record.gain > 3
    True
    """

    name: str
    """What it is called in `fit(objective=...)` and in a saved model."""
    needs_flat_grid: bool = False
    """Whether p(theta) must be flat over the range: templates evenly spaced, of equal weight."""
    normalises_over_templates: bool = False
    """Whether densities are normalised over the templates instead of over the range."""

    def options(self) -> dict[str, Any]:
        """The constructor's arguments, so that a saved model can tell them."""
        return {}

    def __repr__(self) -> str:
        return call_of(self)

    def weights(self, templates: Templates) -> Array:
        """The weights of the events: of mean 1, and for a flat grid the same sum per template."""
        if self.needs_flat_grid:
            return templates.balanced_weights()
        return templates.mean_weights()

    @abstractmethod
    def cost(self, mixture: Mixture, events: Events) -> Tensor:
        """The cost of the events, summed, of each member of the ensemble.

        A sum over events of terms that are linear in the event's weight. With
        `normalises_over_templates`, `mixture.at_templates()` has the densities to normalise.

        Parameters
        ----------
        mixture : Mixture
            The network's p(theta | x) of the events.
        events : Events
            `events.t` (events, parameters) are the true values in units of the range,
            `events.template` (events) the numbers of the templates, `events.weights` (members or 1,
            events).

        Returns
        -------
        Tensor (members)
        """

    def term(self, grid: Grid, events: Events, members: int) -> Term:  # noqa: ARG002
        """What is added to the cost per event in a second stage: nothing."""
        return Term(members)


class TemplateObjective(Objective):
    """-sum_i w_i [log p(t_k | x_i) - log sum_l s_l p(t_l | x_i)], k the template of event i.

    Normalised over the templates, with their shares s_l in all events, instead of over the range,
    it asks nothing of their placement and sizes, and every event counts alike.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.TemplateObjective().needs_flat_grid
    False
    """

    name = "template"
    normalises_over_templates = True

    def cost(self, mixture: Mixture, events: Events) -> Tensor:
        log_p = mixture.at_templates()
        assert mixture.log_share is not None
        own = events.template.expand(len(log_p), -1).unsqueeze(-1)
        cost: Tensor = _TemplateCost.apply(  # type: ignore[no-untyped-call]
            log_p, mixture.log_share, own, events.weights
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


class PosteriorObjective(Objective):
    """C = -sum_i w_i log p(t_i | x_i), the paper's cost (section 2).

    Examples
    --------
    >>> import gridless as gl
    >>> gl.PosteriorObjective().needs_flat_grid
    True
    """

    name = "posterior"
    needs_flat_grid = True

    def cost(self, mixture: Mixture, events: Events) -> Tensor:
        return -(events.weights * mixture.log_prob(events.t)).sum(-1)


@dataclass(frozen=True)
class Penalty(PosteriorObjective):
    """The correction of section 5: C -> C + lambda S, S = std_j of integral p(theta_j, x) dx.

    Parameters
    ----------
    at : sequence of float, or of tuples with several parameters
        The values theta_j; by default seven, from bound to bound, or five per parameter.
    density : str
        How the integral is taken: `events`, a mean of p(theta_j | x) over training events, in any
        number of observables; or `histogram`, over a histogram of p(x) as in the paper.
    strength : float
        lambda; by default |C| / S at the end of the first stage, so that both terms are comparable.
    bins : int
        Bins per observable of the histogram.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.Penalty(strength=2, at=[0.1, 0.5, 0.9])
    Penalty(at=(0.1, 0.5, 0.9), density='events', strength=2, bins=50)
    """

    at: Sequence[float | Sequence[float]] | None = None
    density: str = "events"
    strength: float | None = None
    bins: int = 50

    name = "penalty"

    def __post_init__(self) -> None:
        check_choice("density", self.density, DENSITIES)
        if self.at is not None:
            values = np.asarray(self.at, float)
            object.__setattr__(self, "at", tuple(values.tolist()))
            if len(self.at) < 2:
                raise InputError("at: fewer than two values of theta; give at least two")
        if self.strength is not None and not self.strength > 0:
            raise InputError(f"strength: lambda = {self.strength}; give a positive number")
        if self.bins < 2:
            raise InputError(f"bins: {self.bins}; give at least 2 per observable")

    def options(self) -> dict[str, Any]:
        return asdict(self)

    def term(self, grid: Grid, events: Events, members: int) -> Term:
        """S on the values and with the density that the user chose."""
        t = torch.as_tensor(grid.to_unit(self._values(grid)), dtype=torch.float32)
        if self.density == "histogram":
            reference, complete = self._histogram(events), True
        else:
            points = distributed.least(min(len(events), REFERENCE_EVENTS))
            complete = distributed.size() == 1 and len(events) <= REFERENCE_EVENTS
            x, weights = events.x[:points], events.weights[:, :points]
            reference = distributed.of_first(x), distributed.of_first(weights)
        return Flatness(t, reference, complete, members, self.strength)

    def _values(self, grid: Grid) -> Array:
        """theta_j, (values, parameters)."""
        parameters = len(grid.parameters)
        if self.at is None:
            count = PENALTY_VALUES if parameters == 1 else PENALTY_VALUES_OF_SEVERAL
            axis = np.linspace(0, 1, count)
            return grid.from_unit(np.array(list(product(axis, repeat=parameters))))
        at = np.asarray(self.at, float).reshape(len(self.at), -1)
        if at.shape[1] != parameters:
            raise InputError(
                f"penalty: at has {counted(at.shape[1], 'parameter')}; the templates have "
                f"{parameters}"
            )
        if ((at < grid.bounds[:, 0]) | (at > grid.bounds[:, 1])).any():
            raise InputError(f"penalty: at has values outside the bounds of {grid.describe()}")
        return at

    def _histogram(self, events: Events) -> tuple[Tensor, Tensor]:
        """Filled bins and their contents."""
        if distributed.size() > 1:
            raise InputError('penalty: a histogram is filled in one process; use density="events"')
        if events.x.shape[1] > MAX_HISTOGRAM_OBSERVABLES:
            raise InputError(
                f"penalty: a histogram of {events.x.shape[1]} observables has too many bins; "
                'use density="events"'
            )
        centres, content = histogram_density(
            events.x.double().numpy(), events.weights.double().mean(0).numpy(), self.bins
        )
        return torch.as_tensor(centres).float(), torch.as_tensor(content).float().unsqueeze(0)


def register_objective(objective: type[Objective]) -> type[Objective]:
    """Make an objective known to `fit` by its `name`; also as a decorator of the class.

    Parameters
    ----------
    objective : type[Objective]
        The class. A name that another objective has is refused.

    Returns
    -------
    type[Objective]
        The same class.

    Examples
    --------
    >>> import gridless as gl
    >>> @gl.register_objective
    ... class Plain(gl.PosteriorObjective):
    ...     name = "plain"
    """
    OBJECTIVES.register(objective.name, objective)
    return objective


def find_objective(objective: str | Mapping[str, Mapping[str, Any]] | Objective) -> Objective:
    """The objective of a name, of a name with settings, or as it is.

    Examples
    --------
    >>> find_objective({"penalty": {"strength": 2.0}}).strength
    2.0
    """
    if isinstance(objective, Objective):
        return objective
    if isinstance(objective, str):
        objective = {objective: {}}
    if not isinstance(objective, Mapping) or len(objective) != 1:
        raise InputError(
            f"objective: {objective!r}; give a name, such as 'template', a name with its settings, "
            "such as {'penalty': {'strength': 2}}, or an Objective"
        )
    ((name, settings),) = objective.items()
    try:
        made: Objective = OBJECTIVES.find(name)(**(settings or {}))
    except TypeError as error:
        raise InputError(f"objective: {name} does not take {settings} ({error})") from error
    return made
