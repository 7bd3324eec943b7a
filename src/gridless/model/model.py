"""The model: a trained network that gives posteriors and likelihoods of any events."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gridless.density.network import Network
from gridless.distributed import own_threads
from gridless.errors import GridlessWarning, InputError
from gridless.files.expressions import names as names_in
from gridless.files.read import ENTRY, Sample, read
from gridless.likelihood import chebyshev, printing
from gridless.likelihood import sources as sources_of
from gridless.likelihood.agreement import Agreement, Cells
from gridless.likelihood.channel import Channel
from gridless.likelihood.estimate import SIMULATION
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.warnings import EstimateWarning, model_warnings
from gridless.model.cells import fill
from gridless.model.evaluation import log_density, log_likelihood, mixture_of
from gridless.model.posterior import Posterior
from gridless.model.prior import ImpliedPrior
from gridless.model.record import FitOptions, TrainingRecord
from gridless.model.replicas import Replicas
from gridless.templates.arrays import Array, as_events, as_weights, check_total
from gridless.templates.grid import Grid
from gridless.templates.histograms import Binned, Histogram, bin_events
from gridless.templates.query import FileRecord, Query
from gridless.templates.summary import Summary


@dataclass(frozen=True)
class Model:
    """p(theta | x) as learnt from templates, with the implied prior that belongs to it.

    `query` says how observables are made of columns, and which events are used. `options` are the
    arguments of the fit, `record` how the training went. `replicas` carry the uncertainty from
    finite simulation, `cells` tell whether observed events look like it. `summary` is the audit of
    the templates with the distributions of their observables, `files` where they came from.

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

    def _repr_html_(self) -> str:
        network, record = self.network, self.record
        gain = "" if record.gain is None else f"{record.gain:+.1f} units of log likelihood"
        rows = {
            "parameters": self.grid.describe(),
            "templates": f"{len(self.grid)}",
            "observables": ", ".join(self.observables),
            "selection": self.query.selection or "all events",
            "network": f"{network.members} of {network.conditioner.describe()}, "
            f"{network.components} {network.basis.name} component(s)",
            "objective, prior": f"{self.options.to_dict()['objective']}, {self.options.prior}",
            "gain on held-out events": gain,
            "max |log q|": f"{self.implied_prior.max_log:.3g}",
        }
        cells = [[escape(name), escape(text)] for name, text in rows.items() if text]
        table = printing.table(["Model", ""], cells)
        return printing.block(table + printing.warning_list(self.warnings))

    @own_threads()
    def posterior(self, x: Any) -> Posterior:
        """p(theta | x) of each event."""
        mixture = mixture_of(self.network.double_copy(), self.events(x)[0])
        return Posterior(mixture, self.grid, self.log_q)

    def likelihood(self, x: Any, weights: Any = None) -> Likelihood:
        """-sum_i w_i log [p(theta | x_i) / q(theta)] of the observed events, in one pass; up to a
        constant.

        Of a data frame, events that the model's selection leaves out are not used. An array holds
        the observables alone: give selected events, or a warning says that they are not.
        """
        table, given = self.events(x, weights)
        if given is not None:
            check_total(float(given.sum()))
        likelihood = self.likelihood_of(table, given)
        offered = len(x) if hasattr(x, "columns") else getattr(x, "offered", None)
        if offered in (None, len(table)):
            return likelihood
        return Likelihood([replace(likelihood.channels[0], offered=offered)])

    @own_threads()
    def likelihood_of(self, table: Array, weights: Array | None) -> Likelihood:
        """The likelihood of checked and selected events (events, observables)."""
        w = np.ones(len(table)) if weights is None else weights
        c = -log_likelihood(self.network, table, weights)
        c = chebyshev.add(c, w.sum() * self.log_q)
        if not np.isfinite(c).all():
            raise InputError(
                "x: the likelihood of these events is not finite; look for absurd values or "
                "weights, or fit the model anew"
            )
        scores = None if weights is None else self._scores(table, w, c.shape)
        sources = {}
        if self.replicas is not None:
            changes = self.replicas.changes(
                self.network, table, w, self._divided(self.replicas.log_q)
            )
            sources[SIMULATION] = sources_of.Replicas(changes)
        agreement = None
        if self.cells is not None:
            agreement = Agreement(self.cells, fill(self.cells, self.network, table, w))
        channel = Channel(
            c,
            self.grid,
            len(table),
            scores=scores,
            sources=sources,
            agreement=agreement,
            undivided=None if self.divided else w.sum() * self.implied_prior.log_q,
            warnings=self.warnings,
            model=self.identity,
            observed=self._binned(table, weights),
        )
        return Likelihood([channel])

    def _binned(self, table: Array, weights: Array | None) -> Binned | None:
        """Observed events in the bins of the summary."""
        if self.summary is None:
            return None
        return bin_events(self.summary.edges, table, weights, self.query.labels)

    def histograms(self, theta: Any) -> dict[str, Histogram]:
        """The simulation at any theta in histograms, which mplhep and others draw.

        Bins are polynomials in theta through all templates (`gridless.templates.interpolation`).

        Parameters
        ----------
        theta : float or sequence of float
            The value of each parameter.

        Returns
        -------
        dict of str to Histogram
            Shares of events by observable; `histogram * n` is what n events are expected to give.

        Examples
        --------
        >>> import gridless as gl
        >>> from gridless.examples import OneObservable
        >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, replicas=0)
        >>> model.histograms(0.42)["x"].axes[0].name
        'x'
        """
        if self.summary is None:
            raise InputError("histograms: the model has no summary of its templates; fit it again")
        point = np.atleast_1d(np.asarray(theta, float))
        if point.shape != (len(self.grid.parameters),):
            names = ", ".join(self.grid.parameters)
            raise InputError(f"theta: shape {point.shape}; give one value of each: {names}")
        return {
            one.observable: one.at(self.grid, point, self.query.labels.get(one.observable, ""))
            for one in self.summary.distributions
        }

    @cached_property
    def identity(self) -> str:
        """A checksum of what the model learnt: copies in other processes have the same."""
        parts = [self.grid.bounds, self.implied_prior.log_q]
        parts += [v.detach().cpu().numpy() for _, v in sorted(self.network.state_dict().items())]
        if self.replicas is not None:
            parts.append(self.replicas.log_q)
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
        return model_warnings(
            np.inf if gain is None else gain,
            prior.between_templates(),
            prior.max_log,
            divided=self.divided,
        )

    def _scores(self, x: Array, weights: Array, sizes: tuple[int, ...]) -> Array:
        """Coefficients of sum_i w_i^2 s_i s_i^T, s_i = d log p(t | x_i) / dt: see `Channel`."""
        # Squares of slopes need as many points as the likelihood, and no fewer than these.
        least = chebyshev.SIZES[len(sizes)][0]
        sizes = tuple(max(size, least) for size in sizes)
        t = chebyshev.box_points(sizes)
        log_q = chebyshev.evaluate(self.log_q, t)
        count = len(sizes)
        total = np.zeros((count, count, len(t)))
        for part, log_p in log_density(self.network, x, t, factor=False):
            values = (log_p.double().numpy() - log_q).reshape(-1, *sizes)
            slopes = [
                np.moveaxis(np.tensordot(values, slope, (axis + 1, 1)), -1, axis + 1)
                for axis, slope in enumerate(chebyshev.differentiation(size) for size in sizes)
            ]
            flat = np.stack([s.reshape(len(values), -1) for s in slopes])
            total += np.einsum("n,anj,bnj->abj", weights[part] ** 2, flat, flat)
        every = total.reshape(-1, *sizes)
        return np.array([chebyshev.coefficients(c) for c in every]).reshape(count, count, *sizes)

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
                self._not_selected(f"the sample was read with {x.query.selection!r}")
        elif self.query.selection is not None:
            self._not_selected("an array has no columns for it")
        return events

    def _frame_events(self, frame: Any, weights: Any) -> tuple[Array, Array | None]:
        """The selected events of a data frame; one that has the observables as columns is taken at
        its word."""
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
            "give selected events, or read them with read_likelihood",
            GridlessWarning,
            stacklevel=4,
        )
