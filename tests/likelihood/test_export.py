"""Curves for machines say what the likelihood says."""

import pytest

from gridless.examples import TwoParameters
from gridless.likelihood.export import curve


def test_curve_of_two_parameters():
    x = TwoParameters().sample((0.5, 0.5), 500, seed=1)
    content = curve(TwoParameters().likelihood(x))
    assert content["parameters"] == ["t1", "t2"]
    assert min(content["profiles"]["t2"]["delta_log_likelihood"]) == pytest.approx(0, abs=0.05)
