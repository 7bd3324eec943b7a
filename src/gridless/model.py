"""The model: a trained network that gives posteriors and likelihoods of any events."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gridless import chebyshev
from gridless.arrays import Array, as_table, as_weights
from gridless.errors import InputError
from gridless.evaluation import approximate_sum, outputs, sum_over_events
from gridless.grid import Grid
from gridless.likelihood import Likelihood
from gridless.network import Network
from gridless.posterior import Posterior
from gridless.prior import ImpliedPrior
from gridless.training import Epoch

PRIORS = ("flat", "divide")


@dataclass(frozen=True)
class Model:
    """p(theta | x) as learnt from templates, with the implied prior that belongs to it.

    `options` are the arguments of the fit, `history` what every epoch of it ended with.
    """

    network: Network
    grid: Grid
    observables: tuple[str, ...]
    prior: str
    implied_prior: ImpliedPrior
    options: dict[str, Any] = field(default_factory=dict)
    history: tuple[Epoch, ...] = ()

    def __repr__(self) -> str:
        network = self.network
        layers = " x ".join(str(size) for size in network.hidden) or "no"
        low, high = self.grid.bounds[0]
        return (
            f"Model of {self.grid.parameters[0]} in [{low:g}, {high:g}] "
            f"from {', '.join(self.observables)}\n"
            f"  {network.members} network(s) of {layers} {network.activation} units, "
            f"{network.components} {network.basis.name} component(s) each\n"
            f"  objective {self.options.get('objective', 'unknown')}, prior {self.prior}, "
            f"max |log q| = {self.implied_prior.max_log:.3g}"
        )

    def posterior(self, x: Any) -> Posterior:
        """p(theta | x) of each event."""
        log_c, z = outputs(self.network.double_copy(), self._table(x))
        log_q = self.implied_prior.log_q if self.prior == "divide" else None
        return Posterior(self.network.basis, log_c, z, self.grid, log_q)

    def likelihood(self, x: Any, weights: Any = None) -> Likelihood:
        """-sum_i w_i log [p(theta | x_i) / q(theta)] of the observed events, in one pass."""
        table = self._table(x)
        given = as_weights(weights, len(table))
        w = np.ones(len(table)) if given is None else given
        tolerance = min(1e-9 * len(table), 1e-5)
        c = approximate_sum(self.network, table, w, np.asarray, np.negative, tolerance)
        scores = None if given is None else self._scores(table, w, len(c))
        if self.prior == "divide":
            c = chebyshev.add(c, w.sum() * self.implied_prior.log_q)
        return Likelihood(c, self.grid, len(table), scores)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file, from which `load` makes the same model."""
        from gridless.saving import save_model

        save_model(self, Path(path))

    def _scores(self, x: Array, weights: Array, size: int) -> Array:
        """Coefficients of sum_i (w_i d log p(t | x_i) / dt)^2 for the sandwich errors."""
        t, slope = chebyshev.points(size), chebyshev.differentiation(size)
        log_q = chebyshev.evaluate(self.implied_prior.log_q, t) if self.prior == "divide" else 0.0

        def squared_score(log_p: Array) -> Array:
            return np.asarray(((log_p - log_q) @ slope.T) ** 2)

        return chebyshev.coefficients(
            sum_over_events(self.network, x, weights**2, t, squared_score)
        )

    def _table(self, x: Any) -> Array:
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
