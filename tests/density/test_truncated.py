"""Truncated components against mpmath, far outside the range and for any width."""

import itertools

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gridless.density.truncated import log_gaussian, log_gaussian_integral, log_logistic

WIDTHS = [1e-3, 0.02, 0.3, 1.0, 1.99, 2.01, 30.0, 1e6]
# How many widths outside the range the mean lies; None is inside.
OUTSIDE = [-50, -4.01, -3.99, -0.5, None, 2.0, 50]
POINTS = [0.0, 0.003, 0.21, 0.77, 1.0]


def exact_gaussian(t, mean, width):
    if mean > mp.mpf("0.5"):
        t, mean = 1 - t, 1 - mean
    root = width * mp.sqrt(2)
    mass = (mp.erfc(-mean / root) - mp.erfc((1 - mean) / root)) / 2
    return -(((t - mean) / width) ** 2) / 2 - mp.log(width * mp.sqrt(2 * mp.pi)) - mp.log(mass)


def exact_logistic(t, mean, width):
    def cdf(y):
        return 1 / (1 + mp.exp(-y))

    z = (t - mean) / width
    mass = cdf((1 - mean) / width) - cdf(-mean / width)
    return mp.log(cdf(z) * cdf(-z) / width) - mp.log(mass)


def cases():
    for width, outside, t in itertools.product(WIDTHS, OUTSIDE, POINTS):
        if outside is None:
            yield t, 0.3, width
        else:
            yield t, (outside * width if outside < 0 else 1 + outside * width), width


@pytest.mark.parametrize(
    ("ours", "exact"), [(log_gaussian, exact_gaussian), (log_logistic, exact_logistic)]
)
def test_value_and_gradient_agree_with_mpmath(ours, exact):
    table = np.array(list(cases()))
    t, mean, width = (torch.tensor(column, requires_grad=True) for column in table.T)
    value = ours(t, mean, width)
    by_mean, by_width = torch.autograd.grad(value.sum(), (mean, width))
    with mp.workdps(120):
        for i, row in enumerate(table):
            args = [mp.mpf(float(number)) for number in row]
            step = args[2] * mp.mpf(10) ** -20
            true = exact(*args)
            up, down = (exact(args[0], args[1] + s, args[2]) for s in (step, -step))
            true_by_mean = (up - down) / (2 * step)
            up, down = (exact(args[0], args[1], args[2] + s) for s in (step, -step))
            true_by_width = (up - down) / (2 * step)
            # The density to 1e-6 relative; a derivative to 1e-6 of itself, or of the rounding of
            # 1/width where it passes through zero.
            assert abs(value[i].item() - true) < 1e-6, row
            for found, expected in ((by_mean, true_by_mean), (by_width, true_by_width)):
                tolerance = 1e-6 * abs(expected) + 1e-15 / args[2]
                assert abs(found[i].item() - expected) < tolerance, row


@pytest.mark.parametrize("log_density", [log_gaussian, log_logistic])
def test_float32_stays_finite_and_close(log_density):
    table = torch.tensor(list(cases()))
    double = log_density(*table.T)
    t, mean, width = (column.float().requires_grad_() for column in table.T)
    single = log_density(t, mean, width)
    gradients = torch.autograd.grad(single.sum(), (mean, width))
    assert torch.isfinite(single).all()
    assert all(torch.isfinite(g).all() for g in gradients)
    # float32 resolves (t - mean) / width no better than 6e-8 |mean| / width^2 allows.
    scale = 1 + (table[:, 1].abs() + 1) / table[:, 2] ** 2
    assert ((single - double).abs() < 2e-6 * scale + 1e-5 * (1 + double.abs())).all()


def test_second_moment_gradient_by_finite_difference():
    t, mean = torch.tensor(0.4, dtype=torch.float64), torch.tensor(-0.2, dtype=torch.float64)
    width = torch.tensor(0.35, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(log_gaussian(t, mean, width), width)
    step = 1e-6
    with torch.no_grad():
        rise = log_gaussian(t, mean, width + step) - log_gaussian(t, mean, width - step)
    assert slope.item() == pytest.approx(rise.item() / (2 * step), rel=1e-7)


@settings(max_examples=200, deadline=None)
@given(st.floats(-3, 6), st.floats(-3, 3), st.booleans(), st.floats(0, 1))
def test_integral_without_gradient_agrees_with_mpmath(log_width, log_distance, outside, inside):
    width = 10**log_width
    # Inside, or from well next to the range to far from it in units of widths or ranges.
    mean = -(10**log_distance) * min(width, 1) if outside else inside
    with mp.workdps(400):
        m, w = mp.mpf(mean), mp.mpf(width)
        # The highest point in the range is 1.
        true = -exact_gaussian(max(m, 0), m, w)
    args = torch.tensor([mean, width], dtype=torch.float64).unbind()
    found = log_gaussian_integral(*args)
    assert abs(found.item() - true) < 1e-9
    with_gradient = log_gaussian_integral(*(v.clone().requires_grad_() for v in args))
    assert abs(found.item() - with_gradient.item()) < 1e-9
    single = log_gaussian_integral(*(v.float() for v in args)).item()
    assert abs(single - true) < 2e-6 * (1 + (abs(mean) + 1) / width**2) + 1e-5 * (1 + abs(true))
