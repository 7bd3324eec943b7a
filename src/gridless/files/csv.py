"""CSV files: column names in the first line, then one row of numbers per event."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from gridless.errors import InputError
from gridless.files.table import ALL, Block, Rows, Table, refuse_name

# What a cell may hold besides a number.
_WORDS = {"": np.nan, "true": 1.0, "false": 0.0}


def open_csv(path: Path, name: str | None) -> Table:
    """The table of a file."""
    refuse_name(path, name)
    return CsvTable(path)


class CsvTable(Table):
    """A file of text, opened anew for every reading."""

    def __init__(self, path: Path) -> None:
        with path.open(encoding="utf-8-sig") as file:
            self.columns = _header(path, file.readline())
        self._path = path

    # Where a row begins is not known beforehand: the table is one piece.
    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:  # noqa: ARG002
        first = 0
        with self._path.open(encoding="utf-8-sig") as file:
            next(file)
            while lines := list(islice(file, size)):
                if any(_is_open(line) for line in lines):
                    yield from self._records(chain(lines, file), names, size, first)
                    return
                filled = [line for line in lines if not line.isspace()]
                if filled:
                    yield self._block(filled, names, first)
                first += len(filled)

    def _block(self, lines: list[str], names: Sequence[str], first: int) -> Block:
        """The named columns of some lines, of which the first is row `first` of the file."""
        picks = [self.columns.index(name) for name in names]
        if all(line.count(",") == len(self.columns) - 1 for line in lines):
            try:
                table = np.loadtxt(lines, delimiter=",", usecols=picks, ndmin=2, comments=None)
                return dict(zip(names, table.T, strict=True))
            except ValueError:
                pass  # Read cell by cell to find the culprit, or words that stand for numbers.
        records = list(csv.reader(lines))
        if len(records) != len(lines):
            raise InputError(
                f"{self._path}: quotes inside a cell between rows {first} and "
                f"{first + len(lines)} hide where rows end; write every quote in a cell twice"
            )
        return self._cells(records, names, first)

    def _records(
        self, lines: Iterator[str], names: Sequence[str], size: int, first: int
    ) -> Iterator[Block]:
        """The rest of a file in which cells go over several lines: csv tells where rows end."""
        reader = csv.reader(lines, strict=True)
        filled = (cells for cells in reader if len(cells) > 1 or "".join(cells).strip())
        while rows := list(islice(filled, size)):
            yield self._cells(rows, names, first)
            first += len(rows)

    def _cells(self, rows: list[list[str]], names: Sequence[str], first: int) -> Block:
        """The named columns of rows of cells."""
        picks = [self.columns.index(name) for name in names]
        block: Block = {name: np.full(len(rows), np.nan) for name in names}
        for row, cells in enumerate(rows):
            if len(cells) != len(self.columns):
                raise InputError(
                    f"{self._path}: row {first + row} has {len(cells)} values for "
                    f"{len(self.columns)} columns; give one number per column, with a decimal point"
                )
            for name, pick in zip(names, picks, strict=True):
                block[name][row] = self._number(cells[pick].strip(), name, first + row)
        return block

    def _number(self, cell: str, name: str, row: int) -> float:
        try:
            return _WORDS[cell.lower()] if cell.lower() in _WORDS else float(cell)
        except ValueError:
            raise InputError(
                f"{self._path}: column {name!r} holds text ({cell!r} in row {row}), not one number "
                "per event; choose another column"
            ) from None


def _is_open(line: str) -> bool:
    """Whether a quote in a line is not closed in it."""
    return '"' in line and line.count('"') % 2 == 1


def _header(path: Path, line: str) -> tuple[str, ...]:
    """The names of the columns in the first line."""
    if _is_open(line):
        raise InputError(f"{path}: a column name with a line break or an open quote; rename it")
    # numpy.savetxt writes its header after a "#".
    header = [cell.strip() for cell in next(csv.reader([line.strip().lstrip("# ")]), [])]
    if not any(header) or all(re.fullmatch(r"[-+.\deE]+|nan|inf", cell) for cell in header):
        raise InputError(f"{path}: no column names; put them into the first line: pt,eta,mass")
    if len(header) == 1 and re.search(r"[;\t ]", header[0]):
        raise InputError(f"{path}: the first line is {header[0]!r}; separate columns by commas")
    if len(set(header)) < len(header):
        raise InputError(f"{path}: the column names {', '.join(header)} repeat; make them distinct")
    return tuple(header)
