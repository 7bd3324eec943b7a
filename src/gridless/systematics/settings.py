"""What an analysis.yaml says of files: templates, systematics and backgrounds, checked at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from gridless.errors import InputError

RESERVED = ("stat", "simulation", "model", "total")  # rows of every budget


def understood(text: str | None) -> str | None:
    """The expression, if its syntax is right; its columns are looked for when files are read."""
    from gridless.files.expressions import check_expression  # not needed for `--help`

    if text is not None:
        check_expression(text)
    return text


def _allowed_name(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name!r} is a part of every budget; give another name")
    return name


Expression = Annotated[str | None, AfterValidator(understood)]
Name = Annotated[str, AfterValidator(_allowed_name)]


class TemplateFile(BaseModel):
    """One simulated file: where it is, and the parameter values it was made with."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(description="The file, with `:tree` or `:group` where it needs one.")
    at: dict[str, float] = Field(description="The value of every parameter in it.")

    def values(self, parameters: list[str]) -> tuple[float, ...]:
        """The values of the parameters, in their order."""
        missing = [name for name in parameters if name not in self.at]
        if missing:
            raise InputError(
                f"templates: {self.source}: no value of {', '.join(missing)}; add it under `at`"
            )
        return tuple(self.at[name] for name in parameters)


# A pattern, a file with the parameters as columns, or files with values.
Sources = str | list[TemplateFile]


class SystematicFiles(BaseModel):
    """A systematic in files: other files, other weights, or both.

    Examples
    --------
    >>> jes = SystematicFiles(name="jes", up="jes_up_{mtop}.root", down="jes_down_{mtop}.root")
    >>> fsr = SystematicFiles(name="fsr", weight_up="w * w_fsr_up", weight_down="w * w_fsr_down")
    >>> jes.sides, fsr.sides
    (('up', 'down'), ('up', 'down'))
    """

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(min_length=1, description="Its name, and that of its nuisance parameter.")
    up: str | list[TemplateFile] | None = Field(
        default=None,
        description="Files with the variation up: as `templates`, at all of their values or some.",
    )
    down: str | list[TemplateFile] | None = Field(
        default=None, description="The same down; a variation may have one side only."
    )
    weight_up: Expression = Field(
        default=None,
        description="Expression for the whole weight of an event up, in place of `weight`.",
    )
    weight_down: Expression = Field(default=None, description="The same down.")
    constraint: float | None = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Standard deviation of the nuisance parameter, in units of the variation; "
        "`null` leaves it free.",
    )
    event: Expression = Field(
        default=None,
        description="Column with the number of the event, by which events of the files and of the "
        "templates are known to be the same; by default rows are compared.",
    )

    @model_validator(mode="after")
    def _complete(self) -> SystematicFiles:
        if self.sides[:1] != ("up",):
            raise ValueError(f"{self.name}: no variation up; give `up` or `weight_up`")
        if self.event is not None and (self.up is None or (self.down is None and self._down)):
            raise ValueError(
                f"{self.name}: `event` is for files; with other weights of the templates' events, "
                "leave it out"
            )
        return self

    @property
    def _down(self) -> bool:
        return self.down is not None or self.weight_down is not None

    @property
    def sides(self) -> tuple[str, ...]:
        """Which sides it has."""
        there = {"up": self.up is not None or self.weight_up is not None, "down": self._down}
        return tuple(side for side, is_there in there.items() if is_there)

    @property
    def sources(self) -> list[Sources]:
        """The files of each side that has some."""
        return [one for one in (self.up, self.down) if one is not None]

    def beside(self, folder: Path) -> SystematicFiles:
        """The same with sources relative to a folder, as paths from here."""
        sides = {"up": self.up, "down": self.down}
        moved = {name: beside(folder, s) for name, s in sides.items() if s is not None}
        return self.model_copy(update=moved)


class BackgroundFiles(BaseModel):
    """A background in files.

    Examples
    --------
    >>> BackgroundFiles(name="wjets", files="wjets.root:events", share=0.06, error=0.02).share
    0.06
    """

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(min_length=1, description="Its name, and that of its nuisance parameter.")
    files: str | list[str] = Field(description="One file, or several, without parameters.")
    share: float = Field(gt=0, lt=1, description="Its share of all observed events.")
    error: float | None = Field(
        gt=0,
        allow_inf_nan=False,
        description="The uncertainty of the share; `null` leaves it free.",
    )
    weight: Expression = Field(
        default=None, description="Expression for the weight of its events, if not `weight`."
    )
    systematics: list[SystematicFiles] = Field(
        default=[],
        description="How it varies, as below; `up` and `down` have no parameters. Those with a "
        "name of the signal's are the same nuisance parameter.",
    )

    @field_validator("files")
    @classmethod
    def _some(cls, value: str | list[str]) -> str | list[str]:
        for source in value if isinstance(value, list) else [value]:
            _without_braces(source)
        if not value:
            raise ValueError("no file; give at least one")
        return value

    @field_validator("systematics")
    @classmethod
    def _plain(cls, value: list[SystematicFiles]) -> list[SystematicFiles]:
        distinct("systematics", (one.name for one in value))
        for one in value:
            for source in one.sources:
                if not isinstance(source, str):
                    raise ValueError(f"{one.name}: a background has no parameters; give one file")
                _without_braces(source)
        return value

    @property
    def listed(self) -> list[str]:
        """Its files."""
        return self.files if isinstance(self.files, list) else [self.files]

    def beside(self, folder: Path) -> BackgroundFiles:
        """The same with sources relative to a folder, as paths from here."""
        moved = [str(folder / source) for source in self.listed]
        varied = [one.beside(folder) for one in self.systematics]
        return self.model_copy(update={"files": moved, "systematics": varied})


def check_together(
    parameters: Iterable[str],
    systematics: Sequence[SystematicFiles],
    backgrounds: Sequence[BackgroundFiles],
) -> None:
    """Refuse names that stand for two things, and shares that leave nothing to the signal."""
    distinct("systematics", (one.name for one in systematics))
    distinct("backgrounds", (one.name for one in backgrounds))
    constraints: dict[str, float | None] = {}
    for one in [*systematics, *(s for b in backgrounds for s in b.systematics)]:
        if constraints.setdefault(one.name, one.constraint) != one.constraint:
            raise ValueError(f"systematics: {one.name} has two constraints; give the same to both")
    for background in backgrounds:
        if background.name in constraints:
            raise ValueError(f"{background.name!r} is a systematic and a background; rename one")
    names = {*constraints, *(one.name for one in backgrounds)}
    for name in parameters:
        if name in names:
            raise ValueError(f"{name!r} is a parameter and a systematic or background; rename one")
    total = sum(one.share for one in backgrounds)
    if total >= 1:
        raise ValueError(f"backgrounds: their shares sum to {total:g}; leave some to the signal")


def beside(folder: Path, sources: Sources) -> Sources:
    """Sources relative to a folder, as paths from here."""
    if isinstance(sources, str):
        return str(folder / sources)
    return [TemplateFile(source=str(folder / file.source), at=file.at) for file in sources]


def distinct(what: str, names: Iterable[str]) -> None:
    """Refuse a name that is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what}: two are named {name!r}; give each a name of its own")
        seen.add(name)


def _without_braces(source: str) -> None:
    if "{" in source:
        raise ValueError("a background has no parameters; give a file without braces")
