"""Numbers and tables as they stand on a page: 172.4 ± 0.3 GeV, and files to download."""

import base64
import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup

from gridless import strict_json
from gridless.files.write import as_utf8
from gridless.likelihood.estimate import ParameterEstimate
from gridless.results import printing
from gridless.results.labels import label_html, symbol_of, unit_of
from gridless.templates.grid import Grid

MINUS = "\u2212"  # as long as a plus
SMALLEST_PLAIN = 1e-5  # errors of less and of more are written with a power of ten
LARGEST_PLAIN = 1e6
TIMES = "\u00d7"
THIN = "\u202f"  # a narrow space that does not break


@dataclass(frozen=True)
class Table:
    """A table of a page. Its cells are text, or `Markup` that is HTML already.

    Attributes
    ----------
    head : sequence of str
        The headings of the columns.
    rows : sequence of sequence of str
        The cells.
    caption : str
        What the table shows; also the name of the files to download.
    numbers : sequence of sequence, optional
        The cells of the files, if they are not those on the page.
    columns : sequence of str, optional
        The headings of the files, if they are not those on the page.
    breaks : bool
        Whether long words in it may be broken.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    numbers: Sequence[Sequence[Any]] | None = None
    columns: Sequence[str] | None = None
    breaks: bool = False

    @property
    def csv(self) -> str:
        """The table as the address of a CSV file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self._names)
        writer.writerows([plain(cell) for cell in row] for row in self._cells)
        return data_address(text.getvalue(), "text/csv")

    @property
    def json(self) -> str:
        """The table as the address of a JSON file: a list of objects."""
        rows = [dict(zip(self._names, (plain(c) for c in row), strict=True)) for row in self._cells]
        return data_address(strict_json.dumps(rows, indent=1), "application/json")

    @property
    def file(self) -> str:
        """The name of the file to download, without its ending."""
        caption = plain(self.caption).lower()
        words = "".join(c if c.isalnum() else " " for c in caption).split()
        return "_".join(words) or "table"

    @property
    def _names(self) -> list[str]:
        return [plain(cell) for cell in self.columns or self.head]

    @property
    def _cells(self) -> Sequence[Sequence[Any]]:
        return self.rows if self.numbers is None else self.numbers


def plain(cell: Any) -> Any:
    """A cell without marks of HTML; numbers as they are."""
    return cell.striptags() if isinstance(cell, Markup) else cell


def prose(text: str) -> Markup:
    """A text in HTML, with what stands in backticks set as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text)))


def data_address(text: str, kind: str) -> str:
    """A text as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(as_utf8(text)).decode()}"


def symbol_html(name: str, label: str = "") -> Markup:
    """The symbol of a parameter or observable, without its unit."""
    shown = "$\\theta$" if name == "theta" and not label else symbol_of(label or name)
    return Markup(label_html(shown))


def title_html(name: str, label: str = "") -> Markup:
    """The label of a parameter or observable, with its unit."""
    shown = "$\\theta$" if name == "theta" and not label else label or name
    return Markup(label_html(shown))


def symbols_html(grid: Grid) -> Markup:
    """The symbols of a grid's parameters."""
    return Markup(", ").join(symbol_html(n, grid.labels.get(n, "")) for n in grid.parameters)


def titles_html(grid: Grid) -> Markup:
    """The labels of a grid's parameters, with their units."""
    return Markup(", ").join(title_html(n, grid.labels.get(n, "")) for n in grid.parameters)


def ranges_html(grid: Grid) -> Markup:
    """`m_t from 165.75 to 179.25 GeV`: the parameters of a grid with the outermost templates."""
    shown = []
    ends = zip(grid.values.min(axis=0), grid.values.max(axis=0), strict=True)
    for name, (low, high) in zip(grid.parameters, ends, strict=True):
        label = grid.labels.get(name, "")
        unit = unit_of(label)
        behind = f"{THIN}{label_html(unit)}" if unit else ""
        span = f"{_power(f'{low:g}')} to {_power(f'{high:g}')}"
        shown.append(symbol_html(name, label) + Markup(f" from {span}{behind}"))
    return Markup(", ").join(shown)


def value_html(one: ParameterEstimate, *, with_unit: bool = True) -> Markup:
    """`172.4 ± 0.3 GeV`, with both sides where they differ."""
    down, up = (abs(end - one.value) for end in one.interval)
    value, low, high = printing.rounded(one.value, down, up)[:3]
    unit = unit_of(one.label) if with_unit else ""
    behind = f"{THIN}{label_html(unit)}" if unit else ""
    if low == high:
        spread = f" ± {_power(high)}"
    else:
        sides = f"<sup>+{_power(high)}</sup><sub>{MINUS}{_power(low)}</sub>"
        spread = f"<span class='sides'>{sides}</span>"
    return Markup(f"{_power(value)}{spread}{behind}")


def budget_html(one: ParameterEstimate) -> list[tuple[str, Markup]]:
    """The sources of uncertainty with their sizes, rounded as the total is."""
    down, up = (abs(end - one.value) for end in one.interval)
    parts = printing.rounded(one.value, down, up, *one.budget.values())[3:]
    return [(source, Markup(_power(p))) for source, p in zip(one.budget, parts, strict=True)]


def interval_html(low: float, high: float, error: float, unit: str = "") -> Markup:
    """`171.9 to 173.2 GeV`, with two digits of the error."""
    behind = f"{THIN}{label_html(unit)}" if unit else ""
    return rounded_html(low, error) + " to " + rounded_html(high, error) + Markup(behind)


def rounded_html(number: float | None, error: float) -> Markup:
    """A number with two digits of the error; nothing for none."""
    if number is None or not math.isfinite(number):
        return Markup("")
    if not 0 < error < math.inf or not SMALLEST_PLAIN < error < LARGEST_PLAIN:
        return Markup(_power(f"{number:.6g}"))
    places = max(0, 1 - math.floor(math.log10(error)))
    # Plus 0, so that what is rounded to 0 has no sign.
    return Markup(_power(f"{round(number, places) + 0.0:.{places}f}"))


def _power(number: str) -> str:
    """A number with a long minus, and its power of ten raised."""
    digits, e, power = escape(number).partition("e")
    text = digits.replace("-", MINUS)
    return text + (f" {TIMES} 10<sup>{int(power)}</sup>".replace("-", MINUS) if e else "")
