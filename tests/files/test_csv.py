"""CSV files as people write them."""

import numpy as np
import pytest

from gridless.errors import InputError
from gridless.files.read import read, stream
from gridless.templates.query import Query


def test_csv_in_the_wild(tmp_path):
    path = tmp_path / "a.csv"
    np.savetxt(path, [[1, 2], [3, 4]], delimiter=",", header="pt,eta")
    assert read(path, ["eta", "pt"]).x.tolist() == [[2, 1], [4, 3]]
    path.write_text('\ufeff"pt, lead",name\r\n1e3,"a,b"\r\n -2 ,c\r\n', newline="")
    assert read(path, ["pt, lead"]).x.tolist() == [[1000], [-2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.5,2\n3,4\n", "no column names; put them into the first line"),
        ("\n1,2\n", "no column names"),
        ("x;y\n1;2\n", "separate columns by commas"),
        ("x y\n1 2\n", "separate columns by commas"),
        ("x,x\n1,2\n", "the column names x, x repeat"),
        ("x,y\n1,2\n3,4,5\n", "row 1 has 3 values for 2 columns; .* decimal point"),
        ("x,y\n1,2\n3\n", "row 1 has 1 values for 2 columns"),
        ("x,y\n1,2\nabc,4\n", r"column 'x' holds text \('abc' in row 1\), not one number"),
        ("x,y\n", "no events in it"),
        ("x,y\n\n", "no events in it"),
        (b"x,y\n\xff\xfe,1\n", "damaged, truncated, or not of the kind"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.csv", ["x"])


def test_only_the_needed_columns_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("x,text\n" + "".join(f"{i},a\n" for i in range(5)))
    assert read(tmp_path / "a.csv", ["x"]).x[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_missing_numbers_are_nan(tmp_path):
    (tmp_path / "a.csv").write_text('# x , b\n1,True\n\n,""\n3,false\n')
    sample = read(tmp_path / "a.csv", ["x", "b"], selection="x == x")
    assert sample.x.tolist() == [[1, 1], [3, 0]]
    with pytest.raises(InputError, match="column 'x' is nan in row 1; remove such events"):
        read(tmp_path / "a.csv", ["x"])


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_line_break_in_quotes_makes_no_row(tmp_path, size):
    path = tmp_path / "a.csv"
    path.write_text('note,x\na,1\n"two\nlines",2\n"three\n\nlines",3\n"",4\nb,5\n')
    blocks = stream(path, Query.of("x"), size)
    assert [value for x, _ in blocks for value in x[:, 0]] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "text",
    [
        'x,note\n1,a\n2,"open\n3,b\n4,c\n',
        'x,note\n1,a\nabc"d,"e\n3,b"\n',
        'x,"no\nte"\n1,a\n',
        'note,x\n"a",1\n"b"c"\nd",2\n',
    ],
)
def test_quotes_that_do_not_close_are_refused(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=r"a\.csv: "):
        read(tmp_path / "a.csv", "x")
