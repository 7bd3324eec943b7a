"""Templates refuse what cannot be fitted and keep what can."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import gridless as gl

X = np.arange(8.0).reshape(4, 2)
THETA = [0.25, 0.25, 0.75, 0.75]


def test_names_from_data_frames():
    templates = gl.Templates(
        pd.DataFrame(X, columns=["pt", "eta"]), pd.Series(THETA, name="mtop"), bounds=(0, 1)
    )
    assert templates.observables == ("pt", "eta")
    assert templates.grid.parameters == ("mtop",)
    assert "4 events at 2 values of mtop" in repr(templates)


def test_balanced_weights_make_the_templates_equal():
    templates = gl.Templates(np.arange(3), [0.25, 0.25, 0.75], (0, 1), weights=[1, 2, 5])
    weights = templates.balanced_weights()
    assert weights.sum() == pytest.approx(3)
    assert weights[:2].sum() == pytest.approx(weights[2])
    assert weights[1] / weights[0] == pytest.approx(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.where(X == 5, np.nan, X)}, "x: column 'x_2' is nan in row 2"),
        ({"x": np.where(X == 5, -np.inf, X)}, "x: column 'x_2' is -inf in row 2"),
        ({"theta": [0.2, 0.2, 0.8, 1.8]}, "theta = 1.8 in row 3 is outside .*; widen the bounds"),
        ({"theta": [0.2, 0.2, 0.8, np.nan]}, "theta: column 'theta' is nan in row 3"),
        ({"theta": [0.2] * 4}, "at least two templates"),
        ({"theta": [0.2, 0.2, 0.8]}, "theta: 3 values for 4 events; give one value per event"),
        ({"theta": np.zeros((4, 4)), "bounds": [(0, 1)] * 4}, "4 parameters; up to three"),
        ({"weights": [1, 1, 1, -1]}, "template theta = 0.75 has a total weight of 0; it must be"),
        ({"weights": [-2, 1, 1, 1]}, "template theta = 0.25 has a total weight of -1"),
        ({"weights": [1, 1]}, "weights: 2 values for 4 events"),
        ({"bounds": (1, 0)}, "the low bound must come first"),
    ],
)
def test_bad_input_is_named_with_its_cure(change, message):
    arguments = {"x": X, "theta": THETA, "bounds": (0, 1)} | change
    with pytest.raises(gl.InputError, match=message):
        gl.Templates(**arguments)


def test_a_constant_observable_is_a_warning_with_its_name():
    x = X.copy()
    x[:, 1] = 3
    with pytest.warns(gl.GridlessWarning, match="column 'x_2' is 3 in every event"):
        templates = gl.Templates(x, THETA, (0, 1))
    assert len(templates) == 4


def test_theta_of_every_event():
    templates = gl.Templates(X, THETA, (0, 1))
    assert templates.theta.tolist() == [[0.25], [0.25], [0.75], [0.75]]


def test_totals_and_effective_sizes_of_templates():
    templates = gl.Templates(X, THETA, (0, 1), weights=[1, 3, 2, 2])
    assert templates.totals().tolist() == [4, 4]
    assert templates.effective_sizes().tolist() == [16 / 10, 2]
    assert gl.Templates(X, THETA, (0, 1)).event_weights.tolist() == [1, 1, 1, 1]


def test_they_cannot_be_changed():
    templates = gl.Templates(X, THETA, (0, 1))
    with pytest.raises(AttributeError):
        templates.weights = np.ones(4)
    with pytest.raises(ValueError, match="read-only"):
        templates.grid.bounds[0] = 0, 2


def test_they_show_every_template_in_a_notebook():
    html = gl.Templates(X, THETA, (0, 1), parameters=["m<t>"])._repr_html_()
    assert "4 events at 2 values of m&lt;t&gt;" in html
    assert "<td style='text-align:left'>m&lt;t&gt; = 0.75</td><td>2</td><td>2</td>" in html


def test_templates_and_files_load_without_torch():
    code = (
        "import sys, gridless as gl; gl.Templates, gl.read_templates, gl.read, gl.register_format; "
        "gl.Templates([1, 2], [0.2, 0.8], (0, 1)); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_theta_of_its_own_for_every_event_is_refused_with_the_cure():
    theta = np.random.default_rng(1).uniform(0, 1, 2_000)
    with pytest.raises(gl.InputError, match=r"2,000 different values for 2,000 events.*its bin"):
        gl.Templates(theta, theta, (0, 1))
    rounded = np.round(theta, 2)
    with pytest.raises(gl.InputError, match=r"19\.8 events each"):
        gl.Templates(theta, rounded, (0, 1))
    gl.Templates(theta, np.round(theta, 1), (0, 1))


@pytest.mark.parametrize("bounds", [("a", "b"), (0j, 1), None])
def test_bounds_that_are_no_numbers_are_refused(bounds):
    with pytest.raises(gl.InputError, match="bounds: "):
        gl.Templates(X, THETA, bounds)


def test_x_and_theta_that_are_exchanged_are_told():
    theta = np.repeat([88.0, 90.0, 92.0], 200)
    x = np.random.default_rng(1).normal(theta, 2.5)
    message = "theta has 600 different values and x has 3: are they exchanged"
    with pytest.raises(gl.InputError, match=message):
        gl.Templates(theta, x, (87, 93))
    with pytest.raises(gl.InputError, match="widen the bounds"):
        gl.Templates(x, theta, (89, 93))
