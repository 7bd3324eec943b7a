"""Several parameters: estimates, profiles, contours, constraints, against exact answers."""

import numpy as np
import pytest
from iminuit import Minuit
from scipy.stats import chi2

import gridless as gl
from gridless.curves import chebyshev
from gridless.examples import TwoParameters
from gridless.likelihood.channel import Channel
from gridless.likelihood.likelihood import Likelihood
from gridless.templates.grid import Grid

TOY = TwoParameters()
MATRIX = np.array([[100.0, 40.0, 0.0], [40.0, 64.0, 8.0], [0.0, 8.0, 36.0]])
BEST = np.array([4.0, 0.1, 0.6])
BOUNDS = np.array([[0.0, 10.0], [-1.0, 1.0], [0.0, 1.0]])
COVARIANCE = np.linalg.inv(MATRIX / np.outer([10, 2, 1], [10, 2, 1]))


def quadratic(parameters=3):
    """A normal likelihood of a, b, c with known covariance; of fewer, with the rest fixed."""
    unit = (BEST - BOUNDS[:, 0]) / (BOUNDS[:, 1] - BOUNDS[:, 0])
    c = chebyshev.approximate(
        lambda t: 0.5 * np.einsum("ni,ij,nj->n", t - unit, MATRIX, t - unit), 1e-9, 3
    )
    likelihood = Likelihood([Channel(c, Grid(np.zeros((0, 3)), BOUNDS, ("a", "b", "c")), 100)])
    return likelihood if parameters == 3 else likelihood.fix(c=0.6)


def test_the_estimate_of_a_normal_likelihood():
    estimate = quadratic().maximum()
    np.testing.assert_allclose(estimate.values, BEST, atol=1e-6)
    np.testing.assert_allclose(estimate.covariance, COVARIANCE, rtol=1e-5)
    np.testing.assert_allclose(estimate.errors, np.sqrt(np.diag(COVARIANCE)), rtol=1e-4)
    with pytest.raises(gl.InputError, match=r"say which: estimate\['a'\].value or"):
        _ = estimate.value
    scale = np.sqrt(np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE)))
    np.testing.assert_allclose(estimate.correlation, COVARIANCE / scale, atol=1e-5)
    assert "correlation (a, b)" in str(estimate)
    assert estimate._repr_html_().count("<tr>") == 4


def test_minuit_agrees():
    likelihood = quadratic()
    minuit = Minuit(likelihood, a=5.0, b=0.0, c=0.5)
    minuit.migrad()
    minuit.minos()
    estimate = likelihood.maximum()
    np.testing.assert_allclose(np.array(minuit.values), estimate.values, atol=0.01)
    np.testing.assert_allclose(np.array(minuit.covariance), estimate.covariance, rtol=1e-2)
    assert minuit.merrors["b"].upper == pytest.approx(
        estimate["b"].interval[1] - estimate["b"].value, rel=1e-2
    )


def test_fixing_gives_the_conditional_width():
    fixed = quadratic().fix(c=0.6)
    assert fixed.grid.parameters == ("a", "b")
    inverse = np.linalg.inv(np.linalg.inv(COVARIANCE)[:2, :2])
    np.testing.assert_allclose(fixed.maximum().covariance, inverse, rtol=1e-5)
    both = quadratic().fix(c=0.6, a=4.0)
    assert both.maximum().value == pytest.approx(0.1, abs=1e-6)
    with pytest.raises(gl.InputError, match="outside 0 to 1"):
        quadratic().fix(c=2.0)
    with pytest.raises(gl.InputError, match="no parameter 'd'"):
        quadratic().fix(d=2.0)
    with pytest.raises(gl.InputError, match="only parameter left"):
        both.fix(b=0.0)


def test_a_constraint_adds_its_information():
    constrained = quadratic().constrain("b", 0.3, 0.05).maximum()
    precision = np.linalg.inv(COVARIANCE)
    precision[1, 1] += 1 / 0.05**2
    covariance = np.linalg.inv(precision)
    np.testing.assert_allclose(constrained.covariance, covariance, rtol=1e-5)
    shift = covariance @ [0, (0.3 - 0.1) / 0.05**2, 0]
    np.testing.assert_allclose(constrained.values, BEST + shift, atol=1e-5)
    with pytest.raises(gl.InputError, match="positive"):
        quadratic().constrain("b", 0.3, 0)


def test_profile_and_scan():
    likelihood = quadratic()
    error = np.sqrt(COVARIANCE[0, 0])
    rise = likelihood.profile("a", [4.0, 4.0 + error, 4.0 - 2 * error])
    np.testing.assert_allclose(rise, [0, 0.5, 2], atol=1e-4)
    points = BEST + np.array([[0, 0, 0], [0, 0.1, 0]])
    expected = 0.5 * 0.1**2 * np.linalg.inv(COVARIANCE)[1, 1]
    np.testing.assert_allclose(likelihood.scan(points), [0, expected], atol=1e-6)


def test_a_profile_does_not_depend_on_what_was_asked_before():
    values = [4.0, 9.5, 0.5, 4.1]
    forward = quadratic().profile("a", values)
    np.testing.assert_array_equal(quadratic().profile("a", values[::-1])[::-1], forward)


@pytest.mark.parametrize("parameters", [2, 3])
def test_contours(parameters):
    likelihood = quadratic(parameters)
    curve = likelihood.contour("b", "a", 0.95, points=24)
    assert curve.shape == (25, 2)
    np.testing.assert_array_equal(curve[0], curve[-1])
    covariance = likelihood.maximum().covariance[:2, :2][::-1, ::-1]
    d = curve - BEST[[1, 0]]
    distance = np.einsum("ni,ij,nj->n", d, np.linalg.inv(covariance), d)
    np.testing.assert_allclose(distance, chi2.ppf(0.95, 2), rtol=1e-4)
    with pytest.raises(gl.InputError, match="twice"):
        likelihood.contour("a", "a")


@pytest.fixture(scope="module")
def model():
    return gl.fit(TOY.templates(4_000, seed=1, templates=5), seed=1)


def test_a_fit_of_two_parameters(model, tmp_path):
    x = TOY.sample((0.4, 0.6), 20_000, seed=2)
    ours, exact = model.likelihood(x).maximum(), TOY.likelihood(x).maximum()
    total = np.hypot([one.simulation for one in ours.results], 0.3 * exact.errors)
    assert (np.abs(ours.values - exact.values) < 3.5 * total).all()
    np.testing.assert_allclose([one.stat for one in ours.results], exact.errors, rtol=0.15)
    model.save(tmp_path / "two.safetensors")
    again = gl.load(tmp_path / "two.safetensors").likelihood(x).maximum()
    np.testing.assert_array_equal(again.values, ours.values)
    assert str(again) == str(ours)


def test_closure_of_two_parameters(model):
    points = [(0.3, 0.3), (0.7, 0.5), (0.5, 0.7)]
    table = gl.closure(model, {p: TOY.sample(p, 5_000, seed=i) for i, p in enumerate(points)})
    assert table["t2"].true.tolist() == [0.3, 0.5, 0.7]
    assert table["t1"].value.shape == table["t2"].pull.shape == (3,)
    with pytest.raises(gl.InputError, match=r"say which: closure\['t1'\].pull"):
        _ = table.pull
    assert table.dof == 6
    assert "true t1" in str(table)
    assert "true t2" in str(table)
    assert len(gl.draw_closure(table).axes) == 4
    with pytest.raises(gl.InputError, match="give t1, t2"):
        gl.closure(model, {0.3: points, 0.4: points})


def test_likelihoods_and_weights(model):
    x = TOY.sample((0.5, 0.5), 4_000, seed=3)
    plain = model.likelihood(x).maximum()
    weighted = model.likelihood(x, np.full(4_000, 3.0)).maximum()
    np.testing.assert_allclose(weighted.values, plain.values, atol=1e-6)
    np.testing.assert_allclose(weighted.errors, plain.errors, rtol=0.1)
    parts = model.likelihood(x[:1_000]) + model.likelihood(x[1_000:])
    np.testing.assert_allclose(parts.maximum().values, plain.values, atol=1e-6)


def test_contour_figure(model):
    from gridless.report.figures import draw_contours

    likelihood = model.likelihood(TOY.sample((0.5, 0.5), 4_000, seed=3))
    (axes,) = draw_contours(likelihood, "t1", "t2", true=(0.5, 0.5)).axes
    assert axes.get_xlabel() == "t1"


def test_other_bases_and_objectives():
    templates = TOY.templates(300, seed=1, templates=4)
    for options in ({"basis": "gaussian"}, {"objective": "posterior"}, {"objective": "penalty"}):
        model = gl.fit(templates, hidden=(4,), epochs=2, replicas=4, **options)
        estimate = model.likelihood(TOY.sample((0.5, 0.5), 500, seed=3)).maximum()
        assert np.isfinite(estimate.values).all()
    with pytest.raises(gl.InputError, match="one parameter"):
        gl.fit(templates, basis="logistic")
    with pytest.raises(gl.InputError, match="parameters=2"):
        gl.fit(templates, basis=gl.ExpPolynomial())


def test_three_parameters_on_a_star():
    """A centre and two points along each axis: enough for the sum of three shifts."""
    rng = np.random.default_rng(1)
    star = [(0.5, 0.5, 0.5)]
    star += [tuple(0.5 + d * (np.arange(3) == p)) for p in range(3) for d in (-0.4, 0.4)]
    theta = np.repeat(star, 4_000, axis=0)
    x = rng.normal(theta @ [[1, 0, 0.5], [0.5, 1, 0], [0, 0.5, 1]], 0.5)
    templates = gl.Templates(x, theta, [(0, 1)] * 3, parameters=["a", "b", "c"])
    assert templates.audit(objective="template")["gap"].met
    model = gl.fit(templates, basis=gl.ExpPolynomial(2, 0.1, 3), hidden=(), seed=1, replicas=4)
    truth = np.array([0.4, 0.6, 0.5])
    shift = truth @ [[1, 0, 0.5], [0.5, 1, 0], [0, 0.5, 1]]
    estimate = model.likelihood(rng.normal(shift, 0.5, (4_000, 3))).maximum()
    assert (np.abs(estimate.values - truth) < 4 * estimate.errors).all()
    # An orthogonal design would give 0.5 / sqrt(4,000); the shifts are correlated.
    assert all(one.stat < 0.02 for one in estimate.results)
