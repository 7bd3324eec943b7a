"""Estimates of groups of the observed events, and whether they agree with each other."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.agreement import p_value
from gridless.likelihood.estimate import STAT, Estimate
from gridless.results import printing
from gridless.templates.arrays import Array

if TYPE_CHECKING:
    from gridless.likelihood.likelihood import Likelihood


@dataclass(frozen=True, eq=False)
class Groups:
    """The estimate of every channel of a likelihood; `likelihood.by()` makes it.

    The groups have the same simulation, which moves all of them together: only their statistical
    errors enter chi2.

    Attributes
    ----------
    names : tuple of str
        The channels.
    estimates : tuple of Estimate
        One of each.
    together : Estimate
        That of all events.

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

    @property
    def usable(self) -> Array:
        """Whether a group counts: its estimate is not at a bound."""
        return np.array([not any(one.at_bound for one in e.results) for e in self.estimates])

    @property
    def chi2(self) -> float:
        """sum_g (v_g - v)' C_g^-1 (v_g - v) of values v_g with statistical covariances C_g, v
        their best mean."""
        used = [e for e, use in zip(self.estimates, self.usable, strict=True) if use]
        if len(used) < 2:
            return 0.0
        values = np.array([e.values for e in used])
        inverse = np.linalg.inv(np.array([e.covariances[STAT] for e in used]))
        mean = np.linalg.solve(inverse.sum(axis=0), np.einsum("gij,gj->i", inverse, values))
        rest = values - mean
        return float(np.einsum("gi,gij,gj", rest, inverse, rest))

    @property
    def dof(self) -> int:
        """Degrees of freedom of chi2."""
        return max(0, int(self.usable.sum()) - 1) * len(self.together.parameters)

    @property
    def p_value(self) -> float:
        """The chance of groups that differ at least as much."""
        return p_value(self.chi2, self.dof) if self.dof else 1.0

    def to_dict(self) -> dict[str, Any]:
        """The groups in what JSON can hold."""
        return {
            "groups": {
                name: estimate.to_dict()["parameters"] | {"events": estimate.events}
                for name, estimate in zip(self.names, self.estimates, strict=True)
            },
            "chi2": self.chi2,
            "dof": self.dof,
            "p_value": self.p_value,
        }

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        lines = []
        for name, estimate in zip(self.names, self.estimates, strict=True):
            values = "; ".join(str(one) for one in estimate.results)
            lines.append(f"{name:{width}}  {values}, {estimate.events:,} events")
        return "\n".join([*lines, self._last()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            [escape(name), *(escape(str(one)) for one in estimate.results)]
            for name, estimate in zip(self.names, self.estimates, strict=True)
        ]
        head = ["group", *self.together.parameters]
        return f"{printing.table(head, rows)}<p>{escape(self._last())}</p>"

    def _last(self) -> str:
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
    return Groups(tuple(names), estimates, likelihood.maximum())
