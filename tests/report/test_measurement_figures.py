"""Figures of nuisance parameters, and the tuples of cabinetry."""

from dataclasses import replace

import numpy as np
import pytest

import gridless as gl
from gridless.examples import Nuisances, OneObservable

FIGURES = ("draw_pulls", "draw_impacts", "draw_correlations")


@pytest.fixture(scope="module")
def likelihood(varied):
    return varied.likelihood(Nuisances().sample(0.4, 2_000, seed=2))


@pytest.fixture(scope="module")
def estimate(likelihood):
    return likelihood.maximum()


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
    ("options", "message"),
    [({"parameter": "jes"}, "no parameter 'jes' of interest"), ({"most": 0}, "at least 1")],
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


def test_a_parameter_at_a_bound_has_no_correlations(varied):
    x = Nuisances().sample(0.0, 2_000, seed=2)
    x[:, 0] -= 2
    estimate = varied.likelihood(x).maximum()
    assert estimate.value == 0
    matrix = gl.draw_correlations(estimate).axes[0]
    assert len(matrix.texts) == len(estimate.nuisances) ** 2
    shown = gl.draw_correlations(estimate, least=0.4).axes[0].get_yticklabels()
    assert "jes" in [text.get_text() for text in shown]
    for name in ("draw_pulls", "draw_impacts"):
        getattr(gl, name)(estimate).canvas.draw()


def test_free_parameters_have_no_pull(estimate):
    free = replace(estimate, nuisances=(replace(estimate.nuisances[0], constraint=None),))
    for draw in (gl.draw_pulls, gl.draw_impacts):
        with pytest.raises(gl.InputError, match="no nuisance parameter has a constraint"):
            draw(free)


def test_cabinetry_draws_its_own_plots_of_them(likelihood, tmp_path):
    cabinetry = pytest.importorskip("cabinetry")
    estimate = likelihood.maximum()
    fit, ranking = estimate.to_cabinetry()
    scan = likelihood.to_cabinetry()
    for ours, theirs in zip(
        (fit, ranking, scan),
        (cabinetry.fit.FitResults, cabinetry.fit.RankingResults, cabinetry.fit.ScanResults),
        strict=True,
    ):
        assert ours._fields == theirs._fields[: len(ours)]
    options = {"figure_folder": tmp_path, "close_figure": True}
    draw = cabinetry.visualize
    pulls = draw.pulls(fit, exclude=list(estimate.parameters), **options)
    shown = [text.get_text() for text in pulls.axes[0].get_yticklabels()]
    assert set(shown) == {one.name for one in estimate.nuisances}
    ranked = draw.ranking(ranking, max_pars=5, **options)
    first = max(estimate.impacts["theta"], key=lambda name: abs(ranking_of(ranking, name)))
    labels = [text.get_text() for axes in ranked.axes for text in axes.get_yticklabels()]
    assert first in labels
    draw.correlation_matrix(fit, pruning_threshold=0.05, **options)
    draw.scan(scan, **options)
    names = sorted(path.stem for path in tmp_path.iterdir())
    assert names == ["correlation_matrix", "pulls", "ranking", "scan_theta"]


def ranking_of(ranking, name):
    return ranking.postfit_up[ranking.labels.index(name)]


def test_a_scan_rises_by_one_at_one_error():
    example = OneObservable()
    likelihood = example.likelihood(example.quantiles(0.4))
    one = likelihood.maximum()["theta"]
    scan = likelihood.to_cabinetry(values=one.stat_interval)
    np.testing.assert_allclose(scan.delta_nlls, 1, atol=1e-6)
    assert (scan.name, scan.bestfit) == ("theta", one.value)
    assert scan.uncertainty == pytest.approx(one.stat, rel=0.01)


def test_nuisance_parameters_have_scans_too(likelihood):
    scan = likelihood.to_cabinetry("jes")
    assert scan.name == "jes"
    assert scan.delta_nlls.min() < 0.05
    np.testing.assert_array_equal(
        scan.delta_nlls, 2 * likelihood.profile("jes", scan.parameter_values)
    )


def test_nuisance_parameters_are_in_units_of_their_constraints(estimate):
    wide = replace(estimate.nuisances[0], constraint=2.0)
    other = replace(estimate, nuisances=(wide, *estimate.nuisances[1:]))
    (fit, ranking), (half, halved) = estimate.to_cabinetry(), other.to_cabinetry()
    assert half.bestfit[1] == pytest.approx(fit.bestfit[1] / 2)
    assert half.uncertainty[1] == pytest.approx(fit.uncertainty[1] / 2)
    assert half.bestfit[0] == fit.bestfit[0]
    assert halved.uncertainty[0] == pytest.approx(ranking.uncertainty[0] / 2)
    assert halved.postfit_up[0] == pytest.approx(ranking.postfit_up[0])


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
    with pytest.raises(gl.InputError, match="no parameter 'jes' of interest"):
        estimate.to_cabinetry("jes")


def test_names_of_correlations_are_whole_and_without_units(estimate):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    labels = {"theta": "$m_t$ [GeV]", "jes": "a jet energy scale with a long name"}
    figure = gl.draw_correlations(estimate, labels=labels)
    FigureCanvasAgg(figure).draw()
    texts = figure.axes[0].get_yticklabels()
    assert texts[0].get_text() == "$m_t$"
    assert min(text.get_window_extent().x0 for text in texts) >= 0
