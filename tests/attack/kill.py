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
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path

import numpy as np
import torch
from tests.files import samples

import gridless as gl
from gridless.cli.main import main

TEMPLATES = (0.1, 0.3, 0.5, 0.7, 0.9)
PER_TEMPLATE = 4_000
OBSERVED = 400_000
LIMIT = 600  # seconds for one command
LAST = 0.2  # share of the kills of `fit` that come in its last fifth
DRAWS = 5  # moments per kill that are drawn at most: some come after the end and do not count
LOOK = 0.002  # seconds between looks at what a command has spent
TICKS = os.sysconf("SC_CLK_TCK")  # in which Linux counts time of the processor, per second


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


@dataclass(frozen=True)
class Started:
    """A command in a process of its own, and where its output goes."""

    process: ForkProcess
    out: Path
    err: Path

    def end(self) -> "subprocess.CompletedProcess[str]":
        """What it left when it has ended."""
        self.process.join(LIMIT)
        if self.process.is_alive():
            self.kill()
            raise RuntimeError(f"{self.process.name} does not end")
        code = self.process.exitcode or 0
        return subprocess.CompletedProcess(
            [self.process.name], code, self.out.read_text(), self.err.read_text()
        )

    def spent(self) -> float:
        """Seconds of the processor that the command and its workers have spent."""
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                # The name of the program, in brackets, may have spaces in it.
                words = path.read_text().rpartition(")")[2].split()
                if int(words[3]) == self.process.pid:  # its session
                    ticks += sum(int(word) for word in words[11:15])
        return ticks / TICKS

    def kill(self) -> None:
        """kill -9 of the command and of its own workers."""
        self.process.kill()
        self.process.join()
        assert self.process.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _start(folder: Path, arguments: list[str]) -> Started:
    """Fork a command: a fork has imported everything, which would be most of its time."""
    out, err = (folder.parent / f"{folder.name}.{name}" for name in ("out", "err"))

    def work() -> None:
        os.setsid()  # so that workers can be ended with it
        os.chdir(folder)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv[:] = ["gridless", *arguments]
        main()

    process = get_context("fork").Process(target=work, name=arguments[0])
    process.start()
    return Started(process, out, err)


def _run(folder: Path, arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    return _start(folder, arguments).end()


def make_files(folder: Path) -> None:
    """Templates and data."""
    for theta in TEMPLATES:
        samples.write_npz(folder / f"t_{theta}.npz", samples.events_at(theta, events=PER_TEMPLATE))
    samples.write_npz(folder / "data.npz", samples.events_at(0.4, events=OBSERVED))


def kill_commands(rounds: int, seed: int, only: str = "") -> bool:
    """Kill each command with `only` in its name so many times as a round says; whether all came
    right.

    Only commands that were running count: a moment after the end is drawn again.
    """
    torch.set_num_threads(1)  # forks have no other threads
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="gridless-kill-") as name:
        base = Path(name)
        make_files(base)
        well = True
        _run(base, COMMANDS[0].arguments)  # the model that the others use
        for command in (one for one in COMMANDS if only in one.name):
            folder = base / command.name
            folder.mkdir()
            for path in base.glob("*.npz"):
                shutil.copy(path, folder)
            if command.name != "fit":
                shutil.copy(base / "top.safetensors", folder / "good.safetensors")
            done = _run(folder, command.arguments)
            if done.returncode:
                raise RuntimeError(f"{command.name} fails undisturbed: {done.stderr[-1000:]}")
            right = command.result(folder, done.stdout)
            # Timed now: what the result has imported, a fork need not import.
            seconds = _time(folder, command.arguments)
            count, hit, late, bad = rounds * command.times, 0, 0, 0
            for moment in _moments(command, DRAWS * count, random):
                if hit == count:
                    break
                came_right, ended = _killed(folder, command, moment * seconds, right)
                hit += not ended
                late += ended
                bad += not came_right
            well &= hit == count and not bad
            left = sum(path.name.endswith(".part") for path in folder.iterdir())
            print(
                f"{command.name}: {hit} kills within {seconds:.2f} s of the processor, {bad} "
                f"wrong; {late} moments after its end not counted; {left} .part files stay",
                flush=True,
            )
    return well


def _time(folder: Path, arguments: list[str]) -> float:
    """Seconds of the processor that a command takes: other work on the machine matters little."""
    started, seconds = _start(folder, arguments), 0.0
    while started.process.is_alive():
        seconds = max(seconds, started.spent())
        time.sleep(LOOK)
    return seconds


def _moments(command: Command, count: int, random: np.random.Generator) -> list[float]:
    """When to kill, in units of the time that the command takes; of `fit` late ones too."""
    late = np.arange(count) % round(1 / LAST) == 0 if command.name == "fit" else np.zeros(count)
    return [float(random.uniform(0.8 if last else 0, 1)) for last in late]


def _killed(folder: Path, command: Command, seconds: float, right: object) -> tuple[bool, bool]:
    """Kill the command when it has spent some time, run it again, and compare: whether it came
    right, and whether the command had ended before the kill."""
    if command.name == "fit":
        (folder / "top.safetensors").unlink(missing_ok=True)
    started = _start(folder, command.arguments)
    while started.process.is_alive() and started.spent() < seconds:
        time.sleep(LOOK)
    started.kill()
    ended = started.process.exitcode != -signal.SIGKILL
    again = _run(folder, command.arguments)
    if again.returncode or command.result(folder, again.stdout) != right:
        print(f"{command.name} killed after {seconds:.2f} s: {again.stderr[-500:]}", flush=True)
        return False, ended
    return True, ended
