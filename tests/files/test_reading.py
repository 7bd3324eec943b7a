"""The same events come out of every format, and whatever is wrong with a file is named."""

import hashlib
import os
import pickle
import sys
import zipfile

import awkward as ak
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import uproot

from gridless.errors import InputError
from gridless.files.patterns import find
from gridless.files.read_events import chunks, read
from gridless.files.table import split_source
from gridless.files.template_files import read_templates

EVENTS = 1_000
GENERATOR = np.random.default_rng(7)
DATA = {
    "pt": GENERATOR.exponential(30, EVENTS),
    "eta": GENERATOR.normal(0, 2, EVENTS).astype(np.float32),
    "n": GENERATOR.integers(0, 6, EVENTS).astype(np.int32),
    "jet.m": GENERATOR.normal(80, 5, EVENTS),
    "w": GENERATOR.uniform(0.5, 1.5, EVENTS),
}
COLUMNS = ["pt", "pt / sqrt(n + 1)", "jet.m", "n - 3"]
SELECTION = "(pt > 10) & (abs(eta) < 2.5)"


def write_ttree(path, data=DATA, name="events"):
    with uproot.recreate(path) as file:
        tree = file.mktree(name, {key: np.asarray(value).dtype for key, value in data.items()})
        half = len(next(iter(data.values()))) // 2
        tree.extend({key: value[:half] for key, value in data.items()})
        tree.extend({key: value[half:] for key, value in data.items()})


def write_rntuple(path, data=DATA, name="events"):
    with uproot.recreate(path) as file:
        file.mkrntuple(name, dict(data))


def write_parquet(path, data=DATA):
    pq.write_table(pa.table(dict(data)), path, row_group_size=300)


def write_group(path, data=DATA, name="events"):
    with h5py.File(path, "w") as file:
        for key, value in data.items():
            file[f"{name}/{key}"] = value


def write_compound(path, data=DATA, name="events"):
    kinds = [(key, np.asarray(value).dtype) for key, value in data.items()]
    table = np.empty(len(next(iter(data.values()))), kinds)
    for key, value in data.items():
        table[key] = value
    with h5py.File(path, "w") as file:
        file[name] = table


def write_npz(path, data=DATA):
    np.savez(path, **data)


def write_packed(path, data=DATA):
    np.savez_compressed(path, **data)


def write_csv(path, data=DATA):
    # repr of a float64 gives all its digits; that of a float32 would not be the same number.
    frame = pd.DataFrame({k: np.asarray(v, float) for k, v in data.items()})
    frame.to_csv(path, index=False)


FORMATS = {
    "ttree": ("a.root", write_ttree),
    "rntuple": ("a.root", write_rntuple),
    "parquet": ("a.parquet", write_parquet),
    "pq": ("a.pq", write_parquet),
    "hdf5 group": ("a.h5", write_group),
    "hdf5 compound": ("a.hdf5", write_compound),
    "npz": ("a.npz", write_npz),
    "npz compressed": ("a.npz", write_packed),
    "csv": ("a.csv", write_csv),
    "txt": ("a.TXT", write_csv),
}


@pytest.fixture(params=FORMATS)
def source(request, tmp_path):
    """The same events in each of the formats."""
    name, write = FORMATS[request.param]
    write(tmp_path / name)
    return str(tmp_path / name)


@pytest.fixture
def expected():
    keep = (DATA["pt"] > 10) & (abs(DATA["eta"].astype(float)) < 2.5)
    pt, n = DATA["pt"], DATA["n"]
    x = np.column_stack([pt, pt / np.sqrt(n + 1.0), DATA["jet.m"], n - 3.0])
    return x[keep], (DATA["w"] * 2)[keep]


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
    assert f"{sample.events:,} weighted events from {source}" in repr(sample)


@pytest.mark.parametrize("size", [7, 300, 999, 1_000, 5_000])
def test_sizes_of_chunks_do_not_matter(source, expected, size):
    blocks = list(chunks(source, COLUMNS, "w * 2", SELECTION, size))
    assert all(0 < len(x) <= size for x, _ in blocks)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in blocks]), expected[0])
    np.testing.assert_array_equal(np.concatenate([w for _, w in blocks]), expected[1])


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


def test_columns_one_several_or_named(tmp_path):
    write_npz(tmp_path / "a.npz")
    path = tmp_path / "a.npz"
    assert read(path, "pt").x.tolist() == DATA["pt"][:, None].tolist()
    sample = read(path, {"ratio": "pt / w", "mass": "jet.m"}, selection="n")
    assert sample.observables == ("ratio", "mass")
    assert sample.weights is None
    assert sample.events == np.count_nonzero(DATA["n"])
    assert read(path, ["pt"], weight="2").weights.tolist() == [2.0] * EVENTS


def test_only_the_needed_columns_are_read(tmp_path):
    data = {"x": np.arange(5.0), "text": ["a"] * 5}
    write_parquet(tmp_path / "a.parquet", data)
    write_csv_of_text(tmp_path / "a.csv")
    np.savez(tmp_path / "a.npz", x=data["x"], text=np.array(data["text"], object))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["e/x"], file["e/text"], file["e/short"] = data["x"], data["text"], np.ones(2)
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mkrntuple("e", {**data, "jets": ak.Array([[1.0], [], [2.0], [], []])})
    for name in ("a.parquet", "a.csv", "a.npz", "a.h5", "a.root"):
        assert read(tmp_path / name, ["x"]).x[:, 0].tolist() == [0, 1, 2, 3, 4]


def write_csv_of_text(path):
    path.write_text("x,text\n" + "".join(f"{i},a\n" for i in range(5)))


def test_names_inside_files(tmp_path):
    with uproot.recreate(tmp_path / "a.root") as file:
        for name, shift in (("one", 0), ("dir/two", 10)):
            file.mktree(name, {"x": "f8"}).extend({"x": np.arange(3.0) + shift})
        file.mktree("again", {"x": "f8"}).extend({"x": np.zeros(1)})
        file.mktree("again", {"x": "f8"}).extend({"x": np.ones(1)})
        file["histogram"] = np.histogram([1.0, 2.0])
    assert read(f"{tmp_path}/a.root:dir/two", ["x"]).x[:, 0].tolist() == [10, 11, 12]
    assert read(f"{tmp_path}/a.root:again", ["x"]).x.tolist() == [[1]]
    assert read(f"{tmp_path}/a.root:again;1", ["x"]).x.tolist() == [[0]]
    with pytest.raises(
        InputError, match=r"holds several \(one, dir/two, again\); say which: .*:one"
    ):
        read(tmp_path / "a.root", ["x"])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["deep/er/x"] = np.arange(2.0), np.arange(3.0)
        file["table"] = np.array([(1.0,), (5.0,)], [("x", "f8")])
    assert read(f"{tmp_path}/a.h5:/", ["x"]).events == 2
    assert read(f"{tmp_path}/a.h5:deep/er", ["x"]).events == 3
    assert read(f"{tmp_path}/a.h5:/table", ["x"]).x.tolist() == [[1], [5]]
    with pytest.raises(InputError, match=r"holds several \(deep/er, table, /\)"):
        read(tmp_path / "a.h5", ["x"])


def test_fields_of_records_in_an_rntuple(tmp_path):
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mkrntuple("e", {"jet": ak.Array([{"pt": 1.0, "m": 2.0}, {"pt": 3.0, "m": 4.0}])})
    assert read(tmp_path / "a.root", ["jet.m", "jet.pt"]).x.tolist() == [[2, 1], [4, 3]]


def test_a_file_may_have_a_colon_in_its_name_and_a_folder_any(tmp_path):
    folder = tmp_path / "all.root"
    folder.mkdir()
    write_ttree(folder / "we:ird.root")
    assert read(f"{folder}/we:ird.root:events", ["pt"]).events == EVENTS
    assert split_source("a.root:b.root")[1] == "b.root"
    assert split_source("~/a.h5:")[1] is None
    assert split_source("~/a.h5:")[0].is_absolute()


def test_missing_numbers_can_be_selected_away(tmp_path):
    pq.write_table(
        pa.table({"x": pa.array([1, None, 3]), "b": pa.array([True, None, False])}),
        tmp_path / "a.parquet",
    )
    (tmp_path / "a.csv").write_text('# x , b\n1,True\n\n,""\n3,false\n')
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mkrntuple("e", {"x": ak.Array([1.0, None, 3.0]), "b": ak.Array([1.0, None, 0.0])})
    frame = pd.DataFrame({"x": pd.array([1, None, 3]), "b": pd.array([True, None, False])})
    records = ak.Array({"x": [1, None, 3], "b": [True, None, False]})
    for source in (*(str(tmp_path / f"a.{s}") for s in ("parquet", "csv", "root")), frame, records):
        assert read(source, ["x", "b"], selection="x == x").x.tolist() == [[1, 1], [3, 0]]
        with pytest.raises(InputError, match="column 'x' is nan in row 1; remove such events"):
            read(source, ["x"])


def test_the_row_is_that_of_the_file(tmp_path):
    x = np.arange(100.0)
    x[57] = np.inf
    np.savez(tmp_path / "a.npz", x=x, i=np.arange(100), w=np.where(x == 3, np.nan, 1.0))
    with pytest.raises(InputError, match=r"a\.npz: column '2 \* x' is inf in row 57;"):
        read(tmp_path / "a.npz", ["2 * x"], selection="i % 2 == 1")
    with pytest.raises(InputError, match="weight 'w' is nan in row 3;"):
        list(chunks(tmp_path / "a.npz", ["x"], "w", "x < 50", size=2))


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
        ({"columns": [3]}, "expression 3: empty or not text"),
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


def test_chunks_complains_before_the_first_block(source):
    with pytest.raises(InputError, match="no column 'ptt'"):
        chunks(source, ["ptt"])
    with pytest.raises(InputError, match="size: 0; give at least 1"):
        chunks(source, ["pt"], size=0)


def test_nothing_is_executed(source, tmp_path):
    target = tmp_path / "X"
    for attack in (f"__import__('os').system('touch {target}')", "().__class__"):
        for role in ({"columns": [attack]}, {"weight": attack}, {"selection": attack}):
            with pytest.raises(InputError, match="is not allowed"):
                read(source, **({"columns": ["pt"]} | role))
    assert not target.exists()


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


def test_a_branch_with_a_hostile_name_is_only_a_name(tmp_path):
    target = tmp_path / "X"
    name = f"__import__('os').mkdir('{target}')".replace("/", "|")
    write_ttree(tmp_path / "a.root", {name: np.arange(3.0), "x": np.ones(3)})
    assert read(tmp_path / "a.root", [name]).x[:, 0].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["a.root"]


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
def test_bad_sources(source, message):
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


@pytest.mark.parametrize("write", [write_npz, write_packed])
def test_a_flipped_bit_in_an_npz_is_noticed(tmp_path, write):
    write(tmp_path / "a.npz", {"pt": DATA["pt"], "w": DATA["w"]})
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[3_000] ^= 4
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read(tmp_path / "a.npz", ["pt"])


@pytest.mark.parametrize("kind", FORMATS)
def test_files_without_events(tmp_path, kind):
    name, write = FORMATS[kind]
    write(tmp_path / name, {key: value[:0] for key, value in DATA.items()})
    with pytest.raises(InputError, match="no events in it; give a file with events"):
        read(tmp_path / name, ["pt"])


def test_columns_that_are_not_numbers(tmp_path):
    with uproot.recreate(tmp_path / "a.root") as file:
        tree = file.mktree("t", {"jets": "var * float64", "three": ("f8", (3,)), "s": "string"})
        jets = ak.Array([[1.0], [2.0, 3.0]])
        tree.extend({"jets": jets, "three": np.zeros((2, 3)), "s": ["a", "b"]})
        record = ak.Array([{"pt": 1.0}] * 2)
        # All of one length, so that a reader might take it for a plain table.
        even = ak.Array([[1.0], [2.0]])
        file.mkrntuple("n", {"jets": jets, "even": even, "s": ["a", "b"], "record": record})
    lists = pa.table(
        {"jets": [[1.0], [2.0, 3.0]], "s": ["a", "b"], "c": pd.Categorical(["a", "b"])}
    )
    lists = lists.append_column("day", pa.array([1, 2], pa.date32()))
    pq.write_table(lists, tmp_path / "a.parquet")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/s"], file["g/two"], file["g/x"] = ["a", "b"], np.zeros((2, 2)), np.ones(2)
        file["c"] = np.zeros(2, [("two", "f8", (2,)), ("s", "S1"), ("x", "f8")])
    np.savez(tmp_path / "a.npz", s=["a"], two=np.zeros((2, 2)), record=np.zeros(2, [("a", "f8")]))
    for source, column, message in [
        ("a.root:t", "jets", "several values per event"),
        ("a.root:t", "three", "several values per event"),
        ("a.root:t", "s", r"text \(string"),
        ("a.root:n", "jets", "several values per event"),
        ("a.root:n", "even", "several values per event"),
        ("a.root:n", "s", r"text \(string"),
        ("a.root:n", "record", "objects"),
        ("a.parquet", "jets", "several values per event"),
        ("a.parquet", "s", r"text \(string\)"),
        ("a.parquet", "c", "text"),
        ("a.parquet", "day", "date32"),
        ("a.h5:g", "s", "text or objects"),
        ("a.h5:g", "two", r"an array of shape \(2, 2\)"),
        ("a.h5:c", "two", r"an array of shape \(2, 2\)|several"),
        ("a.h5:c", "s", "text or objects"),
        ("a.npz", "s", "text or objects"),
        ("a.npz", "two", r"an array of shape \(2, 2\)"),
        ("a.npz", "record", "records"),
    ]:
        pattern = f"column '{column}' holds .*{message}.*, not one number per event; choose"
        with pytest.raises(InputError, match=pattern):
            read(f"{tmp_path}/{source}", [column])


def test_names_that_are_not_there(tmp_path):
    write_ttree(tmp_path / "a.root")
    with uproot.recreate(tmp_path / "b.root") as file:
        file["histogram"] = np.histogram([1.0, 2.0])
    write_group(tmp_path / "a.h5")
    write_parquet(tmp_path / "a.parquet")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["g/one"], file["g/two"] = np.ones(1), np.ones(2)
    for source, message in [
        ("a.root:evts", "no tree or RNTuple 'evts'; there is events"),
        ("a.root:events/pt", "no tree or RNTuple 'events/pt'"),
        ("b.root", "holds no tree or RNTuple"),
        ("b.root:histogram", "holds no tree or RNTuple"),
        ("a.h5:evts", "no group or compound dataset 'evts'; there is events"),
        ("a.parquet:events", "holds a single table; leave out ':events'"),
        ("b.h5", r"unequal length \(one has 1, two has 2\)"),
    ]:
        with pytest.raises(InputError, match=message):
            read(f"{tmp_path}/{source}", ["one + two" if source == "b.h5" else "pt"])


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_find_parses_and_sorts_the_values(tmp_path):
    touch(tmp_path, "m_175.root", "m_-1.5e1.root", "m_+.5.root", "m_172.5.root", "m_172.5.h5")
    found = find(f"{tmp_path}/m_{{mtop}}.root:events")
    assert [values["mtop"] for values, _ in found] == [-15, 0.5, 172.5, 175]
    assert found[2] == ({"mtop": 172.5}, f"{tmp_path}/m_172.5.root:events")


def test_find_with_folders_stars_and_two_parameters(tmp_path):
    touch(tmp_path, "2/run2_t_1.5_-1.pq", "2/run10_t_1.5_0.pq", "1/run2_t_0.5_0.pq")
    touch(tmp_path, "2/[x]_7.pq", "10/t_10.pq", "10/t_11.pq")
    found = find(f"{tmp_path}/*/run*_t_{{a}}_{{b}}.pq")
    assert [tuple(values.values()) for values, _ in found] == [(0.5, 0), (1.5, -1), (1.5, 0)]
    assert find(f"{tmp_path}/2/[x]_{{a}}.pq")[0][0] == {"a": 7}
    assert find(f"{tmp_path}/2/run*{{a}}_{{b}}.pq")[1][0] == {"a": 1.5, "b": 0}
    # Twice the same name must be twice the same value.
    assert [source for _, source in find(f"{tmp_path}/{{a}}/t_{{a}}.pq")] == [
        f"{tmp_path}/10/t_10.pq"
    ]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("x_{m}.root", "no file matches; in the folder .* there is a_0.root, .* and 2 more"),
        ("nowhere/x_{m}.root", "no file matches; there is no folder .*nowhere"),
        ("empty/x_{m}.root", "no file matches; in the folder .*empty there is none"),
        ("a_1.root", r"no parameter in it; put its name into braces: data/mtop_\{mtop\}.root"),
        ("a_{}.root", r"\{\} is not a name"),
        ("a_{m top}.root", "is not a name"),
        ("a_{m}{n}.root", "two braces touch"),
        ("b_{m}.root", r"b_172p5\.root: m is '172p5', not a number; .*mapping \{value: file\}"),
        ("c_{m}.root", r"c_1e999\.root: m is '1e999', not a number"),
        ("a_{m}", "the kind of file is not known"),
    ],
)
def test_bad_patterns(tmp_path, pattern, message):
    touch(tmp_path, *(f"a_{i}.root" for i in range(4)), "b_172p5.root", "c_1e999.root")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=message):
        find(f"{tmp_path}/{pattern}")


def events_at(*theta, events=20):
    rng = np.random.default_rng(int(1_000 * sum(theta)))
    x = rng.normal(theta[0], 1, events)
    return {"x": x, "y": x + rng.normal(size=events), "w": rng.uniform(1, 2, events)}


@pytest.fixture
def folder(tmp_path):
    """Templates at 1, 2 and 3, the middle one in two files."""
    for name, value in (("t_1", 1), ("t_2.0", 2), ("t_2", 2), ("t_3e0", 3)):
        write_rntuple(tmp_path / f"{name}.root", events_at(value, len(name)))
    return tmp_path


def test_templates_by_pattern(folder):
    templates = read_templates(
        f"{folder}/t_{{mu}}.root:events", ["x", "y / 2"], (0, 4), weight="w", selection="x > -9"
    )
    assert templates.grid.parameters == ("mu",)
    assert templates.grid.values[:, 0].tolist() == [1, 2, 3]
    assert np.bincount(templates.template).tolist() == [20, 40, 20]
    assert templates.observables == ("x", "y / 2")
    first = events_at(1, 3)
    np.testing.assert_array_equal(templates.x[:20], np.column_stack([first["x"], first["y"] / 2]))
    np.testing.assert_array_equal(templates.weights[:20], first["w"])


def test_templates_by_value(folder):
    a, b, c = f"{folder}/t_1.root", f"{folder}/t_2.root:events", events_at(3)
    one = read_templates({1: a, 2.0: b, 3: c}, {"x": "x", "half": "y / 2"}, (0, 4))
    assert one.grid.parameters == ("theta",)
    assert one.observables == ("x", "half")
    two = read_templates([(1, a), (2, b), (2, c)], ["x", "half"], (0, 4), columns=["x", "y / 2"])
    assert np.bincount(two.template).tolist() == [20, 40]
    np.testing.assert_array_equal(one.x, two.x)
    pairs = {(1, 0): a, (1, 1): b, (2, 0): c}
    both = read_templates(pairs, "x", [(0, 4), (0, 1)], parameters=["mu", "nu"])
    assert both.grid.values.tolist() == [[1, 0], [1, 1], [2, 0]]
    assert both.grid.parameters == ("mu", "nu")
    unnamed = read_templates(pairs, "x", [(0, 4), (0, 1)])
    assert unnamed.grid.parameters == ("theta_1", "theta_2")


def test_templates_of_two_parameters_in_any_order(tmp_path):
    for mu in (1, 2):
        for nu in (-1, 1):
            write_npz(tmp_path / f"t_{mu}_{nu}.npz", events_at(mu, nu))
    pattern = f"{tmp_path}/t_{{mu}}_{{nu}}.npz"
    templates = read_templates(pattern, ["x"], [(-2, 2), (0, 3)], parameters=["nu", "mu"])
    assert templates.grid.parameters == ("nu", "mu")
    assert sorted(templates.grid.values.tolist()) == [[-1, 1], [-1, 2], [1, 1], [1, 2]]
    with pytest.raises(InputError, match="has mu, nu in braces, and the parameters are mu; make"):
        read_templates(pattern, ["x"], (0, 3), parameters="mu")


@pytest.mark.parametrize("parameters", ["theta", ["theta"], ["theta", "nu"]])
def test_templates_of_one_table_with_theta_as_a_column(tmp_path, parameters):
    data = {**events_at(1), "theta": np.repeat([1.0, 2.0], 10), "nu": np.tile([0, 1], 10)}
    write_parquet(tmp_path / "a.parquet", data)
    bounds = [(0, 3), (0, 1)] if len(parameters) == 2 else (0, 3)
    for source in (tmp_path / "a.parquet", data, pd.DataFrame(data)):
        templates = read_templates(source, ["x"], bounds, parameters=parameters, weight="w")
        assert templates.grid.parameters[0] == "theta"
        np.testing.assert_array_equal(templates.x[:, 0], data["x"])
        assert len(templates.grid) == 2 * len(bounds if len(parameters) == 2 else [0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": (0, 2.5)}, r"t_3e0\.root:events: mu = 3 is outside the bounds 0 to 2.5; widen"),
        ({"bounds": (4, 0)}, "the low bound must come first"),
        ({"bounds": [(0, 4), (0, 1)]}, r"bounds: shape \(2, 2\) for 1 parameter"),
        ({"sources": "{folder}/t_1*{{mu}}.root"}, "no file matches"),
        ({"sources": "{folder}/t_1.root"}, "no braces in the name; put the parameter there"),
        ({"sources": "{folder}/t_{{mu}}.root:evts"}, "no tree or RNTuple 'evts'"),
        ({"sources": {1: "{folder}/t_1.root"}}, "at least two templates"),
        ({"sources": {}}, "sources: none; give at least two values"),
        ({"sources": []}, "sources: none; give at least two values"),
        ({"sources": ["a.root", "b.root"]}, r"not values with sources .*; give a mapping"),
        ({"sources": {(1, 2): "a.root", 1: "b.root"}}, r"1 value\(s\) for 2 parameter\(s\)"),
        ({"sources": {1: "a.root", 2: "b.root"}, "parameters": ["a", "b"]}, "1 value.* for 2"),
        ({"observables": ["x", "z"]}, "no column 'z'"),
        ({"columns": ["x", "y"]}, r"2 expression\(s\) for 1 observable\(s\); give one each"),
        ({"selection": "x > 1.5e9"}, "none of its 20 events passes the selection"),
        ({"weight": "v"}, "no column 'v'"),
    ],
)
def test_bad_templates(folder, arguments, message):
    given = {
        "sources": "{folder}/t_{{mu}}.root:events",
        "observables": ["x"],
        "bounds": (0, 4),
    } | arguments
    if isinstance(given["sources"], str):
        given["sources"] = given["sources"].format(folder=folder)
    elif isinstance(given["sources"], dict):
        given["sources"] = {k: v.format(folder=folder) for k, v in given["sources"].items()}
    with pytest.raises(InputError, match=message):
        read_templates(given.pop("sources"), given.pop("observables"), given.pop("bounds"), **given)


def test_a_bad_file_is_named_before_any_is_read(folder, monkeypatch):
    write_rntuple(folder / "t_9.root", {"other": np.ones(3)})
    monkeypatch.setattr("gridless.files.template_files.read", lambda *_: pytest.fail("read a file"))
    with pytest.raises(InputError, match=r"t_9\.root:events: no column 'x'; there are other"):
        read_templates(f"{folder}/t_{{mu}}.root:events", ["x"], (0, 10))


def test_the_number_of_the_row_is_a_column(source):
    blocks = chunks(source, ["pt", "entry"], selection="entry % 4 == 1", size=300)
    x = np.concatenate([x for x, _ in blocks])
    np.testing.assert_array_equal(x[:, 1], np.arange(1, EVENTS, 4))
    np.testing.assert_array_equal(x[:, 0], DATA["pt"][1::4])
    own = read({"entry": [5.0, 6.0]}, ["entry"], selection="entry > 5")
    assert own.x.tolist() == [[6]]
