"""Parquet files: gaps in columns, and columns that are not numbers."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from files.samples import write_parquet

from gridless.errors import InputError
from gridless.files.read import pieces, read, stream
from gridless.templates.query import Query


def test_a_file_is_one_table(tmp_path):
    write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="holds a single table; leave out ':events'"):
        read(f"{tmp_path}/a.parquet:events", ["pt"])


def test_only_the_needed_columns_are_read(tmp_path):
    write_parquet(tmp_path / "a.parquet", {"x": np.arange(5.0), "text": ["a"] * 5})
    assert read(tmp_path / "a.parquet", ["x"]).x[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_missing_numbers_are_nan(tmp_path):
    table = pa.table({"x": pa.array([1, None, 3]), "b": pa.array([True, None, False])})
    pq.write_table(table, tmp_path / "a.parquet")
    sample = read(tmp_path / "a.parquet", ["x", "b"], selection="x == x")
    assert sample.x.tolist() == [[1, 1], [3, 0]]
    with pytest.raises(InputError, match="column 'x' is nan in row 1; remove such events"):
        read(tmp_path / "a.parquet", ["x"])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("jets", "several values per event"),
        ("s", r"text \(string\)"),
        ("c", "text"),
        ("day", "date32"),
    ],
)
def test_columns_that_are_not_numbers(tmp_path, column, message):
    table = pa.table(
        {"jets": [[1.0], [2.0, 3.0]], "s": ["a", "b"], "c": pd.Categorical(["a", "b"])}
    )
    table = table.append_column("day", pa.array([1, 2], pa.date32()))
    pq.write_table(table, tmp_path / "a.parquet")
    pattern = f"column '{column}' holds .*{message}.*, not one number per event; choose"
    with pytest.raises(InputError, match=pattern):
        read(tmp_path / "a.parquet", [column])


def test_a_file_without_rows_says_so_in_pieces_too(tmp_path):
    pq.write_table(pa.table({"x": pa.array([], pa.float64())}), tmp_path / "a.parquet")
    (piece,) = pieces(tmp_path / "a.parquet", Query.of("x"), 10)
    with pytest.raises(InputError, match="no events in it"):
        list(stream(tmp_path / "a.parquet", Query.of("x"), 10, piece))


def test_a_name_of_two_columns_is_named(tmp_path):
    columns = [pa.array([1.0]), pa.array([2.0]), pa.array([3.0])]
    pq.write_table(pa.table(columns, names=["x", "x", "y"]), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", "y").x.tolist() == [[3]]
    with pytest.raises(InputError, match="column 'x' holds several columns of that name"):
        read(tmp_path / "a.parquet", "x")
