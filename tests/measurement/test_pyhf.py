"""A binned channel from pyhf beside an unbinned one."""

import numpy as np
import pyhf
import pytest
from helpers import parabola
from iminuit import Minuit

import gridless as gl

SPEC = {
    "channels": [
        {
            "name": "counts",
            "samples": [
                {
                    "name": "signal",
                    "data": [1000.0],
                    "modifiers": [
                        {"name": "theta", "type": "normfactor", "data": None},
                        {"name": "jes", "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}},
                    ],
                }
            ],
        }
    ],
    "parameters": [{"name": "theta", "bounds": [[0.0, 1.0]], "inits": [0.5]}],
}
MODEL = pyhf.Model(SPEC, poi_name="theta", validate=False)


def test_a_binned_channel_adds_to_a_likelihood():
    joint = parabola(0.4, 0.02) + gl.pyhf_cost(MODEL, [500.0])
    minuit = Minuit(joint, theta=0.5, jes=0.0)
    minuit.migrad()
    assert minuit.valid
    # Counts say 0.5 with 4.5 percent from statistics and 10 percent from jes, nearly a Gaussian.
    error = 0.5 * np.hypot(np.sqrt(500) / 500, 0.1)
    weights = np.array([0.02**-2, error**-2])
    assert minuit.values["theta"] == pytest.approx(weights @ [0.4, 0.5] / weights.sum(), abs=0.006)


def test_the_constraint_of_a_shared_parameter_counts_once():
    alone, shared = gl.pyhf_cost(MODEL, [500.0]), gl.pyhf_cost(MODEL, [500.0], shared=["jes"])
    names = MODEL.config.par_names
    values = [{"theta": 0.5, "jes": 2.0}[name] for name in names]
    assert alone(*values) - shared(*values) == pytest.approx(2.0)
    place = names.index("jes")
    step = np.eye(2)[place] * 1e-4
    slope = (shared(*(values + step)) - shared(*(values - step))) / 2e-4
    assert shared.grad(*values)[place] == pytest.approx(slope, rel=1e-3)


def test_bad_input_is_refused():
    with pytest.raises(gl.InputError, match="3 numbers for 1 bins"):
        gl.pyhf_cost(MODEL, [1.0, 2.0, 3.0])
    with pytest.raises(gl.InputError, match="no parameter 'jer'"):
        gl.pyhf_cost(MODEL, [500.0], shared=["jer"])
    with pytest.raises(gl.InputError, match=r"give a pyhf\.Model"):
        gl.pyhf_cost("model", [500.0])
