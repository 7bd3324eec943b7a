"""What several tests share: small samples and small models made once."""

import os
from pathlib import Path

import pytest
import torch

import gridless as gl
from gridless.examples import Nuisances, OneObservable, OnlyWidth, TwoObservables

# The tests run in parallel processes; threads of their own would only get in each other's way.
torch.set_num_threads(1)
# The same for programs that tests start, which run the code of this checkout wherever they are.
os.environ["OMP_NUM_THREADS"] = "1"
SOURCES = (str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", ""))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, SOURCES))


def pytest_collection_modifyitems(items):
    """Slow tests come first: a long one at the end would leave one of the processes idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


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
def width_templates():
    """Ten templates in which theta is a width."""
    return OnlyWidth().templates(4_000, seed=1)


@pytest.fixture(scope="session")
def width_model(width_templates):
    """A well trained model of `width_templates`."""
    return gl.fit(width_templates, hidden=6, seed=1)


@pytest.fixture(scope="session")
def linear_model():
    """A well trained model without hidden units, which is all that this example needs."""
    templates = OneObservable().templates(10_000, seed=1)
    return gl.fit(templates, basis="gaussian", hidden=(), seed=1, replicas=0)


@pytest.fixture(scope="session")
def varied():
    """A quickly trained model with the systematics and the background of `Nuisances`."""
    return Nuisances().fit(events=500, seed=1, hidden=3, epochs=3)


@pytest.fixture(scope="session")
def model_2d():
    """A quickly trained ensemble of two on the two-observable example."""
    templates = TwoObservables().templates(2_000, seed=6)
    return gl.fit(
        templates, basis="gaussian", components=2, hidden=(8,), ensemble=2, epochs=3, seed=4
    )


@pytest.fixture
def no_pictures(monkeypatch):
    """Reports with the titles of figures in their place, which take most of the time: for texts.
    Figures on the page are looked at in report/test_page.py, and drawn on pages of the docs."""
    monkeypatch.setattr("gridless.report.page.picture", lambda figure, name, shows: shows)
