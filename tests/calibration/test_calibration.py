"""Likelihoods from moments of summaries whose true likelihood is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc
from scipy.stats import kstest

from gridless.calibration import left_out
from gridless.calibration.calibration import calibrate, from_arrays
from gridless.calibration.check import (
    ScoreCheck,
    scatter_p_value,
    score_check,
    template_p_values,
)
from gridless.calibration.moments import Moments
from gridless.calibration.source import Interpolation, TemplateNoise
from gridless.curves import minimum
from gridless.curves.curve import Curve
from gridless.curves.polynomials import powers_up_to, terms
from gridless.errors import InputError
from gridless.examples import MassAndShare

T = (np.arange(10) + 0.5)[:, None] / 10


def moments_of(summary, draw, events=5_000, seed=1, t=T):
    """Moments of a summary of simulated events at each of the templates."""
    random = np.random.default_rng(seed)
    rows = [summary(draw(theta, events, random)) for theta in t]
    mean = np.array([r.mean(axis=0) for r in rows])
    covariance = np.array([np.cov(r.T).reshape(r.shape[1], -1) for r in rows])
    return Moments(t, mean, covariance, covariance / events)


def gaussian(theta, events, random):
    return random.normal(theta[0], 1, events)


def exact_moments(parameters=1, d=1):
    """x ~ N(theta, 1) in each of d components, without any noise of simulation."""
    t = T if parameters == 1 else np.stack(np.meshgrid(T[::2, 0], T[::2, 0]), -1).reshape(-1, 2)
    unit = np.broadcast_to(np.eye(d), (len(t), d, d))
    mean = np.broadcast_to(t, (len(t), d)) if parameters == 1 else t[:, :d]
    return Moments(t, mean.copy(), unit.copy(), 1e-8 * unit)


def estimate(calibration, c, events):
    """The best t, and the curve, of `events` events whose mean summary is c."""
    y = calibration.whitened(np.atleast_2d(c))[0]
    axes = tuple(range(calibration.parameters))
    curve = Curve(len(axes), ((axes, calibration.total(events * y, events)),))
    return minimum.lowest(curve), curve


def test_the_likelihood_of_an_exponential_family_is_exact():
    calibration = calibrate(exact_moments())
    best, curve = estimate(calibration, [0.37], 1000)
    assert best[0] == pytest.approx(0.37, abs=1e-6)
    for t in (0.1, 0.5, 0.9):
        exact = 500 * (0.37 - t) ** 2
        assert curve.value(np.array([t])) - curve.value(best) == pytest.approx(exact, rel=1e-4)


def test_a_rate_has_the_likelihood_of_poisson_events():
    """mean and variance 2 + 3 t: quasi-likelihood gives n log(rate) - rate, and not a parabola."""
    rate = 2 + 3 * T
    calibration = calibrate(Moments(T, rate, rate[..., None], 1e-9 * rate[..., None]))
    best, curve = estimate(calibration, [3.1], 50)
    t = np.linspace(0.05, 0.95, 7)
    exact = np.array([2 + 3 * v - 3.1 * np.log(2 + 3 * v) for v in (*t, best[0])]) * 50
    ours = np.array([curve.value(np.array([v])) for v in (*t, best[0])])
    # The covariance between templates is smoothed, so that the shape is right to some percent.
    np.testing.assert_allclose(ours[:-1] - ours[-1], exact[:-1] - exact[-1], rtol=0.05, atol=0.02)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_linear_transformation_of_the_summary_matters(seed):
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(2, 2)) + 2 * np.eye(2)
    if abs(np.linalg.det(matrix)) < 0.1:
        return
    shift = random.normal(size=2)
    plain = moments_of(lambda x: np.stack([x, x**2], axis=1), gaussian, seed=7)
    other = Moments(
        T,
        plain.mean @ matrix + shift,
        matrix.T @ plain.covariance @ matrix,
        matrix.T @ plain.mean_covariance @ matrix,
    )
    c = np.array([0.4, 1.2])
    first, _ = estimate(calibrate(plain), c, 1000)
    second, _ = estimate(calibrate(other), c @ matrix + shift, 1000)
    assert second[0] == pytest.approx(first[0], abs=2e-3)


@pytest.mark.parametrize(
    "summary",
    [
        lambda x: np.stack([np.tanh(x), np.cos(3 * x)], axis=1),
        lambda x: np.stack([x**3, np.sign(x)], axis=1),
        lambda x: np.floor(2 * x)[:, None],
    ],
)
def test_whatever_the_summary_the_estimate_is_unbiased_and_covers(summary):
    calibration = calibrate(moments_of(summary, gaussian, 40_000))
    random = np.random.default_rng(3)
    pulls = []
    for truth in (0.2, 0.5, 0.8):
        for _ in range(40):
            c = summary(random.normal(truth, 1, 1000)).mean(axis=0)
            best, curve = estimate(calibration, c, 1000)
            bend = curve.hessian(best)[0, 0]
            noise = TemplateNoise(calibration, 1000.0).slopes(best)
            pulls.append((best[0] - truth) / np.sqrt(1 / bend + (noise**2).sum() / bend**2))
    assert abs(np.mean(pulls)) < 0.35
    assert 0.8 < np.std(pulls) < 1.2


def test_the_score_of_two_parameters_has_mean_zero_everywhere():
    calibration = calibrate(exact_moments(parameters=2, d=2))
    t = np.random.default_rng(1).random((50, 2))
    da, mu = calibration.score_slopes(t), calibration.mean(t)
    from gridless.curves.polynomials import slopes

    db = slopes(t, calibration.b_powers) @ calibration.b
    assert np.abs(db - np.einsum("npi,ni->np", da, mu)).max() < 1e-4 * np.abs(da).max()


def test_arrays_make_the_same_calibration_again():
    calibration = calibrate(moments_of(lambda x: np.stack([x, x**2], axis=1), gaussian))
    again = from_arrays(calibration.arrays())
    again.check(10, 1)
    np.testing.assert_array_equal(again.total(np.ones(2), 3.0), calibration.total(np.ones(2), 3.0))
    with pytest.raises(ValueError, match=r"calibration\.t is"):
        again.check(11, 1)


def test_numbers_in_a_file_whose_products_overflow_are_refused():
    arrays = calibrate(exact_moments()).arrays()
    with pytest.raises(ValueError, match=r"calibration.a has a number over"):
        from_arrays(arrays | {"a": arrays["a"] * 1e200}).check(len(T), 1)


def test_templates_outside_of_the_bounds_in_a_file_are_refused():
    arrays = calibrate(exact_moments()).arrays()
    with pytest.raises(ValueError, match=r"calibration.t has templates outside of the bounds"):
        from_arrays(arrays | {"t": arrays["t"] - 1e30}).check(len(T), 1)


def test_a_summary_that_is_the_same_for_all_events_is_refused():
    nothing = np.zeros((5, 2, 2))
    with pytest.raises(InputError, match="the same for all events"):
        calibrate(Moments(np.linspace(0, 1, 5)[:, None], np.zeros((5, 2)), nothing, nothing))


def test_the_noise_of_the_templates_is_that_of_resimulations():
    def draw_estimate(seed):
        moments = moments_of(lambda x: x[:, None], gaussian, 2_000, seed)
        calibration = calibrate(moments)
        best, curve = estimate(calibration, [0.4], 10_000)
        bend = curve.hessian(best)[0, 0]
        sources = TemplateNoise(calibration, 1e4), Interpolation(calibration, 1e4)
        variance = sum((s.slopes(best) ** 2).sum() for s in sources) / bend**2
        return best[0], np.sqrt(variance)

    found = np.array([draw_estimate(seed) for seed in range(40)])
    assert 0.7 < found[:, 1].mean() / found[:, 0].std() < 1.6


def test_noise_adds_over_parts_and_over_templates():
    calibration = calibrate(moments_of(lambda x: x[:, None], gaussian))
    t = np.array([0.3])
    half, whole = TemplateNoise(calibration, 500.0), TemplateNoise(calibration, 1000.0)
    np.testing.assert_allclose((half + half).slopes(t), whole.slopes(t))
    shifts = whole.slopes(t)
    np.testing.assert_allclose(whole.by_template(shifts).sum(), (shifts**2).sum())


def test_the_score_check_is_uniform_for_good_templates():
    """Of all templates together; of each as the others predict it, small values are rare: several
    tests share the chance of a false alarm."""
    made = [
        score_check(calibrate(moments_of(lambda x: np.tanh(x)[:, None], gaussian, 500, seed)))
        for seed in range(50)
    ]
    assert kstest([check.p_value for check in made], "uniform").pvalue > 1e-3
    each = np.concatenate([check.p_values for check in made])
    assert 0.02 < (each < 0.2).mean() < 0.2
    assert each.min() > 1e-4


def test_means_that_change_fast_between_templates_do_not_look_wrong():
    """A peak as narrow as the gap between templates: its mean is no smooth curve of theta."""

    def peak(theta, events, random):
        return random.random(events) < 0.1 + 0.8 * np.exp(-0.5 * ((theta[0] - 0.43) / 0.12) ** 2)

    made = [
        score_check(calibrate(moments_of(lambda x: x[:, None] * 1.0, peak, 5_000, seed)))
        for seed in range(10)
    ]
    assert not any(check.suspects for check in made)


def test_the_work_of_the_template_check_grows_with_the_square_of_the_templates(monkeypatch):
    def p_values_of(count):
        """How many p-values are taken in the check of so many templates."""
        t = (np.arange(count) + 0.5)[:, None] / count
        calibration = calibrate(moments_of(lambda x: x[:, None] * 1.0, gaussian, 100, t=t))
        taken = []

        def counted(dof, chi2):
            taken.append(chi2.size)
            return chdtrc(dof, chi2)

        monkeypatch.setattr(left_out, "chdtrc", counted)
        assert (template_p_values(calibration) > 1e-5).all()
        return sum(taken)

    assert p_values_of(30) < 1.2 * (30 / 15) ** 2 * p_values_of(15)


@pytest.mark.parametrize("pair", [(3, 4), (2, 6), (0, 9)])
def test_swapped_templates_are_named(pair):
    moments = moments_of(lambda x: np.stack([x, x**2], axis=1), gaussian, 20_000)
    order = np.arange(10)
    order[list(pair)] = order[list(pair)[::-1]]
    swapped = Moments(
        T, moments.mean[order], moments.covariance[order], moments.mean_covariance[order]
    )
    check = score_check(calibrate(swapped))
    assert set(check.suspects) == set(pair)
    for k in pair:
        assert f"template {k} is not like the others" in str(check)
        assert f"mZ = {k} is not like the others" in check.text([f"mZ = {j}" for j in range(10)])
    assert score_check(calibrate(moments)).suspects == ()


PLANE = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, 4)], indexing="ij"), -1).reshape(-1, 2)


def of_plane(events=2_000, seed=1):
    """A peak that moves with the first parameter, over a background whose share is the second; the
    summary has the coefficients of its log density in theta, as a network would learn them."""
    example, points = MassAndShare(), np.stack(np.meshgrid(*2 * [np.linspace(0, 1, 6)]), -1)
    points = points.reshape(-1, 2)
    project = np.linalg.pinv(terms(points, powers_up_to(3, 2)))[1:].T

    def summary(x):
        return np.stack([example.log_density(x, t) for t in points], axis=1) @ project

    def draw(theta, count, random):
        return example.draw(np.tile(theta, (count, 1)), random)

    return moments_of(summary, draw, events, seed, PLANE)


@pytest.mark.parametrize("pair", [(5, 1), (12, 11)])
def test_swapped_templates_of_two_parameters_are_named(pair):
    """One direction of the summary at a time tells too little of how smooth the surface is."""
    moments = of_plane()
    order = np.arange(16)
    order[list(pair)] = order[list(pair)[::-1]]
    swapped = Moments(
        PLANE, moments.mean[order], moments.covariance[order], moments.mean_covariance[order]
    )
    suspects = set(score_check(calibrate(swapped)).suspects)
    assert suspects
    assert suspects <= set(pair)


def test_a_template_of_two_parameters_from_the_wrong_file_is_named():
    moments = of_plane()
    order = np.arange(16)
    order[12] = 2
    other = of_plane(seed=2)
    wrong = Moments(
        PLANE,
        np.where(np.arange(16)[:, None] == 12, other.mean[order], moments.mean),
        moments.covariance[order],
        moments.mean_covariance[order],
    )
    assert score_check(calibrate(wrong)).suspects[0] == 12


def test_good_templates_of_two_parameters_are_not_named():
    found = [score_check(calibrate(of_plane(seed=seed))).suspects for seed in range(10, 18)]
    assert found == [()] * 8


def test_an_edge_template_with_events_of_the_other_edge_is_named():
    """The curve through all templates bends to it: only the others can tell."""

    def mixed(theta, events, random):
        other = random.random(events) < (0.4 if theta[0] == T[0, 0] else 0.0)
        return gaussian(np.where(other, T[-1, 0], theta[0])[None], events, random)

    check = score_check(calibrate(moments_of(lambda x: np.stack([x, x**2], axis=1), mixed)))
    assert not check.failed
    assert check.suspects == (0,)


def test_templates_with_offsets_of_their_own_are_told():
    offset = dict(zip(T[:, 0], np.random.default_rng(1).normal(0, 0.1, 10), strict=True))
    shifted = moments_of(
        lambda x: x[:, None], lambda theta, *rest: offset[theta[0]] + gaussian(theta, *rest)
    )
    check = score_check(calibrate(shifted))
    assert check.failed or check.suspects


def exact_score(moments, added=0.0):
    """The check of the exact score x - theta: what it moves theta by at each template, and its
    error."""
    shift, error = moments.mean[:, :1] - moments.t, np.sqrt(moments.mean_covariance[:, 0, :1])
    return ScoreCheck(shift + added, error, error, 0.0, 0.0, np.ones(len(shift)), 0.0)


def scatter(moments, added=0.0):
    calibration = calibrate(moments)
    return scatter_p_value(calibration, score_check(calibration), exact_score(moments, added))


def test_small_offsets_that_a_bending_curve_follows_are_told():
    """Smooth enough for the mean curve, but not for what one event resolves of theta."""
    wave = {t: 0.05 * np.cos(22 * t) for t in T[:, 0]}
    moved = moments_of(
        lambda x: x[:, None], lambda theta, *rest: wave[theta[0]] + gaussian(theta, *rest), 20_000
    )
    assert not score_check(calibrate(moved)).suspects
    assert scatter(moved) < 1e-6


def test_a_mistake_that_is_smooth_in_theta_looks_like_another_simulation():
    wave = {t: 0.05 * np.cos(14 * t) for t in T[:, 0]}
    moved = moments_of(
        lambda x: x[:, None], lambda theta, *rest: wave[theta[0]] + gaussian(theta, *rest), 20_000
    )
    assert scatter(moved) == 1.0


def test_good_templates_do_not_scatter():
    found = []
    for seed in range(40):
        moments = moments_of(lambda x: np.stack([x, x**2], axis=1), gaussian, 2_000, seed)
        found.append(scatter(moments))
    assert min(found) > 1e-3


def test_a_network_that_cannot_learn_the_density_does_not_make_templates_scatter():
    """Its own score is off by no polynomial, but the means lie on a straight line."""
    moments = moments_of(lambda x: x[:, None], gaussian, 20_000)
    assert scatter(moments, 0.1 * np.cos(20 * T)) == 1.0


def test_two_templates_cannot_predict_a_third():
    check = score_check(calibrate(moments_of(lambda x: x[:, None], gaussian, t=T[::4])))
    assert check.p_values.tolist() == [1.0] * 3


def test_covariances_that_no_simulation_has_are_told():
    made = calibrate(moments_of(lambda x: x[:, None], gaussian)).arrays()
    made["residual"] = np.full_like(made["residual"], np.inf)
    with np.errstate(all="ignore"):
        check = score_check(from_arrays(made))
    assert check.suspects
