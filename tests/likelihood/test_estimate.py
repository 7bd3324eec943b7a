"""How an estimate reads."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import parabola

from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.sources import Replicas


def test_prints_value_with_both_errors():
    text = str(parabola(172.4312, 0.3, bounds=(165, 180), events=12345).maximum())
    assert text == "theta = 172.43 +- 0.30 (stat)\n  12,345 events"


def test_digits_follow_the_error():
    assert "0.5000 +- 0.0010" in str(parabola(0.5, 0.001).maximum())


def test_warnings_say_what_is_wrong():
    estimate = parabola(1.2, 0.1).maximum()
    assert [w.name for w in estimate.warnings] == ["at_bound"]
    assert "theta is at the bound 1" in estimate.warnings[0].text
    assert "warning: at_bound: " in str(estimate)
    cut = parabola(0.95, 0.1).maximum().warnings
    assert [w.name for w in cut] == ["cut_by_bound"]
    assert "high end of the interval of theta is cut by the bound 1" in cut[0].text
    assert [w.name for w in parabola(0.15, 0.1).maximum().warnings] == ["near_bound"]
    assert parabola(0.5, 0.1).maximum().warnings == ()


def test_both_uncertainties_are_shown():
    likelihood = parabola(172.4312, 0.3, bounds=(165, 180), events=12345)
    # Two replicas that pull the minimum to either side by 0.1.
    slope = 0.1 * (15 / 0.3) ** 2 / 15 / 2
    replicas = np.array([[0.0, slope], [0.0, -slope]]) / np.sqrt(2)
    channel = replace(likelihood.channels[0], sources={"simulation": Replicas(replicas)})
    estimate = Likelihood([channel]).maximum()
    assert estimate.simulation == pytest.approx(0.1)
    assert "172.43 +- 0.32 (0.30 stat, 0.10 simulation)" in str(estimate)


def test_notebook_table():
    assert "<table>" in parabola(0.5, 0.1).maximum()._repr_html_()
    assert "cut by the bound" in parabola(0.01, 0.1).maximum()._repr_html_()
