"""What a model remembers of its making: the options of the fit, and how the training went."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from gridless.errors import InputError
from gridless.registry import BASES, NETWORKS, OBJECTIVES

Prior = Literal["divide", "flat"]
Activation = Literal["tanh", "silu", "relu"]
# How messages call pydantic's limits.
LIMITS = {"ge": "at least", "gt": "a number above", "lt": "a number below", "le": "at most"}
# The same of its kinds.
KINDS = {
    "string_type": "give a text",
    "dict_type": "give names with a value each, {name: value}",
    "list_type": "give a list, [...]",
    "tuple_type": "give a list, [...]",
}
# More than anybody has used; what is beyond would run for days or fill the memory.
MAX_COMPONENTS = 1_000
MIN_VALIDATION = 1e-6  # share of the events: one of a million
MAX_ENSEMBLE = 1_000
MAX_EPOCHS = 1_000_000
MAX_REPLICAS = 10_000
MAX_LAYERS = 100
MAX_UNITS = 100_000
MAX_SEED = 2**63 - 1  # what torch takes


class FitOptions(BaseModel):
    """Arguments of `gridless.fit`; each is a flag of `gridless fit` too, and a key of `fit:` in
    analysis.yaml. This is the one place that knows their defaults and checks them."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    basis: Any = Field(
        default=None,
        description="Shape of a component: exp_polynomial, gaussian or logistic; by default "
        "exp_polynomial, of a degree that held-out events choose.",
    )
    components: int = Field(default=1, ge=1, le=MAX_COMPONENTS, description="Number of components.")
    hidden: tuple[int, ...] | None = Field(
        default=None,
        description="Units of the hidden layer, or of each of several; by default chosen; 16 if "
        "basis or components is given, or without calibration.",
    )
    activation: Activation = Field(
        default="tanh", description="Function of a hidden unit: tanh, silu or relu."
    )
    network: Any = Field(
        default=None,
        description="Name of a registered network; by default our own, with hidden and activation.",
    )
    objective: Any = Field(
        default="template",
        description="What the training minimises: template, posterior or penalty.",
    )
    prior: Prior = Field(
        default="divide",
        description="divide by the implied prior, or take the posterior as it is: flat.",
    )
    ensemble: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ENSEMBLE,
        description="Networks to train and average; by default 1, or 4 where events say little.",
    )
    validation: float | None = Field(
        default=None,
        ge=MIN_VALIDATION,
        lt=1,
        description="Share of the events held out; by default a tenth, or one part per network "
        "of an ensemble.",
    )
    epochs: int | None = Field(
        default=None,
        ge=1,
        le=MAX_EPOCHS,
        description="Passes over the events; by default enough for some five hundred steps.",
    )
    batch: int | None = Field(
        default=None,
        ge=1,
        description="Events per step; by default a fiftieth of them, but 256 to 8,192.",
    )
    rate: float = Field(default=0.03, gt=0, le=10, description="Highest learning rate.")
    ridge: float | None = Field(
        default=None,
        ge=0,
        le=1e12,
        description="Strength of the prior on the weights of the network; by default chosen with "
        "its size, or 10 where that is given.",
    )
    replicas: int | None = Field(
        default=None,
        ge=0,
        le=MAX_REPLICAS,
        description="Without calibration: bootstrap replicas of the templates, for the uncertainty "
        "from simulation; by default 32, 0 for none.",
    )
    calibrate: bool = Field(
        default=True,
        description="Whether likelihoods are calibrated by the templates themselves.",
    )
    seed: int = Field(default=0, ge=0, le=MAX_SEED, description="Fixes everything random.")
    device: str = Field(default="cpu", description="Where to train: cpu, cuda or mps.")

    @classmethod
    def of(cls, **given: Any) -> "FitOptions":
        """The options, with an InputError that names what is wrong and what would be right."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise InputError("; ".join(explain(one) for one in error.errors())) from None

    def to_dict(self) -> dict[str, Any]:
        """The options in what JSON can hold: a basis or objective given as an object by its name,
        with its settings."""
        options = dict(self)
        named = {name: _named(options[name]) for name in ("basis", "objective")}
        # A network given by hand is not saved in words: `load` takes it by hand too.
        network = self.network if isinstance(self.network, str) else None
        return (
            options
            | named
            | {"hidden": None if self.hidden is None else list(self.hidden), "network": network}
        )

    @field_validator("hidden", mode="before")
    @classmethod
    def _layers(cls, value: Any) -> Any:
        """A number alone is one layer."""
        if value is None:
            return value
        if isinstance(value, bool) or not isinstance(value, int | tuple | list):
            raise ValueError(f"{value!r}; give a number of units or a list of them")
        sizes = (value,) if isinstance(value, int) else tuple(value)
        if any(isinstance(size, int) and size < 1 for size in sizes):
            raise ValueError(f"{value!r}; give whole numbers of at least 1")
        if len(sizes) > MAX_LAYERS or any(isinstance(n, int) and n > MAX_UNITS for n in sizes):
            raise ValueError(f"give at most {MAX_LAYERS} layers of at most {MAX_UNITS:,} units")
        return sizes

    @field_validator("basis")
    @classmethod
    def _known_basis(cls, value: Any) -> Any:
        if value is not None:
            _check_named("basis", value, BASES.names)
        return value

    @field_validator("network")
    @classmethod
    def _known_network(cls, value: Any) -> Any:
        if isinstance(value, str):
            _check_name("network", value, NETWORKS.names)
        elif value is not None and not callable(value):
            raise ValueError(
                f"{value!r}; give a registered name, a module, or a function that makes one"
            )
        return value

    @field_validator("objective")
    @classmethod
    def _known_objective(cls, value: Any) -> Any:
        _check_named("objective", value, OBJECTIVES.names)
        return value

    @field_validator("replicas")
    @classmethod
    def _enough(cls, value: int | None) -> int | None:
        if value == 1:
            raise ValueError("1; give 0 for none, or at least 2")
        return value


def _check_name(kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(
            f"there is no {name!r}; known are {', '.join(known)}; import the module that registers "
            f"your own {kind} first"
        )


def _check_named(kind: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse what is neither a known name, nor one with its settings, nor an object with both."""
    if isinstance(value, Mapping) and len(value) == 1:
        name, settings = next(iter(value.items()))
        if isinstance(name, str) and isinstance(settings, Mapping):
            return _check_name(kind, name, known)
    elif isinstance(value, str):
        return _check_name(kind, value, known)
    elif isinstance(getattr(value, "name", None), str) and hasattr(value, "options"):
        return None
    raise ValueError(f"{value!r}; give one of {', '.join(known)}, or a {kind} of your own")


def _named(thing: Any) -> Any:
    """A basis or objective by its name and settings."""
    if thing is None or isinstance(thing, str | Mapping):
        return thing
    return {thing.name: thing.options()}


def explain(error: Any) -> str:
    """`ridge: -1; give a number of at least 0`: one of pydantic's errors, as ours read."""
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{name}: there is no such option; known are {', '.join(FitOptions.model_fields)}"
    return f"{name}: {mended(error)}"


def mended(error: Any) -> str:
    """`-1; give a number of at least 0`: what one of pydantic's errors says of a setting."""
    given, message = error["input"], str(error["msg"])
    if error["type"] == "value_error":  # our own has the value where it helps
        return message.removeprefix("Value error, ")
    if error["type"] == "literal_error":
        return f"there is no {given!r}; give one of {error['ctx']['expected']}"
    shown = "" if isinstance(given, dict) else f"{given!r}; "
    for key, words in LIMITS.items():
        if key in error.get("ctx", {}):
            return f"{shown}give {words} {error['ctx'][key]:g}"
    if error["type"] == "string_type" and isinstance(given, int | float):
        return f'{shown}give it in quotes, "{given}"'
    known = message.replace("Input should be", "give").partition(", unable to parse")[0]
    cure = KINDS.get(error["type"], known)
    return f"{shown}{cure}"


@dataclass(frozen=True)
class Epoch:
    """What one epoch ended with: every term of the cost, averaged over the ensemble."""

    stage: int
    epoch: int
    training: float
    validation: float
    spread: float
    strength: float
    kept: bool


def nan_for_null(rows: Any) -> Any:
    """Rows of a table in which null stands for NaN, as JSON has none."""
    if not isinstance(rows, list | tuple):
        return rows
    return [
        {k: math.nan if v is None else v for k, v in row.items()} if isinstance(row, dict) else row
        for row in rows
    ]


History = Annotated[tuple[Epoch, ...], BeforeValidator(nan_for_null)]


@dataclass(frozen=True)
class TriedSize:
    """A size of the network that was tried: degree in theta, hidden units, number of parameters,
    the log likelihood that the held-out events of the trial gained, the ridge, and the number of
    networks whose mean gained it."""

    degree: int
    hidden: tuple[int, ...]
    parameters: int
    gain: float
    chosen: bool = False
    ridge: float = 10.0
    members: int = 1

    def __str__(self) -> str:
        units = " x ".join(str(n) for n in self.hidden) or "no"
        taken = " (taken)" if self.chosen else ""
        ridge = f", ridge {self.ridge:g}" if self.hidden else ""
        networks = f", {self.members} networks" if self.members > 1 else ""
        return (
            f"degree {self.degree}, {units} hidden units{ridge}{networks} {self.gain:+.1f}{taken}"
        )


@dataclass(frozen=True)
class TrainingRecord:
    """How a training went.

    `history` is what every epoch ended with. `sizes` are those that were tried. `gain` is how much
    the log likelihood of the held-out events exceeds that of a network that knows nothing: 0 if
    nothing was learnt. `epochs`, `batch` and `validation` are what the defaults came to. `command`
    and `where` say what was typed, and which events were used, if the model was made from files.
    `versions` are those that a model was saved with, if it comes from a file.
    """

    history: History
    gain: Annotated[float, BeforeValidator(lambda v: math.nan if v is None else v)]
    epochs: int
    batch: int
    validation: float
    command: str | None = None
    where: str | None = None
    versions: dict[str, str] = field(default_factory=dict, compare=False)
    sizes: tuple[TriedSize, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The record in what JSON can hold."""
        return asdict(self)
