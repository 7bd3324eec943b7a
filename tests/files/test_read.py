"""The same events come out of every format, and whatever is wrong with a request is named."""

import hashlib

import numpy as np
import pytest
from files.samples import COLUMNS, DATA, EVENTS, FORMATS, SELECTION, write_npz

import gridless as gl
from gridless.errors import InputError
from gridless.files.read import read, stream
from gridless.templates.query import Query


def test_every_format_gives_the_same_events(source, expected):
    sample = read(source, COLUMNS, weight="w * 2", selection=SELECTION)
    np.testing.assert_array_equal(sample.x, expected[0])
    np.testing.assert_array_equal(sample.weights, expected[1])
    assert sample.x.dtype == sample.weights.dtype == np.float64
    assert sample.observables == tuple(COLUMNS)
    assert sample.events == len(expected[0]) < EVENTS
    assert sample.source == source
    with open(source, "rb") as file:
        assert sample.checksum == hashlib.sha256(file.read()).hexdigest()
    assert f"{sample.events:,} of {EVENTS:,} weighted events from {source}" in repr(sample)


@pytest.mark.parametrize("size", [7, 300, 999, 1_000, 5_000])
def test_sizes_of_blocks_do_not_matter(source, expected, size):
    blocks = list(stream(source, Query.of(COLUMNS, "w * 2", SELECTION), size))
    assert all(0 < len(x) <= size for x, _ in blocks)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in blocks]), expected[0])
    np.testing.assert_array_equal(np.concatenate([w for _, w in blocks]), expected[1])


def test_columns_one_several_or_named(tmp_path):
    write_npz(tmp_path / "a.npz")
    path = tmp_path / "a.npz"
    assert read(path, "pt").x.tolist() == DATA["pt"][:, None].tolist()
    sample = read(path, {"ratio": "pt / w", "mass": "jet.m"}, selection="n")
    assert sample.observables == ("ratio", "mass")
    assert sample.weights is None
    assert sample.events == np.count_nonzero(DATA["n"])
    assert read(path, ["pt"], weight="2").weights.tolist() == [2.0] * EVENTS


def test_the_row_is_that_of_the_file(tmp_path):
    x = np.arange(100.0)
    x[57] = np.inf
    np.savez(tmp_path / "a.npz", x=x, i=np.arange(100), w=np.where(x == 3, np.nan, 1.0))
    with pytest.raises(InputError, match=r"a\.npz: column '2 \* x' is inf in row 57;"):
        read(tmp_path / "a.npz", ["2 * x"], selection="i % 2 == 1")
    with pytest.raises(InputError, match="weight 'w' is nan in row 3;"):
        list(stream(tmp_path / "a.npz", Query.of(["x"], "w", "x < 50"), 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["ptt"]}, r"no column 'ptt' \(did you mean 'pt'\?\); there are .*pt"),
        ({"columns": ["pt + etaa"]}, r"no column 'etaa' for 'pt \+ etaa' \(did you mean 'eta'"),
        ({"columns": ["jet.p"]}, r"a dot is not allowed; .* \(did you mean 'jet.m'\?\)"),
        ({"columns": ["pt +"]}, r"'pt \+': not understood"),
        ({"columns": []}, "columns: none; give at least one"),
        ({"columns": ["pt", "pt"]}, "columns: pt, pt repeat"),
        ({"columns": ["1"]}, "no column in '1'; use at least one"),
        ({"columns": [3]}, "columns: 3 is no name"),
        ({"columns": ["log(pt - 5)"]}, r"column 'log\(pt - 5\)' is (nan|-inf) in row \d+;"),
        ({"weight": "nope"}, "no column 'nope'"),
        ({"weight": "w +"}, r"expression 'w \+': not understood"),
        ({"weight": "w & pt"}, "expression 'w & pt': cannot be computed .*& needs two"),
        ({"weight": "sqrt(0 - w)"}, r"weight 'sqrt\(0 - w\)' is nan in row 0"),
        ({"selection": "pt >"}, "expression 'pt >': not understood"),
        ({"selection": "n & (pt > 1)"}, "& needs two conditions"),
        ({"selection": "pt > 1 & eta < 2"}, "put each comparison in parentheses"),
        ({"selection": "log(0 - pt)"}, "is nan for some events; compare it"),
        ({"selection": "pt < 0"}, "none of its 1,000 events passes the selection 'pt < 0'; widen"),
    ],
)
def test_bad_requests_in_every_format(source, arguments, message):
    with pytest.raises(InputError, match=message):
        read(source, **({"columns": ["pt"]} | arguments))


def test_nothing_is_executed(source, tmp_path):
    target = tmp_path / "X"
    for attack in (f"__import__('os').system('touch {target}')", "().__class__"):
        for role in ({"columns": [attack]}, {"weight": attack}, {"selection": attack}):
            with pytest.raises(InputError, match="is not allowed"):
                read(source, **({"columns": ["pt"]} | role))
    assert not target.exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_files_without_events(tmp_path, kind):
    name, write = FORMATS[kind]
    write(tmp_path / name, {key: value[:0] for key, value in DATA.items()})
    with pytest.raises(InputError, match="no events in it; give a file with events"):
        read(tmp_path / name, ["pt"])


TABLE = {"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 2.0, 2.0, 2.0], "jet.m": [1.0, 1.0, 0.0, 0.0]}


def test_weight_and_selection_may_use_the_names_of_observables():
    query = {"r": "a / b", "m": "jet.m"}
    sample = read(TABLE, query, weight="r + 1", selection="(r > 0.5) & (m < 1)")
    assert sample.x.tolist() == [[1.5, 0], [2, 0]]
    assert sample.weights.tolist() == [2.5, 3]
    assert read(TABLE, query, selection="entry % 2 == 0 and r > 1").x.tolist() == [[1.5, 0]]
    blocks = list(stream(TABLE, Query.of(query, "r", "r > 0.5"), 2))
    assert [w.tolist() for _, w in blocks] == [[1], [1.5, 2]]
    # A name that is no plain word can be given alone, as that of a column can.
    assert read(TABLE, {"a [GeV]": "a / 10"}, weight="a [GeV]").weights[0] == 0.1


def test_a_selection_that_compares_nan_says_so_where_no_event_passes():
    table = {"a": [-1.0, -4.0, np.nan, 1.0], "b": [1.0, 1.0, 1.0, 9.0]}
    with pytest.raises(InputError, match=r"none of its 4 .*\(for 3 of them it compares nan, which"):
        read(table, {"root": "sqrt(a)"}, selection="(root > 0) & (b < 5)")
    with pytest.raises(InputError, match=r"none of its 4 .*\(for 3 of them it compares nan, which"):
        read(table, "b", selection="sqrt(a) > 2")
    with pytest.raises(InputError, match=r"passes the selection 'b > 9'; widen it$"):
        read(table, "b", selection="b > 9")
    with pytest.raises(InputError, match=r"passes the selection 'm \[GeV\]'; widen it$"):
        read({"m [GeV]": [0, 0]}, "m [GeV]", selection="m [GeV]")
    # What is missing may be left out, and may be guarded.
    assert read(table, "a", selection="a == a").events == 3
    assert read(table, "a", selection="(a > 0) & (sqrt(a) < 2)").events == 1
    with pytest.raises(InputError, match="column 'root' is nan in row 0"):
        read(table, {"root": "sqrt(a)"}, selection="b > 0")


def test_an_observable_that_is_its_column_is_no_second_meaning():
    assert read(TABLE, {"a": " a "}, selection="a > 3").x.tolist() == [[4]]
    # The expressions of observables know columns only.
    assert read(TABLE, {"a": "a / 10", "c": "a"}, selection="b > 1").x[0].tolist() == [0.1, 1]


@pytest.mark.parametrize(
    ("columns", "selection", "message"),
    [
        ({"a": "a / 10"}, "a > 3", r"'a' in 'a > 3' is a column and also an observable \('a / 10'"),
        ({"entry": "a"}, "entry > 1", "'entry' in 'entry > 1' is a column and also an observable"),
        ({"r": "a / b"}, "rr > 1", "no column 'rr' .*did you mean 'r'"),
        ({"r": "a / b", "s": "r + 1"}, None, "no column 'r' for 'r \\+ 1'"),
    ],
)
def test_names_that_could_be_two_things_or_none(columns, selection, message):
    with pytest.raises(InputError, match=message):
        read(TABLE, columns, selection=selection)


def test_the_number_of_the_row_is_a_column(source):
    blocks = stream(source, Query.of(["pt", "entry"], selection="entry % 4 == 1"), 300)
    x = np.concatenate([x for x, _ in blocks])
    np.testing.assert_array_equal(x[:, 1], np.arange(1, EVENTS, 4))
    np.testing.assert_array_equal(x[:, 0], DATA["pt"][1::4])
    own = read({"entry": [5.0, 6.0]}, ["entry"], selection="entry > 5")
    assert own.x.tolist() == [[6]]


def test_closure_takes_samples_with_their_weights(model):
    random = np.random.default_rng(1)
    x = {theta: random.normal(theta, 1, 500) for theta in (0.3, 0.7)}
    weights = random.uniform(0, 2, 500)
    samples = {t: read({"x": x[t], "w": weights}, "x", "w") for t in x}
    pairs = {t: (x[t], weights) for t in x}
    assert str(gl.closure(model, samples)) == str(gl.closure(model, pairs))
    assert str(gl.closure(model, samples)) != str(gl.closure(model, x))
