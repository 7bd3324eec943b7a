"""Groups of observed events, and blinding."""

import numpy as np
import pytest

import gridless as gl
from gridless.examples import Nuisances, OneObservable

EXAMPLE = OneObservable()


@pytest.fixture(scope="module")
def good():
    return gl.fit(EXAMPLE.templates(2_000, seed=1), hidden=3, seed=1)


def test_groups_agree_or_not(good):
    x = EXAMPLE.sample(0.4, 6_000, seed=12)
    period = np.repeat(["a", "b", "c"], 2_000)
    likelihood = good.likelihood(x, by=period)
    groups = likelihood.by()
    assert groups.names == ("a", "b", "c")
    assert groups.dof == 2
    assert 0.001 < groups.p_value <= 1
    assert likelihood.maximum().value == pytest.approx(good.likelihood(x).maximum().value, abs=1e-6)
    x[:2_000] += 0.2
    bad = good.likelihood(x, by=period).by()
    assert bad.p_value < 1e-3
    assert "chi2/dof" in str(bad)
    assert "chi2/dof" in bad._repr_html_()
    assert set(bad.to_dict()["groups"]) == {"a", "b", "c"}


def test_p_values_of_groups_are_uniform(good):
    pool = EXAMPLE.sample(0.5, 200_000, seed=3)
    group = np.arange(2_000) % 4
    found = [good.likelihood(part, by=group).by().p_value for part in np.split(pool, 100)]
    assert 0.4 < np.mean(found) < 0.6


def test_groups_of_files(good):
    table = {"x": EXAMPLE.sample(0.4, 2_000, seed=2)[:, 0], "run": np.arange(2_000)}
    groups = gl.read_likelihood(good, [table], by="run - run % 1000").by()
    assert groups.names == ("0", "1000")
    assert groups.together.events == 2_000


def test_what_are_no_groups(good):
    x = EXAMPLE.sample(0.4, 500, seed=2)
    with pytest.raises(gl.InputError, match="at most 50 groups"):
        good.likelihood(x, by=x[:, 0])
    with pytest.raises(gl.InputError, match="one group per event"):
        good.likelihood(x, by=[1, 2])
    with pytest.raises(gl.InputError, match="one channel"):
        good.likelihood(x).by()


def test_groups_at_a_bound_cannot_be_compared(good):
    x = EXAMPLE.sample(0.0, 2_000, seed=3) - 1
    groups = good.likelihood(x, by=np.arange(2_000) % 2).by()
    assert groups.dof == 0
    assert groups.to_dict()["p_value"] is None
    assert str(groups).endswith("nothing to compare")


def test_blinding_hides_the_value_and_nothing_else(good):
    first = good.likelihood(EXAMPLE.sample(0.4, 2_000, seed=2)).maximum()
    second = good.likelihood(EXAMPLE.sample(0.02, 2_000, seed=3)).maximum()
    one, two = first.blinded("secret"), second.blinded("secret")
    assert one.offset("theta") == two.offset("theta") != first.blinded("other").offset("theta")
    content = one.to_dict()
    shown = content["parameters"]["theta"]
    assert shown["value"] - first.value == pytest.approx(one.offset("theta"))
    assert shown["high"] - shown["low"] == pytest.approx(np.diff(first.interval)[0])
    assert "bounds" not in shown
    assert content["budget"] == first.to_dict()["budget"]
    assert f"{first.value:.3f}" not in str(one)
    assert "blind" in str(one)
    assert all(set(w) == {"name"} for w in two.to_dict()["warnings"])
    with pytest.raises(gl.InputError, match="letters"):
        first.blinded("a")


def test_a_bound_would_tell_the_offset(good):
    x = EXAMPLE.sample(0.0, 2_000, seed=3) - 1
    estimate = good.likelihood(x).maximum()
    blinded = estimate.blinded("secret")
    assert estimate["theta"].at_bound
    assert np.isnan(blinded.value("theta"))
    assert np.isnan(blinded.interval("theta", (0.0, 0.1))).all()
    shown = blinded.to_dict()["parameters"]["theta"]
    assert [shown[key] for key in ("value", "low", "high", "stat_low", "stat_high")] == [None] * 5
    assert "hidden: a bound is in its interval" in str(blinded)
    assert "bound" not in str(blinded.to_dict()["warnings"])
    near = good.likelihood(EXAMPLE.sample(0.4, 2_000, seed=2)).maximum().blinded("secret")
    low, high = near.interval("theta", (0.0, 0.5))
    assert (np.isnan(low), high) == (True, 0.5 + near.offset("theta"))


def test_groups_change_nothing_in_the_estimate_of_all_events(good):
    x = EXAMPLE.sample(0.4, 3_000, seed=14)
    plain = good.likelihood(x).maximum()
    grouped = good.likelihood(x, by=np.arange(3_000) % 5).maximum()
    assert grouped.p_value == pytest.approx(plain.p_value, rel=1e-9)
    assert grouped.budget["theta"] == pytest.approx(plain.budget["theta"], rel=1e-6)


def test_groups_of_a_measurement_have_one_simulation(varied):
    x = Nuisances().sample(0.4, 2_000, seed=2)
    plain = varied.likelihood(x).maximum()
    grouped = varied.likelihood(x, by=np.arange(2_000) % 4)
    assert grouped.maximum().budget["theta"] == pytest.approx(plain.budget["theta"], rel=1e-9)
    assert grouped.maximum().p_value == pytest.approx(plain.p_value)
    assert len(grouped.by().estimates) == 4


def test_events_before_a_selection_are_counted_once():
    templates = EXAMPLE.templates(1_000, seed=1)
    table = {"x": EXAMPLE.sample(0.4, 1_000, seed=2)[:, 0], "run": np.arange(1_000) % 4}
    query = gl.Query.of(["x"], selection="x < 1")
    model = gl.fit(gl.Templates(templates.x, templates.theta, (0, 1), query=query), hidden=3)
    likelihood = gl.read_likelihood(model, [table], by="run")
    used = int((table["x"] < 1).sum())
    assert likelihood.maximum().offered == 1_000
    assert f"{used:,} of 1,000 events" in str(likelihood.maximum())


def test_a_blinded_measurement_shows_its_tables_and_not_its_value(varied):
    estimate = varied.likelihood(Nuisances().sample(0.4, 2_000, seed=2)).maximum()
    text = str(estimate.blinded("secret"))
    lines = str(estimate).splitlines()
    assert text.splitlines()[0].endswith(", blind")
    tables = [line for line in lines[1:] if "warning" not in line]
    assert text.splitlines()[1 : len(tables) + 1] == tables
