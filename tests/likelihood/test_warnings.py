"""The table of warnings is what the documentation shows and what the rules give."""

import re
from pathlib import Path

import numpy as np

from gridless.likelihood import warnings
from gridless.templates.grid import Grid

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table():
    rows = [f"| `{rule.name}` | {rule.when} | {rule.cure} |" for rule in warnings.WARNINGS]
    table = "\n".join(["| name | when | what to do |", "|---|---|---|", *rows])
    assert table in (ROOT / "docs" / "warnings.md").read_text()


def test_every_name_in_the_code_is_in_the_table():
    sources = (ROOT / "src" / "gridless").rglob("*.py")
    used = {
        n for p in sources for n in re.findall(r'(?:EstimateWarning|_told)\("(\w+)"', p.read_text())
    }
    assert used == {rule.name for rule in warnings.WARNINGS}


def names(found):
    return [warning.name for warning in found]


def test_bounds():
    rule = warnings.bound_warnings
    assert names(rule("m", 1.0, (0, 1), (False, True), 0.1)) == ["at_bound"]
    assert names(rule("m", 0.95, (0, 1), (False, True), 0.1)) == ["cut_by_bound"]
    assert names(rule("m", 0.15, (0, 1), (False, False), 0.1)) == ["near_bound"]
    assert rule("m", 0.5, (0, 1), (False, False), 0.1) == []


def test_extrapolation():
    grid = Grid(np.array([[0.3], [0.5], [0.7]]), np.array([[0.0, 1.0]]), ("m",))
    assert names(warnings.extrapolation_warnings(np.array([0.85]), grid)) == ["extrapolated"]
    assert warnings.extrapolation_warnings(np.array([0.79]), grid) == []


def test_agreement():
    assert names(warnings.outside_warnings(20, 2_000, 1e-3, 0.0)) == ["outside_simulation"]
    assert warnings.outside_warnings(3, 2_000, 1e-3, 0.0) == []
    assert warnings.outside_warnings(0, 10, 1e-3, 0.0) == []
    # What is expected at the estimate decides, and how well it is known.
    assert names(warnings.outside_warnings(12, 2_000, 1e-3, 1e-8)) == ["outside_simulation"]
    assert warnings.outside_warnings(12, 2_000, 4e-3, 1e-8) == []
    assert warnings.outside_warnings(12, 2_000, 1e-3, 4e-6) == []
    assert names(warnings.scatter_warnings(1e-4)) == ["score_check"]
    assert warnings.scatter_warnings(0.01) == ()
    assert names(warnings.fit_warnings(1e-4)) == ["bad_fit"]
    assert warnings.fit_warnings(0.01) == []


def test_priors_and_models():
    assert names(warnings.prior_warnings(["m"], np.array([0.5]))) == ["implied_prior"]
    assert warnings.prior_warnings(["m"], np.array([0.1])) == []
    rule = warnings.model_warnings
    assert names(rule(1.0, 0.0, 0.0, True)) == ["no_information"]
    assert names(rule(np.inf, -0.2, 0.0, True)) == ["collapsed"]
    assert names(rule(np.inf, 0.0, 0.6, True)) == ["implied_prior"]
    assert rule(np.inf, 0.0, 0.6, False) == ()
