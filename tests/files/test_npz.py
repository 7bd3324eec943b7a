"""NPZ files: nothing in them is executed, and damage is noticed."""

import io
import os
import pickle
import warnings
import zipfile

import numpy as np
import pytest
from files.samples import DATA, write_npz, write_packed

from gridless.errors import InputError
from gridless.files.read import read


class Bomb:
    """Unpickling it would leave a file behind."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def test_pickles_in_npz_are_refused(tmp_path):
    target = tmp_path / "X"
    np.savez(tmp_path / "a.npz", x=np.array([Bomb(target)] * 3, object), y=np.arange(3.0))
    with pytest.raises(InputError, match=r"column 'x' holds text or objects \(object\)"):
        read(tmp_path / "a.npz", ["x"])
    assert read(tmp_path / "a.npz", ["y"]).events == 3
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("x.npy", pickle.dumps(Bomb(target)))
    with pytest.raises(InputError, match="damaged"):
        read(tmp_path / "b.npz", ["x"])
    assert not target.exists()


@pytest.mark.parametrize("write", [write_npz, write_packed])
def test_a_flipped_bit_in_an_npz_is_noticed(tmp_path, write):
    write(tmp_path / "a.npz", {"pt": DATA["pt"], "w": DATA["w"]})
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[3_000] ^= 4
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read(tmp_path / "a.npz", ["pt"])


def test_only_the_needed_columns_are_read(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(5.0), text=np.array(["a"] * 5, object))
    assert read(tmp_path / "a.npz", ["x"]).x[:, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("s", "text or objects"),
        ("two", r"an array of shape \(2, 2\)"),
        ("record", "records"),
    ],
)
def test_columns_that_are_not_numbers(tmp_path, column, message):
    np.savez(tmp_path / "a.npz", s=["a"], two=np.zeros((2, 2)), record=np.zeros(2, [("a", "f8")]))
    pattern = f"column '{column}' holds .*{message}.*, not one number per event; choose"
    with pytest.raises(InputError, match=pattern):
        read(tmp_path / "a.npz", [column])


def test_a_name_of_two_arrays_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (1.0, 2.0):
            content = io.BytesIO()
            np.save(content, np.full(3, value))
            archive.writestr("x.npy", content.getvalue())
    with pytest.raises(InputError, match="column 'x' holds several columns of that name"):
        read(tmp_path / "a.npz", "x")
