"""Leaving one template out: fine where templates are close, and a wrong one is found."""

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.cli.main import main
from gridless.examples import OneObservable, OnlyWidth
from gridless.training.template_means import template_moments

EXAMPLE = OnlyWidth()


@pytest.fixture(scope="module")
def templates(width_templates):
    return width_templates


@pytest.fixture(scope="module")
def good(width_model):
    return width_model


def test_moments_come_back_from_a_calibration(good, templates):
    want = template_moments(good.network, templates, None)
    found = good.reweighting.moments
    want_means = good.calibration.whitened(want.mean)
    np.testing.assert_allclose(found.mean, want_means, atol=1e-6)
    transform = good.calibration.transform
    of_mean = transform.T @ want.mean_covariance @ transform
    np.testing.assert_allclose(found.mean_covariance, of_mean, atol=1e-2 * of_mean.max())
    np.testing.assert_allclose(found.effective, 4_000, rtol=0.2)


def test_held_nuisance_parameters_are_told(good, varied):
    assert "held at 0" not in str(gl.leave_one_out(good))
    found = gl.leave_one_out(varied)
    assert found.held == varied.nuisances
    assert f"{', '.join(varied.nuisances)} held at 0" in str(found)


def test_it_closes(good):
    found = gl.leave_one_out(good)
    assert found.truth.shape == (8, 1)
    assert found.chi2 / found.dof < 2.5


def test_a_template_that_is_not_what_it_says_is_found(templates):
    theta = templates.theta[:, 0].copy()
    number = templates.template
    low, high = templates.grid.values[3, 0], templates.grid.values[6, 0]
    theta[number == 3], theta[number == 6] = high, low
    wrong = gl.fit(gl.Templates(templates.x, theta, (0, 1)), hidden=6, seed=1)
    found = gl.leave_one_out(wrong)
    assert found.chi2 / found.dof > 5


def test_the_network_too_can_be_trained_anew():
    small = OneObservable().templates(1_000, seed=1, templates=5)
    model = gl.fit(small, hidden=2, epochs=2, seed=1)
    found = gl.leave_one_out(model, small)
    assert len(found.truth) == 3
    assert np.abs(found.pull).max() < 4


def test_too_few_templates_are_refused():
    few = gl.fit(OneObservable().templates(500, seed=1, templates=3), hidden=2, epochs=2, seed=1)
    with pytest.raises(gl.InputError, match="at least 4"):
        gl.leave_one_out(few)
    plain = gl.fit(
        OneObservable().templates(500, seed=1), hidden=2, epochs=2, calibrate=False, replicas=0
    )
    with pytest.raises(gl.InputError, match="calibrate=False"):
        gl.leave_one_out(plain)


def test_the_command(good, tmp_path):
    good.save(tmp_path / "m.safetensors")
    done = CliRunner().invoke(main, ["closure", str(tmp_path / "m.safetensors"), "--leave-one-out"])
    assert done.exit_code == 0
    assert "chi2/dof" in done.output
    done = CliRunner().invoke(main, ["closure", str(tmp_path / "m.safetensors")])
    assert (done.exit_code, "give samples" in done.output) == (2, True)
