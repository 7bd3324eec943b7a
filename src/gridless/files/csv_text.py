"""CSV text as columns of numbers."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError


def csv_header(path: Path, line: str) -> list[str]:
    """The names of the columns in the first line."""
    # numpy.savetxt writes its header after a "#".
    header = [cell.strip() for cell in next(csv.reader([line.strip().lstrip("# ")]), [])]
    if not any(header) or all(re.fullmatch(r"[-+.\deE]+|nan|inf", cell) for cell in header):
        raise InputError(f"{path}: no column names; put them into the first line: pt,eta,mass")
    if len(header) == 1 and re.search(r"[;\t ]", header[0]):
        raise InputError(f"{path}: the first line is {header[0]!r}; separate columns by commas")
    if len(set(header)) < len(header):
        raise InputError(f"{path}: the column names {', '.join(header)} repeat; make them distinct")
    return header


def csv_rows(
    path: Path, lines: Sequence[str], names: Sequence[str], header: list[str], first: int
) -> dict[str, NDArray[Any]]:
    """The named columns of some lines, of which the first is row `first` of the file."""
    picks = [header.index(name) for name in names]
    if all(line.count(",") == len(header) - 1 for line in lines):
        try:
            table = np.loadtxt(lines, delimiter=",", usecols=picks, ndmin=2, comments=None)
            return dict(zip(names, table.T, strict=True))
        except ValueError:
            pass  # Read cell by cell to find the culprit, or what NumPy does not know as a number.
    block = {name: np.empty(len(lines)) for name in names}
    for row, cells in enumerate(csv.reader(lines)):
        if len(cells) != len(header):
            raise InputError(
                f"{path}: row {first + row} has {len(cells)} values for {len(header)} columns; "
                "give one number per column, with a decimal point"
            )
        for name, pick in zip(names, picks, strict=True):
            block[name][row] = _csv_number(path, cells[pick].strip(), name, first + row)
    return block


def _csv_number(path: Path, cell: str, name: str, row: int) -> float:
    words = {"": np.nan, "true": 1.0, "false": 0.0}
    try:
        return words[cell.lower()] if cell.lower() in words else float(cell)
    except ValueError:
        raise InputError(
            f"{path}: column {name!r} holds text ({cell!r} in row {row}), not one number per "
            "event; choose another column"
        ) from None
