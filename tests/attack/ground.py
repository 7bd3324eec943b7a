"""What the attack starts from: small good files, a small model, and what they give undisturbed."""

import json
import struct
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tests.attack.whole import Whole
from tests.files import samples

import gridless as gl
from gridless.training import checkpoint as checkpoints

OBSERVABLES = ("x", "y")
EVENTS = 80  # observed events: small files make for many cases
PER_TEMPLATE = 40
# With the number of members given no size is tried: a fit takes a third of the time.
OPTIONS = {"hidden": 2, "ensemble": 4, "epochs": 2, "replicas": 2, "seed": 1}
YAML = """\
templates: t_{theta}.npz
parameters:
  theta: [-1, 2]
observables:
  x: x
  y: y
selection: x > -5
fit:
  hidden: [2]
  epochs: 2
  replicas: 2
"""
# How each kind of file is written, and whether its format has checksums of the values.
KINDS = {
    "ttree": (*samples.FORMATS["ttree"], True),
    "rntuple": (*samples.FORMATS["rntuple"], True),
    "npz": (*samples.FORMATS["npz"], True),
    "npz compressed": (*samples.FORMATS["npz compressed"], True),
    "parquet": (*samples.FORMATS["parquet"], False),
    "hdf5 group": (*samples.FORMATS["hdf5 group"], False),
    "hdf5 compound": (*samples.FORMATS["hdf5 compound"], False),
    "csv": (*samples.FORMATS["csv"], False),
}


@dataclass
class Ground:
    """Bytes of every good file by the kind, and the model with what it gives."""

    folder: Path
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Rounded, so that they compress: ROOT stores what does not as it is, without a checksum.
        drawn = samples.events_at(0.4, events=EVENTS)
        self.data = {name: np.round(64 * values) / 64 for name, values in drawn.items()}
        self.x = np.stack([self.data[name] for name in OBSERVABLES], axis=1)
        for kind, (name, write, _) in KINDS.items():
            path = self.folder / name
            write(path, self.data)
            self.files[kind] = name, path.read_bytes()
        thetas = (0.0, 0.25, 0.5, 0.75, 1.0)
        for theta in thetas:
            events = samples.events_at(theta, events=PER_TEMPLATE)
            samples.write_npz(self.folder / f"t_{theta}.npz", events)
        (self.folder / "analysis.yaml").write_text(YAML)
        self.templates = gl.read_templates(
            str(self.folder / "t_{theta}.npz"), OBSERVABLES, (-1, 2), parameters=["theta"]
        )
        self.model = gl.fit(self.templates, **OPTIONS)
        self.save("model", self.model)
        self.save("channels", self.whole.channels)
        self.save("systematic", self.whole.model)
        self.keep_a_checkpoint()
        self.estimate = self.model.likelihood(self.x).maximum()

    @cached_property
    def whole(self) -> Whole:
        """A measurement with systematics; made when it is needed."""
        return Whole()

    def save(self, kind: str, model: gl.Model | gl.Channels) -> None:
        """Add a model file."""
        path = self.folder / f"{kind}.safetensors"
        model.save(path)
        self.files[kind] = "m.safetensors", path.read_bytes()

    def keep_a_checkpoint(self) -> None:
        """Add the checkpoint of a fit that was interrupted after its first epoch."""
        path, save = self.folder / "fit.checkpoint", checkpoints.Checkpoint.save

        def interrupted(self: Any, state: Any) -> None:
            save(self, state)
            raise KeyboardInterrupt

        checkpoints.Checkpoint.save = interrupted  # type: ignore[method-assign]
        try:
            gl.fit(self.templates, **OPTIONS, checkpoint=path)
        except KeyboardInterrupt:
            pass
        finally:
            checkpoints.Checkpoint.save = save  # type: ignore[method-assign]
        self.files["checkpoint"] = path.name, path.read_bytes()


def safetensors_parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON in front of a safetensors file, and its arrays."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def safetensors_file(header: Any, arrays: bytes) -> bytes:
    """A safetensors file of that JSON and those arrays."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + arrays
