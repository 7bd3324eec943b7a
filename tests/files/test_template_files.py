"""Templates from files: by pattern, by value, or of one table with the parameters as columns."""

import numpy as np
import pandas as pd
import pytest
from files.samples import events_at, write_npz, write_parquet, write_rntuple

from gridless.errors import InputError
from gridless.files.template_files import read_templates


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
