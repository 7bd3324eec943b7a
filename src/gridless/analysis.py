"""analysis.yaml: what to fit and how, checked before anything runs."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gridless.errors import InputError

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

# Optional: anything that gridless.fit takes; these are the defaults.
fit:
  objective: template
  prior: divide
  components: 1
  hidden: [16]
  ensemble: 1
  seed: 0
"""


class TemplateFile(BaseModel):
    """One simulated file: where it is, and the parameter values it was made with."""

    model_config = ConfigDict(extra="forbid")

    source: str
    at: dict[str, float]


class FitOptions(BaseModel):
    """Arguments of `gridless.fit`; its documentation explains them."""

    model_config = ConfigDict(extra="forbid")

    basis: str = "exp_polynomial"
    components: int = Field(default=1, ge=1)
    hidden: int | list[int] = [16]
    activation: str = "tanh"
    objective: str = "template"
    prior: str = "divide"
    ensemble: int = Field(default=1, ge=1)
    validation: float | None = Field(default=None, gt=0, lt=1)
    epochs: int | None = Field(default=None, ge=1)
    batch: int | None = Field(default=None, ge=1)
    rate: float = Field(default=0.03, gt=0)
    ridge: float = Field(default=10.0, ge=0)
    replicas: int = Field(default=32, ge=0)
    seed: int = 0


class Analysis(BaseModel):
    """All of an analysis.yaml."""

    model_config = ConfigDict(extra="forbid")

    templates: str | list[TemplateFile]
    parameters: dict[str, tuple[float, float]] = Field(min_length=1, max_length=3)
    observables: dict[str, str] = Field(min_length=1)
    weight: str | None = None
    selection: str | None = None
    fit: FitOptions = FitOptions()

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


def load_analysis(path: Path) -> Analysis:
    """The analysis in a YAML file; errors name the line and the cure. Paths in it are relative to
    the file."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a YAML file") from error
    try:
        content, root = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise InputError(f"{path}:{line} not YAML: {problem}; `gridless init` shows one") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no settings; `gridless init` writes an example")
    try:
        analysis = Analysis.model_validate(content)
    except ValidationError as error:
        raise InputError("\n".join(_explain(path, root, one) for one in error.errors())) from error
    return analysis.model_copy(update={"templates": _beside(path.parent, analysis.templates)})


def _beside(folder: Path, templates: str | list[TemplateFile]) -> str | list[TemplateFile]:
    """Sources relative to a folder, as paths from here."""
    if isinstance(templates, str):
        return str(folder / templates)
    return [TemplateFile(source=str(folder / file.source), at=file.at) for file in templates]


def _explain(path: Path, root: yaml.Node, error: Any) -> str:
    """One error of the schema with its line and what would be right."""
    where = [str(part) for part in error["loc"] if not str(part).startswith(("list[", "function"))]
    line, known = _line(root, where)
    name = ".".join(where) or "the file"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        fields = FitOptions.model_fields if where[:1] == ["fit"] else Analysis.model_fields
        message = f"there is no such setting; known are {', '.join(fields)}"
    elif error["type"] == "missing":
        message = "is missing; `gridless init` writes an example"
    elif "input" in error and not isinstance(error["input"], dict):
        message += f", not {error['input']!r}"
    return f"{path}: line {line}: {name}: {message}" if known else f"{path}: {name}: {message}"


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
