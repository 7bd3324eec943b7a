"""Files are written whole or not at all."""

import os

import pytest

from gridless.errors import InputError
from gridless.files.write import check_writable, write_whole


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "result.bin"
    write_whole(path, b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "replace", fail)
    with pytest.raises(InputError, match="No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_are_made(tmp_path):
    write_whole(tmp_path / "a" / "b" / "c.txt", b"x")
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == b"x"


def test_what_cannot_be_written_is_said_before(tmp_path, monkeypatch):
    check_writable(tmp_path / "new" / "file.txt")
    with pytest.raises(InputError, match="is a folder"):
        check_writable(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written to"):
        check_writable(tmp_path / "file" / "below.txt")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="cannot be written to"):
        check_writable(tmp_path / "other.txt")


def test_a_read_only_file_is_named_before(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("x")
    # Folders may be written to, the file may not; whoever runs the test may be allowed everything.
    monkeypatch.setattr(os, "access", lambda where, _: where != path)
    with pytest.raises(InputError, match="file: already exists and is read-only; give another"):
        check_writable(path)
