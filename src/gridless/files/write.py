"""Writing files so that nothing is ever lost or half-written."""

import os
from pathlib import Path

from gridless.errors import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that at every moment either the old or the whole new one is there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{path}: cannot be written ({reason}); choose another place, or make room"
        ) from error
    finally:
        if temporary.exists():
            temporary.unlink()


def check_writable(path: Path) -> None:
    """Complain now, before long work, if `path` could not be written."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path}: already exists and is read-only; give another name")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"{path}: {folder} cannot be written to; choose another place")
