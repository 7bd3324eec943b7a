"""The same events written in every format."""

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import uproot

EVENTS = 1_000
GENERATOR = np.random.default_rng(7)
DATA = {
    "pt": GENERATOR.exponential(30, EVENTS),
    "eta": GENERATOR.normal(0, 2, EVENTS).astype(np.float32),
    "n": GENERATOR.integers(0, 6, EVENTS).astype(np.int32),
    "jet.m": GENERATOR.normal(80, 5, EVENTS),
    "w": GENERATOR.uniform(0.5, 1.5, EVENTS),
}
COLUMNS = ["pt", "pt / sqrt(n + 1)", "jet.m", "n - 3"]
SELECTION = "(pt > 10) & (abs(eta) < 2.5)"


def write_ttree(path, data=DATA, name="events"):
    with uproot.recreate(path) as file:
        tree = file.mktree(name, {key: np.asarray(value).dtype for key, value in data.items()})
        half = len(next(iter(data.values()))) // 2
        tree.extend({key: value[:half] for key, value in data.items()})
        tree.extend({key: value[half:] for key, value in data.items()})


def write_rntuple(path, data=DATA, name="events"):
    with uproot.recreate(path) as file:
        file.mkrntuple(name, dict(data))


def write_parquet(path, data=DATA):
    pq.write_table(pa.table(dict(data)), path, row_group_size=300)


def write_group(path, data=DATA, name="events"):
    with h5py.File(path, "w") as file:
        for key, value in data.items():
            file[f"{name}/{key}"] = value


def write_compound(path, data=DATA, name="events"):
    kinds = [(key, np.asarray(value).dtype) for key, value in data.items()]
    table = np.empty(len(next(iter(data.values()))), kinds)
    for key, value in data.items():
        table[key] = value
    with h5py.File(path, "w") as file:
        file[name] = table


def write_npz(path, data=DATA):
    np.savez(path, **data)


def write_packed(path, data=DATA):
    np.savez_compressed(path, **data)


def write_csv(path, data=DATA):
    # repr of a float64 gives all its digits; that of a float32 would not be the same number.
    frame = pd.DataFrame({k: np.asarray(v, float) for k, v in data.items()})
    frame.to_csv(path, index=False)


FORMATS = {
    "ttree": ("a.root", write_ttree),
    "rntuple": ("a.root", write_rntuple),
    "parquet": ("a.parquet", write_parquet),
    "pq": ("a.pq", write_parquet),
    "hdf5 group": ("a.h5", write_group),
    "hdf5 compound": ("a.hdf5", write_compound),
    "npz": ("a.npz", write_npz),
    "npz compressed": ("a.npz", write_packed),
    "csv": ("a.csv", write_csv),
    "txt": ("a.TXT", write_csv),
}


def events_at(*theta, events=20):
    """Some events of a template."""
    rng = np.random.default_rng(int(1_000 * sum(theta)))
    x = rng.normal(theta[0], 1, events)
    return {"x": x, "y": x + rng.normal(size=events), "w": rng.uniform(1, 2, events)}
