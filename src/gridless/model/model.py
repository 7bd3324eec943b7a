"""The model: a trained network that gives posteriors and likelihoods of any events."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gridless.density.network import Network
from gridless.distributed import own_threads
from gridless.errors import InputError
from gridless.likelihood import chebyshev
from gridless.likelihood.likelihood import Curves, Likelihood
from gridless.likelihood.warnings import EstimateWarning
from gridless.model.evaluation import log_density, log_likelihood, outputs
from gridless.model.posterior import Posterior
from gridless.model.prior import ImpliedPrior
from gridless.model.trust import Cells, Trust
from gridless.templates.arrays import Array, as_table, as_weights
from gridless.templates.grid import Grid
from gridless.templates.summary import Summary
from gridless.training.checkpoint import Epoch
from gridless.training.simulation import Replicas

PRIORS = ("flat", "divide")
# Units of log likelihood on held-out events, and of log q, beyond which a model is suspect.
_LEAST_GAIN, _COLLAPSED, _LARGE_PRIOR = 3.0, 0.1, 0.5


@dataclass(frozen=True)
class Model:
    """p(theta | x) as learnt from templates, with the implied prior that belongs to it.

    `replicas` carry the uncertainty from finite simulation, `cells` tell whether observed events
    look like it. `options` are the arguments of the fit, `history` what every epoch ended with,
    `data` the files it was made from, with their sizes and checksums, `summary` what a report
    tells of them.
    """

    network: Network
    grid: Grid
    observables: tuple[str, ...]
    prior: str
    implied_prior: ImpliedPrior
    replicas: Replicas | None = None
    cells: Cells | None = None
    options: dict[str, Any] = field(default_factory=dict)
    history: tuple[Epoch, ...] = ()
    data: tuple[dict[str, Any], ...] = ()
    summary: Summary | None = None

    def __repr__(self) -> str:
        network = self.network
        layers = " x ".join(str(size) for size in network.hidden) or "no"
        return (
            f"Model of {self.grid.describe()} from {', '.join(self.observables)}\n"
            f"  {network.members} network(s) of {layers} {network.activation} units, "
            f"{network.components} {network.basis.name} component(s) each\n"
            f"  objective {self.options.get('objective', 'unknown')}, prior {self.prior}, "
            f"max |log q| = {self.implied_prior.max_log:.3g}"
        )

    @own_threads()
    def posterior(self, x: Any) -> Posterior:
        """p(theta | x) of each event."""
        log_c, z = outputs(self.network.double_copy(), self.table(x))
        log_q = self.implied_prior.log_q if self.prior == "divide" else None
        return Posterior(self.network, log_c, z, self.grid, log_q)

    @own_threads()
    def likelihood(self, x: Any, weights: Any = None) -> Likelihood:
        """-sum_i w_i log [p(theta | x_i) / q(theta)] of the observed events, in one pass; up to a
        constant."""
        table = self.table(x)
        given = as_weights(weights, len(table))
        w = np.ones(len(table)) if given is None else given
        divide = self.prior == "divide"
        c = -log_likelihood(self.network, table, given)
        if divide:
            c = chebyshev.add(c, w.sum() * self.implied_prior.log_q)
        scores = None if given is None else self._scores(table, w, c.shape)
        changes = None
        if self.replicas is not None:
            changes = self.replicas.changes(self.network, table, w, divide)
        return Likelihood(Curves(c, scores, changes), self.grid, len(table), self._trust(table, w))

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file, from which `load` makes the same model."""
        from gridless.model.file import save_model

        save_model(self, Path(path))

    def _trust(self, x: Array, weights: Array) -> Trust | None:
        """What there is to say for and against trusting the likelihood of these events."""
        if self.cells is None:
            return None
        filling = self.cells.fill(self.network, x, weights)
        log_q = None if self.prior == "divide" else self.implied_prior.log_q
        return Trust(self.cells, filling, log_q, self.warnings)

    @cached_property
    def warnings(self) -> tuple[EstimateWarning, ...]:
        """Reasons not to trust any estimate with this model."""
        warnings = []
        gain = self.options.get("gain", np.inf)
        if gain < _LEAST_GAIN:
            text = (
                "the network tells no value of the parameters from another (held-out log "
                f"likelihood {gain:+.1f}); add observables, or train longer"
            )
            warnings.append(EstimateWarning("no_information", text))
        dip = self.implied_prior.between_templates()
        if abs(dip) > _COLLAPSED:
            text = (
                f"log q between templates differs by {dip:+.2f} from log q at them: components "
                "have collapsed onto templates; use fewer, or a larger floor of their width"
            )
            warnings.append(EstimateWarning("collapsed", text))
        if self.prior == "divide" and self.implied_prior.max_log > _LARGE_PRIOR:
            text = (
                f"max |log q| = {self.implied_prior.max_log:.2f} is a large correction; "
                'fit with objective="template", or train longer'
            )
            warnings.append(EstimateWarning("implied_prior", text))
        return tuple(warnings)

    def _scores(self, x: Array, weights: Array, sizes: tuple[int, ...]) -> Array:
        """Coefficients of sum_i w_i^2 s_i s_i^T, s_i = d log p(t | x_i) / dt: see `Curves`."""
        # Squares of slopes need as many points as the likelihood, and no fewer than these.
        least = chebyshev.SIZES[len(sizes)][0]
        sizes = tuple(max(size, least) for size in sizes)
        t = chebyshev.box_points(sizes)
        log_q = chebyshev.evaluate(self.implied_prior.log_q, t) if self.prior == "divide" else 0.0
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

    def table(self, x: Any) -> Array:
        """Observed events as (events, observables), in the order of the training."""
        expected = ", ".join(self.observables)
        if hasattr(x, "columns"):
            missing = [name for name in self.observables if name not in x.columns]
            if missing:
                raise InputError(
                    f"x: no column {', '.join(missing)}; the model needs {expected}: rename the "
                    "columns, or give an array in that order"
                )
            x = x[list(self.observables)]
        table, names = as_table(x, "x", None, "x")
        if len(names) != len(self.observables):
            raise InputError(
                f"x: {len(names)} column(s), but the model has {len(self.observables)} "
                f"observable(s); give {expected}, in that order"
            )
        return table
