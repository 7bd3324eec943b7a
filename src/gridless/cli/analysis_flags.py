"""An analysis from the command line: that of a YAML file, or one made of flags."""

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from gridless import strict_json
from gridless.analysis.analysis import Analysis
from gridless.analysis.loading import by_channel, load_analysis
from gridless.analysis.starting import number_columns
from gridless.cli.options import Command, weight, where, with_options
from gridless.errors import InputError
from gridless.files.sources import find, is_pattern, listed
from gridless.files.write import check_outputs

# The flags that give the settings of an analysis.
FLAGS = {
    "parameters": "--bounds",
    "observables": "-x",
    "weight": "--weight",
    "selection": "--selection",
}
OPENING = "(["
CLOSING = ")]"


def template_options(command: Command) -> Command:
    """The templates as an analysis file, or as a pattern with flags; the verb gets `analysis`."""

    @functools.wraps(command)
    def checked(
        *,
        templates: str,
        bounds: tuple[tuple[str, float, float], ...],
        observables: tuple[str, ...],
        weight: str | None,
        selection: str | None,
        **others: Any,
    ) -> Any:
        analysis = analysis_from_flags(templates, bounds, observables, weight, selection)
        if others.get("output") is not None and templates.endswith((".yaml", ".yml")):
            check_outputs([others["output"]], [Path(templates)])
        return command(analysis=analysis, **others)

    return with_options(
        checked,
        click.argument("templates"),
        click.option(
            "--bounds",
            type=(str, float, float),
            multiple=True,
            metavar="NAME LOW HIGH",
            help="A parameter and its bounds; repeat the flag for each parameter.",
        ),
        click.option(
            "-x",
            "--observables",
            multiple=True,
            metavar="COLUMN[,...]",
            help="Columns, expressions of columns, or name=expression; with commas between them, "
            "or repeat the flag.",
        ),
        weight,
        click.option(
            "--selection",
            metavar="EXPRESSION",
            help="Use only these events; stored in the model and applied to data.",
        ),
        where,
    )


def analysis_from_flags(
    templates: str,
    bounds: Sequence[tuple[str, float, float]],
    observables: Sequence[str],
    weight: str | None,
    selection: str | None,
) -> Analysis | dict[str, Analysis]:
    """What the analysis file says, or the flags do."""
    if templates.endswith((".yaml", ".yml")):
        for flag, given in (("--bounds", bounds), ("-x", observables), ("--selection", selection)):
            if given:
                raise InputError(f"{flag}: {templates} says it already; leave it out here")
        analysis = load_analysis(Path(templates))
        if not weight:
            return analysis
        parts = by_channel(analysis).items()
        changed = {name: one.model_copy(update={"weight": weight}) for name, one in parts}
        return changed[""] if isinstance(analysis, Analysis) else changed
    if not bounds:
        raise InputError("--bounds: missing; give each parameter its own, --bounds mtop 165 180")
    if not observables:
        missing = "-x: missing; give columns or expressions, -x m_jjb,m_jj"
        try:
            there = listed(number_columns(find(templates)[0][1])) if is_pattern(templates) else ""
        except InputError as error:
            raise InputError(missing) from error
        raise InputError(f"{missing}; the files have {there}" if there else missing)
    _check_bounds(bounds)
    try:
        return Analysis(
            templates=templates,
            parameters={name: (low, high) for name, low, high in bounds},
            observables=named_expressions(observables),
            weight=weight,
            selection=selection,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        flag = FLAGS.get(str(first["loc"][0]), str(first["loc"][0])) if first["loc"] else "flags"
        message = str(first["msg"]).removeprefix("Value error, ")
        raise InputError(f"{flag}: {message}; gridless fit --help says more") from None
    except UnicodeEncodeError as error:  # bytes that are no text, in what a check says of them
        said = strict_json.plain(error.object)
        raise InputError(f"flags: {said}; gridless fit --help says more") from None


def _check_bounds(bounds: Sequence[tuple[str, float, float]]) -> None:
    """Refuse bounds that are reversed or endless, or given twice."""
    for name, low, high in bounds:
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InputError(f"--bounds: {low:g} to {high:g} for {name}; both must be finite")
        if not low < high:
            raise InputError(f"--bounds: {low:g} to {high:g} for {name}; the low bound comes first")
    given = [name for name, _, _ in bounds]
    for name in given:
        if given.count(name) > 1:
            raise InputError(f"--bounds: {name} twice; give each parameter once")


def named_expressions(texts: Sequence[str]) -> dict[str, str]:
    """Observables of every `-x`: `m_jj`, `m_jjb / m_jj` or `ratio=m_jjb / m_jj`, by their names."""
    found: dict[str, str] = {}
    for text in (part for given in texts for part in split_at_commas(given)):
        name, equals, expression = text.partition("=")
        # `x == 1` and `x <= 1` are comparisons.
        named = equals and name.strip().isidentifier() and not expression.startswith("=")
        name, expression = (name.strip(), expression.strip()) if named else (text, text)
        if name in found:
            raise InputError(f"-x: {name} twice; give each observable once")
        if not expression:
            raise InputError(f"-x: {name}= has no expression; give -x {name}=expression")
        found[name] = expression
    return found


def split_at_commas(text: str) -> list[str]:
    """The parts between commas, but not at those inside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in OPENING) - (character in CLOSING)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
