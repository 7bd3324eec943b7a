"""One self-contained HTML page of figures, tables, and statements with verdicts."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridless import __version__
from gridless.errors import InputError
from gridless.report import style as colours
from gridless.report.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gridless.report.card import Card, Check
    from gridless.report.typeset import Table

WIDE = 450.0  # points: a figure of more gets a scroll bar on a narrow screen
LARGEST_SVG = 300_000  # bytes: a figure of more is drawn in pixels
# Colours of the figures that the page shows lighter on a dark ground.
SHADES = {
    colours.BLUE: "blue",
    colours.SKY: "sky",
    colours.RED: "red",
    colours.ORANGE: "orange",
    colours.GREEN: "green",
    colours.GREY: "grey",
    colours.BLACK: "ink",
}


@dataclass(frozen=True)
class Statement:
    """What somebody says, what we find, and whether the two agree."""

    theirs: str
    ours: str
    agrees: bool


@dataclass(frozen=True)
class Section:
    """A part of a report: any of a sentence (`lead`), a text as on a terminal, a figure or several
    with what they `show` in words, a table (its first row the heading) or tables to download, and
    statements. `check` is a question's answer: its number, verdict and cure. `label` is what links
    call it, if not by its title. `folded` hides it behind its title. `numbers` are for machines and
    are not shown."""

    title: str
    statements: Sequence[Statement] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    figure: Figure | None = None
    table: list[list[str]] | None = None
    text: str | None = None
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    lead: str | None = None
    show: str | None = None
    folded: bool = False
    check: Check | None = None
    label: str | None = None


def check_extra() -> None:
    """Refuse, before any work, to make a page without what the extra `report` brings."""
    for name in ("jinja2", "matplotlib", "mplhep"):
        if find_spec(name) is None:
            raise InputError(f"the report needs {name}; pip install 'gridless[report]'")


def render_report(
    title: str,
    intro: str,
    sections: Mapping[str, Section],
    *,
    theirs: str = "",
    card: Card | None = None,
    notices: Sequence[str] = (),
) -> str:
    """The page as text, with every figure inside it.

    `theirs` names whose statements are compared with ours; `card` and `notices` stand at the top.
    """
    check_extra()
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    images = {name: _pictures(name, section) for name, section in sections.items()}
    return environment.get_template("page.html.jinja").render(
        title=title,
        intro=intro,
        sections=sections,
        images=images,
        theirs=theirs,
        card=card,
        notices=notices,
        footer=f"Made by gridless {__version__}.",
    )


def _pictures(name: str, section: Section) -> list[Any]:
    """The figures of a section."""
    figures = [*([] if section.figure is None else [section.figure]), *section.figures]
    shows = section.show or section.title
    if len(figures) == 1:
        return [picture(figures[0], name, shows)]
    count = len(figures)
    return [
        picture(one, f"{name}-{i}", f"{shows} ({i} of {count})") for i, one in enumerate(figures, 1)
    ]


def picture(figure: Figure, name: str, shows: str) -> Any:
    """A figure as HTML: drawn in lines, which stay sharp and follow a dark ground; one of very many
    lines in pixels. `name` tells its parts from those of other figures on the page."""
    from markupsafe import Markup, escape

    with style():
        buffer = BytesIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        drawn = buffer.getvalue().decode()
        if len(drawn) > LARGEST_SVG:
            buffer = BytesIO()
            figure.savefig(buffer, format="png")
            pixels = base64.b64encode(buffer.getvalue()).decode()
            source = f"data:image/png;base64,{pixels}"
            return Markup(f'<img src="{source}" alt="{escape(shows)}">')
    return Markup(_inline(drawn, name, escape(shows)))


def _inline(drawn: str, name: str, shows: str) -> str:
    """SVG to stand in a page: with names of its own, colours of the page, and a title."""
    body = drawn[drawn.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    # A hundredth of a point is finer than any screen; the rest is half of the page. Scales of
    # glyphs (0.015625) are small numbers and stay.
    body = re.sub(r"(\d\d\.\d\d|[1-9]\.\d\d)\d+", r"\1", body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", body)
    for colour, shade in SHADES.items():
        body = re.sub(rf"(?i){colour}\b", f"var(--{shade})", body)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', body)
    width = float(size[1]) if size else 400.0
    # 4/3 of a point is a pixel: the page shows a figure no larger than it is.
    opening = (
        f'<svg role="img" aria-labelledby="{name}-title" style="max-width:{width * 4 / 3:.0f}px" '
        f'class="{"wide" if width > WIDE else "narrow"}"'
    )
    body = re.sub(r'<svg\b([^>]*?) width="[^"]*"', r"<svg\1", body, count=1)
    body = re.sub(r'<svg\b([^>]*?) height="[^"]*"', r"<svg\1", body, count=1)
    body = body.replace("<svg", opening, 1)
    end = body.index(">") + 1
    return f'{body[:end]}<title id="{name}-title">{shows}</title>{body[end:]}'
