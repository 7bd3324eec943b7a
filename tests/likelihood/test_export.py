"""Curves for machines say what the likelihood says."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import yaml
from helpers import parabola

import gridless as gl
from gridless.examples import Nuisances, OneObservable, TwoParameters
from gridless.likelihood.export import curve, hepdata, scan_csv
from gridless.likelihood.likelihood import Likelihood
from gridless.likelihood.sources import ReplicaNoise


def test_curve_of_two_parameters():
    x = TwoParameters().sample((0.5, 0.5), 500, seed=1)
    likelihood = TwoParameters().likelihood(x)
    content = curve(likelihood)
    assert content == likelihood.to_dict() == json.loads(json.dumps(content, allow_nan=False))
    assert content["parameters"] == ["t1", "t2"]
    assert max(content["profiles"]["t2"]["delta_log_likelihood"]) == pytest.approx(0, abs=0.05)
    assert content["terms"][0]["coefficients"] == content["coefficients"]


def test_delta_log_likelihood_has_the_sign_of_its_name():
    likelihood = parabola(0.5, 0.1)
    profile = curve(likelihood)["profiles"]["theta"]
    rises = likelihood.scan(profile["value"])
    np.testing.assert_allclose(profile["delta_log_likelihood"], -rises, atol=1e-9)
    np.testing.assert_allclose(profile["negative_delta_log_likelihood"], rises, atol=1e-9)
    rows = list(csv.DictReader(scan_csv(likelihood).splitlines()))
    found = [float(row["delta_log_likelihood"]) for row in rows]
    np.testing.assert_allclose(found, -rises, atol=1e-6)


def test_a_sum_over_models_with_other_parameters_is_a_list_of_terms():
    other = TwoParameters().likelihood(TwoParameters().sample((0.5, 0.5), 500, seed=1))
    content = curve(parabola(0.5, 0.1) + other)
    assert content["coefficients"] is None
    assert sorted(term["parameters"] for term in content["terms"]) == [["t1", "t2"], ["theta"]]


def test_hepdata_has_round_values_units_and_the_error_from_simulation():
    likelihood = parabola(80.4, 0.02, bounds=(79.9, 80.9))
    changes = np.array([[0.0, 10.0], [0.0, -10.0]])
    grid = replace(likelihood.grid, labels={"theta": "m [GeV]"})
    sources = {"simulation": ReplicaNoise(changes), "model": ReplicaNoise(changes / 2)}
    channel = replace(likelihood.channels[0], grid=grid, sources=sources)
    text = hepdata(Likelihood([channel]))
    found, table = yaml.safe_load_all(text)
    (row,) = found["dependent_variables"][0]["values"]
    assert row["value"] == pytest.approx(80.4)
    assert [error["label"] for error in row["errors"]] == ["stat", "simulation", "model"]
    simulation, model = (error["symerror"] for error in row["errors"][1:])
    assert simulation == pytest.approx(2 * model, rel=0.05)
    column = table["independent_variables"][0]
    assert column["header"] == {"name": "theta", "units": "GeV"}
    assert column["values"][2] == {"value": 79.91}


def test_hepdata_has_the_units_of_the_labels():
    example = OneObservable()
    templates = example.templates(300, seed=1).labelled({"theta": "$m_t$ [GeV]"})
    model = gl.fit(templates, hidden=2, epochs=1, replicas=0)
    likelihood = model.likelihood(example.sample(0.4, 300, seed=2))
    assert "units: GeV" in hepdata(likelihood)


def test_hepdata_has_every_source_of_the_budget(varied):
    likelihood = varied.likelihood(Nuisances().sample(0.4, 2_000, seed=2))
    one = likelihood.maximum()["theta"]
    found, _ = yaml.safe_load_all(hepdata(likelihood))
    (row,) = found["dependent_variables"][0]["values"]
    stat, *others = row["errors"]
    assert {e["label"]: e["symerror"] for e in others} == pytest.approx(
        {name: error for name, error in one.budget.items() if name != "stat"}, abs=1e-4
    )
    plus, minus = stat["asymerror"]["plus"], stat["asymerror"]["minus"]
    assert 0.5 * (plus - minus) == pytest.approx(one.stat, rel=0.2)
    content = likelihood.maximum().to_dict()["parameters"]["theta"]
    assert content["stat_high"] - content["value"] == pytest.approx(plus, abs=1e-4)
    assert content["low"] < content["stat_low"] < content["value"]


def test_a_correlation_with_itself_is_one(varied):
    estimate = parabola(80.4, 0.0213, bounds=(79.9, 80.9)).maximum()
    assert estimate.to_dict()["correlation"] == [[1.0]]
    observed = Nuisances().sample(0.4, 2_000, seed=2)
    matrix = varied.likelihood(observed).maximum().full_correlation
    assert (np.diag(matrix) == 1).all()
