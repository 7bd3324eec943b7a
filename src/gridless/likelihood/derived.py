"""What is made of a likelihood besides its curve: belts of pseudo-experiments, groups, its
export, and the same with constraints and fixed parameters."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gridless.errors import InputError, check_kind
from gridless.likelihood.belt import (
    FELDMAN_COUSINS,
    POINTS,
    TOYS,
    Belt,
    CurveExperiments,
    Experiments,
    Settings,
    make_belt,
)
from gridless.likelihood.channel import Channel
from gridless.likelihood.groups import Groups, make_groups
from gridless.likelihood.minuit import MinuitCost
from gridless.results.cabinetry import ScanResults
from gridless.templates.arrays import as_numbers
from gridless.templates.grid import Grid

if TYPE_CHECKING:
    from gridless.likelihood.likelihood import Likelihood

SCAN_POINTS = 31  # of a scan for cabinetry
SCAN_REACH = 2.5  # errors to either side that it goes


class Derived(MinuitCost):
    """Methods of `Likelihood` that need nothing but its public face."""

    @abstractmethod
    def axis(self, parameter: str | None) -> int:
        """The place of a parameter among all; of the only one, without a name."""

    def belt(
        self,
        parameter: str | None = None,
        *,
        method: str = FELDMAN_COUSINS,
        toys: int = TOYS,
        points: int = POINTS,
        seed: int = 0,
        stat: bool = False,
        executor: Any = None,
    ) -> Belt:
        """Pseudo-experiments at many values of a parameter, for intervals by construction.

        They come from the events that the model keeps, weighted to each value; other parameters
        are at their best there. Unless `stat`, the simulation fluctuates too.

        Parameters
        ----------
        parameter : str, optional
            Which, where there are several.
        method : str
            "feldman-cousins", or "upper" for a limit.
        toys, points : int
            Pseudo-experiments at each value, and values.
        seed : int
            Fixes everything random; belts of different seeds add up.
        stat : bool
            Without the uncertainty from simulation.
        executor : concurrent.futures.Executor or dask client, optional
            Runs the tasks; without one, this process does.

        Returns
        -------
        Belt

        Examples
        --------
        >>> import gridless as gl
        >>> from gridless.examples import OneObservable
        >>> example = OneObservable()
        >>> model = gl.fit(example.templates(2_000, seed=1), hidden=3, seed=1)
        >>> likelihood = model.likelihood(example.sample(0.1, 20, seed=2))
        >>> belt = likelihood.belt(toys=200, points=21)
        >>> low, high = likelihood.interval(0.68, method="feldman-cousins", belt=belt)
        >>> low < 0.1 < high
        True
        """
        settings = Settings(method, toys, points, seed)
        return make_belt(self.experiments(stat), parameter, settings, executor)

    def experiments(self, stat: bool = False) -> Experiments:
        """Where pseudo-experiments come from; `stat`: without the uncertainty from simulation."""
        return CurveExperiments(cast("Likelihood", self), stat)

    def channel_alone(self, number: int) -> "Likelihood":
        """The likelihood of one channel, with the constraints of its parameters."""
        from gridless.likelihood.likelihood import Likelihood

        whole = cast("Likelihood", self)
        channel = whole.channels[number]
        constraints = [c for c in whole.constraints if c.parameter in channel.parameters]
        return Likelihood([channel], constraints)

    def by(self) -> Groups:
        """The estimate of every channel alone, and whether they agree.

        Returns
        -------
        Groups
            Estimates by name, chi2 and p-value.

        Examples
        --------
        >>> import numpy as np
        >>> import gridless as gl
        >>> from gridless.examples import OneObservable
        >>> example = OneObservable()
        >>> model = gl.fit(example.templates(2_000, seed=1), hidden=3, seed=1)
        >>> x, period = example.sample(0.4, 2_000, seed=2), np.repeat([2017, 2018], 1_000)
        >>> model.likelihood(x, by=period).by().names
        ('2017', '2018')
        """
        return make_groups(cast("Likelihood", self))

    def to_cabinetry(self, parameter: str | None = None, values: Any = None) -> ScanResults:
        """The profile of a parameter as the tuple that cabinetry's plot of a scan takes.

        Parameters
        ----------
        parameter : str, optional
            Which one, where there are several.
        values : array, optional
            Where to look; by default 31 values within two and a half errors.

        Returns
        -------
        ScanResults
            With the fields of that in `cabinetry.fit`.

        Examples
        --------
        >>> from gridless.examples import OneObservable as Example
        >>> scan = Example().likelihood(Example().quantiles(0.4)).to_cabinetry()
        >>> scan.name, round(float(scan.delta_nlls.min()), 6)
        ('theta', 0.0)
        """
        whole = cast("Likelihood", self)
        place = self.axis(parameter)
        one = whole.maximum()[parameter or whole.maximum().parameters[place]]
        low, high = one.stat_interval
        if values is None:
            first = max(one.value + SCAN_REACH * (low - one.value), one.bounds[0])
            last = min(one.value + SCAN_REACH * (high - one.value), one.bounds[1])
            values = np.linspace(first, last, SCAN_POINTS)
        points = as_numbers(values, "values")
        rises = 2 * whole.profile(one.name, points)
        return ScanResults(one.name, one.value, 0.5 * (high - low), points, rises)

    def to_dict(self) -> dict[str, Any]:
        """The likelihood for machines, in what JSON can hold: what `export --curve` writes.

        Returns
        -------
        dict
            Parameters, bounds, Chebyshev coefficients, and the profile of each parameter.

        Examples
        --------
        >>> from gridless.examples import OneObservable as Example
        >>> Example().likelihood(Example().quantiles(0.4)).to_dict()["parameters"]
        ['theta']
        """
        from gridless.likelihood.export import curve

        return curve(cast("Likelihood", self))


def restricted(
    likelihood: "Likelihood",
    constrain: Mapping[str, tuple[float, float]] | None = None,
    fix: Mapping[str, float] | None = None,
) -> "Likelihood":
    """The likelihood with Gaussian constraints, name -> (value, error), and with parameters held,
    name -> value.

    Examples
    --------
    >>> from gridless.examples import TwoParameters
    >>> example = TwoParameters()
    >>> likelihood = example.likelihood(example.sample((0.4, 0.6), 1_000, seed=1))
    >>> restricted(likelihood, {"t1": (0.4, 0.01)}, {"t2": 0.6})
    Likelihood of t1 in [0, 1] from 1,000 events, t1 = 0.4 +- 0.01
    """
    for what, given in (("constrain", constrain), ("fix", fix)):
        check_kind(given or {}, Mapping, what)
    for name, pair in (constrain or {}).items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"constrain: {pair!r:.80} for {name}; give (value, error)")
        likelihood = likelihood.constrain(name, *pair)
    return likelihood.fix(**fix) if fix else likelihood


def check_restricted(
    grid: Grid,
    constrain: Mapping[str, tuple[float, float]] | None = None,
    fix: Mapping[str, float] | None = None,
) -> None:
    """Refuse what `restricted` would refuse of a likelihood of these parameters, which need not be
    known yet."""
    from gridless.likelihood.likelihood import Likelihood

    flat = np.zeros((1,) * len(grid.parameters))
    restricted(Likelihood([Channel(flat, grid, 0)]), constrain, fix)
