"""Likelihoods of files: in pieces, in little memory, on executors and on a real dask cluster."""

import logging
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gridless as gl
from gridless.examples import OneObservable
from gridless.files import read as reading
from gridless.files.read import pieces, stream
from gridless.model import stream as streaming
from gridless.model.storage.file import model_bytes
from gridless.parallel import cluster, run
from gridless.templates.query import Query

TOY = OneObservable()
REQUEST = Query.of(["x"], None, None)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same events in two files of each kind that can be read in pieces."""
    folder = tmp_path_factory.mktemp("data")
    import h5py
    import uproot

    for part in range(2):
        x = TOY.sample(0.4, 5_000, seed=part)[:, 0]
        w = np.random.default_rng(part).uniform(0.5, 1.5, len(x))
        pq.write_table(pa.table({"x": x, "w": w}), folder / f"{part}.parquet", row_group_size=700)
        with uproot.recreate(folder / f"{part}.root") as file:
            file.mktree("events", {"x": x.dtype, "w": w.dtype}).extend({"x": x, "w": w})
        with h5py.File(folder / f"{part}.h5", "w") as file:
            file["events/x"], file["events/w"] = x, w
        np.savez(folder / f"{part}.npz", x=x, w=w)
    return folder


def sources(files, kind):
    return [str(files / f"{part}.{kind}") for part in range(2)]


@pytest.mark.parametrize("kind", ["parquet", "root", "h5", "npz"])
def test_pieces_are_the_whole(files, kind):
    source = sources(files, kind)[0]
    whole = np.concatenate([x for x, _ in stream(source, REQUEST, 300)])
    ranges = pieces(source, REQUEST, 1_000)
    assert len(ranges) == (1 if kind == "npz" else 5 if kind in ("root", "h5") else 4)
    parts = [x for rows in ranges for x, _ in stream(source, REQUEST, 300, rows)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert max(len(x) for x in parts) <= 300


@pytest.mark.parametrize("kind", ["parquet", "root", "h5"])
def test_entry_counts_over_pieces(files, kind):
    request = Query.of(["x", "entry"], None, "entry % 3 == 1")
    source = sources(files, kind)[0]
    rows = [x for r in pieces(source, request, 1_000) for x, _ in stream(source, request, 300, r)]
    np.testing.assert_array_equal(np.concatenate(rows)[:, 1], np.arange(1, 5_000, 3))


@pytest.fixture
def small_tasks(monkeypatch):
    monkeypatch.setattr(streaming, "TASK_ROWS", 1_000)
    monkeypatch.setattr(streaming, "BLOCK_ROWS", 500)


@pytest.mark.parametrize("weight", [None, "w"])
def test_it_is_the_likelihood_of_all_events(model, files, weight, small_tasks):
    samples = [gl.read(source, ["x"], weight) for source in sources(files, "parquet")]
    x = np.concatenate([sample.x for sample in samples])
    w = None if weight is None else np.concatenate([sample.weights for sample in samples])
    whole = model.likelihood(x, w)
    streamed = gl.read_likelihood(model, sources(files, "parquet"), weight)
    assert streamed.events == whole.events == 10_000
    theta = np.linspace(0, 1, 9)
    np.testing.assert_allclose(streamed.scan(theta), whole.scan(theta), atol=1e-4)
    assert streamed.maximum().value == pytest.approx(whole.maximum().value, abs=1e-7)
    assert streamed.maximum().stat == pytest.approx(whole.maximum().stat, rel=1e-5)


def test_files_are_counted_while_they_are_read(model, files, small_tasks, monkeypatch):
    """Two files in several pieces each; a second reading would cost as much as the first."""
    opened = []
    blocks = reading.stream
    monkeypatch.setattr(streaming, "stream", lambda *a: opened.append(a[0]) or blocks(*a))
    given = sources(files, "parquet")
    likelihood, found = streaming.read_observed(model, given, where="x > 0.4")
    records = found[""]
    assert [record.source for record in records] == given
    assert [record.of for record in records] == [5_000, 5_000]
    assert sum(record.events for record in records) == likelihood.events
    assert likelihood.offered == 10_000
    assert records == [gl.read(one, "x", selection="x > 0.4").record for one in given]
    assert len(opened) == sum(len(pieces(one, REQUEST, streaming.TASK_ROWS)) for one in given)


def _same(one, other):
    largest = np.abs(other.coefficients).max()
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-12 * largest)


def test_any_executor_gives_the_same_numbers(model, files, small_tasks):
    serial = gl.read_likelihood(model, sources(files, "root"), where="x > 0")
    with ThreadPoolExecutor(2) as threads:
        other = gl.read_likelihood(model, sources(files, "root"), where="x > 0", executor=threads)
    _same(other, serial)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        other = gl.read_likelihood(model, sources(files, "h5"), executor=processes)
    serial = gl.read_likelihood(model, sources(files, "h5"))
    _same(other, serial)


def test_nothing_selected(model, files):
    with pytest.raises(gl.InputError, match="no event passes the selection 'x > 100'"):
        gl.read_likelihood(model, sources(files, "root"), where="x > 100")
    with pytest.raises(gl.InputError, match="at least one file"):
        gl.read_likelihood(model, [])


def test_mistakes_come_back_from_executors(model, files):
    with ThreadPoolExecutor(1) as threads, pytest.raises(gl.InputError, match="no column 'y'"):
        gl.read_likelihood(model, sources(files, "root"), where="y > 0", executor=threads)
    with pytest.raises(gl.InputError, match="give a concurrent"):
        gl.read_likelihood(model, sources(files, "root"), executor="tcp://localhost:1")


PIECE = streaming._piece_likelihood


def dies_once(path, *task):
    """The likelihood of a piece; the first process to begin with the third one is killed in it, as
    by a machine that goes down."""
    if task[2][0] == 2_800:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return PIECE(*task)
        os.kill(os.getpid(), signal.SIGKILL)
    return PIECE(*task)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending large graph")
def test_dask_with_a_lost_worker(model, files, small_tasks, tmp_path, monkeypatch):
    serial = gl.read_likelihood(model, sources(files, "parquet"))
    samples = {t: TOY.sample(t, 2_000, seed=1) for t in (0.3, 0.6)}
    with cluster(None, 2) as client:
        spread = gl.read_likelihood(model, sources(files, "parquet"), executor=client)
        np.testing.assert_allclose(spread.coefficients, serial.coefficients, rtol=1e-9, atol=1e-9)
        assert spread.maximum().value == pytest.approx(serial.maximum().value, abs=1e-9)
        assert spread.maximum().p_value == pytest.approx(serial.maximum().p_value)
        there = gl.coverage(model, samples, toys=50, executor=client)
        here = gl.coverage(model, samples, toys=50)
        np.testing.assert_allclose(there.pull, here.pull, rtol=1e-9)
        closed = gl.closure(model, samples, executor=client)
        np.testing.assert_allclose(closed.value, gl.closure(model, samples).value, rtol=1e-9)
        # A worker is killed in the middle of its task: the task goes to another.
        workers = set(client.run(os.getpid).values())
        monkeypatch.setattr(streaming, "_piece_likelihood", partial(dies_once, tmp_path / "died"))
        again = gl.read_likelihood(model, sources(files, "parquet"), executor=client)
        assert (tmp_path / "died").exists()
        np.testing.assert_allclose(again.coefficients, serial.coefficients, rtol=1e-9, atol=1e-9)
        assert set(client.run(os.getpid).values()) != workers


def test_a_pickled_model_is_its_file(model):
    content = pickle.dumps(model)
    again = pickle.loads(content)
    assert model_bytes(again) == model_bytes(model)
    assert pickle.loads(content) is again  # made once in a process
    x = TOY.sample(0.4, 100, seed=1)
    np.testing.assert_array_equal(
        again.likelihood(x).coefficients, model.likelihood(x).coefficients
    )


def refuse():
    raise gl.InputError("file: not good; give another")


def speak():
    logging.getLogger("distributed.worker.state_machine").warning("a task is cancelled")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_dead_worker_process_is_named():
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as processes,
        pytest.raises(gl.InputError, match="a worker process died during its task"),
    ):
        run(die, [()], processes, "test")


@pytest.mark.slow
def test_dask_repeats_no_mistake_of_the_user_and_names_a_worker_that_dies(capfd):
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), cluster(None, 1) as client:
        with pytest.raises(gl.InputError, match="file: not good"):
            run(refuse, [()], client, "test")
        client.run(speak)
        assert not capfd.readouterr().err
        with pytest.raises(gl.InputError, match="a worker process died during its task"):
            run(die, [()], client, "test")


def test_cluster_mistakes():
    with pytest.raises(gl.InputError, match="give one of the two"), cluster("tcp://a:1", 2):
        pass
    with pytest.raises(gl.InputError, match="at least 1"), cluster(None, 0):
        pass
    with cluster(None, None) as nothing:
        assert nothing is None


STREAM = """
import resource, sys
import gridless as gl
model = gl.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
likelihood = gl.read_likelihood(model, sys.argv[2])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(likelihood.events, (after - before) / 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    block = TOY.sample(0.4, 500_000, seed=1)[:, 0]
    used = []
    for blocks in (4, 16):
        path = tmp_path / f"{blocks}.parquet"
        with pq.ParquetWriter(path, pa.schema([("x", pa.float64())])) as writer:
            for _ in range(blocks):
                writer.write_table(pa.table({"x": block}), row_group_size=250_000)
        out = subprocess.run(
            [sys.executable, "-c", STREAM, str(tmp_path / "m.safetensors"), str(path)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        assert int(out[0]) == blocks * 500_000
        used.append(float(out[1]))
    # The larger file holds 64 MB, the smaller 16.
    assert used[1] - used[0] < 30, used


def test_a_file_given_twice_is_refused(model, files):
    with pytest.raises(gl.InputError, match=r"0\.npz: given twice"):
        gl.read_likelihood(model, [str(files / "0.npz"), files / "0.npz"])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("w * 0", "their sum over the observed events is 0"),
        ("0 - w", "it must be positive"),
        ("w * 1e300", "give weights near 1"),
        ("w * 1e-300", "give weights near 1"),
    ],
)
def test_weights_that_say_nothing_are_refused(model, files, weight, message):
    with pytest.raises(gl.InputError, match=message):
        gl.read_likelihood(model, str(files / "0.parquet"), weight)


def test_a_piece_of_negative_weight_is_no_mistake(model, files, monkeypatch):
    monkeypatch.setattr(streaming, "TASK_ROWS", 500)
    signed = gl.read_likelihood(model, str(files / "0.parquet"), "where(entry < 700, -0.1, 1.0)")
    assert signed.events == 5_000
