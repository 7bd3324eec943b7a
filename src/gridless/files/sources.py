"""Sources of events: a file, with the name of a table inside it, or a table in memory. How they are
called, found by a pattern of names, told apart and opened."""

import glob
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.files.table import ALL, Block, Opener, Rows, Table
from gridless.registry import FORMATS

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"  # in the name of a file


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


def is_pattern(source: Any) -> bool:
    """Whether a source is a pattern: it has braces."""
    return isinstance(source, str | Path) and "{" in str(source)


def find(pattern: str | Path) -> list[tuple[dict[str, float], str]]:
    """The files that match `data/mtop_{mtop}.root:events`, with the values in their names.

    Each brace stands for a number; `*` and `?` match anything inside one folder's name. Sorted by
    value. Several files with the same value are one template.
    """
    path, name = split_source(pattern)
    texts, parameters = _split_pattern(str(path))
    # Braces of one name must agree, and a leading * takes no digit of the number that follows.
    strict, loose = (_regex(texts, parameters, kind) for kind in (_NUMBER, "[^/]+"))
    wild = "*".join(text.replace("[", "[[]") for text in texts)
    found = []
    for file in sorted(glob.glob(wild)):
        if not (general := loose.fullmatch(file)):
            continue
        check_readable(Path(file), "remove it, or make the pattern narrower")
        match = strict.fullmatch(file) or general
        values = {key: _number(file, key, match[key]) for key in dict.fromkeys(parameters)}
        found.append((values, file if name is None else f"{file}:{name}"))
    if not found:
        raise InputError(f"{pattern}: no file matches; {_what_is_there(texts[0])}")
    return sorted(found, key=lambda pair: (list(pair[0].values()), pair[1]))


def _split_pattern(path: str) -> tuple[list[str], list[str]]:
    """The texts around the braces, and the names in them."""
    parts = re.split(r"\{([^{}]*)\}", path)
    texts, parameters = parts[::2], parts[1::2]
    if not parameters:
        raise InputError(
            f"{path}: no parameter in it; put its name into braces: data/mtop_{{mtop}}.root"
        )
    for name in parameters:
        if not name.isidentifier():
            raise InputError(f"{path}: {{{name}}} is not a name; write it like {{mtop}}")
    if "" in texts[1:-1]:
        raise InputError(f"{path}: two braces touch; put something between the numbers")
    return texts, parameters


def _regex(texts: Sequence[str], parameters: Sequence[str], kind: str) -> re.Pattern[str]:
    pattern = ""
    for text, name in zip(texts, [*parameters, None], strict=True):
        pattern += re.escape(text).replace(r"\*", "[^/]*?").replace(r"\?", "[^/]")
        if name is not None:
            pattern += f"(?P={name})" if f"<{name}>" in pattern else f"(?P<{name}>{kind})"
    return re.compile(pattern)


def _number(file: str, name: str, text: str) -> float:
    value = float(text) if re.fullmatch(_NUMBER, text) else np.nan
    if not np.isfinite(value):
        raise InputError(
            f"{file}: {name} is {text!r}, not a number; make the pattern narrower, rename the "
            "file, or give a mapping {value: file}"
        )
    return value


def _what_is_there(start: str) -> str:
    """The folder before the first wildcard, and some of its files."""
    before = re.split(r"[*?]", start)[0]
    folder = Path(before if before.endswith("/") else Path(before).parent)
    try:
        entries = sorted(entry.name for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no folder {folder}"
    except OSError as error:
        return f"the folder {folder} may not be read ({reason(error)}); ask its owner"
    return f"in the folder {folder} there is {listed(entries, 5)}"


def paths_of(source: Any) -> list[Path]:
    """The files that a source names: itself, those that match a pattern, or those of a list."""
    if isinstance(source, Path):
        return [source]
    if isinstance(source, str):
        sources = [file for _, file in find(source)] if is_pattern(source) else [source]
        return [split_source(one)[0] for one in sources]
    return [path for file in source for path in paths_of(file.source)]


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


def label(source: Any) -> str:
    """How messages name a source."""
    return str(source) if isinstance(source, str | Path) else f"{type(source).__name__} in memory"


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


def listed(entries: Sequence[str], most: int = 20) -> str:
    """The entries with commas between, the first `most` of them."""
    more = f" and {len(entries) - most} more" if len(entries) > most else ""
    return (", ".join(entries[:most]) or "none") + more
