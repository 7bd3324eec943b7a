"""Signal, backgrounds and systematics in bins, and data against them before and after the fit."""

import numpy as np
import pytest

import gridless as gl
from gridless.examples import Nuisances

EXAMPLE = Nuisances()


@pytest.fixture(scope="module")
def model():
    return EXAMPLE.fit(events=2_000, seed=1, hidden=3, epochs=3)


@pytest.fixture(scope="module")
def samples():
    return EXAMPLE.simulate(2_000, seed=1)


def share(x, histogram, weights=None):
    """Shares of events in the bins of a histogram."""
    weights = np.ones(len(x)) if weights is None else weights
    return np.histogram(x, histogram.axes[0].edges, weights=weights)[0] / weights.sum()


def test_backgrounds_are_in_the_histograms_with_their_shares(model, samples):
    templates, _, (background,) = samples
    found = model.histograms(0.5)
    signal = np.mean([share(templates.x[templates.template == k, 0], found["x1"])
                      for k in range(len(templates.grid))], axis=0)  # fmt: skip
    mixed = (1 - background.share) * signal
    mixed += background.share * share(background.x[:, 0], found["x1"], background.weights)
    # The mean of all templates is about the template in the middle.
    assert np.abs(found["x1"].values() - mixed).max() < 0.01
    none = {background.name: -background.share / background.error}
    alone = model.histograms(0.5, none)["x1"].values()
    assert np.abs(alone - signal).max() < 0.01
    up = model.histograms(0.5, {background.name: 1.0})["x1"].values()
    slope = (up - found["x1"].values()) / background.error
    expected = share(background.x[:, 0], found["x1"], background.weights) - alone
    np.testing.assert_allclose(slope, expected, atol=1e-9)


def test_a_nuisance_parameter_at_one_is_its_variation(model, samples):
    templates, systematics, (background,) = samples
    jes = next(one for one in systematics if one.name == "jes")
    (other,) = background.systematics
    assert other.name == "jes"
    nominal = model.histograms(0.5)
    for number, value in enumerate((1.0, -1.0)):
        here = model.histograms(0.5, {"jes": value})
        for column, name in enumerate(here):
            change = here[name].values() - nominal[name].values()
            expected = 0.0
            for share_of, x, weights, side in (
                (1 - background.share, templates.x, templates.weights, jes.sides[number]),
                (background.share, background.x, background.weights, other.sides[number]),
            ):
                after = share(side.x[:, column], here[name], side.weights)
                expected = expected + share_of * (after - share(x[:, column], here[name], weights))
            np.testing.assert_allclose(change, expected, atol=1e-4, err_msg=name)
            assert np.abs(change).max() > 1e-3 or np.abs(expected).max() < 1e-3


def test_unknown_nuisance_parameters_are_refused(model):
    with pytest.raises(gl.InputError, match="there is no 'jess'; there is jes"):
        model.histograms(0.5, {"jess": 1})


def test_the_fit_narrows_the_band_of_what_the_data_know(model):
    likelihood = model.likelihood(EXAMPLE.sample(0.4, 5_000, seed=2))
    found = gl.compare(model, likelihood)
    for one in found.values():
        assert one.before is not None
        assert one.chi2 / one.bins < 2
    before = sum(np.sqrt(one.before.variances()).sum() for one in found.values())
    after = sum(np.sqrt(one.expected.variances()).sum() for one in found.values())
    assert after < before
    held = likelihood.fix(**dict.fromkeys(model.nuisances, 0.0))
    narrow = sum(np.sqrt(c.expected.variances()).sum() for c in gl.compare(model, held).values())
    assert narrow < after


def test_bins_are_kept_in_the_file(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    again = gl.load(tmp_path / "model.safetensors")
    ours, theirs = (one.histograms(0.3, {"jes": 0.7, "bjes": -1}) for one in (model, again))
    for name, one in ours.items():
        np.testing.assert_array_equal(one.values(), theirs[name].values())


def test_the_figure_has_both_bands(model):
    likelihood = model.likelihood(EXAMPLE.sample(0.4, 5_000, seed=2))
    figure = gl.draw_data(model, likelihood, "x1")
    labels = figure.legends[0].get_texts()
    assert [text.get_text() for text in labels] == ["after the fit", "before the fit", "data"]
