"""What commands write never replaces what they read; what is wrong shows before the data do."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.cli.main import main
from gridless.examples import OneObservable

EXAMPLE = OneObservable()
FIT = [
    "--bounds",
    "theta",
    "0",
    "1",
    "-x",
    "x",
    "--hidden",
    "2",
    "--epochs",
    "1",
    "--replicas",
    "2",
]


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Templates, data and a model."""
    folder = tmp_path_factory.mktemp("made")
    for k, value in enumerate(gl.grid((0, 1), 4)):
        np.savez(folder / f"t_{value}.npz", x=EXAMPLE.sample(value, 200, seed=k)[:, 0])
    np.savez(folder / "data.npz", x=EXAMPLE.sample(0.4, 200, seed=9)[:, 0])
    result = run("fit", folder / "t_{theta}.npz", *FIT, "-o", folder / "m.safetensors")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """The same, as links' targets may be written to: copies of them."""
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["report", "m.safetensors", "-o", "m.safetensors"], "m.safetensors"),
        (["report", "m.safetensors", "--closure", "t_{theta}.npz", "-o", "t_0.125.npz"], None),
        (["measure", "m.safetensors", "data.npz", "--scan", "./data.npz"], "data.npz"),
        (["measure", "m.safetensors", "data.npz", "--scan", "m.safetensors"], "m.safetensors"),
        (["export", "m.safetensors", "data.npz", "--onnx", "f", "--curve", "./f"], None),
        (["fit", "t_{theta}.npz", *FIT, "-o", "t_0.125.npz"], "t_0.125.npz"),
        (["fit", "analysis.yaml", "-o", "analysis.yaml"], "analysis.yaml"),
    ],
)
def test_an_output_that_is_read_or_written_elsewhere_is_refused(folder, arguments, kept):
    run("init", "analysis.yaml")
    before = (folder / kept).read_bytes() if kept else b""
    result = run(*arguments)
    assert result.exit_code == 2
    assert "would overwrite" in result.stderr or "given for two outputs" in result.stderr
    assert not kept or (folder / kept).read_bytes() == before


@pytest.mark.parametrize("name", ["other.npz", "other.csv", "other.yaml", "other.yml"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "gone_{theta}.npz", *FIT, "-o"],
        ["report", "m.safetensors", "-o"],
        ["measure", "m.safetensors", "data.npz", "--scan"],
        ["export", "m.safetensors", "data.npz", "--hepdata"],
    ],
)
def test_events_and_analyses_are_not_replaced(folder, arguments, name):
    (folder / name).write_text("mine")
    result = run(*arguments, name)
    assert result.exit_code == 2
    assert f"{name}: would overwrite what may be events or an analysis" in result.stderr
    assert (folder / name).read_text() == "mine"


def test_curves_that_gridless_wrote_are_replaced(folder):
    for arguments in (["measure", "--scan", "c.csv"], ["export", "--hepdata", "c.yaml"]):
        for _ in range(2):
            result = run(arguments[0], "m.safetensors", "data.npz", *arguments[1:])
            assert result.exit_code == 0, result.output


def test_pipes_are_refused_before_the_data_are_read(folder):
    os.mkfifo(folder / "pipe")
    for arguments in (
        ["measure", "m.safetensors", "gone.npz", "--scan", "pipe"],
        ["fit", "gone_{theta}.npz", *FIT, "-o", "pipe"],
        ["init", "pipe", "--force"],
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "pipe: is a device, a pipe or a socket" in result.stderr
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--constrain", "nope", "1", "1"], "there is no parameter 'nope'; there is theta"),
        (["--fix", "nope", "1"], "there is no parameter 'nope'"),
        (["--fix", "theta", "0.5"], "theta is the only parameter left"),
        (["--level", "2"], "level: 2.0; give a number between 0 and 1"),
    ],
)
@pytest.mark.parametrize("verb", ["measure", "closure", "report", "export"])
def test_flags_are_checked_before_the_data(folder, verb, flags, message):
    data = {"closure": ["gone_{theta}.npz"], "export": ["gone.npz", "--curve", "c.json"]}
    result = run(verb, "m.safetensors", *data.get(verb, ["gone.npz"]), *flags)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_file_given_twice_is_refused(folder):
    (folder / "again.npz").symlink_to("data.npz")
    for verb in ("measure", "report"):
        result = run(verb, "m.safetensors", "data.npz", "again.npz")
        assert result.exit_code == 2
        assert "again.npz: given twice (also as data.npz)" in result.stderr
    assert not (folder / "report.html").exists()


def test_a_parameter_given_two_bounds_is_refused(folder):
    result = run("audit", "t_{theta}.npz", *FIT[:6], "--bounds", "theta", "0", "2")
    assert result.exit_code == 2
    assert "--bounds: theta twice; give each parameter once" in result.stderr


@pytest.mark.parametrize("verb", [["demo", "--events", "1000"], ["paper", "--quick"]])
def test_a_folder_that_cannot_be_made_is_said_before_the_work(folder, verb):
    result = run(*verb, "-o", folder / "data.npz" / "out")
    assert result.exit_code == 2
    assert "cannot be written to; choose another place" in result.stderr


def gridless(*arguments, **options):
    """A process of its own, as a shell starts it."""
    command = [sys.executable, "-m", "gridless", *map(str, arguments)]
    return subprocess.run(command, capture_output="stdout" not in options, text=True, **options)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["init", "new.yaml"]])
def test_a_full_disk_behind_stdout_is_one_line(folder, arguments):
    with open("/dev/full", "w") as full:
        result = gridless(*arguments, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 2
    assert "No space left" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_reader_that_leaves_and_a_closed_stdout_are_no_traceback(folder):
    reader, writer = os.pipe()
    os.close(reader)
    result = gridless("--help", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert "Traceback" not in result.stderr
    command = f"{sys.executable} -m gridless init closed.yaml >&-"
    result = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


INTERRUPTED_IMPORT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["gridless", "init", "--help"]
from gridless.__main__ import run
run()
"""


@pytest.mark.parametrize("module", ["click", "gridless.cli.main", "gridless.cli.init"])
def test_an_interrupt_while_loading_is_one_line_and_code_130(module):
    code = INTERRUPTED_IMPORT.format(module=module)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (130, "gridless: interrupted\n")


def test_names_that_are_no_text_are_spelt_out_on_the_page_and_in_the_terminal(folder):
    name = os.fsdecode(b"top_\xff")
    model = gl.load("m.safetensors")
    gl.write_report("page.html", model, command=f"gridless report {name}.safetensors")
    assert r"top_\udcff.safetensors" in (folder / "page.html").read_text("utf-8")
    command = [sys.executable, "-m", "gridless", "export", "m.safetensors", "data.npz"]
    done = subprocess.run(
        [*command, "--curve", f"{name}.json"],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},  # strict, as in most languages
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert r"written to top_\udcff.json" in done.stdout
