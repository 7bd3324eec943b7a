"""How long the command line takes to answer, as a share of `import torch`, in one run.

`python -m benchmarks startup` runs every command and the import in turn, and compares the shortest
times: what else the machine does can only make one longer.
"""

import subprocess
import sys
import time

REPEATS = 7  # times that each is run
LIMIT = 0.4  # share of `import torch` that the command line may take
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "python -c pass": ["-c", "pass"],
    "import gridless": ["-c", "import gridless"],
    "gridless --version": ["-m", "gridless", "--version"],
    "gridless --help": ["-m", "gridless", "--help"],
    "gridless fit --help": ["-m", "gridless", "fit", "--help"],
}


def measure(repeats: int = REPEATS) -> dict[str, float]:
    """The shortest time of each command in seconds."""
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(repeats):
        for name, arguments in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def run(quick: bool) -> None:
    """Print the times and their ratios to the import of torch."""
    times = measure(2 if quick else REPEATS)
    for name, seconds in times.items():
        print(f"{name:22} {seconds:6.3f} s  {seconds / times['import torch']:5.2f} of import torch")
    print(f"limit of --version and fit --help: {LIMIT} of import torch")


if __name__ == "__main__":
    run(quick=False)
