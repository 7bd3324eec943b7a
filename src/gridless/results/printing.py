"""How results print, in a terminal and in a notebook: one style for all of them."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Protocol

from iminuit.pdg_format import pdg_format

# Numbers of a size that is read easily without a power of ten.
_SMALLEST_PLAIN = 1e-4
_LARGEST_PLAIN = 1e7
MOST_PLACES = 9  # decimals, beyond which a power of ten is read more easily
# The look of a result in a notebook.
_BLOCK = "border-left:3px solid #56B4E9;padding:0.2em 0.8em;margin:0.4em 0"
_ROWS = "white-space:pre-wrap;margin:0"  # columns stay under each other, long lines are wrapped
SMALLEST_P_VALUE = 1e-10  # smaller ones say only that a chi2 does not follow its distribution there
# Parts of iminuit's format: low, high and symmetric errors, label, power of ten, strip zeros, NaN.
_PARTS = ("|%s", "|%s", "|%s", "%s", "%s|%i", False, None)


class Named(Protocol):
    """A warning: its name and its text."""

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...


def rounded(value: float, down: float, up: float, *errors: float) -> list[str]:
    """Value, errors to either side and further errors, all with the digits of the PDG rule.

    The smaller of `down` and `up` that is not zero decides how many digits are shown.

    Examples
    --------
    >>> rounded(172.4312, 0.316, 0.321, 0.3, 0.1)
    ['172.43', '0.32', '0.32', '0.30', '0.10']
    """
    if not 0 < max(down, up) < float("inf"):
        return [f"{number:.6g}" for number in (value, down, up, *errors)]
    size = max(abs(value), down, up)
    exponent = 0 if _SMALLEST_PLAIN <= size < _LARGEST_PLAIN else None
    text = pdg_format(value, (down, up), *errors, format=_PARTS, leader=0, exp=exponent)
    parts = text.split("|")
    count = 3 + len(errors)
    power = f"e{int(parts[count]):+d}" if len(parts) > count else ""
    return [
        part.removeprefix("-" if i == 1 else "") + power for i, part in enumerate(parts[:count])
    ]


def ends(low: float, high: float) -> str:
    """The ends of an interval, to the same decimal.

    Examples
    --------
    >>> ends(91.081, 91.32523), ends(172_000.0, 173_000.0)
    ('91.0810 to 91.3252', '172000 to 173000')
    """
    width = high - low
    places = 3 - math.floor(math.log10(width)) if 0 < width < math.inf else -1
    if max(abs(low), abs(high)) >= _LARGEST_PLAIN or not 0 <= places <= MOST_PLACES:
        return f"{low:.6g} to {high:.6g}"
    return f"{low:.{places}f} to {high:.{places}f}"


def block(content: str) -> str:
    """HTML of a result, set off from its surroundings in a notebook."""
    return f"<div class='gridless' style='{_BLOCK}'>{content}</div>"


class Lines:
    """A result that prints as lines of text, and shows the same in a notebook.

    Examples
    --------
    >>> class Result(Lines):
    ...     def __str__(self):
    ...         return "two parts:\\n  a < b: 1"
    >>> "<p>two parts:</p><pre" in Result()._repr_html_()
    True
    """

    def _repr_html_(self) -> str:
        first, _, rest = str(self).partition("\n")
        rows = f"<pre style='{_ROWS}'>{escape(rest)}</pre>" if rest else ""
        return block(f"<p>{escape(first)}</p>{rows}")


def probability(p: float) -> str:
    """A p-value with its relation: `= 0.45`, or `< 1e-10` where the digits mean nothing.

    Examples
    --------
    >>> probability(0.4512), probability(0.0)
    ('= 0.45', '< 1e-10')
    """
    return f"= {p:.2g}" if p >= SMALLEST_P_VALUE else f"< {SMALLEST_P_VALUE:g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in HTML; cells are HTML already."""
    lines = ["".join(f"<th scope='col'>{escape(name)}</th>" for name in head)]
    lines += ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    first, *others = (f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead>{first}</thead><tbody>{''.join(others)}</tbody></table>"


def warning_lines(warnings: Iterable[Named]) -> list[str]:
    """Warnings as lines of text."""
    return [f"  warning: {warning.name}: {warning.text}" for warning in warnings]


def warning_list(warnings: Iterable[Named]) -> str:
    """Warnings as a list in HTML; nothing where there are none."""
    items = [f"<li>{escape(w.name)}: {escape(w.text)}</li>" for w in warnings]
    return f"<ul>{''.join(items)}</ul>" if items else ""
