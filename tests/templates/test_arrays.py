"""Whatever users have becomes a checked table."""

import numpy as np
import pandas as pd
import pytest
import torch

from gridless.errors import InputError
from gridless.templates.arrays import as_table, as_weights


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
        ([[1, 2]], ["a"], "1 name\\(s\\) for 2 column"),
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
