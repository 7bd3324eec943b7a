"""Grids: proposals, template values and bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridless as gl
from gridless.templates.grid import make_grid


def test_proposed_grid_is_the_papers():
    np.testing.assert_allclose(gl.grid((0, 1), 10), np.arange(0.05, 1, 0.1))
    np.testing.assert_allclose(gl.grid((165, 180), 10), np.arange(165.75, 180, 1.5))


@given(st.floats(-1e3, 1e3), st.floats(0.1, 1e3), st.integers(2, 40))
def test_proposed_grid_passes_its_own_audit(low, width, templates):
    bounds = (low, low + width)
    theta = np.repeat(gl.grid(bounds, templates), 2)
    audit = gl.Templates(np.arange(len(theta)), theta, bounds).audit(objective="penalty")
    assert audit["spacing"].met
    assert audit["margin"].met
    assert audit["weight"].met


def test_rounding_does_not_make_a_second_template():
    theta = np.array([[0.15], [0.1 + 0.05], [0.25]])
    grid, template = make_grid(theta, (0, 1), ["theta"])
    assert len(grid) == 2
    assert template.tolist() == [0, 0, 1]


def test_units():
    grid, _ = make_grid(np.array([[165.75], [179.25]]), (165, 180), ["mtop"])
    np.testing.assert_allclose(grid.unit[:, 0], [0.05, 0.95])
    np.testing.assert_allclose(grid.from_unit(grid.unit), grid.values)
    assert grid.label(0) == "mtop = 165.75"
    assert grid.spacing == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 0), "the low bound must come first"),
        ((0, np.inf), "must be finite"),
        ((0, 1, 2), "give \\(low, high\\)"),
        ((0, 0.1), "theta = 0.25 in row 2 is outside the bounds 0 to 0.1; widen"),
    ],
)
def test_bad_bounds(bounds, message):
    with pytest.raises(gl.InputError, match=message):
        make_grid(np.array([[0.05], [0.05], [0.25]]), bounds, ["theta"])


def test_one_value_is_no_grid():
    with pytest.raises(gl.InputError, match="at least two templates"):
        make_grid(np.array([[0.5], [0.5]]), (0, 1), ["theta"])
    with pytest.raises(gl.InputError, match="at least 2"):
        gl.grid((0, 1), 1)


def test_neighbours_are_next_to_each_other():
    grid, _ = make_grid(np.array([[0.3], [0.1], [0.9]]), (0, 1), ["theta"])
    assert [(grid.values[a, 0], grid.values[b, 0]) for a, b in grid.neighbours()] == [
        (0.1, 0.3),
        (0.3, 0.9),
    ]
    corners = np.array([[0.0, 0.0], [0.1, 10.0], [1.0, 0.0], [1.0, 10.0]])
    # In units of the range the second parameter's distances count as the first's.
    plane, _ = make_grid(corners, [(0, 1), (0, 100)], ["a", "b"])
    assert plane.neighbours() == [(0, 1), (1, 0), (2, 3), (3, 2)]
