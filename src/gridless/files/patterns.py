"""Files by pattern: the values of the parameters are in their names."""

import glob
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gridless.errors import InputError
from gridless.files.sources import check_readable, reason, split_source

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


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


def listed(entries: Sequence[str], most: int = 20) -> str:
    """The entries with commas between, the first `most` of them."""
    more = f" and {len(entries) - most} more" if len(entries) > most else ""
    return (", ".join(entries[:most]) or "none") + more
