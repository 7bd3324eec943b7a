"""Figures of nuisance parameters, and the tuples of cabinetry."""

from dataclasses import replace

import numpy as np
import pytest

import gridless as gl
from gridless.examples import Nuisances, OneObservable

FIGURES = ("draw_pulls", "draw_impacts", "draw_correlations")


@pytest.fixture(scope="module")
def estimate():
    example = Nuisances()
    model = example.fit(events=500, seed=1)
    return model.likelihood(example.sample(0.4, 2_000, seed=2)).maximum()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_goes_into_given_axes_with_labels(name, estimate):
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.subplots()
    draw = getattr(gl, name)
    assert draw(estimate, ax=ax, labels={"jes": "$E_j$"}, experiment="Private work") is figure
    assert "Private work" in [text.get_text() for text in ax.texts]
    assert "$E_j$" in [text.get_text() for text in ax.get_yticklabels()]
    figure.canvas.draw()


@pytest.mark.parametrize("name", FIGURES)
def test_estimates_without_nuisance_parameters_are_refused(name):
    example = OneObservable()
    plain = example.likelihood(example.quantiles(0.4)).maximum()
    with pytest.raises(gl.InputError, match="no nuisance parameters"):
        getattr(gl, name)(plain)


def test_pulls_have_values_and_errors_of_the_fit(estimate):
    (axes,) = gl.draw_pulls(estimate).axes
    drawn = axes.lines[1].get_xdata()
    np.testing.assert_allclose(drawn[::-1], [value for value, _ in estimate.pulls.values()])


def test_impacts_are_ranked(estimate):
    (axes,) = gl.draw_impacts(estimate, most=3).axes
    impacts = estimate.impacts["theta"]
    first = sorted(impacts, key=lambda name: -abs(impacts[name]))[:3]
    assert [text.get_text() for text in axes.get_yticklabels()] == first[::-1]
    widths = [bar.get_width() for bar in axes.patches[:3]]
    np.testing.assert_allclose(widths[::-1], [impacts[name] for name in first])


@pytest.mark.parametrize(
    ("options", "message"), [({"parameter": "jes"}, "not of interest"), ({"most": 0}, "at least 1")]
)
def test_wrong_options_of_impacts(estimate, options, message):
    with pytest.raises(gl.InputError, match=message):
        gl.draw_impacts(estimate, **options)


def test_small_correlations_are_left_out(estimate):
    names = [
        text.get_text()
        for text in gl.draw_correlations(estimate, least=0.4).axes[0].get_yticklabels()
    ]
    assert r"$\theta$" in names
    assert "tail" not in names
    with pytest.raises(gl.InputError, match="least"):
        gl.draw_correlations(estimate, least=1.5)


def test_free_parameters_have_no_pull(estimate):
    free = replace(estimate, nuisances=(replace(estimate.nuisances[0], constraint=None),))
    for draw in (gl.draw_pulls, gl.draw_impacts):
        with pytest.raises(gl.InputError, match="no nuisance parameter has a constraint"):
            draw(free)


def test_tuples_of_cabinetry(estimate):
    fit, ranking = estimate.to_cabinetry()
    assert fit.labels == list(estimate.names)
    assert fit.bestfit[0] == estimate.value
    np.testing.assert_allclose(np.diag(fit.corr_mat), 1)
    assert ranking.labels == [one.name for one in estimate.nuisances]
    place = fit.labels.index("jes")
    expected = fit.corr_mat[0, place] * fit.uncertainty[0]
    assert ranking.postfit_up[0] == pytest.approx(expected)
    assert abs(ranking.prefit_up[0]) > abs(ranking.postfit_up[0])
    np.testing.assert_array_equal(ranking.prefit_down, -ranking.prefit_up)
    with pytest.raises(gl.InputError, match="not of interest"):
        estimate.to_cabinetry("jes")
