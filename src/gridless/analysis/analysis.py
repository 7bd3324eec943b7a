"""The settings of an analysis.yaml, checked before anything runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from gridless.model.record import FitOptions
from gridless.systematics.settings import (
    BackgroundFiles,
    SystematicFiles,
    TemplateFile,
    beside,
    check_together,
    understood,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gridless.systematics.inputs import Background, Systematic
    from gridless.systematics.reading import Process
    from gridless.templates.query import FileRecord
    from gridless.templates.templates import Templates


class Analysis(BaseModel):
    """All of an analysis.yaml, or of one of its channels.

    Examples
    --------
    >>> import gridless as gl
    >>> analysis = gl.Analysis(
    ...     templates="mtop_{mtop}.root:events",
    ...     parameters={"mtop": (165, 180)},
    ...     observables={"m_jjb": "m_jjb", "ratio": "m_jjb / m_jj"},
    ...     selection="m_jj > 40",
    ... )
    >>> analysis.fit_options(seed=3).seed
    3
    """

    model_config = ConfigDict(extra="forbid")

    templates: str | list[TemplateFile] = Field(
        description="The simulated files: a pattern with the parameters in braces, one file with "
        "the parameters as columns, or a list of files. Relative to the analysis file."
    )
    parameters: dict[str, tuple[float, float]] = Field(
        min_length=1,
        max_length=3,
        description="One to three parameters, each with the bounds between which it is estimated.",
    )
    observables: dict[str, str] = Field(
        min_length=1,
        description="Names with a column or an expression of columns each; or a list of columns.",
    )
    weight: str | None = Field(
        default=None,
        description="Expression of columns and observables for the weight of a simulated event.",
    )
    selection: str | None = Field(
        default=None,
        description="Expression of columns and observables that is true for the events to use, "
        "simulated and observed.",
    )
    labels: dict[str, str] = Field(
        default={},
        description="How figures and tables call parameters and observables, with units: "
        "`mtop: $m_t$ [GeV]`.",
    )
    backgrounds: list[BackgroundFiles] = Field(
        default=[], description="Processes that are mixed into every template; see below."
    )
    systematics: list[SystematicFiles] = Field(
        default=[], description="What is uncertain in the simulation; see below."
    )
    fit: FitOptions = Field(default=FitOptions(), description="How to train; see below.")

    @field_validator("observables", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        """A list of columns is a mapping of each to itself."""
        if isinstance(value, str):
            raise ValueError(f"{value!r}; give a list, [{value}]")
        return {str(name): str(name) for name in value} if isinstance(value, list) else value

    @field_validator("parameters", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        """Every parameter has two bounds."""
        if not isinstance(value, dict):
            raise ValueError(f"{value!r}; give each with its bounds, {{mtop: [165, 180]}}")
        for name, bounds in value.items():
            if not isinstance(bounds, list | tuple) or len(bounds) != 2:
                raise ValueError(f"{bounds!r} for {name}; give its bounds, [low, high]")
        return value

    @field_validator("parameters")
    @classmethod
    def _ordered(cls, value: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        for name, (low, high) in value.items():
            if not low < high:
                raise ValueError(f"the bounds of {name} are reversed; the low bound comes first")
        return value

    @field_validator("parameters")
    @classmethod
    def _in_braces(cls, value: dict[str, Any], others: ValidationInfo) -> dict[str, Any]:
        """The parameters of a pattern of files are those of the analysis."""
        pattern = others.data.get("templates")
        found = re.findall(r"\{([^{}]*)\}", pattern) if isinstance(pattern, str) else []
        if found and set(found) != set(value):
            raise ValueError(
                f"{pattern} has {', '.join(dict.fromkeys(found))} in braces, and the parameters "
                f"are {', '.join(value)}; make them agree"
            )
        return value

    @model_validator(mode="after")
    def _names_agree(self) -> Analysis:
        """Labels are of things that there are, and a name is of one thing."""
        known = [*self.parameters, *self.observables]
        for name in self.labels:
            if name not in known:
                raise ValueError(
                    f"labels: there is no {name!r}; give parameters or observables: "
                    f"{', '.join(known)}"
                )
        check_together(self.parameters, self.systematics, self.backgrounds)
        return self

    @field_validator("observables", "weight", "selection")
    @classmethod
    def _understood(cls, value: Any) -> Any:
        for text in value.values() if isinstance(value, dict) else [value]:
            understood(text)
        return value

    @property
    def sources(self) -> list[Any]:
        """Every source of simulated events."""
        found: list[Any] = [self.templates]
        for background in self.backgrounds:
            found += background.listed
        for one in [*self.systematics, *(s for b in self.backgrounds for s in b.systematics)]:
            found += one.sources
        return found

    def beside(self, folder: Path) -> Analysis:
        """The same with paths relative to a folder, as paths from here."""
        moved: dict[str, Any] = {
            "templates": beside(folder, self.templates),
            "backgrounds": [one.beside(folder) for one in self.backgrounds],
            "systematics": [one.beside(folder) for one in self.systematics],
        }
        return self.model_copy(update=moved)

    def fit_options(self, **options: Any) -> FitOptions:
        """The options of the fit: those given here, else those of the file, else the defaults."""
        own = {name: getattr(self.fit, name) for name in self.fit.model_fields_set}
        return FitOptions.of(**own | options)

    def check_sources(self, where: str | None = None) -> None:
        """Refuse files that are missing or lack columns, and expressions that cannot be computed
        from these, of templates, systematics and backgrounds, before any event is read.

        Parameters
        ----------
        where : str, optional
            As for the templates.
        """
        from gridless.files.template_files import check_events
        from gridless.systematics.reading import check_measurement

        signal = self._signal(where)
        bounds = list(self.parameters.values())
        check_events(signal.nominal, signal.query, signal.parameters, bounds)
        check_measurement(signal, self.systematics, self.backgrounds)

    def read_templates(self, where: str | None = None) -> Templates:
        """The templates in the files.

        Parameters
        ----------
        where : str, optional
            Use only these events. Unlike the selection, it does not apply to data later.

        Returns
        -------
        Templates
        """
        from gridless.files.template_files import read_templates

        names = list(self.parameters)
        return read_templates(
            self._template_sources(),
            self.observables,
            list(self.parameters.values()),
            weight=self.weight,
            selection=self.selection,
            parameters=names,
            where=where,
            labels=self.labels,
        )

    def read_measurement(
        self, where: str | None = None
    ) -> tuple[list[Systematic], list[Background], list[FileRecord]]:
        """The systematics and backgrounds in the files, and a record of each file.

        Parameters
        ----------
        where : str, optional
            Use only these events, as for the templates.

        Returns
        -------
        list of Systematic, list of Background, list of FileRecord
        """
        if not self.systematics and not self.backgrounds:
            return [], [], []
        from gridless.systematics.reading import read_measurement

        return read_measurement(self._signal(where), self.systematics, self.backgrounds)

    def _signal(self, where: str | None) -> Process:
        """Where the events of the templates are, and how they are read."""
        from gridless.systematics.reading import Process
        from gridless.templates.query import Query

        query = Query.of(self.observables, self.weight, self.selection).where(where)
        return Process(self._template_sources(), query, tuple(self.parameters))

    def _template_sources(self) -> Any:
        if isinstance(self.templates, str):
            return self.templates
        names = list(self.parameters)
        return [(file.values(names), file.source) for file in self.templates]
