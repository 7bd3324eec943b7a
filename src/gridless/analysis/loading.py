"""Reading an analysis.yaml: every error has its line and its cure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from gridless import strict_yaml
from gridless.analysis.analysis import Analysis
from gridless.analysis.channels import CHANNELS, check_channels, check_labels, split_channels
from gridless.errors import InputError
from gridless.model.record import FitOptions, mended
from gridless.systematics.settings import BackgroundFiles, SystematicFiles, TemplateFile

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


def load_analysis(path: Path) -> Analysis | dict[str, Analysis]:
    """The analysis in a YAML file, or those of its channels by name.

    Errors name the line and the cure. Paths in the file are relative to it.

    Examples
    --------
    >>> _ = Path("analysis.yaml").write_text('''
    ... templates: mtop_{mtop}.root:events
    ... parameters: {mtop: [165, 180]}
    ... observables: [m_jjb]
    ... channels:
    ...   soft: {selection: pt_lep < 60}
    ...   hard: {selection: pt_lep >= 60, observables: [m_jjb, m_lb]}
    ... ''')
    >>> {name: list(one.observables) for name, one in load_analysis(Path("analysis.yaml")).items()}
    {'soft': ['m_jjb'], 'hard': ['m_jjb', 'm_lb']}
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a YAML file") from error
    content, root = strict_yaml.load(text, str(path))
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no settings; `gridless init` writes an example")
    if CHANNELS not in content:
        return _validated([(path, root, content, list)])[0].beside(path.parent)
    found = split_channels(content, path)
    made = _validated([(path, root, one.content, one.place) for one in found])
    analyses = {
        one.name: analysis.beside(path.parent) for one, analysis in zip(found, made, strict=True)
    }
    with _on_line(path, root, "labels"):
        check_labels(content.get("labels"), analyses.values())
    with _on_line(path, root, CHANNELS):
        check_channels(analyses)
    return analyses


@contextmanager
def _on_line(path: Path, root: yaml.Node, setting: str) -> Iterator[None]:
    """Errors name the line of a setting at the top of the file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: line {_line(root, [setting])[0]}: {error}") from None


def by_channel(analysis: Analysis | Mapping[str, Analysis]) -> dict[str, Analysis]:
    """The analyses by the name of their channel; a single analysis has the name ""."""
    return {"": analysis} if isinstance(analysis, Analysis) else dict(analysis)


def _validated(
    parts: list[tuple[Path, yaml.Node, dict[str, Any], Callable[[list[str]], list[str]]]],
) -> list[Analysis]:
    """The analysis of each content; all errors at once, each where it stands in the file."""
    made: list[Analysis] = []
    wrong: dict[str, None] = {}
    for path, root, content, place in parts:
        try:
            made.append(Analysis.model_validate(content))
        except ValidationError as error:
            wrong |= dict.fromkeys(_explain(path, root, error, place))
    if wrong:
        raise InputError("\n".join(wrong))
    return made


def _explain(
    path: Path, root: yaml.Node, error: ValidationError, place: Callable[[list[str]], list[str]]
) -> list[str]:
    """Every error of the schema with its line and what would be right."""
    found: dict[str, str] = {}
    # A setting that is spelt wrong is the reason why another is missing.
    for one in sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden"):
        where = _setting(one["loc"])
        there = place(where)
        line, known = _line(root, there)
        name = ".".join(there) or "the file"
        begin = f"{path}: line {line}: {name}" if known else f"{path}: {name}"
        found.setdefault(name, f"{begin}: {_message(where, one)}")
    # pydantic reports a setting of two types for both; an error inside of it says more.
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
    if error["type"] == "extra_forbidden":
        inside = [INNER[part] for part in where[:-1] if part in INNER]
        fields = [*(inside[-1] if inside else Analysis).model_fields]
        fields += [] if inside else [CHANNELS]
        return f"there is no such setting; known are {', '.join(fields)}"
    if error["type"] == "missing":
        return "is missing; `gridless init` writes an example"
    return mended(error)


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
