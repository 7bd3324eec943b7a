"""What a model keeps of its templates for a report: their audit and their distributions."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gridless.distributed import of_first, total
from gridless.errors import InputError
from gridless.templates.arrays import Array
from gridless.templates.audit import Audit
from gridless.templates.grid import Grid
from gridless.templates.histograms import Axis, Histogram
from gridless.templates.interpolation import interpolate
from gridless.templates.query import FileRecord
from gridless.templates.templates import Templates

BINS = 40  # of equal width, per observable
CENTRAL = (0.01, 0.99)  # quantiles between which bins lie; tails would squeeze the rest into one


@dataclass(frozen=True)
class Distribution:
    """One observable in every template.

    Attributes
    ----------
    observable : str
        Its name.
    edges : list of float
        The edges of the bins.
    shares : list (templates) of list (bins) of float
        The share of a template's events in each bin.
    """

    observable: str
    edges: list[float]
    shares: list[list[float]]

    def at(self, grid: Grid, theta: Array, label: str = "") -> Histogram:
        """The shares at any theta, interpolated between the templates of the grid."""
        values, variances = interpolate(grid, np.array(self.shares), theta)
        axis = Axis(np.array(self.edges), self.observable, label or self.observable)
        return Histogram((axis,), 1.0, values, variances)


@dataclass(frozen=True)
class Summary:
    """The audit of the templates and the distribution of every observable in each of them.

    Attributes
    ----------
    audit : Audit
        What was found on the grid.
    distributions : tuple of Distribution
        One per observable.
    effective : tuple of float
        (sum w)^2 / sum w^2 of each template: the events that its shares are worth.

    Examples
    --------
    >>> from gridless.examples import OneObservable
    >>> summary = summarise(OneObservable().templates(events=2_000, seed=1))
    >>> summary
    Summary of 20,000 events at 10 values of theta in [0, 1], 1 observable, objective "template"
    >>> Summary.from_dict(summary.to_dict()) == summary
    True
    """

    audit: Audit
    distributions: tuple[Distribution, ...]
    effective: tuple[float, ...]

    @property
    def edges(self) -> dict[str, Array]:
        """The edges of the bins of each observable."""
        return {one.observable: np.array(one.edges) for one in self.distributions}

    def to_dict(self) -> dict[str, Any]:
        """The summary in what JSON can hold."""
        distributions = [asdict(distribution) for distribution in self.distributions]
        return {
            "audit": self.audit.to_dict(),
            "distributions": distributions,
            "effective": list(self.effective),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Summary":
        """The summary that `to_dict` gave."""
        try:
            distributions = tuple(Distribution(**one) for one in content["distributions"])
            effective = tuple(float(size) for size in content["effective"])
            return cls(Audit.from_dict(content["audit"]), distributions, effective)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"its summary of the templates is damaged ({error})") from error

    def __repr__(self) -> str:
        return f"Summary of {self.audit.title}"


def summarise(templates: Templates, components: int = 1, objective: Any = "template") -> Summary:
    """Audit and distributions of the templates.

    Parameters
    ----------
    templates : Templates
        The simulated events.
    components : int
        Components of the mixture to be fitted.
    objective : str or objective
        What the fit will minimise.

    Returns
    -------
    Summary
    """
    pairs = zip(templates.observables, templates.x.T, strict=True)
    distributions = tuple(_distribution(templates, name, column) for name, column in pairs)
    effective = tuple(templates.effective_sizes().tolist())
    return Summary(templates.audit(components, objective), distributions, effective)


def files_of_all_ranks(files: tuple[FileRecord, ...]) -> tuple[FileRecord, ...]:
    """The same files, with their numbers of events summed over the ranks that read them."""
    events = total(np.array([record.events for record in files], float))
    return tuple(replace(record, events=int(n)) for record, n in zip(files, events, strict=True))


def _distribution(templates: Templates, name: str, column: Array) -> Distribution:
    low, high = of_first(np.quantile(column, CENTRAL))
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    # 0 below the first edge; the last bin has its upper edge, and BINS + 1 is above it.
    bins = np.searchsorted(edges, column, side="right")
    bins[column == edges[-1]] = BINS
    inside = templates.contents(bins, BINS + 2)[:, 1:-1]
    shares = inside / total(templates.totals())[:, None]
    return Distribution(name, edges.tolist(), shares.tolist())
