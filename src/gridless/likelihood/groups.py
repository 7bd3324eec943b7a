"""Estimates of groups of the observed events, and whether they agree with each other."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import block_diag

from gridless.errors import InputError
from gridless.likelihood.agreement import p_value
from gridless.likelihood.estimate import MODEL, SIMULATION, STAT, Estimate
from gridless.results import printing
from gridless.templates.arrays import Array

if TYPE_CHECKING:
    from gridless.likelihood.likelihood import Likelihood

AT_BOUNDS = "no two estimates of one parameter that are away from its bounds: nothing to compare"


@dataclass(frozen=True, eq=False)
class Groups:
    """The estimate of every channel of a likelihood; `likelihood.by()` makes it.

    chi2 = (v - X theta)' C^-1 (v - X theta) at its least, v the values of all groups, theta the
    common ones, X which of them each value is. C has the statistical errors of each group; of
    groups with different models, those of their simulation; and what systematics do to all of them
    together. Groups of one model have the same simulation, which moves them together.

    Attributes
    ----------
    names : tuple of str
        The channels.
    estimates : tuple of Estimate
        One of each.
    together : Estimate
        That of all events.
    models : tuple of str
        The identity of each group's model.

    Examples
    --------
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> runs = [example.likelihood(example.sample(0.4, 1_000, seed=run)) for run in range(3)]
    >>> groups = sum(one.named(f"run {i}") for i, one in enumerate(runs)).by()
    >>> groups.dof, groups.p_value > 0.01
    (2, True)
    """

    names: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    together: Estimate
    models: tuple[str, ...] = ()

    @property
    def usable(self) -> Array:
        """Whether a group counts: its estimate is not at a bound."""
        return np.array([not any(one.at_bound for one in e.results) for e in self.estimates])

    @property
    def chi2(self) -> float:
        """How far the values of the groups are from common ones."""
        used = self._used
        if self.dof == 0:
            return 0.0
        values = np.concatenate([e.values for e in used])
        of = [name for e in used for name in e.parameters]
        common = list(dict.fromkeys(of))
        x = np.array([[float(name == one) for one in common] for name in of])
        inverse = np.linalg.inv(self._covariance(used))
        theta = np.linalg.solve(x.T @ inverse @ x, x.T @ inverse @ values)
        rest = values - x @ theta
        return float(rest @ inverse @ rest)

    @property
    def dof(self) -> int:
        """Degrees of freedom of chi2."""
        of = [name for e in self._used for name in e.parameters]
        return len(of) - len(set(of))

    @property
    def _used(self) -> list[Estimate]:
        return [e for e, use in zip(self.estimates, self.usable, strict=True) if use]

    def _covariance(self, used: list[Estimate]) -> Array:
        """The covariance of the values of all groups."""
        own = [STAT] if len(set(self.models)) < 2 else [STAT, SIMULATION, MODEL]
        blocks = [sum(e.covariances[s] for s in own if s in e.covariances) for e in used]
        total = np.asarray(block_diag(*blocks))
        # Only estimates with nuisance parameters have impacts.
        impacts = [getattr(e, "impacts", {}) for e in used]
        names = {name for one in impacts for shifts in one.values() for name in shifts}
        for name in sorted(names):
            shift = np.array(
                [
                    one.get(parameter, {}).get(name, 0.0)
                    for e, one in zip(used, impacts, strict=True)
                    for parameter in e.parameters
                ]
            )
            total += np.outer(shift, shift)
        return total

    @property
    def p_value(self) -> float:
        """The chance of groups that differ at least as much."""
        return p_value(self.chi2, self.dof) if self.dof else 1.0

    def to_dict(self) -> dict[str, Any]:
        """The groups in what JSON can hold."""
        return {
            "groups": {
                name: estimate.to_dict()["parameters"]
                | {"events": estimate.events, "p_value": estimate.p_value}
                for name, estimate in zip(self.names, self.estimates, strict=True)
            },
            "chi2": self.chi2,
            "dof": self.dof,
            "p_value": self.p_value if self.dof else None,
        }

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        lines = []
        for name, estimate in zip(self.names, self.estimates, strict=True):
            values = "; ".join(one.total() for one in estimate.results)
            fits = "" if estimate.p_value is None else f", p-value {estimate.p_value:.2g}"
            lines.append(f"{name:{width}}  {values}, {estimate.events:,} events{fits}")
        return "\n".join([*lines, self._last()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for name, estimate in zip(self.names, self.estimates, strict=True):
            values = "; ".join(one.total() for one in estimate.results)
            fits = "" if estimate.p_value is None else f"{estimate.p_value:.2g}"
            rows.append([escape(name), escape(values), f"{estimate.events:,}", fits])
        head = ["group", "estimate", "events", "p-value"]
        return f"{printing.table(head, rows)}<p>{escape(self._last())}</p>"

    def _last(self) -> str:
        if not self.dof:
            return AT_BOUNDS
        return f"chi2/dof = {self.chi2:.1f}/{self.dof}, p-value {self.p_value:.2g}"


def make_groups(likelihood: "Likelihood") -> Groups:
    """The estimate of every channel alone."""
    if len(likelihood.channels) < 2:
        raise InputError(
            "by: the likelihood has one channel; add named parts, or give by= with the events"
        )
    parts = [likelihood.channel_alone(number) for number in range(len(likelihood.channels))]
    names = [c.name or f"channel {i + 1}" for i, c in enumerate(likelihood.channels)]
    estimates = tuple(part.maximum() for part in parts)
    models = tuple(channel.model for channel in likelihood.channels)
    return Groups(tuple(names), estimates, likelihood.maximum(), models)
