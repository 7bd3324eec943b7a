"""Figures of data against simulation, of the budget, and what every figure takes."""

import numpy as np
import pytest

import gridless as gl
from gridless.examples import OneObservable, TwoObservables

LABELS = {"theta": "$m_t$ [GeV]", "x1": r"$m_{jjb}$ [GeV]"}


@pytest.fixture(scope="module")
def subject():
    """A model with labels, a likelihood and a closure."""
    example = TwoObservables()
    templates = example.templates(2_000, seed=1).labelled(LABELS)
    model = gl.fit(templates, hidden=4, epochs=4, replicas=4, seed=1)
    likelihood = model.likelihood(example.sample(0.4, 2_000, seed=2))
    samples = {v: example.sample(v, 500, seed=3) for v in (0.3, 0.7)}
    return model, likelihood, gl.closure(model, samples)


def draw(name, subject, **options):
    """A figure by the name of its function."""
    model, likelihood, closure = subject
    arguments = {
        "draw_data": (model, likelihood, "x1"),
        "draw_budget": (likelihood.maximum(),),
        "draw_channels": (likelihood.named("a") + likelihood.named("b"),),
        "draw_likelihood": (likelihood,),
        "draw_closure": (closure,),
        "draw_distributions": (model, "x1"),
        "draw_check": (model,),
        "draw_history": (model,),
        "draw_prior": (model,),
    }
    return getattr(gl, name)(*arguments[name], **options)


ELSEWHERE = ("draw_contours", "draw_pulls", "draw_impacts", "draw_correlations")
FIGURES = [n for n in gl.__all__ if n.startswith("draw_") and n not in ELSEWHERE]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_goes_into_given_axes_with_a_label(name, subject):
    from matplotlib.figure import Figure

    figure = Figure()
    two = name == "draw_distributions"
    ax = tuple(figure.subplots(2)) if two else figure.subplots()
    assert draw(name, subject, ax=ax, experiment="Private work") is figure
    first = ax[0] if two else ax
    assert "Private work" in [text.get_text() for text in first.texts]
    figure.canvas.draw()


@pytest.mark.parametrize("name", [n for n in FIGURES if n != "draw_history"])
def test_every_figure_has_the_labels_of_the_templates_or_others(name, subject):
    def shown(figure):
        found = [a.get_xlabel() + a.get_ylabel() for a in figure.axes]
        return " ".join(found)

    own = "$m_{jjb}$ [GeV]" if name in ("draw_data", "draw_distributions") else "$m_t$ [GeV]"
    assert own in shown(draw(name, subject))
    other = {"x1": "other", "theta": "other"}
    assert "other" in shown(draw(name, subject, labels=other))


def test_histograms_of_others_are_drawn_with_the_data(subject):
    model, likelihood, _ = subject
    own = likelihood.histograms()["x1"]  # as hist and uproot have them
    wide = np.histogram(np.repeat(own.axes[0].edges[:-1], own.values().astype(int)), 10)
    figure = gl.draw_data(model, likelihood, "x1", also={"UHI": own, "numpy": wide})
    lines = {p.get_label(): p.get_data().values for p in figure.axes[0].patches}
    width = np.diff(gl.compare(model, likelihood)["x1"].observed.axes[0].edges).mean()
    np.testing.assert_allclose(lines["UHI"] * np.diff(own.axes[0].edges) / width, own.values())
    # Fewer bins, and about as high: events per bin of the figure.
    assert 0.5 < lines["numpy"].max() / lines["UHI"].max() < 1.2
    with pytest.raises(gl.InputError, match=r"also: histograms of which of x1, x2\?"):
        gl.draw_data(model, likelihood, also={"UHI": own})
    with pytest.raises(gl.InputError, match=r"histogram: not one of one axis"):
        gl.draw_data(model, likelihood, "x1", also={"2-D": (np.ones((2, 2)), [0, 1, 2])})


def test_a_label_that_is_no_formula_is_refused(subject):
    with pytest.raises(gl.InputError, match=r"labels: .* is no formula"):
        draw("draw_prior", subject, labels={"theta": r"$\nonsense{m}$"})


def test_data_and_simulation_are_compared_at_the_estimate(subject):
    model, likelihood, _ = subject
    found = gl.compare(model, likelihood)["x1"]
    assert found.observed.values().sum() == pytest.approx(found.expected.values().sum(), rel=0.02)
    assert found.chi2 / found.bins < 2
    figure = gl.draw_data(model, likelihood)
    assert len(figure.axes) == 4
    assert gl.compare(model, likelihood + likelihood)["x1"].observed.total == 4_000


def test_data_of_another_model_are_not_compared(subject):
    with pytest.raises(gl.InputError, match="no events of this model"):
        gl.compare(subject[0], OneObservable().likelihood(np.zeros((5, 1))))


def test_one_place_is_for_one_observable(subject):
    from matplotlib.figure import Figure

    model, likelihood, _ = subject
    ax = Figure().subplots()
    with pytest.raises(gl.InputError, match="say which: 'x1'"):
        gl.draw_data(model, likelihood, ax=ax)
    with pytest.raises(gl.InputError, match="two panels"):
        gl.draw_distributions(model, ax=ax)
    with pytest.raises(gl.InputError, match="there is no 'z'"):
        gl.draw_data(model, likelihood, "z")


def test_the_budget_has_a_bar_for_every_source_and_the_total(subject):
    estimate = subject[1].maximum()
    (axes,) = gl.draw_budget(estimate).axes
    widths = sorted(bar.get_width() for bar in axes.patches)
    assert widths == pytest.approx(sorted([*estimate.budget["theta"].values(), estimate.error]))


def test_the_total_curve_crosses_one_half_at_the_ends_of_the_interval(subject):
    likelihood = subject[1]
    (axes,) = gl.draw_likelihood(likelihood).axes
    theta, rise = next(line for line in axes.lines if line.get_label() == "total").get_data()
    best = likelihood.maximum()
    ends = [np.interp(0.5, rise[side][::way], theta[side][::way])
            for side, way in ((theta < best.value, -1), (theta > best.value, 1))]  # fmt: skip
    assert ends == pytest.approx(best.interval, abs=0.02 * best.error)
