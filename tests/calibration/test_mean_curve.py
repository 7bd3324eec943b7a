"""Curves through the means of templates: what they leave open between them."""

import numpy as np
import pytest
from numpy.polynomial import Chebyshev

from gridless.calibration.mean_curve import fit_mean_curve
from gridless.calibration.moments import Moments
from gridless.curves.polynomials import terms


def gaussian(resolution, templates, events=10_000):
    """Means of z, (z^2 - 1) / sqrt(2) and sqrt(2) sin z, z = (x - 1/2) / resolution, of events x
    that are normal around theta; and their moments at some templates."""

    def mean(theta):
        z = (theta - 0.5) / resolution
        return np.stack([z, z**2 / np.sqrt(2), np.sqrt(2) * np.exp(-0.5) * np.sin(z)], axis=1)

    t = (np.arange(templates) + 0.5) / templates
    unit = np.tile(np.eye(3), (templates, 1, 1))
    return mean, Moments(t[:, None], mean(t), unit, unit / events)


def left_open(curve, t):
    """The standard deviation (points, d) of what the templates leave open."""
    changes = np.tensordot(terms(t[:, None], curve.powers), curve.open, 1)
    return np.sqrt((changes**2).sum(axis=-1))


@pytest.mark.parametrize(("resolution", "templates"), [(0.2, 3), (0.15, 4), (0.12, 5)])
def test_curvature_that_no_template_shows_is_counted_on_where_an_event_resolves_it(
    resolution, templates
):
    mean, moments = gaussian(resolution, templates)
    curve = fit_mean_curve(moments, shared=False)
    t = np.linspace(moments.t.min(), moments.t.max(), 41)
    off = np.abs(curve(t[:, None]) - mean(t))
    assert off[:, 2].max() > 0.05  # the sine, which is odd around the middle
    assert (off < 2.5 * left_open(curve, t) + 0.03).all()


def test_little_is_left_open_where_one_event_resolves_nothing():
    mean, moments = gaussian(3.0, 3, events=100_000)
    curve = fit_mean_curve(moments, shared=False)
    t = np.linspace(0, 1, 21)
    noise = np.sqrt(1 / 100_000)
    assert np.abs(curve(t[:, None]) - mean(t)).max() < 3 * noise
    assert left_open(curve, t).max() < 3 * noise


def test_the_resolution_of_each_of_two_parameters_counts():
    # Only the second parameter is resolved: no curvature is expected along the first.
    values = np.array([[a, b] for a in (0.2, 0.5, 0.8) for b in (0.2, 0.5, 0.8)])
    z = (values[:, 1] - 0.5) / 0.2
    means = np.stack([0.1 * values[:, 0], z, 0.8 * np.sin(z) + 0.2 * z**2], axis=1)
    unit = np.tile(np.eye(3), (9, 1, 1))
    curve = fit_mean_curve(Moments(values, means, unit, unit / 10_000), shared=False)
    along = [
        np.sqrt((np.tensordot((curve.powers[:, k] == 2) * 1.0, curve.open, 1) ** 2).sum())
        for k in (0, 1)
    ]
    assert along[0] < 0.5 * along[1]


def test_curvature_that_noise_nearly_hides_is_not_taken_for_none():
    """Two components of which one bends visibly. What the other bends by is three times its noise:
    the uncertainty covers what is missed of it, over draws of the templates."""
    t = (np.arange(15) + 0.5) / 15
    between = np.linspace(0.1, 0.9, 17)
    shape = np.array([[-0.036, -0.69, -0.1, 0.017, 0.002], [0.019, -0.68, 0.053, 0.006, -0.001]])
    mean = Chebyshev(shape[0]), Chebyshev(shape[1])
    unit = np.broadcast_to(np.eye(2), (15, 2, 2))
    random, events, pulls = np.random.default_rng(3), 5_000, []
    for _ in range(40):
        noise = random.normal(0, events**-0.5, (15, 2))
        means = np.stack([m(2 * t - 1) for m in mean], axis=1) + noise
        curve = fit_mean_curve(Moments(t[:, None], means, unit, unit / events))
        along = curve.slopes(between[:, None])[:, 0]
        truth = np.stack([m(2 * between - 1) for m in mean], axis=1)
        off = ((curve(between[:, None]) - truth) * along).sum(axis=1)
        rows = terms(between[:, None], curve.powers)
        changes = np.tensordot(rows, curve.open, 1)
        left = (np.einsum("ni,nix->nx", along, changes) ** 2).sum(axis=1)
        moved = np.einsum("ni,nikj->nkj", along, np.tensordot(rows, curve.response, 1))
        statistics = (moved**2).sum(axis=(1, 2)) / events
        pulls.append(off / np.sqrt(left + statistics))
    assert np.sqrt(np.mean(np.square(pulls))) < 1.1


def test_means_far_apart_whose_noise_is_small_leave_a_curve():
    """The widest priors lost all other terms beside their squares: a singular matrix."""
    t = np.linspace(0, 1, 5)[:, None]
    mean = np.array([[-660.0, 1.0], [1500.0, 0.5], [11.0, 0.2], [-550.0, 0.1], [-270.0, 0.0]])
    covariance = np.tile(np.diag([1.0, 1.0]), (5, 1, 1))
    moments = Moments(t, mean, covariance, 1e-5 * covariance)
    curve = fit_mean_curve(moments, shared=False)
    np.testing.assert_allclose(curve(t), mean, rtol=0.01, atol=0.05)


def test_a_mean_that_is_known_exactly_does_not_lose_the_others():
    """Weights that cancel leave huge variances beside tiny ones: a singular matrix."""
    t = np.linspace(0, 1, 5)[:, None]
    mean = np.array([[4e-5], [4e-5], [-6.7e3], [-9.7e3], [4e-5]])
    variance = np.array([7e-18, 7e-18, 2e7, 1e7, 7e-18])[:, None, None]
    curve = fit_mean_curve(Moments(t, mean, np.ones((5, 1, 1)), variance), shared=False)
    assert np.isfinite(curve(t)).all()
    assert np.isfinite(curve.open).all()
