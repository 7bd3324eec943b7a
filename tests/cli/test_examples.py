"""`gridless example` writes files on which its five commands work as printed."""

import json
import shlex
from importlib.util import find_spec

import pytest
from click.testing import CliRunner

from gridless import example_files
from gridless.cli.main import main


def run(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def commands(folder):
    """The commands of the README."""
    lines = (folder / "README.md").read_text().splitlines()
    return [shlex.split(line.strip())[1:] for line in lines if line.startswith("    gridless ")]


def test_the_five_commands_of_the_readme_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = run("example", "--events", 1_200)
    folder = tmp_path / "gridless_example"
    monkeypatch.chdir(folder)
    five = commands(folder)
    assert [command[0] for command in five] == ["audit", "fit", "closure", "measure", "report"]
    for command in five:
        assert shlex.join(["gridless", *command]) in told
        printed = run(*command)
        assert "CHANGE" not in printed
        assert "warning" not in printed
        if command[0] == "measure":
            found = json.loads(run(*command, "--json"))["parameters"]["mtop"]
            assert abs(found["value"] - example_files.DATA_MASS) < 3 * found["error"]
            assert " of 5,000 events" in printed
    page = (folder / "report.html").read_text()
    assert "Measurement of <i>m</i><sub><i>t</i></sub>" in page
    assert len(page) < 2_000_000


@pytest.mark.parametrize(
    ("missing", "suffix"), [({"uproot"}, ".parquet"), ({"uproot", "pyarrow"}, ".csv")]
)
def test_other_files_where_a_library_is_missing(tmp_path, monkeypatch, missing, suffix):
    monkeypatch.setattr(
        example_files, "find_spec", lambda name: None if name in missing else find_spec(name)
    )
    run("example", tmp_path / "top", "--events", 200)
    assert (tmp_path / "top" / f"data{suffix}").is_file()
    assert "no such" not in run("audit", tmp_path / "top" / "analysis.yaml", "--json")


def test_files_that_are_there_are_replaced_only_if_asked(tmp_path):
    run("example", tmp_path / "top", "--events", 100)
    result = CliRunner().invoke(main, ["example", str(tmp_path / "top")])
    assert result.exit_code == 2
    assert "already exists; give another name, or --force" in result.output
    listed = json.loads(run("example", tmp_path / "top", "--events", 100, "--force", "--json"))
    assert len(listed["files"]) == 38
    (tmp_path / "file").write_text("")
    assert "is a file" in CliRunner().invoke(main, ["example", str(tmp_path / "file")]).output
    few = CliRunner().invoke(main, ["example", str(tmp_path / "new"), "--events", "5"])
    assert "give at least 100 per template" in few.output


def test_gridless_alone_says_what_to_do_first():
    assert "gridless example" in CliRunner().invoke(main, []).output


def test_the_whole_measurement_finds_mass_and_jet_energy_scale(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("example", "top", "--events", 500)
    monkeypatch.chdir(tmp_path / "top")
    assert "ok     jes: independent" in run("audit", "measurement.yaml")
    run("fit", "measurement.yaml", "-o", "top.safetensors", "--hidden", 8, "--ensemble", 1)
    content = json.loads(run("measure", "top.safetensors", "observed.root:events", "--json"))
    found = content["parameters"]["mtop"]
    assert abs(found["value"] - example_files.DATA_MASS) < 3 * found["error"]
    assert set(content["budget"]["mtop"]) >= {"stat", "simulation", "jes", "wjets"}
    jes = content["nuisances"]["jes"]
    assert abs(jes["value"] - example_files.OBSERVED_JES) < 3 * jes["error"]
