"""What a report tells of the templates after they are gone: their audit and their distributions."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.templates.audit import Audit, Finding
from gridless.templates.templates import Templates

_BINS = 40


@dataclass(frozen=True)
class Distribution:
    """One observable in every template: edges of bins, and the share of events in each
    (templates, bins)."""

    observable: str
    edges: list[float]
    shares: list[list[float]]


@dataclass(frozen=True)
class Summary:
    """The audit of the templates and the distribution of every observable in each of them."""

    audit: Audit
    distributions: tuple[Distribution, ...]

    def as_dict(self) -> dict[str, Any]:
        """The summary in what JSON can hold."""
        return asdict(self)

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Summary":
        """The summary that `as_dict` gave."""
        try:
            audit = content["audit"]
            findings = tuple(Finding(**finding) for finding in audit["findings"])
            distributions = tuple(Distribution(**one) for one in content["distributions"])
        except (KeyError, TypeError) as error:
            raise InputError(f"its summary of the templates is damaged ({error})") from error
        return Summary(Audit(audit["title"], findings), distributions)


def summarise(templates: Templates, components: int, objective: str) -> Summary:
    """Audit and distributions of the templates."""
    weights = np.ones(len(templates)) if templates.weights is None else templates.weights
    distributions = []
    for name, column in zip(templates.observables, templates.x.T, strict=True):
        # All but the farthest tails, which would squeeze the rest into one bin.
        low, high = np.quantile(column, [0.01, 0.99])
        edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
        shares = []
        for k in range(len(templates.grid)):
            own = templates.template == k
            content, _ = np.histogram(column[own], edges, weights=weights[own])
            shares.append((content / weights[own].sum()).tolist())
        distributions.append(Distribution(name, edges.tolist(), shares))
    return Summary(templates.audit(components, objective), tuple(distributions))
