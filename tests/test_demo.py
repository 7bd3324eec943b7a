"""The demo, small, from simulation to files."""

import re

from click.testing import CliRunner

import gridless as gl
from gridless.cli.main import main


def test_demo_measures_what_it_hid(tmp_path):
    result = CliRunner().invoke(
        main, ["demo", "--events", "2000", "-o", str(tmp_path / "out")], catch_exceptions=False
    )
    assert result.exit_code == 0
    value, error = map(float, re.search(r"theta = ([\d.]+) \+-? ?([\d.]+)", result.output).groups())
    truth = float(re.search(r"the truth was ([\d.]+)", result.output).group(1))
    assert abs(value - truth) < 8 * error
    assert len(re.findall(r"^ +0\.\d{4} +\d\.\d{4} ", result.output, re.MULTILINE)) == 10
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {
        "likelihood.pdf",
        "likelihood.png",
        "closure.pdf",
        "closure.png",
        "model.safetensors",
        "report.html",
    }
    assert gl.load(tmp_path / "out" / "model.safetensors").observables == ("x1", "x2")
