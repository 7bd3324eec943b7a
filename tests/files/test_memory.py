"""Tables in memory are read as files are."""

import awkward as ak
import numpy as np
import pandas as pd
import pytest
import torch
from files.samples import COLUMNS, DATA, SELECTION

from gridless.errors import InputError
from gridless.files.read import read

MEMORY = {
    "mapping": lambda: DATA,
    "lists": lambda: {name: column.tolist() for name, column in DATA.items()},
    "tensors": lambda: {k: torch.tensor(v).double().requires_grad_() for k, v in DATA.items()},
    "pandas": lambda: pd.DataFrame(DATA),
    "nullable pandas": lambda: pd.DataFrame(DATA).convert_dtypes(),
    "awkward": lambda: ak.Array(DATA),
    "structured": lambda: pd.DataFrame(DATA).to_records(index=False),
}


@pytest.mark.parametrize("kind", MEMORY)
def test_tables_in_memory(kind, expected):
    sample = read(MEMORY[kind](), COLUMNS, "w * 2", SELECTION)
    np.testing.assert_array_equal(sample.x, expected[0])
    np.testing.assert_array_equal(sample.weights, expected[1])
    assert sample.checksum is None
    assert "in memory" in sample.source


GAPS = {
    "nullable pandas": pd.DataFrame(
        {"x": pd.array([1, None, 3]), "b": pd.array([True, None, False])}
    ),
    "awkward": ak.Array({"x": [1, None, 3], "b": [True, None, False]}),
    "masked": {
        "x": np.ma.masked_array([1, 2, 3], mask=[False, True, False]),
        "b": np.ma.masked_array([True, True, False], mask=[False, True, False]),
    },
}


@pytest.mark.parametrize("kind", GAPS)
def test_missing_numbers_are_nan(kind):
    sample = read(GAPS[kind], ["x", "b"], selection="x == x")
    assert sample.x.tolist() == [[1, 1], [3, 0]]
    with pytest.raises(InputError, match="column 'x' is nan in row 1; remove such events"):
        read(GAPS[kind], ["x"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "int in memory: cannot be read; give a path"),
        (np.ones(3), "ndarray in memory: cannot be read"),
        ({"pt": [1, 2], "w": [1]}, r"unequal length \(pt has 2, w has 1\)"),
        ({"pt": ["a"], "w": [1]}, "column 'pt' holds text or objects"),
        ({"pt": np.ones((2, 2)), "w": [1, 1]}, r"column 'pt' holds an array of shape \(2, 2\)"),
        ({"pt": np.array([1j]), "w": [1]}, "column 'pt' holds complex128"),
        ({"pt": [], "w": []}, "no events in it"),
        (pd.DataFrame({"pt": ["a"], "w": [1]}), "DataFrame in memory: column 'pt' holds"),
        (ak.Array([{"pt": [1, 2], "w": 1}]), r"'pt' holds several values per event \(var \* int64"),
        (ak.Array([{"pt": "a", "w": 1}]), r"'pt' holds text \(string\)"),
        (ak.Array([{"pt": {"a": 1}, "w": 1}]), r"'pt' holds objects"),
    ],
)
def test_tables_that_cannot_be_read(source, message):
    with pytest.raises(InputError, match=message):
        read(source, ["pt"], weight="w")
