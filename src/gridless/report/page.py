"""One self-contained HTML page of figures, tables, and statements with verdicts."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridless.errors import InputError
from gridless.report.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Statement:
    """What somebody says, what we find, and whether the two agree."""

    theirs: str
    ours: str
    agrees: bool


@dataclass(frozen=True)
class Section:
    """A part of a report: any of a text, a figure, a table (its first row the heading) and
    statements; `numbers` are for machines and are not shown."""

    title: str
    statements: Sequence[Statement] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    figure: Figure | None = None
    table: list[list[str]] | None = None
    text: str | None = None


def render_report(
    title: str,
    intro: str,
    sections: Mapping[str, Section],
    *,
    theirs: str = "",
    notices: Sequence[str] = (),
) -> str:
    """The page as text, with every figure inside it.

    `theirs` names whose statements are compared with ours; `notices` stand at the top.
    """
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise InputError("the report needs jinja2; pip install 'gridless[report]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    images = {
        name: _png(section.figure)
        for name, section in sections.items()
        if section.figure is not None
    }
    return environment.get_template("page.html.jinja").render(
        title=title, intro=intro, sections=sections, images=images, theirs=theirs, notices=notices
    )


def _png(figure: Figure) -> str:
    """The figure as base64 of a PNG."""
    buffer = BytesIO()
    with style():
        figure.savefig(buffer, format="png")
    return base64.b64encode(buffer.getvalue()).decode()
