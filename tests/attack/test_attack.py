"""A short attack; `make attack` is the long one."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MINUTES = 0.6


def test_damaged_and_hostile_input_gives_no_traceback_no_hang_and_no_other_result(tmp_path):
    command = [sys.executable, "-m", "tests.attack", "--minutes", str(MINUTES)]
    command += ["--keep", str(tmp_path)]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    total = done.stdout.splitlines()[-1].split()
    assert total[0] == "all"
    assert int(total[-2].replace(",", "")) > 100
