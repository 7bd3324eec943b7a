"""What several tests share: small samples and small models made once."""

import os
from pathlib import Path

import pytest
import torch

import gridless as gl
from gridless.examples import OneObservable, TwoObservables

# The tests run in parallel processes; threads of their own would only get in each other's way.
torch.set_num_threads(1)
# The same for programs that tests start, which run the code of this checkout wherever they are.
os.environ["OMP_NUM_THREADS"] = "1"
SOURCES = (str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", ""))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, SOURCES))


@pytest.fixture(scope="session")
def templates():
    """Ten small templates of the one-observable example."""
    return OneObservable().templates(2_000, seed=5)


@pytest.fixture(scope="session")
def model(templates):
    """A quickly trained model of `templates`."""
    return gl.fit(templates, basis="gaussian", hidden=(4,), epochs=4, seed=3)


@pytest.fixture(scope="session")
def learnt(templates):
    """The same, with the network's density used as it is."""
    return gl.fit(templates, basis="gaussian", hidden=(4,), epochs=4, seed=3, calibrate=False)


@pytest.fixture(scope="session")
def model_2d():
    """A quickly trained ensemble of two on the two-observable example."""
    templates = TwoObservables().templates(2_000, seed=6)
    return gl.fit(
        templates, basis="gaussian", components=2, hidden=(8,), ensemble=2, epochs=3, seed=4
    )
