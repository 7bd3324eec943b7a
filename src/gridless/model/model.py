"""The model: a trained network that gives posteriors and likelihoods of any events."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from gridless.calibration.calibration import Calibration
from gridless.calibration.check import ScoreCheck, scatter_p_value, score_check
from gridless.calibration.learnt_score import LearntScore
from gridless.density.network import Network
from gridless.distributed import own_threads
from gridless.errors import GridlessWarning, InputError, counted
from gridless.files.expressions import names as names_in
from gridless.files.read import ENTRY, Sample, read
from gridless.files.sources import as_path
from gridless.likelihood.agreement import Agreement, Cells
from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.warnings import (
    audit_warnings,
    check_warnings,
    model_warnings,
    scatter_warnings,
    template_warnings,
)
from gridless.measurement.archive import arrays_of
from gridless.measurement.likelihood import MeasurementLikelihood
from gridless.measurement.measurement import Measurement
from gridless.measurement.term import SummaryChannel
from gridless.model.cells import far_events, fill
from gridless.model.evaluation import mixture_of, summary_basis
from gridless.model.observed import (
    calibrated_channel,
    calibrated_vectors,
    check_used,
    grouped,
    learnt_channel,
    learnt_vectors,
    observed_sums,
)
from gridless.model.posterior import Posterior
from gridless.model.prior import ImpliedPrior
from gridless.model.record import FitOptions, TrainingRecord
from gridless.model.replicas import Replicas
from gridless.model.reweighting import SimulatedEvents
from gridless.model.simulating import Simulating
from gridless.results import printing
from gridless.results.warning import EstimateWarning
from gridless.systematics.bins import BinnedProcess
from gridless.templates.arrays import Array, as_events, as_weights, check_total
from gridless.templates.grid import Grid
from gridless.templates.histograms import bin_events
from gridless.templates.query import FileRecord, Query
from gridless.templates.summary import Summary

# Of a likelihood, in units of log likelihood: squares of slopes must not overflow.
LARGEST_COEFFICIENT = 1e100
SIZES_TRIED = "sizes tried, with the log likelihood gained on held-out events"


@dataclass(frozen=True)
class Model(Simulating):
    """p(theta | x) as learnt from templates, with the implied prior that belongs to it.

    `query` says how observables are made of columns, and which events are used. `options` are the
    arguments of the fit, `record` how the training went. `known` is what the templates know of the
    network's outputs: it makes likelihoods that are valid whatever the network learnt. With
    calibrate=False it only checks them, and `replicas` carry the uncertainty from finite
    simulation. `measurement` has the systematics and backgrounds. `cells` compare observed events
    with the simulation. `summary` is the audit of the templates with the distributions of their
    observables, `files` where they came from. `simulated` are some of the simulated events: `at`
    makes simulation at any theta of them.
    `binned` has backgrounds and systematics in the bins of the summary, for `histograms`.

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
    cells: Cells
    summary: Summary
    files: tuple[FileRecord, ...]
    known: Calibration
    simulated: SimulatedEvents
    replicas: Replicas | None = None
    measurement: Measurement | None = None
    binned: tuple[BinnedProcess, ...] = ()

    @property
    def calibration(self) -> Calibration | None:
        """What makes likelihoods; None where the network's density is used as it is."""
        return self.known if self.options.calibrate else None

    @property
    def observables(self) -> tuple[str, ...]:
        """The names of the observables."""
        return self.query.names

    @property
    def nuisances(self) -> tuple[str, ...]:
        """The names of the nuisance parameters."""
        known = () if self.measurement is None else self.measurement.nuisances
        return tuple(one.name for one in known)

    @cached_property
    def log_q(self) -> Array:
        """What is subtracted from log p(theta | x) of each event: Chebyshev coefficients of log q,
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
            f"  {counted(network.members, 'network')} of {network.conditioner.describe()}, "
            f"{counted(network.components, f'{network.basis.name} component')} each\n"
            f"  objective {self.options.objective}, prior {self.options.prior}, "
            f"max |log q| = {self.implied_prior.max_log:.3g}"
            + (f"\n  nuisance parameters {', '.join(self.nuisances)}" if self.nuisances else "")
            + (f"\n  {SIZES_TRIED}:" if self.record.sizes else "")
            + "".join(f"\n    {size}" for size in self._sizes())
            + f"\n  {self._score_check()}"
        )

    def _score_check(self) -> str:
        """The score check with templates by their values."""
        return self.check.text([self.grid.label(k) for k in range(len(self.grid))])

    def _sizes(self) -> list[str]:
        """The sizes that were tried. The one that was taken may have been tried with more networks
        than were then trained."""
        count = self.network.members
        trained = f"(taken; {counted(count, 'network')} trained)"
        return [
            str(size) if size.members == count else str(size).replace("(taken)", trained)
            for size in self.record.sizes
        ]

    def _repr_html_(self) -> str:
        network, record = self.network, self.record
        rows = {
            "parameters": self.grid.describe(),
            "templates": f"{len(self.grid)}",
            "observables": ", ".join(self.observables),
            "selection": self.query.selection or "all events",
            "nuisance parameters": ", ".join(self.nuisances),
            "network": f"{network.members} of {network.conditioner.describe()}, "
            f"{counted(network.components, f'{network.basis.name} component')}",
            "objective, prior": f"{self.options.to_dict()['objective']}, {self.options.prior}",
            "gain on held-out events": f"{record.gain:+.1f} units of log likelihood",
            "max |log q|": f"{self.implied_prior.max_log:.3g}",
            SIZES_TRIED: "; ".join(self._sizes()),
            "score check": self._score_check().partition(": ")[2],
        }
        cells = [[escape(name), escape(text)] for name, text in rows.items() if text]
        table = printing.table(["Model", ""], cells)
        return printing.block(table + printing.warning_list(self.warnings))

    @own_threads()
    def posterior(self, x: Any) -> Posterior:
        """p(theta | x) of each event."""
        mixture = mixture_of(self.network.double_copy(), self.events(x)[0])
        return Posterior(mixture, self.grid, self.log_q)

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
        if by is not None:
            return grouped(self.likelihood_of, table, given, by)
        likelihood = self.likelihood_of(table, given)
        agreement = likelihood.channels[0].agreement
        check_used(likelihood.events, len(table), agreement, self.summary.edges)
        offered = len(x) if hasattr(x, "columns") else getattr(x, "offered", None)
        if offered in (None, len(table)):
            return likelihood
        return likelihood.with_offered(offered)

    @own_threads()
    def likelihood_of(self, table: Array, weights: Array | None) -> Likelihood:
        """The likelihood of checked and selected events (events, observables).

        Observables are held at the ends of what was simulated. Events farther outside than the
        simulation is wide say nothing about theta: they count 0, and a warning names them.
        """
        far = far_events(self.network, table)
        absurd = far.any(axis=1)
        w = np.where(absurd, 0.0, 1.0 if weights is None else weights)
        used, of_used = table, weights
        if absurd.any():
            used, of_used = table[~absurd], None if weights is None else weights[~absurd]
        if self.calibration is None:
            channel = self._learnt_channel(used, of_used)
        else:
            channel = calibrated_channel(self.network, self.calibration, self.grid, used, of_used)
        if not (np.abs(channel.total) < LARGEST_COEFFICIENT).all():
            raise InputError(
                "x: the likelihood of these events is not finite; look for absurd values or "
                "weights, or fit the model anew"
            )
        filling = fill(self.cells, self.network, table, w, far, self.observables)
        agreement = Agreement(self.cells, filling, self.summary.audit.value_of("copies"))
        channel = replace(
            channel,
            agreement=agreement,
            warnings=self.warnings,
            model=self.identity,
            observed=bin_events(self.summary.edges, used, of_used, self.query.labels),
            toys=self.toys(float(w.sum()), float((w**2).sum())),
        )
        if self.measurement is None:
            return Likelihood([channel])
        check_used(len(used), len(table), agreement, self.summary.edges)
        sums = observed_sums(self.network, self.measurement, used, of_used)
        return MeasurementLikelihood([SummaryChannel(self.measurement, sums, channel)])

    def _learnt_channel(self, table: Array, weights: Array | None) -> Channel:
        """The likelihood as the network has learnt it."""
        replicas = self.replicas
        if replicas is not None:
            replicas = replace(replicas, log_q=self._divided(replicas.log_q))
        channel = learnt_channel(self.network, self.grid, self.log_q, replicas, table, weights)
        total = float(len(table) if weights is None else weights.sum())
        channel = replace(channel, mean_score=self._learnt_score(total))
        if self.divided:
            return channel
        return replace(channel, undivided=total * self.implied_prior.log_q)

    def event_vectors(self, table: Array) -> tuple[Tensor, Array, Array]:
        """A vector for each event (events, size), the matrix that makes Chebyshev coefficients of
        log likelihoods of sums of vectors, and those that every event subtracts."""
        if self.calibration is not None:
            made = calibrated_vectors(self.network, self.calibration, table)
            return *made, self.calibration.offset
        sizes = self.likelihood_of(table, None).coefficients.shape
        return *learnt_vectors(self.network, sizes, table), self.log_q

    @cached_property
    def check(self) -> ScoreCheck:
        """The score check: whether the templates' own events give back their theta."""
        learnt = self._learnt_score(1.0).check()
        found = learnt
        if self.options.calibrate:
            found = score_check(self.known, learnt.p_values)
        outputs, kept = self.known.transform.shape
        if kept < outputs:
            return found  # without the left-out directions the network's score is not known
        return replace(found, scatter=scatter_p_value(self.known, found, learnt))

    def _learnt_score(self, weight: float) -> LearntScore:
        """The mean score of the network's own density, for events of this total weight."""
        curves = summary_basis(self.network).chebyshev_terms()
        return LearntScore(self.known, weight, curves=curves, log_q=self.log_q)

    @cached_property
    def identity(self) -> str:
        """A checksum of what the model learnt: copies in other processes have the same."""
        parts = [self.grid.bounds, self.implied_prior.log_q]
        parts += [v.detach().cpu().numpy() for _, v in sorted(self.network.state_dict().items())]
        if self.replicas is not None:
            parts.append(self.replicas.log_q)
        if self.calibration is not None:
            parts += [self.calibration.a, self.calibration.b]
        if self.measurement is not None:
            parts += arrays_of(self.measurement).values()
        digest = sha256()
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def __reduce__(self) -> Any:
        # Pickled as its file, so that tasks in other processes get what `load` would give them.
        from gridless.model.storage.file import model_bytes, unpickled

        return unpickled, (model_bytes(self),)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file, from which `load` makes the same model."""
        from gridless.model.storage.file import save_model

        save_model(self, as_path(path))

    @cached_property
    def warnings(self) -> tuple[EstimateWarning, ...]:
        """Reasons not to trust any estimate with this model."""
        prior, check = self.implied_prior, self.check
        names = [self.grid.label(k) for k in check.suspects]
        found = template_warnings(names) + scatter_warnings(check.scatter)
        if self.options.calibrate:
            found += check_warnings(check.p_value, check.information)
        else:
            between = prior.between_templates()
            found += model_warnings(self.record.gain, between, prior.max_log, divided=self.divided)
        return found + audit_warnings(self.summary.audit)

    def events(self, x: Any, weights: Any = None) -> tuple[Array, Array | None]:
        """Observed events as (events, observables), in the order of the training, and weights.

        A data frame is read as a file would be: by the model's query. A `Sample` brings its
        weights.
        """
        if hasattr(x, "columns"):
            return self._frame_events(x, weights)
        events = as_events(x, weights, self.observables)
        if isinstance(x, Sample):
            if not x.query.within(self.query):
                other = "no selection" if x.query.selection is None else repr(x.query.selection)
                self._not_selected(f"the sample was read with {other}")
        elif self.query.selection is not None:
            self._not_selected("an array has no columns for it")
        return events

    def _frame_events(self, frame: Any, weights: Any) -> tuple[Array, Array | None]:
        """The selected events of a data frame. A column with the name of an observable is that
        observable; others are computed by the model's query."""
        there = {str(name): name for name in frame.columns}
        ready = {name: name for name in self.observables if name in there}
        wanted, selection = self.query.observables | ready, self.query.selection
        used = set().union(*(names_in(text, there) for text in wanted.values()))
        if used - set(there):
            raise InputError(
                f"x: no column {', '.join(sorted(used - set(there)))}; the model needs "
                f"{', '.join(self.observables)}: rename the columns, or give an array in that order"
            )
        if selection is not None:
            absent = sorted(names_in(selection, there) - set(there) - set(wanted) - {ENTRY})
            if absent:
                self._not_selected(f"there is no column {', '.join(absent)}")
                selection = None
            else:
                used |= names_in(selection, there)
        columns = {name: frame[there[name]] for name in used if name in there}
        weight = None
        if weights is not None:
            weight = "weights given"
            columns[weight] = as_weights(weights, len(frame))
        sample = read(columns, wanted, weight, selection)
        return sample.x, sample.weights

    def _not_selected(self, reason: str) -> None:
        warnings.warn(
            f"x: the model's selection {self.query.selection!r} is not applied, since {reason}; "
            "give a data frame with the columns of the selection, or read a file with "
            "read_likelihood; events that are selected already are right as they are",
            GridlessWarning,
            stacklevel=4,
        )
