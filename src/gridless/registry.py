"""Names of things that can be plugged in: bases, objectives, file formats and networks.

A name is known before its code is loaded, so that the command line can list choices without torch.
"""

from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from gridless.errors import InputError

T = TypeVar("T")


class HasOptions(Protocol):
    """A thing with options, such as a basis or an objective."""

    def options(self) -> dict[str, Any]: ...


def call_of(thing: HasOptions) -> str:
    """How a thing is made: `Gaussian(floor=0.05)`."""
    given = ", ".join(f"{name}={value!r}" for name, value in thing.options().items())
    return f"{type(thing).__name__}({given})"


class Registry(Generic[T]):
    """Plug-ins of one kind by name: ours as `module:attribute`, loaded on first use, and those
    that users `register`."""

    def __init__(self, kind: str, ours: dict[str, str]) -> None:
        self.kind = kind
        self._ours = dict(ours)
        self._registered: dict[str, T] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that is known, sorted."""
        return tuple(sorted({*self._ours, *self._registered}))

    def register(self, name: str, thing: T) -> T:
        """Make a thing known by a name that nothing else has."""
        known = self._registered.get(name)
        if name in self._ours or known not in (None, thing):
            raise InputError(f"{self.kind}: {name!r} is taken; give yours another name")
        self._registered[name] = thing
        return thing

    def find(self, name: str) -> T:
        """The thing of that name."""
        if name in self._registered:
            return self._registered[name]
        if name in self._ours:
            module, attribute = self._ours[name].split(":")
            return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
        raise InputError(
            f"{self.kind}: there is no {name!r}; known are {', '.join(self.names)}; import the "
            "module that registers your own first"
        )


BASES: Registry[Any] = Registry(
    "basis",
    {
        "correlated_gaussian": "gridless.density.gaussian:CorrelatedGaussian",
        "exp_polynomial": "gridless.density.exp_polynomial:ExpPolynomial",
        "gaussian": "gridless.density.gaussian:Gaussian",
        "logistic": "gridless.density.logistic:Logistic",
    },
)
OBJECTIVES: Registry[Any] = Registry(
    "objective",
    {
        "penalty": "gridless.training.objectives:Penalty",
        "posterior": "gridless.training.objectives:PosteriorObjective",
        "template": "gridless.training.objectives:TemplateObjective",
    },
)
NETWORKS: Registry[Any] = Registry(
    "network", {"perceptron": "gridless.density.conditioner:Perceptron"}
)
FORMATS: Registry[Any] = Registry(
    "file format",
    {
        ".root": "gridless.files.root:open_root",
        ".parquet": "gridless.files.parquet:open_parquet",
        ".pq": "gridless.files.parquet:open_parquet",
        ".h5": "gridless.files.hdf5:open_hdf5",
        ".hdf5": "gridless.files.hdf5:open_hdf5",
        ".npz": "gridless.files.npz:open_npz",
        ".csv": "gridless.files.csv:open_csv",
        ".txt": "gridless.files.csv:open_csv",
    },
)
