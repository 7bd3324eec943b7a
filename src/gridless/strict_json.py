"""JSON that every parser takes: no NaN, no infinities, no half characters."""

import json
import math
from collections.abc import Mapping
from typing import Any

from gridless.errors import InputError


def dumps(content: Any, indent: int | None = None) -> str:
    """The JSON of some content.

    Parameters
    ----------
    content : Any
        What is made of mappings, sequences, arrays, text, numbers, booleans and None. NaN and
        infinities become null. Bytes of a file name that are no text become `\\udcff`, spelt out.
    indent : int, optional
        Spaces per level; by default all is in one line.

    Returns
    -------
    str

    Examples
    --------
    >>> dumps({"value": 172.5, "error": float("nan"), "bounds": (165, 180)})
    '{"value": 172.5, "error": null, "bounds": [165, 180]}'
    """
    return json.dumps(plain(content), indent=indent, allow_nan=False)


def loads(text: str | bytes, name: str) -> Any:
    """The content of some JSON; an InputError that begins with `name` where it is none, or is
    nested too deeply, or has numbers of thousands of digits."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not JSON ({error})") from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number")


def plain(content: Any) -> Any:
    """The content in what JSON can hold; see `dumps`."""
    if isinstance(content, Mapping):
        return {_text(str(key)): plain(value) for key, value in content.items()}
    if isinstance(content, str):
        return _text(content)
    if hasattr(content, "tolist"):  # arrays and numbers of NumPy and torch
        content = content.tolist()
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def _text(text: str) -> str:
    """The text, with what UTF-8 cannot hold spelt out."""
    return text.encode(errors="backslashreplace").decode()
