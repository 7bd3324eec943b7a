"""Files by pattern, with the values of the parameters in their names."""

from pathlib import Path

import pytest

from gridless.errors import InputError
from gridless.files.sources import find


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


def test_a_link_that_leads_nowhere_is_named_and_not_left_out(tmp_path):
    (tmp_path / "t_1.npz").write_text("x")
    (tmp_path / "t_2.npz").symlink_to("unmounted/t_2.npz")
    with pytest.raises(InputError, match=r"t_2\.npz: a link to unmounted/t_2\.npz, which is not"):
        find(tmp_path / "t_{theta}.npz")


def test_a_folder_that_may_not_be_read_is_told(tmp_path, monkeypatch):
    def closed(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", closed)
    with pytest.raises(InputError, match=r"may not be read \(Permission denied\); ask its owner"):
        find(tmp_path / "t_{theta}.npz")
