"""Commands killed at random moments: run again, they must give what they give undisturbed."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.files import samples

import gridless as gl

TEMPLATES = (0.1, 0.3, 0.5, 0.7, 0.9)
PER_TEMPLATE = 4_000
OBSERVED = 20_000
LIMIT = 120  # seconds for one command
LAST = 0.2  # share of the kills of `fit` that come in its last fifth


@dataclass(frozen=True)
class Command:
    """A verb with its arguments, what it leaves, and how often it is killed per round."""

    name: str
    arguments: list[str]
    result: Callable[[Path, str], object]
    times: int


def _model(folder: Path, _: str) -> object:
    """What the model measures: its file names the command line too."""
    model = gl.load(folder / "top.safetensors")
    return gl.read_likelihood(model, folder / "data.npz").maximum().to_dict()


def _page(folder: Path, _: str) -> object:
    """The report without the time of its making."""
    text = (folder / "report.html").read_text()
    return len(text) > 10_000, text.count("<svg") + text.count("<img")


COMMANDS = (
    Command(
        "fit",
        [
            "fit",
            "t_{theta}.npz",
            "--bounds",
            "theta",
            "0",
            "1",
            "-x",
            "x,y",
            "-o",
            "top.safetensors",
            "--epochs",
            "30",
        ],
        _model,
        3,
    ),
    Command("report", ["report", "good.safetensors", "-o", "report.html"], _page, 1),
    Command(
        "export",
        ["export", "good.safetensors", "data.npz", "--curve", "curve.json"],
        lambda folder, _: json.loads((folder / "curve.json").read_text()),
        1,
    ),
    Command(
        "measure",
        ["measure", "good.safetensors", "data.npz", "--json", "--workers", "2"],
        lambda _, printed: json.loads(printed),
        1,
    ),
)


def _start(folder: Path, arguments: list[str]) -> "subprocess.Popen[str]":
    # A session of its own, so that workers can be ended with it.
    return subprocess.Popen(
        [sys.executable, "-m", "gridless", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def _run(folder: Path, arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    process = _start(folder, arguments)
    out, err = process.communicate(timeout=LIMIT)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def _end(process: "subprocess.Popen[str]") -> None:
    """kill -9 of the command and of its own workers."""
    process.kill()
    process.communicate()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def make_files(folder: Path) -> None:
    """Templates and data."""
    for theta in TEMPLATES:
        samples.write_npz(folder / f"t_{theta}.npz", samples.events_at(theta, events=PER_TEMPLATE))
    samples.write_npz(folder / "data.npz", samples.events_at(0.4, events=OBSERVED))


def kill_commands(rounds: int, seed: int, told: bool = True) -> bool:
    """Kill each command so many times as a round says; whether all came right."""
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="gridless-kill-") as name:
        base = Path(name)
        make_files(base)
        wrong = 0
        for command in COMMANDS:
            folder = base / command.name
            folder.mkdir()
            for path in base.glob("*.npz"):
                shutil.copy(path, folder)
            if command.name != "fit":
                shutil.copy(base / "fit" / "top.safetensors", folder / "good.safetensors")
            start = time.monotonic()
            done = _run(folder, command.arguments)
            seconds = time.monotonic() - start
            if done.returncode:
                raise RuntimeError(f"{command.name} fails undisturbed: {done.stderr[-1000:]}")
            right = command.result(folder, done.stdout)
            bad = late = 0
            for moment in _moments(command, rounds, random):
                came_right, ended = _killed(folder, command, moment * seconds, right)
                bad += not came_right
                late += ended
            wrong += bad
            if told:
                count = rounds * command.times
                print(
                    f"{command.name}: {count} kills, {late} after its end, {bad} wrong", flush=True
                )
    return wrong == 0


def _moments(command: Command, rounds: int, random: np.random.Generator) -> list[float]:
    """When to kill, in units of the time that the command takes; of `fit` late ones too."""
    count = rounds * command.times
    late = round(LAST * count) if command.name == "fit" else 0
    return [*random.uniform(0, 1, count - late), *random.uniform(0.8, 1, late)]


def _killed(folder: Path, command: Command, seconds: float, right: object) -> tuple[bool, bool]:
    """Kill the command after some time, run it again, and compare: whether it came right, and
    whether the command had ended before the kill."""
    if command.name == "fit":
        (folder / "top.safetensors").unlink(missing_ok=True)
    process = _start(folder, command.arguments)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    ended = process.poll() is not None
    _end(process)
    again = _run(folder, command.arguments)
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    if again.returncode or command.result(folder, again.stdout) != right:
        print(f"{command.name} killed after {seconds:.2f} s: {again.stderr[-500:]}", flush=True)
        return False, ended
    if left:
        print(f"{command.name} killed after {seconds:.2f} s leaves {', '.join(left)}", flush=True)
    return True, ended
