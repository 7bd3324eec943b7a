"""From what the command line names to events: analysis files, patterns, data files."""

from pathlib import Path
from typing import Any

from gridless.analysis import Analysis, TemplateFile, load_analysis
from gridless.errors import InputError
from gridless.files.template_files import read_templates
from gridless.model.model import Model
from gridless.templates.templates import Templates


def analysis_from(
    templates: str,
    bounds: tuple[tuple[str, float, float], ...],
    observables: str | None,
    weight: str | None,
    selection: str | None,
) -> Analysis:
    """What the analysis file says, or the flags do."""
    if templates.endswith((".yaml", ".yml")):
        analysis = load_analysis(Path(templates))
        for flag, given in (("--bounds", bounds), ("-x", observables), ("--selection", selection)):
            if given:
                raise InputError(f"{flag}: {templates} says it already; leave it out here")
        return analysis.model_copy(update={"weight": weight}) if weight else analysis
    if not bounds:
        raise InputError("--bounds: missing; give each parameter its own, --bounds mtop 165 180")
    if not observables:
        raise InputError("-x: missing; give columns or expressions, -x m_jjb,m_jj")
    for name, low, high in bounds:
        if not low < high:
            raise InputError(f"--bounds: {low:g} to {high:g} for {name}; the low bound comes first")
    return Analysis(
        templates=templates,
        parameters={name: (low, high) for name, low, high in bounds},
        observables={name: name for name in _columns(observables)},
        weight=weight,
        selection=selection,
    )


def _columns(text: str) -> list[str]:
    """Expressions between commas that are not inside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def analysis_of(
    model: Model, samples: str, weight: str | None, where: str | None
) -> tuple[Analysis, str | None]:
    """The model's own analysis, of other samples, and which of their events to use. Unless told
    otherwise, they are weighted as the templates were."""
    bounds = zip(model.grid.parameters, model.grid.bounds.tolist(), strict=True)
    analysis = Analysis(
        templates=samples,
        parameters={name: (low, high) for name, (low, high) in bounds},
        observables=model.query.observables,
        weight=weight or model.query.weight,
        selection=model.query.selection,
    )
    return analysis, where


def templates_of(analysis: Analysis, where: str | None) -> Templates:
    """The templates of an analysis, of which only some events may be wanted."""
    sources: Any = analysis.templates
    if not isinstance(sources, str):
        sources = [(_values(file, list(analysis.parameters)), file.source) for file in sources]
    return read_templates(
        sources,
        analysis.observables,
        list(analysis.parameters.values()),
        weight=analysis.weight,
        selection=analysis.selection,
        parameters=list(analysis.parameters),
        where=where,
    )


def _values(file: TemplateFile, parameters: list[str]) -> tuple[float, ...]:
    missing = [name for name in parameters if name not in file.at]
    if missing:
        raise InputError(
            f"templates: {file.source}: no value of {', '.join(missing)}; add it under `at`"
        )
    return tuple(file.at[name] for name in parameters)
