"""Training in several processes agrees with training in one."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import gridless as gl
from gridless import ranks
from gridless.examples import OneObservable

TOY = OneObservable()


def test_one_process_alone():
    values = torch.tensor([1.0, 2.0])
    assert (ranks.count(), ranks.number(), ranks.least(7)) == (1, 0, 7)
    assert ranks.total(values) is values
    assert ranks.of_first(values) is values
    assert ranks.totals([values, values])[1] is values


SUMS = """
import torch
from gridless import ranks
ranks.join()
me = ranks.number()
own = torch.tensor([1.0 + me, 10.0 * me])
assert ranks.count() == 2
assert ranks.total(own).tolist() == [3, 10]
first, second = ranks.totals([own, torch.full((2, 2), me)])
assert first.tolist() == [3, 10] and second.tolist() == [[1, 1], [1, 1]]
assert ranks.least(5 - me) == 4
assert ranks.of_first(own).tolist() == [1, 0]
assert own.tolist() == [1 + me, 10 * me]
ranks.leave()
"""


def torchrun(*arguments, folder):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_sums_over_processes(tmp_path):
    (tmp_path / "sums.py").write_text(SUMS)
    torchrun("sums.py", folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["template", "penalty"])
def test_two_processes_train_as_one(tmp_path, objective):
    for i, theta in enumerate(gl.grid((0, 1), 10)):
        np.savez(tmp_path / f"mc_{theta:.2f}.npz", x=TOY.sample(theta, 10_000, seed=i)[:, 0])
    fit = ["fit", "mc_{theta}.npz", "--bounds", "theta", "0", "1", "-x", "x", "--seed", "1"]
    fit += ["--objective", objective, "--hidden", "4"]
    printed = torchrun("-m", "gridless", *fit, "-o", "two.safetensors", folder=tmp_path)
    assert "100,000 events; written to two.safetensors" in printed
    assert printed.count("written") == 1
    subprocess.run(
        [sys.executable, "-m", "gridless", *fit, "-o", "one.safetensors"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    one, two = (gl.load(tmp_path / f"{name}.safetensors") for name in ("one", "two"))
    assert not list(tmp_path.glob(".*checkpoint*"))
    for theta in (0.2, 0.5, 0.8):
        x = TOY.quantiles(theta)
        a, b = (model.likelihood(x).maximum() for model in (one, two))
        # Of 10,000 events the error is 0.01; both are as far from the truth as templates of
        # 10,000 events allow.
        assert b.value == pytest.approx(a.value, abs=0.005)
        assert b.value == pytest.approx(theta, abs=0.015)
        assert b.error == pytest.approx(a.error, rel=0.06)
        # From replicas of other events, and 32 of them: the size is all that can be compared.
        assert 1 / 3 < b.error_simulation / a.error_simulation < 3
