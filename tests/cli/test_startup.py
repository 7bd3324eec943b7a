"""Help, version and errors in flags or in an analysis file come without loading torch."""

import json
import os
import subprocess
import sys

import pytest

from gridless.cli.main import VERBS

HEAVY = ("torch", "scipy.stats", "matplotlib")
PROGRAM = """
import json, sys
from click.testing import CliRunner
from gridless.cli.main import main
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(main, arguments)
    loaded = sorted(set(json.loads(sys.argv[2])) & set(sys.modules))
    print(json.dumps([arguments, result.exit_code, result.output, loaded]))
"""
T = ["t_{mass}.csv", "--bounds", "mass", "0", "1", "-x", "x"]
M = "m.safetensors"
MISTAKES = {
    "typo in a file": ["fit", "typo.yaml", "-o", "m"],
    "no such file": ["audit", "nowhere.yaml"],
    "wrong value in a file": ["fit", "value.yaml", "-o", "m"],
    "no bounds": ["audit", "t_{mass}.csv", "-x", "x"],
    "unknown basis": ["fit", *T, "-o", "m", "--basis", "gausian"],
    "unknown objective": ["fit", *T, "-o", "m", "--objective", "best"],
    "unknown prior": ["fit", *T, "-o", "m", "--prior", "round"],
    "wrong number": ["fit", *T, "-o", "m", "--rate", "-1"],
    "wrong layers": ["fit", *T, "-o", "m", "--hidden", "big"],
    "settings of another objective": [
        *("fit", *T, "-o", "m", "--objective", "posterior"),
        *("--penalty-strength", "2"),
    ],
    "level": ["measure", M, "d.csv", "--level", "95"],
    "error of a constraint": ["report", M, "--constrain", "mass", "1", "0"],
    "toys": ["closure", M, "t_{mass}.csv", "--toys", "1"],
    "swapped model and data": ["measure", "d.csv", M],
    "no such model": ["measure", "nowhere.safetensors", "d.csv"],
    "export of nothing": ["export", M],
    "signal of no samples": ["report", M, "--signal"],
    "events of no samples": ["report", M, "--closure-where", "x > 0"],
    "a folder as output": ["report", M, "-o", "."],
    "no output": ["fit", *T],
    "no such flag": ["measure", M, "d.csv", "--sacn", "x.csv"],
    "no such verb": ["mesure", M, "d.csv"],
}
HELP = [["--version"], ["--help"], *([verb, "--help"] for verb in VERBS)]


def run(cases, folder):
    """(arguments, exit code, output, heavy modules loaded by then) of each command, in one
    process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(cases), json.dumps(HEAVY)],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_help_and_version_need_no_torch(tmp_path):
    for arguments, code, output, loaded in run(HELP, tmp_path):
        assert code == 0, output
        assert not loaded, arguments


def test_mistakes_are_told_without_torch(tmp_path):
    begin = "templates: t_{mass}.csv\nobservables: [x]\nparameters:\n  mass: [0, 1]\n"
    (tmp_path / "typo.yaml").write_text(f"{begin}fti: {{}}\n")
    (tmp_path / "value.yaml").write_text(f"{begin}fit: {{rate: -1}}\n")
    (tmp_path / M).write_bytes(b"not opened")
    found = run(list(MISTAKES.values()), tmp_path)
    for name, (arguments, code, output, loaded) in zip(MISTAKES, found, strict=True):
        assert code == 2, (name, output)
        assert "Traceback" not in output
        assert not loaded, (name, arguments)


@pytest.mark.parametrize("module", ["click", "torch"])
def test_an_interrupt_while_loading_ends_without_a_traceback(tmp_path, module):
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt\n")
    (tmp_path / M).write_bytes(b"not a model")
    (tmp_path / "d.csv").write_text("x\n1\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "gridless", "measure", M, "d.csv"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 130
    assert done.stderr == "gridless: interrupted\n"
