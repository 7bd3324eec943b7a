"""Tables of events: named columns that are read block by block, whatever the format of the file."""

import importlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gridless.errors import InputError
from gridless.files.columns import Block
from gridless.registry import FORMATS

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


def split_source(source: str | Path) -> tuple[Path, str | None]:
    """`top.root:events` as the file and the name inside it, None where there is none."""
    text = str(source)
    if "://" in text:
        raise InputError(f"{text}: an address, not a file; copy the file here and give its path")
    known = "|".join(re.escape(suffix) for suffix in FORMATS.names)
    match = re.fullmatch(rf"(.*?(?:{known}))(?::(.*))?", text, re.IGNORECASE | re.DOTALL)
    if match is None:
        raise InputError(
            f"{text}: the kind of file is not known; give one that ends in "
            f"{', '.join(FORMATS.names)}, with :name of the tree or group where it holds several "
            "(top.root:events)"
        )
    return Path(match[1]).expanduser(), match[2] or None


@contextmanager
def open_file(source: str | Path) -> Iterator[Table]:
    """The table in a file, open for as long as the context lasts."""
    path, name = split_source(source)
    check_readable(path)
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; write it again")
    suffixes = [suffix for suffix in FORMATS.names if path.name.lower().endswith(suffix)]
    opener: Opener = FORMATS.find(max(suffixes, key=len))
    with ExitStack() as stack:
        with _damage(source):
            opened = opener(path, name)
            table = opened if isinstance(opened, Table) else stack.enter_context(opened)
        yield _Guarded(table, source)


def source_key(source: Any) -> tuple[Hashable, str | None]:
    """What identifies a source: the file, whatever the path to it, and the tree or group in it
    (None for the only one); or the table in memory."""
    if not isinstance(source, str | Path):
        return id(source), None
    path, name = split_source(source)
    return identity(path), None if name is None else name.partition(";")[0].strip("/")


def check_distinct(sources: Iterable[Any]) -> None:
    """Refuse a source that is given twice, whose events would count twice: a table, or a file by
    any path to it. Different trees or groups of one file are different sources."""
    seen: dict[Any, list[tuple[str | None, Any]]] = {}
    for source in sources:
        key, inside = source_key(source)
        for other, first in seen.setdefault(key, []):
            # Without a name it is the only table of the file.
            if other is None or inside is None or other == inside:
                same = "" if str(first) == str(source) else f" (also as {label(first)})"
                raise InputError(
                    f"{label(source)}: given twice{same}; its events would count twice: give it "
                    "once"
                )
        seen[key].append((inside, source))


class _Guarded(Table):
    """A table whose errors on reading name the file."""

    def __init__(self, table: Table, source: str | Path) -> None:
        self.columns = table.columns
        self._table = table
        self._source = source

    def fault(self, column: str) -> str:
        if self.columns.count(column) > 1:
            return "several columns of that name"
        with _damage(self._source):
            return self._table.fault(column)

    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:
        rest = iter(self._table.blocks(names, size, rows))
        while True:
            with _damage(self._source):
                block = next(rest, None)
            if block is None:
                return
            yield block

    def pieces(self, size: int) -> list[Rows]:
        with _damage(self._source):
            return self._table.pieces(size)


@contextmanager
def _damage(source: str | Path) -> Iterator[None]:
    """Whatever a library raises on reading, as an error that names the file."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{source}: asks for more memory than there is; it may be damaged: copy or write it "
            "again"
        ) from error
    except PermissionError as error:
        raise InputError(f"{source}: may not be read; ask its owner, or chmod u+r it") from error
    # Libraries raise anything on damaged files: struct.error, KeyError, zlib.error, ArrowInvalid.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise InputError(
            f"{source}: damaged, truncated, or not of the kind its name says "
            f"({type(error).__name__}: {reason}); copy or write it again"
        ) from error


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
        raise InputError(f"{path}: no {what} {name!r}; there is {listed}")
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


def label(source: Any) -> str:
    """How messages name a source."""
    return str(source) if isinstance(source, str | Path) else f"{type(source).__name__} in memory"


def identity(path: Path) -> Hashable:
    """What two paths to one file have in common, be they links, hard links or spelt differently.

    A file that does not exist is known by its path without links.

    Examples
    --------
    >>> identity(Path("a.npz")) == identity(Path("folder/../a.npz"))
    True
    """
    try:
        found = path.stat()
        return found.st_dev, found.st_ino
    except (OSError, ValueError):
        return os.path.realpath(path)


def as_path(path: Any) -> Path:
    """A path, or an error where something else was given."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path: {path!r:.80}; give the name of a file")
    return Path(path)


def check_readable(path: Path, what: str = "check the path") -> None:
    """Refuse what is not a file that can be opened; `what` is the cure if there is none."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: a folder; give a file in it")
        if path.is_file():
            return
        if path.is_symlink():
            raise InputError(
                f"{path}: a link to {os.readlink(path)}, which is not there or not a file; mount "
                "or restore it, or remove the link"
            )
        if path.exists():
            raise InputError(f"{path}: neither a file nor a folder; give a file")
    except PermissionError as error:
        raise InputError(
            f"{path}: its folder may not be read; ask its owner, or chmod u+x it"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path!s:.100}: no such file ({reason(error)}); {what}") from error
    raise InputError(f"{path}: no such file; {what}, the working folder is {Path.cwd()}")


def reason(error: Exception) -> str:
    """Why the system refused, in its words without the path."""
    return getattr(error, "strerror", None) or str(error)
