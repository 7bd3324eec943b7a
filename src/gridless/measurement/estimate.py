"""The estimate of a whole measurement: values, budget, pulls, impacts, correlations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from types import MappingProxyType
from typing import Any

from gridless.errors import InputError
from gridless.likelihood.estimate import Estimate, ParameterEstimate, correlation, read_only
from gridless.measurement import tables
from gridless.measurement.tables import fit_results, ranking_results
from gridless.results import printing
from gridless.results.by_name import chosen_parameter
from gridless.results.cabinetry import FitResults, RankingResults
from gridless.strict_json import plain
from gridless.templates.arrays import Array


@dataclass(frozen=True)
class NuisanceEstimate:
    """What the fit says of a nuisance parameter.

    Attributes
    ----------
    name : str
        That of the systematic or of the background.
    value, error : float
        After the fit, in units of the variation.
    constraint : float or None
        Its standard deviation before the fit; None for a free parameter.
    impacts : mapping from str to float
        The shift of each parameter of interest if the centre of the constraint (the global
        observable) moves by its standard deviation: its part of the budget, with a sign.

    Examples
    --------
    >>> one = NuisanceEstimate("jes", 0.5, 0.4, 1.0, {"mtop": 0.3})
    >>> one.pull, one.constrained
    (0.5, 0.4)
    """

    name: str
    value: float
    error: float
    constraint: float | None
    impacts: Mapping[str, float]

    @property
    def pull(self) -> float | None:
        """The value in units of the constraint; None for a free parameter."""
        return None if self.constraint is None else self.value / self.constraint

    @property
    def constrained(self) -> float | None:
        """The error in units of the constraint: below 1 where the observed events know better."""
        return None if self.constraint is None else self.error / self.constraint

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "value": self.value,
            "error": self.error,
            "constraint": self.constraint,
            "pull": self.pull,
            "constrained": self.constrained,
            "impacts": dict(self.impacts),
        }


@dataclass(frozen=True, eq=False, repr=False)
class MeasurementEstimate(Estimate):
    """The most likely parameters of a measurement with systematics and backgrounds.

    As `Estimate` for the parameters of interest; `estimate["jes"]` gives a nuisance parameter too.

    Attributes
    ----------
    nuisances : tuple of NuisanceEstimate
        Pulls, errors after the fit and impacts.
    names : tuple of str
        All parameters that are not held: those of interest, then nuisance parameters.
    full_covariance : array (names, names)
        Their covariance from every source together.
    chi2, dof : float
        How far the mean summaries are from what is expected, constraints included.

    Notes
    -----
    The budget splits the variance H^-1 J H^-1, J the covariance of the slopes from the observed
    events, from finite simulation, and from the constraint of each nuisance parameter (its global
    observable): the parts add in quadrature.

    Examples
    --------
    >>> from gridless.examples import Nuisances
    >>> example = Nuisances()
    >>> model = example.fit(events=500, seed=1, hidden=3, epochs=3)
    >>> estimate = model.likelihood(example.sample(0.4, 2_000, seed=2)).maximum()
    >>> sorted(estimate.budget["theta"])[:3]
    ['background', 'bjes', 'fsr']
    """

    nuisances: tuple[NuisanceEstimate, ...] = ()
    nuisance_results: tuple[ParameterEstimate, ...] = ()
    names: tuple[str, ...] = ()
    full_covariance: Array = field(default_factory=lambda: read_only([[]]))
    chi2: float = 0.0
    dof: float = 0

    def __getitem__(self, parameter: str) -> ParameterEstimate:
        every = self._every
        if parameter not in every:
            raise InputError(f"there is no parameter {parameter!r}; there is {', '.join(every)}")
        return every[parameter]

    @cached_property
    def _every(self) -> Mapping[str, ParameterEstimate]:
        both = (*self.results, *self.nuisance_results)
        return MappingProxyType({one.name: one for one in both})

    @property
    def impacts(self) -> dict[str, dict[str, float]]:
        """Of each parameter of interest the impact of every nuisance parameter, with its sign."""
        return {
            name: {one.name: one.impacts[name] for one in self.nuisances}
            for name in self.parameters
        }

    @property
    def pulls(self) -> dict[str, tuple[float, float]]:
        """Of each constrained nuisance parameter value and error in units of its constraint."""
        return {
            one.name: (one.value / one.constraint, one.error / one.constraint)
            for one in self.nuisances
            if one.constraint is not None
        }

    @property
    def full_correlation(self) -> Array:
        """The correlations of all `names`."""
        return correlation(self.full_covariance)

    def to_cabinetry(self, parameter: str | None = None) -> tuple[FitResults, RankingResults]:
        """The tuples that cabinetry's plots of pulls, correlations and ranking take.

        Parameters
        ----------
        parameter : str, optional
            Whose impacts are ranked, where there are several of interest.

        Returns
        -------
        FitResults, RankingResults
            With the fields of those in `cabinetry.fit`.

        Examples
        --------
        >>> from gridless.examples import Nuisances
        >>> example = Nuisances()
        >>> model = example.fit(events=500, seed=1)
        >>> estimate = model.likelihood(example.sample(0.4, 2_000, seed=2)).maximum()
        >>> fit, ranking = estimate.to_cabinetry()
        >>> fit.labels[:2], len(ranking.labels)
        (['theta', 'jes'], 9)
        """
        name = chosen_parameter(self.parameters, parameter)
        return fit_results(self), ranking_results(self, name)

    def to_dict(self) -> dict[str, Any]:
        """The estimate for machines, in what JSON can hold: what `--json` prints.

        Returns
        -------
        dict
            As that of an estimate without systematics, and `nuisances` (by name: value, error,
            pull, impacts), `impacts` (by parameter), `pulls`, `names` with `full_correlation`,
            `chi2` and `dof`.
        """
        content = super().to_dict()
        # By their order: names in JSON are spelt out where they are no text.
        for one, row in zip(self.results, content["parameters"].values(), strict=True):
            # The likelihood has every uncertainty: of its interval, the share of the events.
            share = one.stat / one.error if one.error > 0 else 1.0
            low, high = (one.value + share * (end - one.value) for end in one.stat_interval)
            row |= {"stat_low": low, "stat_high": high}
        own = {
            "impacts": self.impacts,
            "pulls": {name: list(pull) for name, pull in self.pulls.items()},
            "nuisances": {one.name: one.to_dict() for one in self.nuisances},
            "names": list(self.names),
            "full_correlation": [
                [c if abs(c) <= 2 else None for c in row] for row in self.full_correlation.tolist()
            ],
            "chi2": self.chi2,
            "dof": self.dof,
        }
        return content | {name: plain(value) for name, value in own.items()}

    def details(self) -> list[str]:
        """Budget and nuisance parameters as lines of text."""
        return tables.lines(self)

    def __str__(self) -> str:
        found = [f"{one.total()}" for one in self.results]
        found += [f"  {self.summary()}", *self.details()]
        return "\n".join([*found, *printing.warning_lines(self.warnings)])

    __repr__ = __str__

    def html(self) -> str:
        """The estimate with budget, nuisance parameters and warnings, to stand inside other
        HTML."""
        values = "".join(f"<p>{escape(one.total())}</p>" for one in self.results)
        return (
            f"{values}{tables.html(self)}<p>{escape(self.summary())}</p>"
            f"{printing.warning_list(self.warnings)}"
        )
