"""Sources are told apart, and files that cannot be read are named with the reason."""

import os
import sys

import pytest
from files.samples import (
    COLUMNS,
    DATA,
    EVENTS,
    FORMATS,
    SELECTION,
    write_csv,
    write_npz,
    write_ttree,
)

from gridless.errors import InputError
from gridless.files.read import read
from gridless.files.sources import check_distinct, split_source


def test_a_file_may_have_a_colon_in_its_name_and_a_folder_any(tmp_path):
    folder = tmp_path / "all.root"
    folder.mkdir()
    write_ttree(folder / "we:ird.root")
    assert read(f"{folder}/we:ird.root:events", ["pt"]).events == EVENTS
    assert split_source("a.root:b.root")[1] == "b.root"
    assert split_source("~/a.h5:")[1] is None
    assert split_source("~/a.h5:")[0].is_absolute()


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("a.root", "uproot", "root"),
        ("a.parquet", "pyarrow", "parquet"),
        ("a.h5", "h5py", "hdf5"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, name, module, extra):
    (tmp_path / name).write_bytes(b"not empty")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"needs {module}.*: pip install 'gridless\[{extra}\]'$"):
        read(tmp_path / name, ["x"])


def test_npz_csv_and_memory_need_no_other_library(tmp_path, monkeypatch, expected):
    write_npz(tmp_path / "a.npz")
    write_csv(tmp_path / "a.csv")
    for module in ("uproot", "awkward", "pyarrow", "h5py", "pandas"):
        monkeypatch.setitem(sys.modules, module, None)
    for source in (tmp_path / "a.npz", tmp_path / "a.csv", DATA):
        assert read(source, COLUMNS, selection=SELECTION).events == len(expected[0])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere/a.root:events", r"nowhere/a\.root: no such file"),
        (
            "a.npy",
            r"a\.npy: the kind of file is not known; give one that ends in .*\.parquet",
        ),
        ("a", "the kind of file is not known"),
        ("root://server/a.root:events", "an address, not a file; copy the file here"),
    ],
)
def test_paths_that_cannot_be_read(source, message):
    with pytest.raises(InputError, match=message):
        read(source, ["pt"], weight="w")


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "a.parquet").mkdir()
    with pytest.raises(InputError, match="a folder; give a file in it"):
        read(tmp_path / "a.parquet", ["pt"])


@pytest.mark.parametrize("kind", FORMATS)
def test_empty_truncated_and_foreign_files(tmp_path, kind):
    name, write = FORMATS[kind]
    path = tmp_path / name
    write(path)
    content = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"the file is empty; write it again"):
        read(path, ["pt"])
    if kind in ("csv", "txt"):
        path.write_bytes(content[: content.rindex(b",")])
        with pytest.raises(InputError, match="row 999 has 4 values for 5 columns"):
            read(path, ["pt"])
        return
    for damaged in (content[:50], content[: len(content) // 2], b"hello" * 100):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"damaged, truncated, or not .*; copy or write it"):
            read(path, ["pt"])


def test_too_little_memory_is_damage(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    write_npz(tmp_path / "a.npz")
    monkeypatch.setattr("gridless.files.npz._values", fail)
    with pytest.raises(InputError, match=r"a\.npz: asks for more memory than there is"):
        read(tmp_path / "a.npz", "pt")


def test_a_source_given_twice_is_named(tmp_path):
    write_npz(tmp_path / "a.npz")
    write_ttree(tmp_path / "a.root")
    (tmp_path / "link.npz").symlink_to("a.npz")
    (tmp_path / "hard.npz").hardlink_to(tmp_path / "a.npz")
    root, folder = tmp_path / "a.root", tmp_path.name
    check_distinct([f"{root}:one", f"{root}:two", tmp_path / "a.npz", DATA, dict(DATA)])
    for again in ("a.npz", "link.npz", "hard.npz", f"../{folder}/a.npz"):
        with pytest.raises(InputError, match=r"npz: given twice.*would count twice: give it once"):
            check_distinct([tmp_path / "a.npz", tmp_path / again])
    for first, second in (("events", "events"), ("events;1", "events"), ("/events", "events")):
        with pytest.raises(InputError, match="given twice"):
            check_distinct([f"{root}:{first}", f"{root}:{second}"])
    with pytest.raises(InputError, match="given twice"):
        check_distinct([f"{root}:events", root])
    with pytest.raises(InputError, match="dict in memory: given twice"):
        check_distinct([DATA, DATA])


def test_files_out_of_reach_are_named_with_the_reason(tmp_path, monkeypatch):
    (tmp_path / "link.npz").symlink_to("gone.npz")
    with pytest.raises(InputError, match=r"link\.npz: a link to gone\.npz, which is not there"):
        read(tmp_path / "link.npz", "pt")
    with pytest.raises(InputError, match=r"aaa: no such file \(File name too long\)"):
        read(f"{'a' * 300}.npz", "pt")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read(tmp_path / "pipe.npz", "pt")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(InputError, match="its folder may not be read"):
        read(tmp_path / "a.npz", "pt")
