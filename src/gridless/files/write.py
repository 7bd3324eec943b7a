"""Writing files so that nothing is ever lost or half-written."""

import os
import secrets
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

from gridless.errors import InputError
from gridless.files.sources import identity, paths_of, reason

# A new file only, never one that somebody put there, be it as a link (not on every system).
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NEW_FILE |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_NAME_KEPT = 40  # characters of the name in that of its temporary file, which may have 255 bytes
_STALE = 3600.0  # seconds after which a temporary file is what a killed process left


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that at every moment either the old or the whole new one is there.

    A link stays, and the file behind it is written. A file that was there keeps its mode. A text is
    written in UTF-8.
    """
    content = content if isinstance(content, bytes) else as_utf8(content)
    target = check_writable(path)
    temporary = target.with_name(f"{_temporary(target)}{secrets.token_hex(8)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(target)
        with os.fdopen(os.open(temporary, _NEW_FILE, 0o666), "wb") as file:
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise InputError(_refused(path, reason(error))) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def as_utf8(text: str) -> bytes:
    """The text in UTF-8; what that cannot hold, as some names of files have, is spelt out."""
    return text.encode(errors="backslashreplace")


def check_writable(path: Path) -> Path:
    """The file that writing to `path` would write, its links followed; or an InputError now, before
    long work, if none could or should be."""
    try:
        target = Path(os.path.realpath(path))
        try:
            mode = target.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            mode = None
        folder = target.parent
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
    except (OSError, ValueError) as error:
        raise InputError(_refused(path, reason(error))) from error
    if mode is not None and stat.S_ISDIR(mode):
        raise InputError(f"{path}: is a folder; give the name of a file")
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(
            f"{path}: is a device, a pipe or a socket, which writing would replace; give the name "
            "of a file"
        )
    if mode is not None and not os.access(target, os.W_OK):
        raise InputError(f"{path}: already exists and is read-only; give another name")
    if target.is_symlink():
        raise InputError(f"{path}: a link that leads back to itself; remove it")
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path}: {folder} cannot be written to; choose another place")
    return target


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Any]) -> None:
    """Refuse an output of a command that is one of its inputs (paths, sources, or patterns) or
    another of its outputs."""
    read = {identity(path): path for source in inputs for path in paths_of(source)}
    written: dict[object, Path] = {}
    for path in outputs:
        key = identity(check_writable(path))
        if key in read:
            raise InputError(
                f"{path}: would overwrite {read[key]}, which is read; give another name"
            )
        if key in written:
            raise InputError(f"{path}: given for two outputs; give each its own name")
        written[key] = path


def _temporary(target: Path) -> str:
    """How names of temporary files of this one begin; hidden."""
    return f".{target.name[:_NAME_KEPT]}."


def _remove_stale(target: Path) -> None:
    """Remove temporary files of the same name that killed processes have left."""
    for left in target.parent.glob(f"{escape(_temporary(target))}{'[0-9a-f]' * 16}.part"):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > _STALE:
                left.unlink()


def _sync_folder(folder: Path) -> None:
    """Make a new name last through a power failure, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _refused(path: Path, why: str) -> str:
    return f"{path!s:.100}: cannot be written ({why}); choose another place or name, or make room"
