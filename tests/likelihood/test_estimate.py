"""How an estimate reads, and what its uncertainty is made of."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import parabola
from hypothesis import given, settings
from hypothesis import strategies as st

from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.sources import ReplicaNoise


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
    channel = replace(likelihood.channels[0], sources={"simulation": ReplicaNoise(replicas)})
    estimate = Likelihood([channel]).maximum()
    assert estimate.simulation == pytest.approx(0.1)
    assert "172.43 +- 0.32 (0.30 stat, 0.10 simulation)" in str(estimate)


def test_notebook_table():
    assert "<table>" in parabola(0.5, 0.1).maximum()._repr_html_()
    assert "cut by the bound" in parabola(0.01, 0.1).maximum()._repr_html_()


def test_an_estimate_at_a_bound_says_so_and_has_no_error_from_simulation():
    likelihood = parabola(1.2, 0.1)
    changes = np.array([[0.0, 3.0], [0.0, -3.0]])
    channel = replace(likelihood.channels[0], sources={"simulation": ReplicaNoise(changes)})
    estimate = Likelihood([channel]).maximum()
    assert estimate.simulation is None
    assert "nan" not in str(estimate)
    assert ", at the bound 1" in str(estimate)
    assert ", at the bound 1" in estimate._repr_html_()
    row = estimate.to_dict()["parameters"]["theta"]
    assert row["error_simulation"] is None
    assert row["at_bound"]
    assert json.loads(json.dumps(estimate.to_dict(), allow_nan=False)) == estimate.to_dict()


def test_an_end_cut_by_a_bound_is_marked():
    estimate = parabola(0.95, 0.1).maximum()
    assert str(estimate).startswith("theta = 0.95 +0.05 -0.10 (stat), high end cut by the bound 1")
    assert "high end cut by the bound 1" in estimate._repr_html_()
    assert estimate.to_dict()["parameters"]["theta"]["cut"] == [False, True]
    assert not estimate.valid


def test_keys_for_machines():
    row = parabola(0.5, 0.1).maximum().to_dict()
    assert set(row["parameters"]["theta"]) == {
        "value", "low", "high", "error", "error_simulation", "stat", "stat_low", "stat_high",
        "bounds", "at_bound", "cut",
    }  # fmt: skip
    assert row["budget"] == {"theta": {"stat": pytest.approx(0.1)}}


def test_arrays_cannot_be_changed():
    estimate = parabola(0.5, 0.1).maximum()
    for array in (estimate.values, estimate.errors, estimate.covariance, estimate.correlation):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@settings(max_examples=20, deadline=None)
@given(st.floats(0.3, 0.7), st.floats(0.02, 0.1), st.floats(0.02, 0.3), st.floats(1e-4, 0.05))
def test_the_budget_sums_to_the_error_and_a_constraint_is_a_source(best, width, error, shift):
    likelihood = parabola(best, width)
    slope = 0.5 * shift / width**2
    changes = np.array([[0.0, slope], [0.0, -slope]])
    channel = replace(likelihood.channels[0], sources={"simulation": ReplicaNoise(changes)})
    estimate = Likelihood([channel]).constrain("theta", 0.5, error).maximum()
    budget = estimate.budget["theta"]
    assert list(budget) == ["stat", "theta (constraint)", "simulation"]
    assert sum(e**2 for e in budget.values()) == pytest.approx(estimate.error**2)
    # The weighted mean of two: each moves it by its error times its weight.
    weight = width**-2 / (width**-2 + error**-2)
    assert budget["stat"] == pytest.approx(weight * width, rel=1e-3)
    assert budget["theta (constraint)"] == pytest.approx((1 - weight) * error, rel=1e-3)
    assert estimate["theta"].systematic == budget["theta (constraint)"]
    total = sum(estimate.covariances.values())
    assert total[0, 0] == pytest.approx(estimate.error**2, rel=1e-3)


def test_an_interval_has_every_uncertainty_unless_asked():
    likelihood = parabola(0.5, 0.03)
    slope = 0.5 * 0.04 / 0.03**2 / np.sqrt(2)
    changes = np.array([[0.0, slope], [0.0, -slope]])
    channel = replace(likelihood.channels[0], sources={"simulation": ReplicaNoise(changes)})
    both = Likelihood([channel])
    assert both.maximum().interval == pytest.approx((0.45, 0.55))
    assert both.interval() == pytest.approx((0.45, 0.55))
    assert both.interval(stat=True) == pytest.approx((0.47, 0.53))
    assert both.interval(0.9545)[1] == pytest.approx(0.6, abs=1e-4)
