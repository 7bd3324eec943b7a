"""Tables of events: named columns that are read block by block, whatever the format of the file."""

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError
from gridless.registry import FORMATS

Column = NDArray[Any]
Block = dict[str, Column]
Rows = tuple[int, int | None]
"""Rows from the first to before the last; None stands for the end."""

ALL: Rows = (0, None)
MAX_ROWS = 10**11  # of a file: terabytes, and still a list of pieces that fits into memory


class Table(ABC):
    """Named columns of equal length, of which some are read, a number of rows at a time.

    To read a format of your own, write a subclass with `columns` and `blocks`, and make it known by
    `register_format`.

    Attributes
    ----------
    columns : tuple of str
        The names of all columns.

    Examples
    --------
    >>> import numpy as np
    >>> class Numbers(Table):
    ...     columns = ("n", "square")
    ...
    ...     def blocks(self, names, size, rows=ALL):
    ...         n = np.arange(5)
    ...         data = {"n": n, "square": n**2}
    ...         for start in range(0, 5, size):
    ...             yield {name: data[name][start : start + size] for name in names}
    >>> [block["square"].tolist() for block in Numbers().blocks(["square"], size=3)]
    [[0, 1, 4], [9, 16]]
    """

    columns: tuple[str, ...]

    @abstractmethod
    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:
        """Read some columns, block by block.

        Parameters
        ----------
        names : sequence of str
            The columns to read.
        size : int
            The number of rows of a block, at most.
        rows : tuple of int and (int or None)
            Which rows: all of them, or one of the `pieces`.

        Yields
        ------
        dict of str to array (rows,)
            The columns by name.
        """

    def fault(self, column: str) -> str:  # noqa: ARG002
        """What keeps a column from being one number per event, such as "text"; empty if nothing
        does."""
        return ""

    def pieces(self, size: int) -> list[Rows]:  # noqa: ARG002
        """Ranges of about `size` rows that `blocks` can read independently, for work in parallel:
        the whole table unless a format can do better."""
        return [ALL]


Opener = Callable[[Path, str | None], Table | AbstractContextManager[Table]]


def register_format(suffix: str, opener: Opener) -> Opener:
    """Make files of another format readable, wherever a path can be given.

    Parameters
    ----------
    suffix : str
        How the names of such files end, with the dot: ".feather". Upper and lower case are alike.
    opener : callable
        Called with the path (`pathlib.Path`) and the name behind the colon (`top.root:events`; None
        where there is none). Returns a `Table`, or a context manager that gives one and closes the
        file in the end; a subclass of `Table` can be the opener itself. Errors that it raises are
        reported as damage of the file; an `InputError` is passed on as it is.

    Returns
    -------
    callable
        The opener.

    Examples
    --------
    >>> import numpy as np
    >>> import gridless as gl
    >>> class Counter(gl.Table):  # a file with one number in it: how many events there are
    ...     columns = ("n",)
    ...
    ...     def __init__(self, path, name):
    ...         self.events = int(path.read_text())
    ...
    ...     def blocks(self, names, size, rows=(0, None)):
    ...         for start in range(0, self.events, size):
    ...             yield {"n": np.arange(start, min(start + size, self.events))}
    >>> _ = gl.register_format(".count", Counter)
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.count"
    ...     _ = path.write_text("3")
    ...     gl.read(path, "n**2").x[:, 0].tolist()
    [0.0, 1.0, 4.0]
    """
    if not re.fullmatch(r"\.[^:/\\]+", suffix):
        raise InputError(f"suffix: {suffix!r}; give how names of such files end, as in '.feather'")
    FORMATS.register(suffix.lower(), opener)
    return opener


def library(path: Path, name: str, extra: str) -> Any:
    """The library that reads a format, or how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"{path}: to read it needs {name}, which is not here: pip install 'gridless[{extra}]'"
        ) from error


def choose_name(path: Path, name: str | None, there: Sequence[str], what: str) -> str:
    """Which of the tables in a file: the one of that name, or the only one."""
    listed = ", ".join(there)
    if not there:
        raise InputError(f"{path}: holds no {what}; write the events into one")
    if name is None:
        if len(there) == 1:
            return there[0]
        raise InputError(f"{path}: holds several ({listed}); say which: {path}:{there[0]}")
    if name.partition(";")[0].strip("/") not in {entry.strip("/") for entry in there}:
        raise InputError(f"{path}: no {what} {name!r}; there is {listed}: give {path}:{there[0]}")
    return name


def refuse_name(path: Path, name: str | None) -> None:
    """Refuse a name behind the colon where a file holds a single table."""
    if name is not None:
        raise InputError(f"{path}: holds a single table; leave out ':{name}'")


def equal_pieces(total: int, size: int) -> list[Rows]:
    """All rows in pieces of `size`."""
    if total > MAX_ROWS:
        raise EOFError(f"declares {total:,} rows, more than any file holds")
    return [(first, min(first + size, total)) for first in range(0, total, size)] or [ALL]


def dtype_fault(kind: np.dtype[Any] | None, shape: tuple[int, ...]) -> str:
    """What keeps an array of that kind and shape from being one number per event; empty if
    nothing does."""
    if kind is None or kind.names:
        return "records"
    if kind.kind in "OSUT":
        return f"text or objects ({kind})"
    if len(shape) != 1:
        return f"an array of shape {shape}"
    return "" if kind.kind in "fiub" else f"{kind}"


def awkward_fault(array: Any) -> str:
    """What keeps an awkward array from being one number per event; empty if nothing does."""
    kind = str(array.type.content)
    if re.fullmatch(r"\??(u?int\d+|float\d+|bool)", kind):
        return ""
    if kind.lstrip("?").startswith(("string", "bytes")):
        return f"text ({kind})"
    return f"several values per event ({kind})" if " * " in kind else f"objects ({kind})"


def unmask(values: Column) -> Column:
    """Missing numbers become nan, so that they are named unless the selection removes them."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values.data)
    return np.asarray(np.ma.filled(values.astype(np.float64), np.nan))


def one_length(shapes: Mapping[str, tuple[int, ...]], where: Any) -> int:
    """The number of rows that all columns have."""
    lengths = {name: shape[0] for name, shape in shapes.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"{where}: columns of unequal length ({listed}); give one row per event")
    return next(iter(lengths.values()))
