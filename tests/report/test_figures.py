"""Figures are written as PDF and PNG and show what they should."""

import sys

import numpy as np
import pytest
from helpers import closure_of, parabola

import gridless as gl
from gridless.examples import Nuisances, OneObservable, TwoParameters
from gridless.report.figures import draw_closure, draw_likelihood
from gridless.report.style import save_figure, symbol


@pytest.fixture
def table():
    true = np.linspace(0.1, 0.9, 5)
    return closure_of(true + 0.004, true)


def test_closure_figure(table, tmp_path):
    figure = draw_closure(table)
    top, bottom = figure.axes
    assert top.get_ylabel() == r"estimated $\theta$"
    np.testing.assert_allclose(bottom.lines[-1].get_ydata(), table.pull)
    paths = save_figure(figure, tmp_path / "new" / "closure")
    assert [path.suffix for path in paths] == [".pdf", ".png"]
    assert paths[0].read_bytes().startswith(b"%PDF")
    assert paths[1].read_bytes().startswith(b"\x89PNG")


def test_closure_shows_both_uncertainties(model, table):
    samples = {theta: OneObservable().sample(theta, 500, seed=1) for theta in (0.3, 0.7)}
    closure = gl.closure(model, samples)
    outer, inner = (c.lines[2][0].get_segments() for c in draw_closure(closure).axes[0].containers)
    longer = [np.ptp(a[:, 1]) - np.ptp(b[:, 1]) for a, b in zip(outer, inner, strict=True)]
    assert min(longer) > 0
    np.testing.assert_allclose(
        [np.ptp(b[:, 1]) for b in inner],
        np.ptp([e.results[0].stat_interval for e in closure.estimates], axis=1),
    )
    # Without replicas there is no uncertainty from simulation to show.
    assert len(draw_closure(table).axes[0].containers) == 1


def test_closure_says_that_inner_bars_are_statistical_where_they_show(model, varied):
    samples = {0.4: Nuisances().sample(0.4, 500, seed=2), 0.6: Nuisances().sample(0.6, 500, seed=3)}
    closure = gl.closure(varied, samples)
    outer, inner = (c.lines[2][0].get_segments() for c in draw_closure(closure).axes[0].containers)
    for a, b, estimate in zip(outer, inner, closure.estimates, strict=True):
        one = estimate["theta"]
        assert np.ptp(b[:, 1]) / np.ptp(a[:, 1]) == pytest.approx(one.stat / one.error, rel=0.01)
    assert "inner bars: statistical" in _legend(closure)
    few = gl.closure(model, {0.4: OneObservable().sample(0.4, 20, seed=1)})
    assert "bars: every uncertainty" in _legend(few)


def _legend(closure):
    return [text.get_text() for text in draw_closure(closure).axes[0].get_legend().get_texts()]


def test_likelihood_figure():
    (axes,) = draw_likelihood(parabola(0.5, 0.01), true=0.51).axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["95 %", "68 %", "statistical", "estimate", "true value"]
    low, high = axes.get_xlim()
    assert low < 0.48 < 0.52 < high


def test_likelihood_figure_of_one_of_two_parameters():
    example = TwoParameters()
    likelihood = example.likelihood(example.sample((0.4, 0.6), 2_000, seed=1))
    (axes,) = draw_likelihood(likelihood, "t2").axes
    theta, rise = next(line for line in axes.lines if line.get_label() == "statistical").get_data()
    np.testing.assert_allclose(rise, likelihood.profile("t2", theta), atol=1e-9)
    assert axes.get_xlabel() == "t2"
    with pytest.raises(gl.InputError, match="several, t1, t2; say which"):
        draw_likelihood(likelihood)
    with pytest.raises(gl.InputError, match="there is no parameter 'mass'"):
        draw_likelihood(likelihood, "mass")


def test_symbols():
    assert symbol("theta") == r"$\theta$"
    assert symbol("mtop") == "mtop"


def test_without_matplotlib_it_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(gl.InputError, match=r"pip install 'gridless\[figures\]'"):
        draw_closure(table)


def test_a_figure_shows_itself_in_a_notebook_and_keeps_its_look(table):
    figure = draw_closure(table)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert repr(figure) == "<Figure size 520x560 with 2 Axes>"
