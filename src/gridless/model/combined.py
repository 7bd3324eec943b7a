"""Models of several channels, which are measured together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.files.sources import as_path
from gridless.likelihood.channel import Channel, common_grid
from gridless.likelihood.likelihood import Likelihood
from gridless.model.model import Model
from gridless.results.warning import EstimateWarning
from gridless.templates.grid import Grid

MAX_PARAMETERS = 3  # of interest, that all channels have together


@dataclass(frozen=True, eq=False)
class Channels(Mapping[str, Model]):
    """The models of several channels by name: `channels["soft"]` is a model.

    -log L(theta, alpha) = sum over channels of -log L_c(theta, alpha) + constraints. Parameters,
    systematics and backgrounds of the same name are one parameter in all channels.

    Parameters
    ----------
    models : mapping from str to Model
        Two or more.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> seeds = {"electron": 1, "muon": 2}
    >>> channels = gl.Channels(
    ...     {n: gl.fit(example.templates(500, s), hidden=3, epochs=2) for n, s in seeds.items()}
    ... )
    >>> x = {name: example.sample(0.4, 500, seed=k) for k, name in enumerate(channels)}
    >>> estimate = channels.likelihood(x).maximum()
    >>> sorted(estimate.p_values)
    ['electron', 'muon']
    """

    models: Mapping[str, Model]

    def __post_init__(self) -> None:
        if not isinstance(self.models, Mapping) or len(self.models) < 2:
            raise InputError("channels: give the models of two or more channels by name")
        for name, model in self.models.items():
            if not isinstance(name, str) or not name:
                raise InputError(f"channels: {name!r} is no name; give a text")
            if not isinstance(model, Model):
                raise InputError(f"channels: {name} is {type(model).__name__}; give a model")
        object.__setattr__(self, "models", dict(self.models))
        if len(self.grid.parameters) > MAX_PARAMETERS:
            raise InputError(
                f"channels: {len(self.grid.parameters)} parameters in all; give at most "
                f"{MAX_PARAMETERS}"
            )
        _check_nuisances(self.models, self.grid.parameters)

    def __getitem__(self, name: str) -> Model:
        if name not in self.models:
            raise InputError(f"there is no channel {name!r}; there is {', '.join(self.models)}")
        return self.models[name]

    def __contains__(self, name: object) -> bool:
        return name in self.models

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    @cached_property
    def grid(self) -> Grid:
        """Parameters of all channels, each between the bounds that all of them allow."""
        grids = [model.grid for model in self.models.values()]
        return common_grid([Channel(np.zeros((1,) * len(g.parameters)), g, 0) for g in grids])

    @property
    def nuisances(self) -> tuple[str, ...]:
        """The nuisance parameters of all channels, each once."""
        return tuple(dict.fromkeys(n for m in self.models.values() for n in m.nuisances))

    @property
    def warnings(self) -> tuple[EstimateWarning, ...]:
        """Reasons not to trust any estimate, with the name of the channel."""
        return tuple(
            warning._replace(text=f"{name}: {warning.text}")
            for name, model in self.models.items()
            for warning in model.warnings
        )

    def likelihood(self, x: Mapping[str, Any], weights: Mapping[str, Any] | None = None) -> Any:
        """The likelihood of the observed events of all channels.

        Parameters
        ----------
        x : mapping from str to array, data frame or Sample
            The events of every channel, by its name. `read_likelihood(channels, data)` divides the
            events of one file by the selections of the channels.
        weights : mapping from str to array, optional
            Their weights; channels that are left out have none.

        Returns
        -------
        Likelihood
        """
        given = {} if weights is None else weights
        self.check_names(x, "x")
        if not isinstance(given, Mapping) or not set(given) <= set(self.models):
            self.check_names(given, "weights")
        return self.summed(
            {name: model.likelihood(x[name], given.get(name)) for name, model in self.items()}
        )

    def expected(self, theta: Any, events: Mapping[str, float]) -> Likelihood:
        """The likelihood that events at theta have on average in all channels: `Model.expected`.

        Parameters
        ----------
        theta : float or sequence of float
            What is assumed to be true: a value of every parameter of `grid`.
        events : mapping from str to float
            How many events each channel will have.

        Returns
        -------
        Likelihood
        """
        self.check_names(events, "events")
        self.grid.unit_point(theta)  # refuses what is no point
        names, values = self.grid.parameters, np.atleast_1d(np.asarray(theta, float))
        given = dict(zip(names, values.tolist(), strict=True))
        return self.summed(
            {
                name: model.expected([given[p] for p in model.grid.parameters], events[name])
                for name, model in self.items()
            }
        )

    def summed(self, parts: Mapping[str, Likelihood]) -> Likelihood:
        """The sum of the likelihoods of all channels, each with the name of its channel."""
        return reduce(add, [parts[name].named(name) for name in self.models])

    def check_names(self, given: Any, what: str) -> None:
        """Refuse what has not exactly the names of the channels."""
        if not isinstance(given, Mapping):
            raise InputError(
                f"{what}: {type(given).__name__}; give it by channel: {{"
                + ", ".join(f"{name!r}: ..." for name in self.models)
                + "}"
            )
        for name in self.models:
            if name not in given:
                raise InputError(f"{what}: nothing for channel {name}; give it for every channel")
        for name in given:
            if name not in self.models:
                known = ", ".join(self.models)
                raise InputError(f"{what}: there is no channel {name!r}; there is {known}")

    def save(self, path: str | Path) -> None:
        """Write the models to one safetensors file; `load` gives the same channels, and of
        `path:name` one of the models."""
        from gridless.model.storage.file import save_channels

        save_channels(self.models, as_path(path))

    def __reduce__(self) -> Any:
        return Channels, (self.models,)

    def __repr__(self) -> str:
        parts = [f"{name}: {model!r}".replace("\n", "\n  ") for name, model in self.models.items()]
        return "\n".join([f"Channels {', '.join(self.models)} of {self.grid.describe()}", *parts])

    def _repr_html_(self) -> str:
        from html import escape

        return "".join(
            f"<p>Channel {escape(name)}</p>{model._repr_html_()}"
            for name, model in self.models.items()
        )


def models_of(model: Model | Channels) -> dict[str, Model]:
    """The models by the name of their channel; a single one has the name ""."""
    return dict(model) if isinstance(model, Channels) else {"": model}


def _check_nuisances(models: Mapping[str, Model], parameters: tuple[str, ...]) -> None:
    """Refuse a name that is one thing in a channel and another in the next."""
    known: dict[str, tuple[str, float | None]] = {}
    for channel, model in models.items():
        for one in () if model.measurement is None else model.measurement.nuisances:
            if one.name in parameters:
                raise InputError(
                    f"channels: {one.name!r} is a parameter, and a nuisance parameter in {channel}"
                )
            first, constraint = known.setdefault(one.name, (channel, one.constraint))
            if constraint != one.constraint:
                raise InputError(
                    f"channels: {one.name} has a constraint of {constraint} in {first} and of "
                    f"{one.constraint} in {channel}; give both the same, or two names"
                )
