"""Whatever users have becomes a checked table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gridless as gl
from gridless.errors import InputError
from gridless.templates.arrays import as_events, as_table, as_weights


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    "data",
    [
        np.array([[1, 2], [3, 4]]),
        torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
        pd.DataFrame({"x_1": [1, 3], "x_2": [2, 4]}),
        [[1, 2], [3, 4]],
        HasArray(),
    ],
    ids=["numpy", "torch", "pandas", "list", "__array__"],
)
def test_kinds_of_table(data):
    table, names = as_table(data, "x", None, "x")
    assert table.tolist() == [[1, 2], [3, 4]]
    assert table.dtype == np.float64
    assert names == ("x_1", "x_2")


def test_names():
    assert as_table([1, 2], "x", None, "x")[1] == ("x",)
    assert as_table(pd.Series([1, 2], name="m_jj"), "x", None, "x")[1] == ("m_jj",)
    assert as_table(pd.DataFrame({"a": [1.0]}), "x", None, "x")[1] == ("a",)
    assert as_table([[1, 2]], "x", ["pt", "eta"], "x")[1] == ("pt", "eta")


@pytest.mark.parametrize(
    ("data", "names", "message"),
    [
        ([[1, 2], [3, np.nan]], None, "column 'x_2' is nan in row 1; remove"),
        ([[1, np.inf], [np.nan, 1]], ["pt", "eta"], r"'eta' is inf in row 0 \(and 1 more\)"),
        (["a", "b"], None, "not a table of numbers"),
        ([], None, "no events"),
        (np.zeros((2, 2, 2)), None, "one row per event"),
        ([[1, 2]], ["a"], "1 name for 2 columns"),
        ([[1, 2]], ["a", "a"], "repeat"),
    ],
)
def test_bad_tables(data, names, message):
    with pytest.raises(InputError, match=message):
        as_table(data, "x", names, "x")


def test_large_finite_values_are_finite():
    table, _ = as_table([[1e308], [1e308]], "x", None, "x")
    assert len(table) == 2


def test_weights():
    assert as_weights(None, 3) is None
    assert as_weights([1, -1, 2], 3).tolist() == [1, -1, 2]
    with pytest.raises(InputError, match="weights: 3 values for 4 events; give one weight per"):
        as_weights([1, 1, 1], 4)
    with pytest.raises(InputError, match="'weight' is nan in row 1"):
        as_weights([1, np.nan], 2)


SAMPLE = gl.read({"a": [1.0, 3.0], "b": [2.0, 4.0], "w": [5, 6]}, ["b", "a"], weight="w")


def test_events_of_a_sample_come_with_its_weights_and_by_name():
    x, weights = as_events(SAMPLE, observables=["a", "b"])
    assert x.tolist() == [[1, 2], [3, 4]]
    assert weights.tolist() == [5, 6]
    assert as_events(SAMPLE, weights=[1, 2])[1].tolist() == [1, 2]
    assert as_events(SAMPLE)[0].tolist() == [[2, 1], [4, 3]]
    unweighted = gl.read({"a": [1.0, 3.0]}, "a")
    assert as_events(unweighted)[1] is None


def test_events_of_a_data_frame_come_by_name():
    frame = pd.DataFrame({"b": [2.0], "other": [0.0], "a": [1.0]})
    assert as_events(frame, observables=["a", "b"])[0].tolist() == [[1, 2]]
    # A frame may have columns with the names of a sample's fields.
    odd = pd.DataFrame({"weights": [1.0], "x": [2.0], "observables": [3.0]})
    assert as_events(odd, observables=["x"])[0].tolist() == [[2]]
    assert as_events(pd.DataFrame([[1.0, 2.0]]), observables=["1", "0"])[0].tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (SAMPLE, "no column c; the model needs a, c: rename the columns, or give an array"),
        (pd.DataFrame({"a": [1.0]}), "no column c"),
        ([[1.0, 2.0, 3.0]], "3 columns, but the model has 2 observables; give a, c"),
    ],
)
def test_events_without_the_observables(x, message):
    with pytest.raises(InputError, match=message):
        as_events(x, observables=["a", "c"])


def test_masked_values_are_refused_as_nan():
    masked = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(InputError, match="column 'x' is nan in row 1"):
        as_table(masked, "x", None, "x")
    with pytest.raises(InputError, match="'weight' is nan in row 1"):
        as_weights(masked, 3)
    assert as_table(np.ma.masked_array([1, 2]), "x", None, "x")[0].tolist() == [[1], [2]]


def test_read_only_columns_are_copied_so_that_torch_does_not_warn():
    column = np.arange(3.0)
    column.flags.writeable = False
    torch.from_numpy(as_weights(pd.Series(column), 3))
    torch.from_numpy(as_table(column, "x", None, "x")[0])


@pytest.mark.parametrize(
    "data",
    [
        np.ones(3) + 1j,
        torch.ones(3, dtype=torch.complex64),
        np.arange(3).astype("datetime64[s]"),
        np.arange(3).astype("timedelta64[s]"),
        np.array(["1", "2", "3"]),
        np.array([1j] * 3, object),
        pd.Series(pd.date_range("2026-01-01", periods=3)),
    ],
    ids=["complex", "complex tensor", "date", "duration", "text", "objects", "pandas dates"],
)
def test_what_is_no_real_number_is_refused(data):
    with pytest.raises(InputError, match=r"x: not a table of numbers .*; give real numbers"):
        as_table(data, "x", None, "x")
    with pytest.raises(InputError, match="weights: not a table of numbers"):
        as_weights(data, 3)


def test_a_mask_in_one_row_of_a_list_counts():
    rows = [np.ma.masked_array([1.0, -999.0], [False, True]), np.ma.masked_array([3.0, 4.0])]
    with pytest.raises(InputError, match="'x_2' is nan in row 0"):
        as_table(rows, "x", None, "x")


def test_a_table_without_columns_is_refused():
    with pytest.raises(InputError, match="x: no columns; give at least one number per event"):
        as_table(np.empty((4, 0)), "x", None, "x")


def test_weights_have_one_axis():
    assert as_weights(np.ones((4, 1)), 4).shape == (4,)
    with pytest.raises(InputError, match=r"4 values of shape \(2, 2\) for 4 events"):
        as_weights(np.ones((2, 2)), 4)


@pytest.mark.parametrize("weight", [1e300, 1e-300, -1e200])
def test_weights_whose_squares_no_number_holds_are_refused(weight):
    with pytest.raises(InputError, match=r"weights: the largest is .*; give weights near 1"):
        as_weights([weight, 0.0, weight], 3)


@pytest.mark.parametrize("path", ["a.csv", Path("a.csv")])
def test_the_name_of_a_file_in_place_of_numbers_is_refused_with_the_cure(path):
    said = "x: 'a.csv' is the name of a file; read it first: .* gl.read_likelihood"
    with pytest.raises(InputError, match=said):
        as_events(path)
    with pytest.raises(InputError, match=f"systematic 'jes', up: {said}"):
        gl.Systematic("jes", up=path)
    with pytest.raises(InputError, match=f"background 'wj': {said}"):
        gl.Background("wj", path, share=0.1, error=None)
