"""What is attacked: each target makes one mutated input from a random generator and tries it.

A target returns what came of it: SAME (the result of the good input), WARNED (another result, with
a warning), DIFFERENT (another result without a word), or ANY (there is no right result to compare
with). An InputError means that the input was refused; any other exception is a failure.
"""

import contextlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from tests.attack import mutations
from tests.attack.ground import (
    KINDS,
    OBSERVABLES,
    OPTIONS,
    Ground,
    safetensors_file,
    safetensors_parts,
)
from tests.attack.mutations import Generator, choose

import gridless as gl
from gridless.analysis.loading import load_analysis
from gridless.cli.main import main
from gridless.model.record import FitOptions
from gridless.model.storage.archive import NO_DIGEST, sign
from gridless.training.checkpoint import Checkpoint

TEMPLATE_FLAGS = ["--weight", "--selection", "--where", "--bounds", "-x"]
SAME, WARNED, DIFFERENT, ANY = "same", "warned", "different", "any"


@dataclass(frozen=True)
class Target:
    """A name, what makes and tries a case, how often, and whether damage can be told at all."""

    name: str
    attack: Callable[[Ground, Generator, Path], str]
    weight: int = 1
    checked: bool = True


def compared(ground: Ground, likelihood: gl.Likelihood) -> str:
    """Whether a likelihood of what should be the good events is theirs."""
    estimate = likelihood.maximum()
    good = ground.estimate
    if estimate.to_dict() == good.to_dict():
        return SAME
    return (
        WARNED
        if {w.name for w in estimate.warnings} - {w.name for w in good.warnings}
        else DIFFERENT
    )


def data_file(kind: str) -> Callable[[Ground, Generator, Path], str]:
    """A data file with damaged bytes is measured."""

    def attack(ground: Ground, rng: Generator, folder: Path) -> str:
        name, content = ground.files[kind]
        path = folder / name
        path.write_bytes(mutations.damaged(content, rng))
        return compared(ground, gl.read_likelihood(ground.model, path))

    return attack


def model_bytes(ground: Ground, rng: Generator, folder: Path) -> str:
    """A model file with damaged bytes measures the good events."""
    name, content = ground.files["model"]
    path = folder / name
    path.write_bytes(mutations.damaged(content, rng))
    return compared(ground, gl.load(path).likelihood(ground.x))


def signed(content: bytes, key: str, rng: Generator) -> bytes:
    """A model or checkpoint changed by somebody who knows how to compute its digest."""
    header, arrays = safetensors_parts(content)
    metadata = header["__metadata__"]
    digest = json.loads(metadata[key]).get("digest", NO_DIGEST)
    metadata[key] = metadata[key].replace(digest, NO_DIGEST)
    fault = int(rng.integers(8))
    if fault < 5:
        metadata[key] = json.dumps(mutations.changed_json(json.loads(metadata[key]), rng))
    elif fault == 5:
        text = choose(rng, ("[" * 5000, '{"format":' * 3000, "9" * 5000, "", "[]", "null", '"a"'))
        metadata[key] = text
    elif fault == 6:
        number = np.frombuffer(arrays, np.uint8).copy()
        start = 4 * int(rng.integers(len(number) // 4))
        odd = choose(rng, (np.nan, np.inf, -np.inf, 1e38, -1e30, 0, 1e-45))
        number[start : start + 4] = np.frombuffer(np.float32(odd).tobytes(), np.uint8)
        arrays = number.tobytes()
    else:
        name = choose(rng, [n for n in header if n != "__metadata__"])
        if rng.random() < 0.5:
            header[name]["shape"] = header[name]["shape"][::-1]
        else:
            header[str(choose(rng, mutations.ODD_TEXT))] = header.pop(name)
    return sign(safetensors_file(header, arrays))


def model_signed(ground: Ground, rng: Generator, folder: Path) -> str:
    """A model file changed on purpose is loaded, used and written."""
    name, content = ground.files["model"]
    path = folder / name
    path.write_bytes(signed(content, "gridless", rng))
    model = gl.load(path)
    repr(model), str(model.warnings), model.options.to_dict(), model.record.to_dict()
    width = len(model.observables)
    x = ground.x if width == 2 else np.repeat(ground.x[:, :1], width, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gl.GridlessWarning)
        estimate = model.likelihood(x).maximum()
    strict(json.dumps(estimate.to_dict()))
    str(estimate)
    model.save(folder / "again.safetensors")
    gl.load(folder / "again.safetensors")
    return ANY


def checkpoint_bytes(ground: Ground, rng: Generator, folder: Path) -> str:
    """A damaged checkpoint gives its state or none; sometimes the fit goes on from it."""
    name, content = ground.files["checkpoint"]
    path = folder / name
    path.write_bytes(mutations.damaged(content, rng))
    if rng.random() < 0.05:
        return resumed(ground, path)
    good = folder / "good.checkpoint"
    good.write_bytes(content)
    key = json.loads(safetensors_parts(content)[0]["__metadata__"]["gridless-checkpoint"])[
        "fingerprint"
    ]
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        state, right = Checkpoint(path, key).load(), Checkpoint(good, key).load()
    if state is None:
        raise gl.InputError("not taken for a checkpoint of this training")
    assert right is not None
    same = (state.stage, state.epoch, state.history) == (right.stage, right.epoch, right.history)
    same &= state.tensors.keys() == right.tensors.keys()
    same = same and all(state.tensors[k].equal(right.tensors[k]) for k in right.tensors)
    return SAME if same else DIFFERENT


def checkpoint_signed(ground: Ground, rng: Generator, folder: Path) -> str:
    """A fit meets a checkpoint that was changed on purpose."""
    name, content = ground.files["checkpoint"]
    path = folder / name
    path.write_bytes(signed(content, "gridless-checkpoint", rng))
    resumed(ground, path)
    return ANY


def resumed(ground: Ground, path: Path) -> str:
    """Whether the fit that goes on from a checkpoint gives the good model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gl.GridlessWarning)
        model = gl.fit(ground.templates, **OPTIONS, checkpoint=path)
    return compared(ground, model.likelihood(ground.x))


def expression(ground: Ground, rng: Generator, folder: Path) -> str:
    """A well-formed expression is what NumPy makes of it; any other is refused or a number."""
    columns = ("x", "y", "w")
    if rng.random() < 0.3:
        text = mutations.arithmetic(rng, columns)
        right = np.broadcast_to(
            eval(text, {"abs": np.abs, "sqrt": np.sqrt, "minimum": np.minimum, "where": np.where}
                 | ground.data), len(ground.data["x"]))  # fmt: skip
        found = gl.read(ground.data, {"e": text}).x[:, 0]
        return SAME if np.allclose(found, right, rtol=1e-12) else DIFFERENT
    text = mutations.odd_expression(rng, columns)
    (folder / "expression.txt").write_text(text, errors="surrogateescape")
    place = int(rng.integers(3))
    arguments = ["x", None, None]
    arguments[place] = text
    gl.read(ground.data, *arguments)
    return ANY


def analysis(ground: Ground, rng: Generator, folder: Path) -> str:
    """An analysis.yaml with faults is refused, or is an analysis."""
    good = (ground.folder / "analysis.yaml").read_text()
    text, wrong = mutations.odd_yaml(good, rng)
    path = folder / "analysis.yaml"
    path.write_text(text, errors="surrogateescape")
    load_analysis(path)
    return DIFFERENT if wrong else ANY


def options(ground: Ground, rng: Generator, folder: Path) -> str:
    """A command with odd options ends with 0 or 2, and prints JSON that every parser takes."""
    (folder / ground.files["npz"][0]).write_bytes(ground.files["npz"][1])
    kind = choose(rng, ("model", "model", "systematic", "channels"))
    (folder / "model.safetensors").write_bytes(ground.files[kind][1])
    argv = command(rng, folder, str(ground.folder / "t_{theta}.npz"))
    (folder / "command.txt").write_text(repr(argv))
    with contextlib.chdir(folder):
        result = CliRunner().invoke(main, argv)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in (0, 2):
        raise RuntimeError(f"exit code {result.exit_code}: {result.output[-300:]}")
    if result.exit_code == 2:
        raise gl.InputError(result.output[-300:])
    helped = "-h" in argv and result.stdout.startswith("Usage:")
    if "--json" in argv and not helped:
        strict(result.stdout)
    return ANY


LIKELIHOOD_FLAGS = ["--level", "--constrain", "--fix"]
FLAGS = {
    "measure": [*LIKELIHOOD_FLAGS, "--weight", "--where", "--by", "--blind", "--unblind",
                "--method", "--toys", "--scan"],
    "expect": [*LIKELIHOOD_FLAGS, "--events", "--at"],
    "plan": ["--events", "--simulated", "--at", "--parameter"],
    "closure": ["--weight", "--where", "--toys", "--events", "--seed"],
    "audit": ["--components", "--objective", *TEMPLATE_FLAGS],
    "export": ["--weight", "--where"],
    "fit": [*(f"--{name}" for name in FitOptions.model_fields), *TEMPLATE_FLAGS],
}  # fmt: skip


VERBS = ("measure", "measure", "measure", "closure", "audit", "export", "fit", "expect", "plan")


def command(rng: Generator, folder: Path, templates: str) -> list[str]:
    """A command line with one or two odd values."""
    model, data = str(folder / "model.safetensors"), str(folder / "a.npz")
    verb = choose(rng, VERBS)
    source = [templates, "--bounds", "theta", "-1", "2", "-x", "x,y"]
    good = {
        "measure": [model, data],
        "expect": [model, "--events", "100"],
        "plan": [model, "--events", "100"],
        "closure": [model, templates],
        "audit": source,
        "export": [model, data, "--curve", str(folder / "curve.json")],
        "fit": [*source, "-o", str(folder / "out.safetensors"), "--epochs", "1", "--replicas", "0"],
    }[verb]
    flags = FLAGS[verb]
    argv = [verb, *good]
    for _ in range(int(rng.integers(1, 3))):
        flag = choose(rng, flags)
        count = {"--constrain": 3, "--bounds": 3, "--fix": 2, "--at": 2}.get(flag, 1)
        argv += [flag, *(word(rng) for _ in range(count))]
    if rng.random() < 0.1:
        argv[1 + int(rng.integers(len(argv) - 1))] = word(rng)
    return [*argv, "--json"]


def word(rng: Generator) -> str:
    """What may stand after a flag; no count that is merely slow."""
    plain = ("theta", "x", "y", "w", "x > 0", "w * 0", "w * 1e300", "w * 1e-300", "0.5", "2", "3",
             "upper", "feldman-cousins", "soft=20", "hard=30", "tilt")  # fmt: skip
    pool = (plain, plain, mutations.ODD_NUMBERS, mutations.ODD_TEXT)[int(rng.integers(4))]
    if rng.random() < 0.1:
        return mutations.odd_expression(rng, OBSERVABLES)
    return str(choose(rng, pool)).replace("\x00", "?")


def strict(text: str) -> Any:
    """The JSON, refused where it has NaN or infinities."""

    def refuse(word: str) -> None:
        raise RuntimeError(f"JSON with {word}")

    return json.loads(text, parse_constant=refuse)


def all_targets() -> list[Target]:
    """Every target, as often as its weight."""
    from tests.attack import measurement_targets, problem_targets, python_targets

    targets = [Target(kind, data_file(kind), 3, checked) for kind, (*_, checked) in KINDS.items()]
    targets += [
        Target("model bytes", model_bytes, 4),
        Target("model signed", model_signed, 6),
        Target("checkpoint bytes", checkpoint_bytes, 4),
        Target("checkpoint signed", checkpoint_signed),
        Target("expression", expression, 6),
        Target("analysis", analysis, 6),
        Target("options", options, 4),
        Target("names", python_targets.names, 2),
        Target("arrays", python_targets.arrays, 6),
        Target("measurement yaml", measurement_targets.analysis, 4),
        Target("channels signed", measurement_targets.model_signed, 2),
        Target("calls", measurement_targets.calls, 2),
        Target("problems", problem_targets.problems, 4),
    ]
    return [target for target in targets for _ in range(target.weight)]
