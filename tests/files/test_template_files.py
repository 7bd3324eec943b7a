"""Templates from files: by pattern, by value, or of one table with the parameters as columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from files.samples import events_at, write_npz, write_parquet, write_rntuple

import gridless as gl
from gridless.errors import InputError
from gridless.files import template_files
from gridless.files.read import read
from gridless.files.template_files import read_templates
from gridless.templates.query import Query


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
        ({"sources": {(1, 2): "a.root", 1: "b.root"}}, "1 value for 2 parameters"),
        ({"sources": {1: "a.root", 2: "b.root"}, "parameters": ["a", "b"]}, "1 value.* for 2"),
        ({"observables": ["x", "z"]}, "no column 'z'"),
        ({"columns": ["x", "y"]}, "2 expressions for 1 observable; give one each"),
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
    monkeypatch.setattr(template_files, "read_query", lambda *_: pytest.fail("read a file"))
    with pytest.raises(InputError, match=r"t_9\.root:events: no column 'x'; there are other"):
        read_templates(f"{folder}/t_{{mu}}.root:events", ["x"], (0, 10))


@pytest.fixture
def two_columns(tmp_path):
    """Files in which r = a / b depends on mu where b < 2, and says something wrong elsewhere."""
    random = np.random.default_rng(3)
    for name, mu in {"t_0.2": 0.2, "t_0.5": 0.5, "t_0.8": 0.8, "data": 0.35}.items():
        b = random.choice([1.0, 3.0], 2_000)
        r = np.where(b < 2, random.normal(mu, 0.5, 2_000), 5.0 if name == "data" else 0.0)
        write_npz(tmp_path / f"{name}.npz", {"a": r * b, "b": b, "w": np.full(2_000, 2.0)})
    return tmp_path


def test_observed_events_are_read_as_the_templates_were(two_columns):
    templates = read_templates(
        f"{two_columns}/t_{{mu}}.npz", {"r": "a / b"}, (0, 1), weight="w", selection="b < 2"
    )
    assert templates.query == Query({"r": "a / b"}, "w", "b < 2")
    model = gl.fit(templates, hidden=(4,), epochs=5, seed=1)
    data = two_columns / "data.npz"
    with np.load(data) as columns:
        selected = columns["b"] < 2
        by_hand = model.likelihood_of((columns["a"] / columns["b"])[selected, None], None)
    estimate = gl.read_likelihood(model, data).maximum()
    assert estimate.events == selected.sum()
    assert estimate.value == pytest.approx(by_hand.maximum().value, abs=1e-9)
    # Without the selection, events at r = 5 would pull it to the bound.
    assert estimate.value == pytest.approx(0.35, abs=0.1)


def test_a_sample_is_measured_with_its_weights(two_columns):
    templates = read_templates(f"{two_columns}/t_{{mu}}.npz", {"r": "a / b"}, (0, 1))
    model = gl.fit(templates, hidden=(4,), epochs=2, seed=1)
    sample = read(two_columns / "data.npz", {"b": "b", "r": "a / b"}, "where(b < 2, 1, 0)")
    x, weights = sample.x[:, 1:], sample.weights
    expected = model.likelihood(x, weights).maximum()
    assert model.likelihood(sample).maximum().value == expected.value
    assert model.likelihood(sample, np.ones(2_000)).maximum().value != expected.value


def test_a_sample_without_the_selection_of_the_model_is_a_warning(two_columns):
    pattern = f"{two_columns}/t_{{mu}}.npz"
    templates = read_templates(pattern, {"r": "a / b"}, (0, 1), selection="b < 2")
    model = gl.fit(templates, hidden=(4,), epochs=2, seed=1)
    data = two_columns / "data.npz"
    for selection in ("b < 2", templates.query.where("entry > 9").selection):
        model.likelihood(read(data, {"r": "a / b"}, selection=selection))
    with pytest.warns(gl.GridlessWarning, match="the sample was read with no selection"):
        model.likelihood(read(data, {"r": "a / b"}))


def test_every_file_leaves_a_record(two_columns):
    one = read_templates(f"{two_columns}/t_{{mu}}.npz", "a", (0, 1), where="entry < 500")
    assert [(Path(file.source).name, file.events) for file in one.files] == [
        ("t_0.2.npz", 500),
        ("t_0.5.npz", 500),
        ("t_0.8.npz", 500),
    ]
    assert len({file.checksum for file in one.files}) == 3
    assert one.query.selection is None


def test_one_file_with_the_parameters_as_columns_leaves_a_record_too(tmp_path):
    write_npz(tmp_path / "a.npz", {**events_at(1), "mu": np.repeat([1.0, 2.0], 10)})
    templates = read_templates(tmp_path / "a.npz", "x", (0, 3), parameters="mu")
    (file,) = templates.files
    assert file.source == str(tmp_path / "a.npz")
    assert file.events == 20
    assert len(file.checksum) == 64
    assert templates.query.names == ("x",)


def test_a_selection_by_an_observable_holds_for_files_and_data_frames(two_columns):
    templates = read_templates(
        f"{two_columns}/t_{{mu}}.npz", {"r": "a / b"}, (0, 1), selection="(r != 0) & (r < 3)"
    )
    model = gl.fit(templates, hidden=(4,), epochs=2, seed=1)
    data = two_columns / "data.npz"
    with np.load(data) as columns:
        frame = pd.DataFrame({name: columns[name] for name in columns})
    ready = pd.DataFrame({"r": frame.a / frame.b})
    expected = gl.read_likelihood(model, data)
    assert expected.events == (frame.b < 2).sum()
    for given in (frame, ready):
        found = model.likelihood(given)
        assert found.events == expected.events
        assert found.maximum().value == pytest.approx(expected.maximum().value, abs=1e-9)


def test_a_file_without_the_parameter_may_be_meant_as_a_pattern(tmp_path):
    write_npz(tmp_path / "t_1.npz", events_at(1))
    source = tmp_path / "t_1.npz"
    cure = r"no column 'mZ'.*; or give a pattern of files with \{mZ\} in the name"
    with pytest.raises(InputError, match=cure):
        read_templates(source, ["x"], (0, 4), parameters=["mZ"])
    with pytest.raises(InputError, match=cure):
        template_files.check_events(source, Query.of(["x"]), ["mZ"])
    with pytest.raises(InputError, match=r"no column 'z'; there are x, [^{]*$"):
        read_templates(source, ["z"], (0, 4), parameters=["y"])


def test_a_pattern_without_the_parameter_asks_for_braces(tmp_path):
    with pytest.raises(InputError, match="no parameter in it; put its name into braces"):
        read_templates(f"{tmp_path}/t_*.npz", ["x"], (0, 4), parameters=["mZ"])
