"""The model: a trained network that gives posteriors and likelihoods of any events."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gridless.calibration.calibration import Calibration
from gridless.calibration.source import Interpolation, TemplateNoise
from gridless.density.network import Network
from gridless.distributed import own_threads
from gridless.errors import GridlessWarning, InputError
from gridless.files.read import Sample
from gridless.likelihood import chebyshev
from gridless.likelihood import sources as sources_of
from gridless.likelihood.agreement import Agreement, Cells
from gridless.likelihood.channel import Channel
from gridless.likelihood.estimate import MODEL, SIMULATION
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.warnings import EstimateWarning, audit_warnings, model_warnings
from gridless.model.cells import far_events, fill
from gridless.model.evaluation import (
    event_polynomials,
    log_density,
    log_likelihood,
    mixture_of,
    score_products,
)
from gridless.model.frames import frame_events
from gridless.model.grouping import grouped
from gridless.model.posterior import Posterior
from gridless.model.prior import ImpliedPrior
from gridless.model.record import FitOptions, TrainingRecord
from gridless.model.replicas import Replicas
from gridless.model.simulated import SimulatedEvents
from gridless.model.summaries import mean_summaries
from gridless.model.toys import VirtualToys
from gridless.model.virtual import Reweighting, VirtualTemplate, unit_point, virtual_template
from gridless.templates.arrays import Array, as_events, check_total, check_used
from gridless.templates.grid import Grid
from gridless.templates.query import FileRecord, Query
from gridless.templates.summary import Summary


@dataclass(frozen=True)
class Model:
    """p(theta | x) as learnt from templates, with the implied prior that belongs to it.

    `query` says how observables are made of columns, and which events are used. `options` are the
    arguments of the fit, `record` how the training went. `calibration` makes likelihoods that are
    valid whatever the network learnt; without it (calibrate=False) `replicas` carry the uncertainty
    from finite simulation. `cells` tell whether observed events look like it. `summary` is the
    audit of the templates with the distributions of their observables, `files` their sources.
    `simulated` are some of the simulated events, of which `at` makes simulation at any theta.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(2_000, seed=1), hidden=3, seed=1)
    >>> model.likelihood(example.sample(0.4, 1_000, seed=2))
    Likelihood of theta in [0, 1] from 1,000 events
    >>> model.observables, model.options.seed, len(model.grid)
    (('x',), 1, 10)
    """

    network: Network
    grid: Grid
    query: Query
    options: FitOptions
    record: TrainingRecord
    implied_prior: ImpliedPrior
    replicas: Replicas | None = None
    cells: Cells | None = None
    summary: Summary | None = None
    files: tuple[FileRecord, ...] = ()
    calibration: Calibration | None = None
    simulated: SimulatedEvents | None = None

    @property
    def observables(self) -> tuple[str, ...]:
        """The names of the observables."""
        return self.query.names

    @cached_property
    def log_q(self) -> Array:
        """What is subtracted from log p(theta | x) of each event, as Chebyshev coefficients: log q,
        or 0 for prior="flat"."""
        return self._divided(self.implied_prior.log_q)

    @property
    def divided(self) -> bool:
        """Whether likelihoods are divided by the implied prior."""
        return self.options.prior == "divide"

    def _divided(self, log_q: Array) -> Array:
        """log q, if it is divided by, and else zeros."""
        return log_q if self.divided else np.zeros_like(log_q)

    def __repr__(self) -> str:
        network = self.network
        return (
            f"Model of {self.grid.describe()} from {', '.join(self.observables)}\n"
            f"  {network.members} network(s) of {network.conditioner.describe()}, "
            f"{network.components} {network.basis.name} component(s) each\n"
            f"  objective {self.options.objective}, prior {self.options.prior}, "
            f"max |log q| = {self.implied_prior.max_log:.3g}"
        )

    @own_threads()
    def posterior(self, x: Any) -> Posterior:
        """p(theta | x) of each event."""
        mixture = mixture_of(self.network.double_copy(), self.events(x)[0])
        return Posterior(mixture, self.grid, self.log_q)

    @cached_property
    def reweighting(self) -> Reweighting:
        """Weights of the kept simulated events at any theta."""
        return Reweighting(self)

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
        return virtual_template(self, theta)

    @own_threads()
    def expected(self, theta: Any, events: float) -> Likelihood:
        """The likelihood that events at theta have on average: nothing is drawn, and no observed
        event is looked at.

        -log L = events [b(theta') - a(theta') . mu(theta)], the calibrated likelihood with every
        summary at its mean.

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
        if not 1 <= events < float("inf"):
            raise InputError(f"events: {events:g}; give the number of events to be observed")
        t = unit_point(self, theta)
        if self.calibration is not None:
            y = events * self.calibration.mean(t[None])[0]
            channel = self._calibrated_channel(self.calibration, y, float(events), round(events))
        else:
            channel = Channel(events * self.reweighting.mean_curve(t), self.grid, round(events))
        channel = replace(channel, warnings=self.warnings, model=self.identity)
        return Likelihood([replace(channel, toys=self._toys(events, events))])

    def likelihood(self, x: Any, weights: Any = None, by: Any = None) -> Likelihood:
        """-sum_i w_i log [p(theta | x_i) / q(theta)] of the observed events, in one pass; up to a
        constant.

        Of a data frame, events that the model's selection leaves out are not used. An array holds
        the observables alone: give selected events, or a warning says that they are not.

        `by` (events,) names the group of each event, such as its run period: groups are channels
        of their own, which `likelihood.by()` compares.
        """
        table, given = self.events(x, weights)
        if given is not None:
            check_total(float(given.sum()))
        if by is None:
            likelihood = self.likelihood_of(table, given)
        else:
            likelihood = grouped(self.likelihood_of, table, given, by)
        check_used(likelihood.events, len(table))
        return likelihood

    @own_threads()
    def likelihood_of(self, table: Array, weights: Array | None) -> Likelihood:
        """The likelihood of checked and selected events (events, observables).

        Observables are held at the ends of what was simulated. Events farther outside than the
        simulation is wide say nothing about theta: they count 0 and are told of.
        """
        far = far_events(self.network, table)
        absurd = far.any(axis=1)
        w = np.where(absurd, 0.0, 1.0 if weights is None else weights)
        used, of_used = table, weights
        if absurd.any():
            used, of_used = table[~absurd], None if weights is None else weights[~absurd]
        if self.calibration is None:
            channel = self._learnt(used, of_used)
        else:
            channel = self._calibrated(self.calibration, used, of_used)
        if not np.isfinite(channel.total).all():
            raise InputError(
                "x: the likelihood of these events is not finite; look for absurd values or "
                "weights, or fit the model anew"
            )
        agreement = None
        if self.cells is not None:
            filling = fill(self.cells, self.network, table, w, far, self.observables)
            copies = None if self.summary is None else self.summary.audit.value_of("copies")
            agreement = Agreement(self.cells, filling, copies)
        toys = self._toys(float(w.sum()), float((w**2).sum()))
        channel = replace(channel, agreement=agreement, warnings=self.warnings)
        return Likelihood([replace(channel, model=self.identity, toys=toys)])

    def _toys(self, weight: float, squares: float) -> VirtualToys | None:
        """Pseudo-experiments of as many events."""
        there = self.simulated is not None and weight > 0
        return VirtualToys(self, weight, squares) if there else None

    def _learnt(self, table: Array, weights: Array | None) -> Channel:
        """The likelihood as the network has learnt it."""
        w = np.ones(len(table)) if weights is None else weights
        c = -log_likelihood(self.network, table, weights)
        c = chebyshev.add(c, w.sum() * self.log_q)
        sources = {}
        if self.replicas is not None:
            changes = self.replicas.changes(
                self.network, table, w, self._divided(self.replicas.log_q)
            )
            sources[SIMULATION] = sources_of.Replicas(changes)
        return Channel(
            c,
            self.grid,
            len(table),
            scores=None
            if weights is None
            else score_products(self.network, table, w, c.shape, self.log_q),
            sources=sources,
            undivided=None if self.divided else w.sum() * self.implied_prior.log_q,
        )

    def _calibrated(self, calibration: Calibration, table: Array, weights: Array | None) -> Channel:
        """The likelihood that the templates themselves vouch for: see `Calibration`."""
        size = len(calibration.centre)
        total, weight = np.zeros(size), 0.0
        products, sums, squares = np.zeros((size, size)), np.zeros(size), 0.0
        for part, c in mean_summaries(self.network, table):
            if weights is None:
                total += c.sum(0, dtype=torch.float64).numpy()
                weight += len(c)
                continue
            rows, w = c.double().numpy() - calibration.centre, weights[part]
            total += w @ (rows + calibration.centre)
            weight += w.sum()
            products += (rows * (w**2)[:, None]).T @ rows
            sums += w**2 @ rows
            squares += (w**2).sum()
        transform = calibration.transform
        y = (total - weight * calibration.centre) @ transform
        channel = self._calibrated_channel(calibration, y, float(weight), len(table))
        if weights is None:
            return channel
        scores = calibration.observed_spread(
            transform.T @ products @ transform, sums @ transform, float(squares)
        )
        return replace(channel, scores=scores)

    def _calibrated_channel(
        self, calibration: Calibration, y: Array, weight: float, events: int
    ) -> Channel:
        """The likelihood of events with the sum y of whitened summaries."""
        return Channel(
            calibration.total(y, weight),
            self.grid,
            events,
            scores=events * calibration.spread,
            sources={
                SIMULATION: TemplateNoise(calibration, weight),
                MODEL: Interpolation(calibration, weight),
            },
        )

    def event_vectors(self, table: Array) -> tuple[Tensor, Array, Array]:
        """A vector for each event (events, size), the matrix that makes Chebyshev coefficients of
        log likelihoods of sums of vectors, and those that every event subtracts."""
        network, calibration = self.network, self.calibration
        if calibration is not None:
            rows = [c for _, c in mean_summaries(network, table)]
            transform = torch.as_tensor(calibration.transform)
            y = (torch.cat(rows).double() - torch.as_tensor(calibration.centre)) @ transform
            return y, calibration.curve_matrix(), calibration.offset
        basis = network.polynomial()
        if basis is not None:
            rows = [c for _, c in event_polynomials(network, table)]
            units = np.eye(basis.outputs)
            return torch.cat(rows), np.array([basis.chebyshev(u) for u in units]), self.log_q
        sizes = self.likelihood_of(table, None).coefficients.shape
        t = chebyshev.box_points(sizes)
        rows = [log_p for _, log_p in log_density(network, table, t, factor=False)]
        units = np.eye(len(t)).reshape(-1, *sizes)
        return torch.cat(rows), np.array([chebyshev.coefficients(u) for u in units]), self.log_q

    @cached_property
    def identity(self) -> str:
        """A checksum of what the model learnt: copies in other processes have the same."""
        parts = [self.grid.bounds, self.implied_prior.log_q]
        parts += [v.detach().cpu().numpy() for _, v in sorted(self.network.state_dict().items())]
        if self.replicas is not None:
            parts.append(self.replicas.log_q)
        if self.calibration is not None:
            parts += [self.calibration.a, self.calibration.b]
        digest = sha256()
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def __reduce__(self) -> Any:
        # Pickled as its file, so that tasks in other processes get what `load` would give them.
        from gridless.model.file import model_bytes, unpickled

        return unpickled, (model_bytes(self),)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file, from which `load` makes the same model."""
        from gridless.model.file import save_model

        save_model(self, Path(path))

    @cached_property
    def warnings(self) -> tuple[EstimateWarning, ...]:
        """Reasons not to trust any estimate with this model."""
        prior, gain = self.implied_prior, self.record.gain
        found = model_warnings(
            np.inf if gain is None else gain,
            prior.between_templates(),
            prior.max_log,
            divided=self.divided,
        )
        return found if self.summary is None else (*found, *audit_warnings(self.summary.audit))

    def events(self, x: Any, weights: Any = None) -> tuple[Array, Array | None]:
        """Observed events as (events, observables), in the order of the training, and weights.

        A data frame is read as a file would be: by the model's query. A `Sample` brings its
        weights.
        """
        if hasattr(x, "columns"):
            return frame_events(self.query, x, weights, self._not_selected)
        events = as_events(x, weights, self.observables)
        if isinstance(x, Sample):
            if not x.query.within(self.query):
                self._not_selected(f"the sample was read with {x.query.selection!r}")
        elif self.query.selection is not None:
            self._not_selected("an array has no columns for it")
        return events

    def _not_selected(self, reason: str) -> None:
        warnings.warn(
            f"x: the model's selection {self.query.selection!r} is not applied, since {reason}; "
            "give selected events, or read them with read_likelihood",
            GridlessWarning,
            stacklevel=4,
        )
