"""analysis.yaml: what to fit and how, checked before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from gridless import strict_yaml
from gridless.errors import InputError
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
    from gridless.model.model import Model
    from gridless.systematics.inputs import Background, Systematic
    from gridless.templates.query import FileRecord
    from gridless.templates.templates import Templates

TEMPLATE = """\
# What gridless is to fit. `gridless audit analysis.yaml` checks the templates,
# `gridless fit analysis.yaml -o model.safetensors` trains on them.

# The simulated files; the value of the parameter is read from the name. `:events` names the tree
# of a ROOT file or the group of an HDF5 file; Parquet, NPZ and CSV files need none.
templates: mtop_{mtop}.root:events

# Every parameter with the bounds between which it is estimated.
parameters:
  mtop: [165, 180]

# Columns, or expressions of columns under a name of your choice.
observables:
  m_jjb: m_jjb
  m_jj: m_jj
  # ratio: m_jjb / m_jj

# Optional: an expression for the event weight, and which events to use.
# weight: w_gen * w_pileup
# selection: (m_jj > 40) & (m_jj < 140)

# Optional: how figures and tables call parameters and observables. Formulas stand between dollars.
# labels:
#   mtop: $m_t$ [GeV]
#   m_jjb: $m_{jjb}$ [GeV]

# Optional: processes that are in the data beside the simulated one, with their share of all events.
# backgrounds:
#   - {name: wjets, files: wjets.root:events, share: 0.06, error: 0.02}

# Optional: what is uncertain in the simulation, as other files or other weights.
# systematics:
#   - {name: jes, up: "mtop_{mtop}.root:jes_up", down: "mtop_{mtop}.root:jes_down", event: event}
#   - {name: fsr, weight_up: w_gen * w_fsr_up, weight_down: w_gen * w_fsr_down}

# Optional: anything that gridless.fit takes. What is left out, it finds by itself.
fit:
  seed: 0
"""

# The settings inside of others.
INNER: dict[str, type[BaseModel]] = {
    "fit": FitOptions,
    "templates": TemplateFile,
    "up": TemplateFile,
    "down": TemplateFile,
    "backgrounds": BackgroundFiles,
    "systematics": SystematicFiles,
}
# Settings that may be a text or number, or a list.
EITHER = ("templates", "up", "down", "files", "hidden")


class Analysis(BaseModel):
    """All of an analysis.yaml.

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
        return {str(name): str(name) for name in value} if isinstance(value, list) else value

    @field_validator("parameters")
    @classmethod
    def _ordered(cls, value: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        for name, (low, high) in value.items():
            if not low < high:
                raise ValueError(f"the bounds of {name} are reversed; the low bound comes first")
        return value

    @model_validator(mode="after")
    def _known_labels(self) -> Analysis:
        known = [*self.parameters, *self.observables]
        for name in self.labels:
            if name not in known:
                raise ValueError(
                    f"labels: there is no {name!r}; give parameters or observables: "
                    f"{', '.join(known)}"
                )
        return self

    @field_validator("observables", "weight", "selection")
    @classmethod
    def _understood(cls, value: Any) -> Any:
        for text in value.values() if isinstance(value, dict) else [value]:
            understood(text)
        return value

    @model_validator(mode="after")
    def _one_thing_per_name(self) -> Analysis:
        check_together(self.parameters, self.systematics, self.backgrounds)
        return self

    @property
    def sources(self) -> list[Any]:
        """Every source of simulated events."""
        found: list[Any] = [self.templates]
        for background in self.backgrounds:
            found += background.listed
        for one in [*self.systematics, *(s for b in self.backgrounds for s in b.systematics)]:
            found += one.sources
        return found

    def fit_options(self, **options: Any) -> FitOptions:
        """The options of the fit: those given here, else those of the file, else the defaults."""
        own = {name: getattr(self.fit, name) for name in self.fit.model_fields_set}
        return FitOptions.of(**own | options)

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
        from gridless.systematics.reading import Process, read_measurement
        from gridless.templates.query import Query

        query = Query.of(self.observables, self.weight, self.selection).where(where)
        signal = Process(self._template_sources(), query, tuple(self.parameters))
        return read_measurement(signal, self.systematics, self.backgrounds)

    def _template_sources(self) -> Any:
        if isinstance(self.templates, str):
            return self.templates
        names = list(self.parameters)
        return [(file.values(names), file.source) for file in self.templates]


def fit_files(
    analysis: str | Path | Analysis,
    *,
    where: str | None = None,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Model:
    """Read the templates of an analysis file and fit a model to them, as `gridless fit` does.

    The model keeps the audit of the templates, the distributions of their observables, and name,
    number of events and checksum of every file.

    Parameters
    ----------
    analysis : str, Path or Analysis
        An analysis.yaml, or what it holds.
    where : str, optional
        Use only these events, in this fit alone. (The `selection` of the analysis is stored in the
        model and applied to data.)
    checkpoint : str or Path, optional
        As in `fit`: after an interruption the same call goes on from there.
    **options : Any
        Arguments of `fit`, in place of those in the file.

    Returns
    -------
    Model

    Examples
    --------
    >>> import numpy as np
    >>> import gridless as gl
    >>> from pathlib import Path
    >>> for value in gl.grid((0, 1), 5):
    ...     x = np.random.default_rng(1).normal(value, 1, 500)
    ...     np.savez(f"mc_{value:.1f}.npz", x=x)
    >>> _ = Path("analysis.yaml").write_text('''
    ... templates: mc_{theta}.npz
    ... parameters: {theta: [0, 1]}
    ... observables: [x]
    ... fit: {hidden: 3, epochs: 2}
    ... ''')
    >>> model = gl.fit_files("analysis.yaml", where="entry % 4 != 3", replicas=4, seed=1)
    >>> sum(file.events for file in model.files)
    1875
    """
    from dataclasses import replace

    from gridless import distributed
    from gridless.fitting import fit
    from gridless.templates.query import both

    content = analysis if isinstance(analysis, Analysis) else load_analysis(Path(analysis))
    chosen = content.fit_options(**options)
    distributed.find_device(chosen.device)
    # Each of several ranks reads its own share of the events.
    ranks, rank = distributed.size(), distributed.rank()
    share = f"entry % {ranks} == {rank}" if ranks > 1 else None
    systematics, backgrounds, others = content.read_measurement(both(where, share))
    templates = content.read_templates(both(where, share))
    given = {name: getattr(chosen, name) for name in FitOptions.model_fields}
    model = fit(
        templates,
        checkpoint=checkpoint,
        systematics=systematics,
        backgrounds=backgrounds,
        **given,
    )
    files = tuple(dict.fromkeys((*model.files, *others)))
    return replace(model, files=files, record=replace(model.record, where=where))


def load_analysis(path: Path) -> Analysis:
    """The analysis in a YAML file; errors name the line and the cure. Paths in it are relative to
    the file."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a YAML file") from error
    content, root = strict_yaml.load(text, str(path))
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no settings; `gridless init` writes an example")
    try:
        analysis = Analysis.model_validate(content)
    except ValidationError as error:
        raise InputError("\n".join(_explain(path, root, error))) from error
    folder = path.parent
    moved: dict[str, Any] = {
        "templates": beside(folder, analysis.templates),
        "backgrounds": [one.beside(folder) for one in analysis.backgrounds],
        "systematics": [one.beside(folder) for one in analysis.systematics],
    }
    return analysis.model_copy(update=moved)


def _explain(path: Path, root: yaml.Node, error: ValidationError) -> list[str]:
    """Every error of the schema with its line and what would be right."""
    found: dict[str, str] = {}
    for one in error.errors():
        where = _setting(one["loc"])
        line, known = _line(root, where)
        name = ".".join(where) or "the file"
        place = f"{path}: line {line}: {name}" if known else f"{path}: {name}"
        found.setdefault(name, f"{place}: {_message(where, one)}")
    # What may be either text or a list is complained of as both; an error inside says more.
    return [
        text
        for name, text in found.items()
        if not any(other.startswith(f"{name}.") for other in found)
    ]


def _setting(place: tuple[int | str, ...]) -> list[str]:
    """The keys that lead to a setting, without pydantic's own for alternatives of type."""
    parts = [str(part) for part in place]
    kept = [p for p in parts if not p.startswith(("list[", "function"))]
    if len(kept) > 1 and kept[-2] in EITHER and kept[-1] in ("str", "int"):
        kept.pop()
    return kept


def _message(where: list[str], error: Any) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        inside = [INNER[part] for part in where[:-1] if part in INNER]
        fields = (inside[-1] if inside else Analysis).model_fields
        return f"there is no such setting; known are {', '.join(fields)}"
    if error["type"] == "missing":
        return "is missing; `gridless init` writes an example"
    if "input" in error and not isinstance(error["input"], dict):
        message += f", not {error['input']!r}"
    return message


def _line(node: yaml.Node, where: list[str]) -> tuple[int, bool]:
    """The line of a setting, or of the nearest that contains it; and whether any was found."""
    line, found = node.start_mark.line + 1, False
    for part in where:
        if isinstance(node, yaml.MappingNode):
            pairs = [(k, v) for k, v in node.value if k.value == part]
            if not pairs:
                break
            key, node = pairs[0]
            line, found = key.start_mark.line + 1, True
        elif isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
            node = node.value[int(part)]
            line, found = node.start_mark.line + 1, True
        else:
            break
    return line, found
