"""A saved model is the same model; any other file is refused with a reason."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import gridless as gl
from gridless.examples import OneObservable, TwoObservables
from gridless.model.storage.archive import pack
from gridless.model.storage.file import model_bytes
from gridless.templates.query import FileRecord


@pytest.fixture
def path(model, tmp_path):
    path = tmp_path / "deep" / "model.safetensors"
    model.save(path)
    return path


RECORD = {"gain": 1.0, "epochs": 2, "batch": 100, "validation": 0.1}


def bins_of(edges):
    """The distribution of the observable in a single template, as a header has it."""
    return {"observable": "x", "edges": edges, "shares": [[1.0] * (len(edges) - 1)]}


SUMMARY = {
    "audit": {"title": "one", "findings": []},
    "distributions": [bins_of([1, 2])],
    "effective": [100.0],
}


def read(path):
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def test_round_trip(model, path):
    loaded = gl.load(path)
    x = OneObservable().sample(0.3, 500, seed=1)
    before, after = model.likelihood(x), loaded.likelihood(x)
    np.testing.assert_array_equal(before.coefficients, after.coefficients)
    assert repr(loaded) == repr(model)
    assert loaded.record == model.record
    assert loaded.options == model.options
    assert loaded.grid.parameters == model.grid.parameters
    np.testing.assert_array_equal(loaded.grid.values, model.grid.values)


def test_ensembles_and_other_bases_survive(tmp_path):
    templates = TwoObservables().templates(500, seed=1)
    model = gl.fit(
        templates,
        basis=gl.ExpPolynomial(3, floor=0.04),
        components=2,
        hidden=(),
        ensemble=2,
        objective=gl.Penalty(at=[0, 0.5, 1], density="histogram"),
        epochs=1,
    )
    model.save(tmp_path / "m.safetensors")
    x = templates.x[:50]
    loaded = gl.load(str(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(
        loaded.posterior(x).log_prob(0.4), model.posterior(x).log_prob(0.4)
    )
    assert loaded.options.objective["penalty"]["at"] == [0, 0.5, 1]


def test_one_model_in_two_channels(model, tmp_path):
    channels = gl.Channels({"a": model, "b": model})
    channels.save(tmp_path / "two.safetensors")
    x = {name: OneObservable().sample(0.3, 500, seed=n) for n, name in enumerate(channels)}
    estimate = channels.likelihood(x).maximum()
    loaded = gl.load(tmp_path / "two.safetensors").likelihood(x).maximum()
    assert loaded.to_dict() == estimate.to_dict()
    # Both have one simulation: it counts as it does for all events at once.
    whole = model.likelihood(np.concatenate(list(x.values()))).maximum()
    assert estimate.budget["theta"] == pytest.approx(whole.budget["theta"], rel=1e-9)


def test_a_network_with_tied_weights(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.first = torch.nn.Linear(inputs, 4)
            self.second, self.again = (torch.nn.Linear(4, 4) for _ in range(2))
            self.again.weight = self.second.weight
            self.last = torch.nn.Linear(4, outputs)

        def forward(self, x):
            return self.last(self.again(torch.tanh(self.second(torch.tanh(self.first(x))))))

    templates = OneObservable().templates(300, seed=1)
    model = gl.fit(templates, network=Tied, ensemble=1, epochs=1, replicas=0, calibrate=False)
    model.save(tmp_path / "m.safetensors")
    loaded = gl.load(tmp_path / "m.safetensors", network=Tied)
    x = templates.x[:50]
    np.testing.assert_array_equal(
        loaded.posterior(x).log_prob(0.4), model.posterior(x).log_prob(0.4)
    )


def test_no_such_file(tmp_path):
    with pytest.raises(gl.InputError, match="no such file"):
        gl.load(tmp_path / "nothing.safetensors")


@pytest.mark.parametrize("keep", [0, 5, 300, -10])
def test_truncated_files(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(gl.InputError, match="damaged, or not a safetensors file"):
        gl.load(path)


def test_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"a": 1}, path)
    with pytest.raises(gl.InputError, match="damaged, or not a safetensors file"):
        gl.load(path)


def test_a_foreign_safetensors_file(tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(gl.InputError, match="not a gridless model"):
        gl.load(path)


def rewrite(path, arrays, header):
    """A file with that header and a digest of its own, as by somebody who knows how."""
    header = {key: value for key, value in header.items() if value is not None}
    path.write_bytes(pack(arrays, "gridless", header))


def change_header(path, **changes):
    arrays, metadata = read(path)
    header = json.loads(metadata["gridless"])
    header.pop("digest")
    rewrite(path, arrays, header | changes)


def change_array(path, name, change):
    arrays, metadata = read(path)
    header = json.loads(metadata["gridless"])
    header.pop("digest")
    arrays[name] = change(arrays[name])
    rewrite(path, arrays, header)


def test_a_newer_file(path):
    change_header(path, format=99, something_new=True)
    with pytest.raises(gl.InputError, match=r"written by a newer gridless .* upgrade gridless"):
        gl.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": None}, "(?s)its header is damaged .*members"),
        ({"network_options": "many"}, "its header is damaged"),
        ({"network_options": {"hidden": [9]}}, "which does not fit its header"),
        ({"basis": "of_my_own"}, "there is no 'of_my_own'.*import the module"),
    ],
)
def test_inconsistent_headers(path, changes, message):
    change_header(path, **changes)
    with pytest.raises(gl.InputError, match=message):
        gl.load(path)


def test_missing_arrays(path):
    arrays, metadata = read(path)
    arrays.pop("prior.log_q")
    header = json.loads(metadata["gridless"])
    header.pop("digest")
    rewrite(path, arrays, header)
    with pytest.raises(gl.InputError, match=r"prior.log_q is missing"):
        gl.load(path)


def test_any_changed_byte_is_told(path):
    content = path.read_bytes()
    for place in np.random.default_rng(1).integers(len(content), size=60):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(gl.InputError, match=r"damaged|newer|not read any more|not a grid"):
            gl.load(path)


def test_a_changed_weight_is_told(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(gl.InputError, match=r"changed or damaged since .*save the model again"):
        gl.load(path)


def test_the_digest_cannot_be_left_out(path):
    arrays, metadata = read(path)
    header = json.loads(metadata["gridless"])
    header.pop("digest")
    save_file(arrays, path, {"gridless": json.dumps(header)})
    with pytest.raises(gl.InputError, match="has no digest"):
        gl.load(path)


def test_the_same_model_gives_the_same_bytes(model, path):
    assert model_bytes(model) == path.read_bytes()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("grid.bounds", lambda a: a.flip(1), "its bounds"),
        ("grid.bounds", lambda a: a * 0, "its bounds"),
        ("grid.bounds", lambda a: a * torch.nan, r"grid.bounds has values that are no numbers"),
        ("cells.share", lambda a: a * torch.nan, r"cells.share has values"),
        ("cells.centres", lambda a: a.repeat(1, 2), r"cells.centres is \(\d+, 2\)"),
        ("cells.share", lambda a: a[:-1], r"cells.share is"),
        ("prior.log_q", lambda a: torch.zeros(10**6, dtype=torch.float64), r"prior.log_q is"),
        ("network.scale", lambda a: a * 0, "scale of its inputs"),
        ("network.mean", lambda a: a / 0, r"network.mean has values"),
        ("network.templates", lambda a: a[:-1], "templates is"),
        ("calibration.a", lambda a: a[:-1], "calibration.a_powers is"),
        ("calibration.transform", lambda a: a[:, :-1], "calibration.a is"),
    ],
)
def test_arrays_that_make_no_model(path, name, change, message):
    change_array(path, name, change)
    with pytest.raises(gl.InputError, match=message):
        gl.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": -1}, "of format -1, which is not read any more"),
        ({"parameters": ["theta", "theta"]}, "not all of their own|does not fit|is none of"),
        ({"network_options": {"hidden": [30_000] * 3, "activation": "tanh"}}, "does not fit"),
        ({"members": 10**12}, "does not fit"),
        ({"components": 10**12}, "does not fit|damaged"),
        ({"record": RECORD | {"history": []}}, "no epoch"),
        ({"record": RECORD | {"history": [{"stage": 1}]}}, r"record.history.0"),
        ({"record": RECORD | {"history": 5}}, r"record.history"),
        ({"summary": {"audit": 3}}, "summary"),
        ({"summary": SUMMARY | {"distributions": []}}, "distributions of other observables"),
        ({"summary": SUMMARY | {"distributions": [bins_of([1, 1])]}}, "edges of 'x'"),
        ({"summary": SUMMARY | {"distributions": [bins_of([1, 2])]}}, "has 1 templates"),
        ({"summary": SUMMARY | {"effective": [0.0]}}, "worth no event"),
        ({"query": {"observables": ["x"]}}, r"query.observables"),
    ],
)
def test_headers_that_make_no_model(path, changes, message):
    change_header(path, **changes)
    with pytest.raises(gl.InputError, match=message):
        gl.load(path)


def test_a_file_from_before_observables_could_be_shifted(model, path):
    arrays, metadata = read(path)
    assert not arrays.pop("network.shift").any()
    header = json.loads(metadata["gridless"])
    header.pop("digest")
    rewrite(path, arrays, header)
    assert gl.load(path).network.shift.tolist() == model.network.shift.tolist()


@pytest.mark.parametrize("prior", ["dividd", None, 3])
def test_unknown_choices(path, prior):
    arrays, metadata = read(path)
    header = json.loads(metadata["gridless"])
    header.pop("digest")
    header["options"]["prior"] = prior
    rewrite(path, arrays, header)
    with pytest.raises(gl.InputError, match="prior"):
        gl.load(path)


@pytest.mark.parametrize(
    "text", ["[" * 5000, '{"format":' * 3000, "9" * 5000, "null", '{"a": NaN}']
)
def test_headers_that_no_parser_likes(path, text):
    arrays, _ = read(path)
    save_file(arrays, path, {"gridless": text})
    with pytest.raises(gl.InputError, match="its header is damaged"):
        gl.load(path)


def test_names_of_files_that_are_no_text_are_spelt_out(model, tmp_path):
    files = (FileRecord("top_\udcff.root", 3),)
    replace(model, files=files).save(tmp_path / "m.safetensors")
    assert gl.load(tmp_path / "m.safetensors").files[0].source == "top_\\udcff.root"


def test_a_file_of_version_0_1_is_refused_and_the_error_says_to_fit_anew():
    with pytest.raises(gl.InputError, match=r"written by version 0\.1; .* fit it anew"):
        gl.load(Path(__file__).parent / "format_2.safetensors")


def test_an_analysis_file_in_place_of_a_model(tmp_path):
    path = tmp_path / "analysis.yaml"
    path.write_text("templates: t_{a}.csv\n")
    cure = f"an analysis file where a model belongs; first .* gridless fit {path} -o "
    with pytest.raises(gl.InputError, match=cure):
        gl.load(path)
