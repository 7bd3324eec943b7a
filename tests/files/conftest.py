"""What the tests of files share."""

import numpy as np
import pytest
from files.samples import DATA, FORMATS, events_at, write_rntuple


@pytest.fixture(params=FORMATS)
def source(request, tmp_path):
    """The same events in each of the formats."""
    name, write = FORMATS[request.param]
    write(tmp_path / name)
    return str(tmp_path / name)


@pytest.fixture
def expected():
    keep = (DATA["pt"] > 10) & (abs(DATA["eta"].astype(float)) < 2.5)
    pt, n = DATA["pt"], DATA["n"]
    x = np.column_stack([pt, pt / np.sqrt(n + 1.0), DATA["jet.m"], n - 3.0])
    return x[keep], (DATA["w"] * 2)[keep]


@pytest.fixture
def folder(tmp_path):
    """Templates at 1, 2 and 3, the middle one in two files."""
    for name, value in (("t_1", 1), ("t_2.0", 2), ("t_2", 2), ("t_3e0", 3)):
        write_rntuple(tmp_path / f"{name}.root", events_at(value, len(name)))
    return tmp_path
