"""The command line as a user meets it."""

import subprocess
import sys

from click.testing import CliRunner

from gridless import InputError, __version__
from gridless.cli.main import main


def test_help_and_version():
    result = subprocess.run(
        [sys.executable, "-m", "gridless", "--help"], capture_output=True, text=True, check=True
    )
    assert "demo" in result.stdout
    assert "..." not in result.stdout.partition("Commands:")[2]  # no sentence is cut
    assert __version__ in CliRunner().invoke(main, ["--version"]).output
    assert "Example:" in CliRunner().invoke(main, ["demo", "--help"]).output


def test_errors_of_the_user_end_with_code_2_and_no_traceback(monkeypatch):
    def fail(*_):
        raise InputError("bounds: 1 to 0; the low bound must come first")

    monkeypatch.setattr("gridless.demo.run_demo", fail)
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 2
    assert result.output == "gridless: bounds: 1 to 0; the low bound must come first\n"
    assert "Traceback" not in result.output


def test_bad_flags():
    result = CliRunner().invoke(main, ["demo", "--events", "3"])
    assert result.exit_code == 2
    assert "1000<=x<=1000000" in result.output
