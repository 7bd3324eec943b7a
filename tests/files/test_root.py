"""ROOT files: trees, RNTuples, names inside them, and branches that are not numbers."""

import awkward as ak
import numpy as np
import pytest
import uproot
from files.samples import write_ttree

from gridless.errors import InputError
from gridless.files.read import read


def test_fields_of_records_in_an_rntuple(tmp_path):
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mkrntuple("e", {"jet": ak.Array([{"pt": 1.0, "m": 2.0}, {"pt": 3.0, "m": 4.0}])})
    assert read(tmp_path / "a.root", ["jet.m", "jet.pt"]).x.tolist() == [[2, 1], [4, 3]]


def test_a_branch_with_a_hostile_name_is_only_a_name(tmp_path):
    target = tmp_path / "X"
    name = f"__import__('os').mkdir('{target}')".replace("/", "|")
    write_ttree(tmp_path / "a.root", {name: np.arange(3.0), "x": np.ones(3)})
    assert read(tmp_path / "a.root", [name]).x[:, 0].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["a.root"]


def test_names_of_trees(tmp_path):
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


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a.root:evts", "no tree or RNTuple 'evts'; there is events"),
        ("a.root:events/pt", "no tree or RNTuple 'events/pt'"),
        ("b.root", "holds no tree or RNTuple"),
        ("b.root:histogram", "holds no tree or RNTuple"),
    ],
)
def test_names_that_are_not_there(tmp_path, source, message):
    write_ttree(tmp_path / "a.root")
    with uproot.recreate(tmp_path / "b.root") as file:
        file["histogram"] = np.histogram([1.0, 2.0])
    with pytest.raises(InputError, match=message):
        read(f"{tmp_path}/{source}", ["pt"])


def test_a_tree_that_has_lost_events(tmp_path):
    """No checksum covers how many entries a tree has; its branches know it too."""
    path = tmp_path / "a.root"
    write_ttree(path, {"x": np.arange(80.0), "y": np.arange(80.0)})
    content = path.read_bytes()
    place = content.index((80).to_bytes(8, "big"))  # the tree comes before its branches
    for entries in (0, 64, 81, 2**40):
        path.write_bytes(content[:place] + entries.to_bytes(8, "big") + content[place + 8 :])
        with pytest.raises(InputError, match="x has 80 entries, its tree"):
            read(path, ["x"])


def test_only_the_needed_columns_are_read(tmp_path):
    data = {"x": np.arange(5.0), "text": ["a"] * 5, "jets": ak.Array([[1.0], [], [2.0], [], []])}
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mkrntuple("e", data)
    assert read(tmp_path / "a.root", ["x"]).x[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_missing_numbers_are_nan(tmp_path):
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mkrntuple("e", {"x": ak.Array([1.0, None, 3.0]), "b": ak.Array([1.0, None, 0.0])})
    sample = read(tmp_path / "a.root", ["x", "b"], selection="x == x")
    assert sample.x.tolist() == [[1, 1], [3, 0]]
    with pytest.raises(InputError, match="column 'x' is nan in row 1; remove such events"):
        read(tmp_path / "a.root", ["x"])


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("t", "jets", "several values per event"),
        ("t", "three", "several values per event"),
        ("t", "s", r"text \(string"),
        ("n", "jets", "several values per event"),
        ("n", "even", "several values per event"),
        ("n", "s", r"text \(string"),
        ("n", "record", "objects"),
    ],
)
def test_columns_that_are_not_numbers(tmp_path, name, column, message):
    jets = ak.Array([[1.0], [2.0, 3.0]])
    # All of one length, so that a reader might take it for a plain table.
    even = ak.Array([[1.0], [2.0]])
    record = ak.Array([{"pt": 1.0}] * 2)
    with uproot.recreate(tmp_path / "a.root") as file:
        tree = file.mktree("t", {"jets": "var * float64", "three": ("f8", (3,)), "s": "string"})
        tree.extend({"jets": jets, "three": np.zeros((2, 3)), "s": ["a", "b"]})
        file.mkrntuple("n", {"jets": jets, "even": even, "s": ["a", "b"], "record": record})
    pattern = f"column '{column}' holds .*{message}.*, not one number per event; choose"
    with pytest.raises(InputError, match=pattern):
        read(f"{tmp_path}/a.root:{name}", [column])


def test_a_damaged_list_of_pages_is_refused(tmp_path):
    """uproot does not check it, and reads on where it says that it has 10^9 items."""
    path = tmp_path / "a.root"
    with uproot.recreate(path) as file:
        file.mkrntuple("e", {"x": np.arange(100.0)})
    assert len(read(path, ["x"]).x) == 100
    with uproot.open(path) as file:
        place = file["e"].footer.cluster_group_records[0].page_list_link.locator.offset
    content = bytearray(path.read_bytes())
    content[place + 20] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read(path, ["x"])
