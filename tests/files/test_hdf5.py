"""HDF5 files: groups, compound datasets, and datasets that are not columns."""

import h5py
import numpy as np
import pytest
from files.samples import write_group

from gridless.errors import InputError
from gridless.files.read import pieces, read
from gridless.templates.query import Query


def test_names_of_groups_and_datasets(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["deep/er/x"] = np.arange(2.0), np.arange(3.0)
        file["table"] = np.array([(1.0,), (5.0,)], [("x", "f8")])
    assert read(f"{tmp_path}/a.h5:/", ["x"]).events == 2
    assert read(f"{tmp_path}/a.h5:deep/er", ["x"]).events == 3
    assert read(f"{tmp_path}/a.h5:/table", ["x"]).x.tolist() == [[1], [5]]
    with pytest.raises(InputError, match=r"holds several \(deep/er, table, /\)"):
        read(tmp_path / "a.h5", ["x"])


def test_names_that_are_not_there(tmp_path):
    write_group(tmp_path / "a.h5")
    with pytest.raises(InputError, match="no group or compound dataset 'evts'; there is events"):
        read(f"{tmp_path}/a.h5:evts", ["pt"])


def test_columns_of_unequal_length(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/one"], file["g/two"] = np.ones(1), np.ones(2)
    with pytest.raises(InputError, match=r"unequal length \(one has 1, two has 2\)"):
        read(tmp_path / "a.h5", ["one + two"])


def test_only_the_needed_columns_are_read(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["e/x"], file["e/text"], file["e/short"] = np.arange(5.0), ["a"] * 5, np.ones(2)
    assert read(tmp_path / "a.h5", ["x"]).x[:, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("g", "s", "text or objects"),
        ("g", "two", r"an array of shape \(2, 2\)"),
        ("c", "two", r"an array of shape \(2, 2\)|several"),
        ("c", "s", "text or objects"),
    ],
)
def test_columns_that_are_not_numbers(tmp_path, name, column, message):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/s"], file["g/two"], file["g/x"] = ["a", "b"], np.zeros((2, 2)), np.ones(2)
        file["c"] = np.zeros(2, [("two", "f8", (2,)), ("s", "S1"), ("x", "f8")])
    pattern = f"column '{column}' holds .*({message}).*, not one number per event; choose"
    with pytest.raises(InputError, match=pattern):
        read(f"{tmp_path}/a.h5:{name}", [column])


def test_values_in_other_files_are_refused(tmp_path):
    write_group(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["events/own"] = np.zeros(1_000)
        file["events/pt"] = h5py.ExternalLink("a.h5", "/events/pt")
        file["events/gone"] = h5py.ExternalLink("gone.h5", "/events/pt")
        file["events/soft"] = h5py.SoftLink("/events/own")
        file["elsewhere"] = h5py.ExternalLink("a.h5", "/events")
        file["events/chain"] = h5py.SoftLink("/elsewhere/pt")
        kind = {"shape": (10,), "dtype": "f8"}
        file.create_dataset("events/raw", external=[(tmp_path / "raw", 0, 80)], **kind)
    assert read(f"{tmp_path}/b.h5:events", "own + soft").events == 1_000
    for name, reason in (("pt", "a link"), ("chain", "a link"), ("raw", "values that are")):
        with pytest.raises(InputError, match=f"column '{name}' holds {reason}.* another file"):
            read(f"{tmp_path}/b.h5:events", name)
    with pytest.raises(InputError, match="no column 'gone'"):
        read(f"{tmp_path}/b.h5:events", "gone")


@pytest.mark.parametrize("rows", [5_000, 10**13])
def test_rows_that_are_declared_and_not_there_are_refused_at_once(tmp_path, rows):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("events/x", (rows,), "f8", chunks=(1_000,))
        data[:1_000] = 1.0
    with pytest.raises(InputError, match=r"a\.h5: damaged, truncated"):
        read(tmp_path / "a.h5", "x")
    if rows > 10**12:
        with pytest.raises(InputError, match="declares 10,000,000,000,000 rows"):
            pieces(tmp_path / "a.h5", Query.of("x"), 1_000)
