"""Training in several processes agrees with training in one."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import gridless as gl
from gridless import distributed
from gridless.examples import OneObservable

TOY = OneObservable()


def test_one_process_alone():
    values = torch.tensor([1.0, 2.0])
    assert (distributed.size(), distributed.rank(), distributed.least(7)) == (1, 0, 7)
    assert distributed.total(values) is values
    assert distributed.of_first(values) is values
    assert distributed.totals([values, values])[1] is values


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_small_networks_work_on_one_thread_and_large_ones_on_the_users(three_threads):
    small, large = torch.nn.Linear(10, 10), torch.nn.Linear(200, 200)
    with distributed.own_threads(small):
        assert torch.get_num_threads() == 1
        with distributed.own_threads(large):
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_threads_are_the_users_again_after_a_call(model, templates, three_threads, monkeypatch):
    seen = []
    network = type(model.network)
    forward = network.forward

    def watched(self, *arguments):
        seen.append(torch.get_num_threads())
        return forward(self, *arguments)

    monkeypatch.setattr(network, "forward", watched)
    x = TOY.sample(0.4, 100, seed=1)
    gl.fit(templates, hidden=2, epochs=1, replicas=0)
    model.likelihood(x)
    model.posterior(x)
    gl.closure(model, {0.3: x, 0.5: x})
    gl.coverage(model, {0.3: x}, toys=2)
    gl.bootstrap(model, x, toys=2)
    assert set(seen) == {1}
    assert torch.get_num_threads() == 3


def test_threads_are_the_users_again_after_an_error(model, three_threads):
    with pytest.raises(gl.InputError):
        model.likelihood([[1.0, 2.0]])
    assert torch.get_num_threads() == 3


def test_threads_are_the_users_again_after_calls_from_several_threads(model, three_threads):
    samples = [TOY.sample(0.4, 20_000, seed=i) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(model.likelihood, samples))
        assert set(pool.map(lambda _: torch.get_num_threads(), range(8))) == {3}
    assert torch.get_num_threads() == 3


SUMS = """
import torch
from gridless import distributed
with distributed.joined():
    me = distributed.rank()
    own = torch.tensor([1.0 + me, 10.0 * me])
    assert distributed.size() == 2
    assert distributed.total(own).tolist() == [3, 10]
    assert distributed.total(own.numpy()).tolist() == [3, 10]
    first, second = distributed.totals([own, torch.full((2, 2), me)])
    assert first.tolist() == [3, 10] and second.tolist() == [[1, 1], [1, 1]]
    assert distributed.least(5 - me) == 4
    assert distributed.of_first(own).tolist() == [1, 0]
    assert distributed.of_first(own.numpy()).tolist() == [1, 0]
    assert own.tolist() == [1 + me, 10 * me]
assert distributed.size() == 1 and not torch.distributed.is_initialized()
"""

# A program with torch.distributed of its own, of which only one rank fits.
OWN = """
import torch.distributed as dist
import gridless as gl
from gridless import distributed
from gridless.examples import OneObservable
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    gl.fit(OneObservable().templates(200, seed=1), hidden=2, epochs=2, replicas=0)
    print("fitted")
with distributed.joined():
    assert distributed.size() == 2
assert dist.is_initialized() and distributed.size() == 1
dist.barrier()
dist.destroy_process_group()
"""


def torchrun(*arguments, folder):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_sums_over_processes(tmp_path):
    (tmp_path / "sums.py").write_text(SUMS)
    torchrun("sums.py", folder=tmp_path)


@pytest.mark.slow
def test_a_fit_in_a_program_with_ranks_of_its_own_is_alone(tmp_path):
    """It used to wait for ever for the other rank, which does not fit."""
    (tmp_path / "own.py").write_text(OWN)
    assert torchrun("own.py", folder=tmp_path).count("fitted") == 1


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["template", "penalty"])
def test_two_processes_train_as_one(tmp_path, objective):
    for i, theta in enumerate(gl.grid((0, 1), 10)):
        np.savez(tmp_path / f"mc_{theta:.2f}.npz", x=TOY.sample(theta, 10_000, seed=i)[:, 0])
    fit = ["fit", "mc_{theta}.npz", "--bounds", "theta", "0", "1", "-x", "x", "--seed", "1"]
    fit += ["--objective", objective, "--hidden", "4", "--epochs", "4"]
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
    # What is said of the templates is said of all events, not of one rank's share.
    assert two.files == one.files
    assert two.files[0].events == 10_000
    assert two.summary.audit.title == one.summary.audit.title
    assert two.summary.audit["size"] == one.summary.audit["size"]
    for a, b in zip(one.summary.audit.findings, two.summary.audit.findings, strict=True):
        assert b.value == pytest.approx(a.value, abs=0.02)
    (a,), (b,) = one.summary.distributions, two.summary.distributions
    np.testing.assert_allclose(np.sum(b.shares, axis=1), np.sum(a.shares, axis=1), atol=0.01)
    for theta in (0.2, 0.5, 0.8):
        x = TOY.quantiles(theta)
        a, b = (model.likelihood(x).maximum() for model in (one, two))
        # Of 10,000 events the error is 0.01; both are as far from the truth as templates of
        # 10,000 events allow.
        assert b.value == pytest.approx(a.value, abs=0.005)
        assert b.value == pytest.approx(theta, abs=0.015)
        assert b.stat == pytest.approx(a.stat, rel=0.06)
        # From replicas of other events, and 32 of them: the size is all that can be compared.
        assert 1 / 3 < b.simulation / a.simulation < 3
