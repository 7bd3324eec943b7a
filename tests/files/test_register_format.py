"""A file format that gridless does not know, added from outside."""

import json
from contextlib import contextmanager
from itertools import islice

import numpy as np
import pytest

import gridless as gl

CLOSED = []


class JsonLines(gl.Table):
    """One JSON object per line; `:name` picks an object inside it."""

    def __init__(self, file, name):
        self.file, self.name = file, name
        self.columns = tuple(self.event(file.readline()))

    def event(self, line):
        return json.loads(line) if self.name is None else json.loads(line)[self.name]

    def fault(self, column):
        return "text" if column == "comment" else ""

    def blocks(self, names, size, rows=(0, None)):
        self.file.seek(0)
        lines = islice(self.file, *rows)
        while events := [self.event(line) for line in islice(lines, size)]:
            yield {name: np.array([event[name] for event in events]) for name in names}

    def pieces(self, size):
        self.file.seek(0)
        total = len(self.file.readlines())
        return [(first, min(first + size, total)) for first in range(0, total, size)]


@contextmanager
def open_json_lines(path, name):
    with path.open() as file:
        yield JsonLines(file, name)
    CLOSED.append(path.name)


gl.register_format(".events.json", open_json_lines)


def write(path, theta, events=2_000, inside=None):
    x = np.random.default_rng(int(1_000 * theta)).normal(theta, 1, events)
    rows = [{"x": value, "comment": "ok", "w": 2} for value in x]
    rows = rows if inside is None else [{inside: row} for row in rows]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return x


def test_it_is_read_like_any_other(tmp_path):
    x = write(tmp_path / "A.Events.JSON", 0.5)
    sample = gl.read(tmp_path / "A.Events.JSON", "2 * x", weight="w", selection="x > 0")
    np.testing.assert_array_equal(sample.x[:, 0], 2 * x[x > 0])
    assert set(sample.weights) == {2}
    assert "A.Events.JSON" in CLOSED


def test_the_name_behind_the_colon_is_given_to_the_opener(tmp_path):
    x = write(tmp_path / "a.events.json", 0.5, inside="jet")
    sample = gl.read(f"{tmp_path}/a.events.json:jet", "x")
    np.testing.assert_array_equal(sample.x[:, 0], x)


def test_patterns_and_likelihoods_of_files_know_it(tmp_path, model):
    for theta in (0.25, 0.75):
        x = write(tmp_path / f"t_{theta}.events.json", theta)
    templates = gl.read_templates(f"{tmp_path}/t_{{mu}}.events.json", "x", (0, 1))
    assert templates.grid.values[:, 0].tolist() == [0.25, 0.75]
    likelihood = gl.read_likelihood(model, f"{tmp_path}/t_0.75.events.json")
    assert likelihood.maximum().value == pytest.approx(model.likelihood(x).maximum().value)


def test_its_faults_and_errors_name_the_file(tmp_path):
    write(tmp_path / "a.events.json", 0.5)
    with pytest.raises(gl.InputError, match="column 'comment' holds text, not one number"):
        gl.read(tmp_path / "a.events.json", "comment")
    (tmp_path / "b.events.json").write_text('{"x": 1}\n{"x":\n')
    with pytest.raises(gl.InputError, match=r"b\.events\.json: damaged.*JSONDecodeError"):
        gl.read(tmp_path / "b.events.json", "x")


def test_a_subclass_of_table_can_be_the_opener(tmp_path):
    class Count(gl.Table):
        columns = ("n",)

        def __init__(self, path, name):
            self.events = int(path.read_text())

        def blocks(self, names, size, rows=(0, None)):
            yield {"n": np.arange(self.events)}

    gl.register_format(".tally", Count)
    (tmp_path / "a.tally").write_text("3")
    assert gl.read(tmp_path / "a.tally", "n").x[:, 0].tolist() == [0, 1, 2]


def test_columns_of_different_lengths_are_refused(tmp_path):
    class Ragged(gl.Table):
        columns = ("a", "b")
        events = 3

        def __init__(self, path, name):
            pass

        def blocks(self, names, size, rows=(0, None)):
            yield {"a": np.arange(3.0), "b": np.arange(2.0)}

    gl.register_format(".ragged", Ragged)
    (tmp_path / "a.ragged").write_text("a b")
    with pytest.raises(gl.InputError, match="'b' has 2 rows where others have 3; the file is dama"):
        gl.read(tmp_path / "a.ragged", ["a", "b"])


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        (".root", "file format: '.root' is taken; give yours another name"),
        (".ROOT", "is taken"),
        ("feather", "give how names of such files end, as in '.feather'"),
        (".a:b", "give how names"),
        ("", "give how names"),
    ],
)
def test_bad_suffixes(suffix, message):
    with pytest.raises(gl.InputError, match=message):
        gl.register_format(suffix, open_json_lines)
