"""What a model says without observed events: simulation at any theta, and expected likelihoods."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gridless.distributed import own_threads
from gridless.errors import InputError
from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.measurement.bins import mixed_histograms
from gridless.measurement.likelihood import MeasurementLikelihood
from gridless.measurement.term import SummaryChannel, expected_sums
from gridless.model.channels import channel_of_sum
from gridless.model.toys import VirtualToys
from gridless.model.virtual import Reweighting, VirtualTemplate, unit_point, virtual_template
from gridless.templates.histograms import Histogram

if TYPE_CHECKING:
    from gridless.model.model import Model


class Simulating:
    """The part of `Model` that needs its kept events and its calibration only."""

    @cached_property
    def reweighting(self) -> Reweighting:
        """Weights of the kept simulated events at any theta."""
        return Reweighting(cast("Model", self))

    @own_threads()
    def at(self, theta: Any) -> VirtualTemplate:
        """Simulation at any theta: the kept events with weights w_i(theta).

        The network's ratio of densities, then the least change that gives summaries their
        calibrated mean.

        Parameters
        ----------
        theta : float or sequence of float
            Where: a number, or one for each parameter.

        Returns
        -------
        VirtualTemplate
            Events, weights that sum to 1, and their effective size. A warning tells where that is
            below 1,000; below 50 it is refused.

        Examples
        --------
        >>> import gridless as gl
        >>> from gridless.examples import OneObservable
        >>> model = gl.fit(OneObservable().templates(2_000, seed=1), hidden=3, seed=1)
        >>> simulated = model.at(0.4)
        >>> print(f"{simulated.weights @ simulated.x[:, 0]:.1f}")  # the mean of x there
        0.4
        """
        return virtual_template(cast("Model", self), theta)

    @own_threads()
    def expected(self, theta: Any, events: float) -> Likelihood:
        """The likelihood that events at theta have on average: nothing is drawn, and no observed
        event is looked at.

        -log L = events [b(theta') - a(theta') . mu(theta)], the calibrated likelihood with every
        summary at its mean. With systematics and backgrounds, nuisance parameters are at 0.

        Parameters
        ----------
        theta : float or sequence of float
            What is assumed to be true.
        events : float
            How many events will be observed.

        Returns
        -------
        Likelihood
            Its maximum is at theta; its interval, budget and contours are what to expect.

        Examples
        --------
        >>> import gridless as gl
        >>> from gridless.examples import OneObservable
        >>> model = gl.fit(OneObservable().templates(5_000, seed=1), hidden=3, seed=1)
        >>> estimate = model.expected(0.4, 10_000).maximum()
        >>> print(f"{estimate.value:.2f} +- {estimate.stat:.2f}")
        0.40 +- 0.01
        """
        model = cast("Model", self)
        if not 1 <= events < float("inf"):
            raise InputError(f"events: {events:g}; give the number of events to be observed")
        t, calibration = unit_point(model, theta), model.calibration
        if calibration is not None:
            y = events * calibration.mean(t[None])[0]
            channel = channel_of_sum(calibration, model.grid, y, float(events), round(events))
        else:
            channel = Channel(events * self.reweighting.mean_curve(t), model.grid, round(events))
        channel = replace(channel, warnings=model.warnings, model=model.identity)
        if model.measurement is not None:
            sums = expected_sums(model.measurement, model.grid.from_unit(t), float(events))
            return MeasurementLikelihood([SummaryChannel(model.measurement, sums, channel)])
        return Likelihood([replace(channel, toys=self.toys(events, events))])

    def histograms(
        self, theta: Any, nuisances: Mapping[str, float] | None = None
    ) -> dict[str, Histogram]:
        """The simulation at any theta in histograms, which mplhep and others draw.

        Bins are polynomials in theta through all templates (`gridless.templates.interpolation`),
        with the backgrounds in their shares.

        Parameters
        ----------
        theta : float or sequence of float
            The value of each parameter.
        nuisances : mapping from str to float, optional
            Values of nuisance parameters; the others are 0.

        Returns
        -------
        dict of str to Histogram
            Shares of events by observable; `histogram * n` is what n events are expected to give.
            Variances are those of the simulation's statistics.

        Examples
        --------
        >>> from gridless.examples import Nuisances
        >>> model = Nuisances().fit(events=500, seed=1, hidden=3, epochs=2)
        >>> nominal, up = model.histograms(0.4), model.histograms(0.4, {"jes": 1})
        >>> bool(abs(up["x1"].values() - nominal["x1"].values()).max() > 0)
        True
        """
        model = cast("Model", self)
        if model.summary is None:
            raise InputError("histograms: the model has no summary of its templates; fit it again")
        point = np.atleast_1d(np.asarray(theta, float))
        if point.shape != (len(model.grid.parameters),):
            names = ", ".join(model.grid.parameters)
            raise InputError(f"theta: shape {point.shape}; give one value of each: {names}")
        labels = model.query.labels
        found = {
            one.observable: one.at(model.grid, point, labels.get(one.observable, ""))
            for one in model.summary.distributions
        }
        given = dict(nuisances or {})
        for name in given:
            if name not in model.nuisances:
                known = ", ".join(model.nuisances) or "none"
                raise InputError(f"nuisances: there is no {name!r}; there is {known}")
        if not model.binned or model.measurement is None:
            return found
        alpha = np.array([given.get(name, 0.0) for name in model.nuisances])
        shares = model.measurement.process_shares(alpha)
        return mixed_histograms(found, model.binned, shares, model.grid.to_unit(point), alpha)

    def toys(self, weight: float, squares: float) -> VirtualToys | None:
        """Pseudo-experiments of events with these sums of weights and of their squares."""
        model = cast("Model", self)
        # With systematics, pseudo-experiments would need those of the variations too.
        there = model.simulated is not None and weight > 0 and model.measurement is None
        return VirtualToys(model, weight, squares) if there else None
