"""Histograms of observed events and of the simulation between the templates."""

import numpy as np
import pytest
from uhi.typing.plottable import PlottableHistogram

import gridless as gl
from gridless.examples import OneObservable, TwoParameters
from gridless.templates.grid import Grid
from gridless.templates.histograms import bin_events
from gridless.templates.interpolation import interpolate


def test_events_are_counted_as_numpy_does():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5_000, 2))
    weights = rng.uniform(0.5, 1.5, 5_000)
    edges = {"a": np.linspace(-1, 2, 31), "b": np.linspace(-3, 3, 31)}
    binned = bin_events(edges, x, weights, {})
    for column, histogram in zip(x.T, binned.histograms().values(), strict=True):
        expected, _ = np.histogram(column, histogram.axes[0].edges, weights=weights)
        np.testing.assert_allclose(histogram.values(), expected)
        expected, _ = np.histogram(column, histogram.axes[0].edges, weights=weights**2)
        np.testing.assert_allclose(histogram.variances(), expected)
        assert histogram.total == pytest.approx(weights.sum())


def test_values_far_outside_are_counted_in_the_total_alone():
    binned = bin_events(
        {"a": np.array([0.0, 0.5, 1.0])}, np.array([[1e300], [0.1], [-5.0]]), None, {}
    )
    assert binned.histograms()["a"].values().tolist() == [1, 0]
    assert binned.total == 3


def test_parts_add_up(model):
    x = OneObservable().sample(0.4, 1_000, seed=1)
    both = model.likelihood(x[:300]) + model.likelihood(x[300:])
    np.testing.assert_array_equal(
        both.histograms()["x"].values(), model.likelihood(x).histograms()["x"].values()
    )


def test_histograms_follow_the_protocol_of_uhi(model):
    histogram = model.likelihood(OneObservable().sample(0.4, 1_000, seed=1)).histograms()["x"]
    assert isinstance(histogram, PlottableHistogram)
    assert len(histogram.axes[0]) == len(list(histogram.axes[0])) == len(histogram.values())
    assert histogram.counts().sum() == histogram.values().sum()
    import mplhep
    from matplotlib.figure import Figure

    assert mplhep.histplot(histogram, ax=Figure().subplots())


def test_bins_are_merged_without_losing_events(model):
    histogram = model.histograms(0.4)["x"]
    merged = histogram.merged(3)
    assert merged.values().sum() == pytest.approx(histogram.values().sum())
    assert merged.axes[0].edges[-1] == histogram.axes[0].edges[-1]


def test_the_simulation_at_theta_is_that_of_the_exact_density(templates):
    """Within its own errors, at and between templates."""
    from scipy.stats import norm

    model = gl.fit(templates, hidden=2, epochs=1, replicas=0)
    pulls = []
    for theta in (0.1, 0.35, 0.4, 0.9):
        found = model.histograms(theta)["x"]
        expected = np.diff(norm.cdf(found.axes[0].edges, theta))
        pulls.append((found.values() - expected) / np.sqrt(found.variances()))
    assert 0.6 < np.std(pulls) < 1.4


@pytest.mark.parametrize("count", [2, 3, 7])
def test_polynomials_are_interpolated_exactly(count):
    values = np.linspace(0, 1, count)[:, None]
    grid = Grid(values, np.array([[0.0, 1.0]]), ("theta",))
    shares = np.hstack([0.1 + 0.2 * values, 0.5 - 0.3 * values])
    found, variances = interpolate(grid, shares, np.array([0.4]))
    np.testing.assert_allclose(found, [0.18, 0.38])
    np.testing.assert_allclose(variances, 0, atol=1e-12)


def test_templates_on_a_line_of_a_plane_give_the_nearest():
    line = np.linspace(0, 1, 4)
    grid = Grid(np.stack([line, line], 1), np.array([[0.0, 1.0]] * 2), ("a", "b"))
    found, _ = interpolate(grid, line[:, None], np.array([0.9, 0.9]))
    assert found.tolist() == [1.0]


def test_histograms_of_two_parameters_need_two_values():
    example = TwoParameters()
    model = gl.fit(example.templates(200, seed=1, templates=3), hidden=2, epochs=1, replicas=0)
    assert model.histograms((0.5, 0.5))["x1"].values().sum() > 0.9
    with pytest.raises(gl.InputError, match="give one number each: t1 in"):
        model.histograms(0.5)
