"""Paths: which file one means, and whether it can be read."""

import os
from collections.abc import Hashable
from pathlib import Path

from gridless.errors import InputError


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
