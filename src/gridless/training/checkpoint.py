"""Where a training stands, kept in a file after every epoch so that it can go on."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gridless.files.write import write_whole
from gridless.model.record import Epoch

_KEY = "gridless-checkpoint"


@dataclass(frozen=True)
class State:
    """A training after some epoch: how far it is, and everything that the next epoch needs."""

    stage: int
    epoch: int
    history: list[Epoch]
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def under(self, prefix: str) -> list[Tensor]:
        """The tensors `prefix.0`, `prefix.1`, ... in order."""
        count = sum(name.startswith(f"{prefix}.") for name in self.tensors)
        return [self.tensors[f"{prefix}.{i}"] for i in range(count)]


@dataclass(frozen=True)
class Checkpoint:
    """A file for the state of one training, known by the fingerprint of its data and options."""

    path: Path
    fingerprint: str

    def load(self) -> State | None:
        """The state of this very training; None if there is none, or of another one."""
        try:
            with safe_open(self.path, framework="pt") as file:
                header = json.loads((file.metadata() or {})[_KEY])
                if header["fingerprint"] != self.fingerprint:
                    return None
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, ValueError):
            return None
        history = [Epoch(**row) for row in header["history"]]
        return State(header["stage"], header["epoch"], history, tensors)

    def save(self, state: State) -> None:
        """Replace what the file holds."""
        header = {
            "fingerprint": self.fingerprint,
            "stage": state.stage,
            "epoch": state.epoch,
            "history": [asdict(epoch) for epoch in state.history],
        }
        tensors = {name: value.detach().cpu().contiguous() for name, value in state.tensors.items()}
        write_whole(self.path, save(tensors, {_KEY: json.dumps(header)}))

    def remove(self) -> None:
        """Forget the training, which is finished."""
        self.path.unlink(missing_ok=True)


def fingerprint(arrays: list[Tensor], options: dict[str, object]) -> str:
    """The same for the same data and options, and else another."""
    digest = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    for array in arrays:
        digest.update(str((array.shape, array.dtype)).encode())
        digest.update(array.contiguous().numpy().tobytes())
    return digest.hexdigest()


def numbered(prefix: str, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """{prefix.0: ..., prefix.1: ...}, as `State.under` reads them."""
    return {f"{prefix}.{i}": tensor for i, tensor in enumerate(tensors)}
