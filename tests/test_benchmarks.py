"""The parts of `make bench`, at tiny size and without sbi."""

import json
import sys

import numpy as np
import pytest
from benchmarks import floors, growth, passes
from benchmarks.crossings import Crossings
from benchmarks.machine import machine, peak_memory
from benchmarks.peers import binned, classifier, exact, ours
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.judge import judge, minima
from benchmarks.peers.problems import PROBLEMS, VALUES, Problem
from benchmarks.peers.program import Plan, train_and_judge
from benchmarks.peers.runner import draws, points
from benchmarks.peers.table import page_parts, write_page
from benchmarks.workers import measure_workers

import gridless as gl
from gridless.examples import OneObservable

EXAMPLE = OneObservable()
SMALL = Problem("one", "tiny", EXAMPLE, 2_000, 2_000)


def parabolas(best, width, size=33):
    return 0.5 * ((points(size) - np.array(best)[:, None]) / width) ** 2 + 7.0


def test_minima_of_parabolas():
    found = minima(parabolas([0.2, 0.5, 0.99], 0.02))
    np.testing.assert_allclose(found.value, [0.2, 0.5, 0.99], atol=1e-9)
    np.testing.assert_allclose(found.low, [0.18, 0.48, 0.97], atol=1e-5)
    np.testing.assert_allclose(found.high, [0.22, 0.52, 1.0], atol=1e-5)


def test_judge_counts_bias_in_errors_of_10_000_events():
    truth = np.array([0.3, 0.5, 0.7])
    # 40,000 events of error 0.01: 0.02 for 10,000 of them.
    ideal = parabolas(truth, 0.01)
    found = parabolas(truth + 0.01, 0.009)
    random = np.random.default_rng(1)
    toys = np.stack([parabolas(random.normal(t, 0.02, 500), 0.02) for t in truth])
    verdict = judge(truth, 40_000, found, toys, ideal)
    np.testing.assert_allclose(verdict["bias"], 0.5, atol=1e-3)
    np.testing.assert_allclose(verdict["ratio"], 0.9, atol=1e-3)
    assert verdict["slope"] == pytest.approx(1)
    assert np.mean(verdict["covered"]) == pytest.approx(0.683, abs=0.04)


def test_draws_are_pseudo_experiments():
    drawn = draws(1000, 7, 300, seed=1)
    assert drawn.shape == (7, 1000)
    assert (drawn.sum(axis=1) == 300).all()
    np.testing.assert_array_equal(drawn, draws(1000, 7, 300, seed=1))


@pytest.mark.parametrize(
    ("peer", "options"),
    [
        (exact, {"problem": "one"}),
        (binned, {}),
        (classifier, {"epochs": 4}),
        (ours, {"hidden": 4, "epochs": 2, "replicas": 0}),
    ],
    ids=["exact", "binned", "classifier", "ours"],
)
def test_peers_share_an_interface(peer, options):
    templates = EXAMPLE.templates(2_000, seed=1)
    theta = templates.grid.values[templates.template, 0]
    trained = peer.train(templates.x, theta, 1, **options)
    x, values = EXAMPLE.quantiles(0.4, 2_000), points(33)
    curve = peer.curve(trained, x, values)
    summed = -peer.log_density(trained, x, values).sum(axis=0)
    np.testing.assert_allclose(curve - curve[0], summed - summed[0], atol=0.05)
    found = minima(curve[None])
    assert found.value[0] == pytest.approx(0.4, abs=0.15)
    if hasattr(peer, "estimate"):
        assert peer.estimate(trained, x) == pytest.approx(found.value[0], abs=1e-3)


def test_binned_templates_stay_normalised():
    templates = PROBLEMS["two"].example.templates(1_000, seed=2)
    theta = templates.grid.values[templates.template, 0]
    trained = binned.train(templates.x, theta, 0)
    powers = np.polynomial.chebyshev.chebvander(2 * points(9) - 1, len(trained.coefficients) - 1)
    np.testing.assert_allclose((powers @ trained.coefficients).sum(axis=1), 1)


def test_runner_measures_in_its_own_process(tmp_path):
    SMALL.write_observed(tmp_path)
    peer = next(peer for peer in PEERS["one"] if peer.name == "binned")
    record = train_and_judge(SMALL, peer, 1, tmp_path, limit=1)
    assert record["train_cpu"] >= 0
    assert 0 < record["memory_mb"] < 1000
    assert len(record["bias"]) == len(VALUES)
    json.dumps(record)
    assert "torch" in sys.modules  # which the binned peer's own process does without
    assert record["memory_mb"] < peak_memory()


def test_table(tmp_path):
    nine = [0.1] * 9
    record = {
        "bias": nine, "ratio": [1.01] * 9, "slope": 0.99, "covered": [0.68] * 9, "train_cpu": 2.0,
        "million_cpu": 0.5, "memory_mb": 300.0, "notes": {}, "session": "today", "load": 1.04,
    }  # fmt: skip
    runs = [
        record | {"problem": problem, "peer": peer.name, "seed": seed}
        for problem, peers in PEERS.items()
        for peer in peers
        for seed in (1, 2)
    ]
    for run in runs:
        if run["peer"] == "nle":
            run |= {"train_cpu": 80.0, "notes": {"stopped": run["problem"] == "two"}}
    both = {name: {"million_cpu": 0.04, "memory_mb": 200.0} for name in floors.FLOORS}
    parts = page_parts({"runs": runs, "floors": both, "sessions": {"today": machine()}})
    assert "Load of the machine, these runs included: 1.0." in parts["machine"]
    assert "0.990 (0.990) | 0.10 | 0.10 | 1.010 | 68.0 % | 2.0 (2.0) | 0.5 | 300" in parts["one"]
    assert "stopped after 80" in parts["two"]
    assert "at least 40 times less than sbi's NLE" in parts["checks"]
    page = tmp_path / "page.md"
    markers = [f"<!-- {n}: made by the program -->\nold\n<!-- {n}: end -->" for n in parts]
    page.write_text("\n\n".join(["# Title", *markers]))
    write_page(page, parts)
    assert "old" not in page.read_text()
    assert all(part in page.read_text() for part in parts.values())
    with pytest.raises(ValueError, match="no marker"):
        write_page(page, {"nothing": ""})


def test_plan():
    peers = {peer.name: peer for peer in PEERS["two"]}
    assert Plan(seeds=3, first=7).seeds_of(peers["gridless"]) == range(7, 10)
    assert Plan(seeds=3, first=7).seeds_of(peers["nle"]) == range(7, 8)
    assert Plan().wants(peers["nle"], there=True)
    assert not Plan(keep=True).wants(peers["nle"], there=True)
    assert Plan(keep=True).wants(peers["nle"], there=False)
    assert not Plan(only=("gridless",)).wants(peers["nle"], there=False)
    assert Plan(only=("gridless",)).wants(peers["gridless"], there=True)


def test_floors():
    found = floors.measure("exp", 10_000)
    assert found["million_cpu"] > 0
    assert floors.measure("reading", 10_000)["million_cpu"] > 0


def test_growth_axes_start_small():
    for axis in growth.AXES.values():
        point = next(axis(200))
        assert len(point.observed) <= 1_000
        assert point.templates.x.shape[1] == point.observed.shape[1]


def test_workers_are_timed():
    (row,) = measure_workers(1_000, [1])
    assert row["value"] == 1
    assert row["likelihood"] > 0
    assert row["coverage"] > 0


def test_growth_page_and_figure(tmp_path):
    rows = [
        {"value": 10, "fit": 1.0, "likelihood": 0.1},
        {"value": 20, "fit": 3.0, "likelihood": 0.2},
    ]
    axes = dict.fromkeys(growth.AXES, rows)
    settings = dict.fromkeys(growth.SETTINGS, 2.0)
    workers = [
        {"value": 1, "likelihood": 4.0, "coverage": 3.0},
        {"value": 2, "likelihood": 2.2, "coverage": 1.5},
    ]
    results = {"machine": machine(), "axes": axes, "settings": settings, "workers": workers}
    page = growth.page_parts(results)["growth"]
    assert "| events | 20 | 3.0 | 3.00 | 0.200 | 2.00 |" in page
    assert "| 2 | 2.2 | 0.55 | 1.5 | 0.50 |" in page
    growth.draw(results, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000


def test_passes_against_their_floor(monkeypatch):
    monkeypatch.setitem(passes.MODELS, "tiny", {"basis": "gaussian", "components": 2, "epochs": 1})
    found = passes.measure("tiny", 100)
    assert found.components == 2
    assert found.nodes >= 17
    assert found.floor > 0
    assert found.spent > 0


def test_pseudo_experiments_in_passes():
    assert passes.experiments(100_000, 100) > 0
    assert "| 100,000 | 8.2 |" in passes.experiments_table({100_000: 8.2})


def test_passes_table():
    text = passes.table([passes.Pass("two Gaussians", 33, 2, 120.0, 300.0)])
    assert "| two Gaussians | 33 | 2 | 120 | 300 | 2.5 |" in text
    page = passes.PAGE.read_text()
    assert all(f"| {name} |" in page for name in passes.MODELS)


def test_crossings_tell_calls_that_carry_events():
    theta = np.repeat([0.2, 0.8], 600)
    with Crossings(1_000) as seen:
        templates = gl.Templates(theta + 1, theta, bounds=(0, 1))
        templates.audit()
    made = "templates/templates.py:Templates.__init__"
    assert (made, "templates/arrays.py:as_table") in seen.passed_on
    # The number of events is asked of an object that holds them; the grid holds none.
    asked = "templates/audit.py:_events", "templates/templates.py:Templates.__len__"
    assert asked in seen.with_events - seen.passed_on
    assert (made, "templates/grid.py:Grid.__len__") in set(seen.calls) - seen.with_events
