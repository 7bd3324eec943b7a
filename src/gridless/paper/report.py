"""The report: one self-contained HTML page, the paper's statement beside ours."""

import base64
from collections.abc import Mapping
from pathlib import Path

from gridless import __version__
from gridless.errors import InputError
from gridless.paper.choices import Choices
from gridless.paper.items import Item


def render_report(items: Mapping[str, Item], choices: Choices, figures: Path) -> str:
    """The page as text, with every figure inside it."""
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise InputError("the report needs jinja2; pip install 'gridless[report]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True
    )
    images = {
        name: base64.b64encode((figures / f"{name}.png").read_bytes()).decode()
        for name, item in items.items()
        if item.figure is not None
    }
    statements = [s for item in items.values() for s in item.statements]
    return environment.get_template("report.html.jinja").render(
        items=items,
        images=images,
        choices=choices,
        version=__version__,
        agree=sum(s.agrees for s in statements),
        total=len(statements),
    )
