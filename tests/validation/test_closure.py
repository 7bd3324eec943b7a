"""Closure: what it computes, and that any form of samples will do."""

import numpy as np
import pytest
from helpers import parabola

import gridless as gl
from gridless.examples import OneObservable
from gridless.validation.closure import Closure


def make(values, true, width=0.01):
    return Closure(np.array(true)[:, None], tuple(parabola(v, width).maximum() for v in values))


def test_pull_slope_and_chi2_by_hand():
    table = make([0.21, 0.50, 0.78], [0.2, 0.5, 0.8])
    np.testing.assert_allclose(table.pull, [1, 0, -2], atol=1e-6)
    assert table.chi2 == pytest.approx(5, abs=1e-5)
    assert table.dof == 3
    slope, intercept = table.line
    assert slope == pytest.approx(0.95)
    assert intercept == pytest.approx(0.5 - 0.95 * 0.5 - 0.01 / 3, abs=1e-4)
    assert "chi2/dof = 5.0/3" in str(table)
    assert "<pre>" in table._repr_html_()


def test_every_form_of_samples(model):
    toy = OneObservable()
    samples = {t: toy.sample(t, 500, seed=i) for i, t in enumerate((0.3, 0.6))}
    tables = [
        gl.closure(model, samples),
        gl.closure(model, list(samples.items())),
        gl.closure(
            model,
            gl.Templates(
                np.concatenate(list(samples.values())), np.repeat([0.3, 0.6], 500), (0, 1)
            ),
        ),
    ]
    for table in tables:
        np.testing.assert_allclose(table.value, tables[0].value)
        assert table.true.tolist() == [0.3, 0.6]


def test_one_sample_is_too_few(model):
    with pytest.raises(gl.InputError, match="at least two"):
        gl.closure(model, {0.5: [0.1, 0.2]})


def test_estimates_at_a_bound_are_marked():
    table = make([0.98, 0.5], [1.0, 0.5], width=0.1)
    assert "at a bound" in str(table)
    # The upper side is cut to 0.02 by the bound; the lower one has the full 0.1.
    assert table.pull[0] == pytest.approx(-0.2, abs=1e-6)
