"""The uncertainty from finite simulation, against what repeated simulation gives."""

import numpy as np
import pytest

import gridless as gl
from gridless.examples import OneObservable

TOY = OneObservable()


def test_it_is_the_spread_over_repeated_simulation():
    """A network without hidden units: the fit is a regression, and twelve of them scatter as one
    says. The spread of twelve is known to 20 percent, the uncertainty of 64 replicas to 9."""
    x = TOY.quantiles(0.3, 2000)
    values, claimed = [], []
    for seed in range(12):
        model = gl.fit(TOY.templates(2_000, seed), hidden=(), replicas=64, seed=seed)
        estimate = model.likelihood(x).maximum()
        values.append(estimate.value)
        budget = estimate.budget["theta"]
        claimed.append(np.hypot(budget["simulation"], budget["model"]))
    assert 0.6 < np.mean(claimed) / np.std(values, ddof=1) < 1.6


def test_it_falls_with_the_size_of_the_templates():
    errors = []
    for events in (1_000, 16_000):
        model = gl.fit(TOY.templates(events, seed=1), hidden=(4,), seed=1)
        errors.append(model.likelihood(TOY.quantiles(0.5, 2000)).maximum().simulation)
    assert 2 < errors[0] / errors[1] < 8


def test_it_does_not_depend_on_the_number_of_observed_events(model):
    few, many = (
        model.likelihood(TOY.quantiles(0.5, n)).maximum().simulation for n in (1_000, 20_000)
    )
    assert few == pytest.approx(many, rel=0.05)


def test_likelihoods_of_parts_give_that_of_the_whole(model):
    x = TOY.sample(0.5, 3000, seed=2)
    whole = model.likelihood(x).maximum()
    parts = (model.likelihood(x[:1000]) + model.likelihood(x[1000:])).maximum()
    assert parts.simulation == pytest.approx(whole.simulation, rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "penalty", "prior": "flat"},
        {"objective": "posterior"},
        {"ensemble": 2},
        {"hidden": (48, 48)},  # too large for Newton steps: its last layer only is moved
        {"basis": "exp_polynomial"},
    ],
    ids=str,
)
def test_every_kind_of_fit_has_one(options):
    model = gl.fit(TOY.templates(2_000, seed=5), epochs=4, seed=1, **{"hidden": (4,)} | options)
    estimate = model.likelihood(TOY.quantiles(0.4, 2000)).maximum()
    # The statistics of the templates alone, 20,000 events, is 0.007.
    assert 0.003 < estimate.simulation < 0.05


def test_none_if_not_asked_for(templates):
    model = gl.fit(templates, hidden=(4,), epochs=2, calibrate=False, replicas=0)
    estimate = model.likelihood(TOY.quantiles(0.4, 100)).maximum()
    assert estimate.simulation is None
    assert "simulation" not in str(estimate)


def test_one_replica_is_refused(templates):
    with pytest.raises(gl.InputError, match="replicas: 1"):
        gl.fit(templates, replicas=1)
