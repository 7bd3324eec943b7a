"""Files are written whole or not at all."""

import os
import socket
import stat

import pytest

from gridless.errors import InputError
from gridless.files.write import check_outputs, check_writable, write_whole


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


def test_a_text_is_utf8_and_what_that_cannot_hold_is_spelt_out(tmp_path):
    write_whole(tmp_path / "a.txt", "\u00b5 of top_\udcff.root")
    assert (tmp_path / "a.txt").read_text("utf-8") == "\u00b5 of top_\\udcff.root"


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


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
def test_what_is_not_a_file_is_never_replaced(tmp_path, kind):
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.fspath(path))
        server.close()
    else:
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    (tmp_path / "link").symlink_to(path)
    before = path.stat()
    for place in (path, tmp_path / "link"):
        with pytest.raises(InputError, match="is a device, a pipe or a socket"):
            write_whole(place, b"x")
    assert path.stat().st_ino == before.st_ino


def test_the_file_behind_a_link_is_written_and_the_link_stays(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"loop: "):
        write_whole(tmp_path / "loop", b"new")


def test_a_file_keeps_its_mode_and_a_new_one_obeys_the_umask(tmp_path):
    (tmp_path / "secret").write_text("old")
    (tmp_path / "secret").chmod(0o600)
    write_whole(tmp_path / "secret", b"new")
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "shared", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o640


@pytest.mark.parametrize("length", [250, 255, 300])
def test_long_names_are_written_or_refused(tmp_path, length):
    path = tmp_path / ("a" * length)
    if length > 255:
        with pytest.raises(InputError, match="cannot be written \\(File name too long\\)"):
            write_whole(path, b"x")
    else:
        write_whole(path, b"x")
        assert list(tmp_path.iterdir()) == [path]


def test_temporary_names_cannot_be_foreseen_and_what_lies_there_is_not_followed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    (tmp_path / "precious").write_text("old")
    trap = tmp_path / f".out.{'0' * 16}.part"
    trap.symlink_to("precious")
    with pytest.raises(InputError, match="cannot be written"):
        write_whole(tmp_path / "out", b"new")
    assert (tmp_path / "precious").read_text() == "old"


def test_what_a_killed_process_left_is_removed_later(tmp_path):
    old, fresh, others = (
        tmp_path / name
        for name in (f".out.{'a' * 16}.part", f".out.{'b' * 16}.part", f".x.{'a' * 16}.part")
    )
    for path in (old, fresh, others):
        path.write_text("half")
    os.utime(old, (0, 0))
    os.utime(others, (0, 0))
    write_whole(tmp_path / "out", b"new")
    assert not old.exists()
    assert fresh.exists()  # of another process that writes now
    assert others.exists()


def test_an_output_is_neither_an_input_nor_another_output(tmp_path):
    model, data = tmp_path / "model", tmp_path / "data"
    for path in (model, data):
        path.write_text("x")
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "hard").hardlink_to(data)
    check_outputs([tmp_path / "a", tmp_path / "b"], [model, data])
    for name in ("data", "link", "hard", "b/../data"):
        (tmp_path / "b").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=r"would overwrite .*data, which is read"):
            check_outputs([tmp_path / name], [model, data])
    with pytest.raises(InputError, match="given for two outputs"):
        check_outputs([tmp_path / "a", tmp_path / "b" / ".." / "a"], [])
