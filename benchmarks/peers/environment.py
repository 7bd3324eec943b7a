"""The virtual environment that sbi lives in, made when it is first needed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDER = ROOT / ".venv-sbi"
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def sbi_python() -> Path:
    """The interpreter of an environment with exactly the versions of `requirements.txt`."""
    ready = _FOLDER / "ready"
    python = _FOLDER / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    wanted = _REQUIREMENTS.read_text()
    if not ready.exists() or ready.read_text() != wanted:
        print("Making .venv-sbi for the sbi peers ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", _FOLDER], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        wanted_by = ["--requirement", str(_REQUIREMENTS)]
        held_by = ["--constraint", str(ROOT / "constraints.txt")]
        subprocess.run([*install, *wanted_by, *held_by], check=True)
        ready.write_text(wanted)
    return python


def sbi_version() -> str:
    """The version that `requirements.txt` asks for."""
    lines = _REQUIREMENTS.read_text().splitlines()
    return next(line.split("==")[1] for line in lines if line.startswith("sbi=="))
