"""What the measurements ran on, and how much memory they took."""

import os
import platform
import resource
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def peak_memory() -> float:
    """The most memory this process has held so far, in MB.

    Linux counts the memory of the parent in `getrusage` of a process that was just started, so
    its own high-water mark is read instead.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def machine() -> dict[str, str]:
    """Processor, cores and the versions that matter."""
    names = ("gridless", "torch", "numpy", "scipy", "iminuit")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    } | {name: _version(name) for name in names}


def describe(found: dict[str, str]) -> str:
    """The machine in one sentence."""
    versions = ", ".join(
        f"{name} {found[name]}"
        for name in ("python", "torch", "numpy", "gridless", "sbi")
        if found.get(name)
    )
    return (
        f"Machine: {found['processor']}, {found['cores']} cores, of which one was used, "
        f"{found['system']}; {versions}."
    )


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    if file.exists():
        for line in file.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
