"""Where a training stands, kept in a file after every epoch so that it can go on."""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from gridless import distributed
from gridless.errors import GridlessWarning, InputError
from gridless.files.write import write_whole
from gridless.model.record import Epoch, History
from gridless.model.storage.archive import check_finite, pack, unpack

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

    def fits(self, like: dict[str, Tensor]) -> bool:
        """Whether it has tensors of those names, with their shapes and types, at least."""
        return all(
            name in self.tensors
            and self.tensors[name].shape == tensor.shape
            and self.tensors[name].dtype == tensor.dtype
            for name, tensor in like.items()
        )


class Header(BaseModel):
    """What a checkpoint says beside its arrays."""

    model_config = ConfigDict(extra="forbid")

    fingerprint: str
    stage: int = Field(ge=1, le=2)
    epoch: int = Field(ge=1)
    history: History


@dataclass(frozen=True)
class Checkpoint:
    """A file for the state of one training, known by the fingerprint of its data and options."""

    path: Path
    fingerprint: str

    def load(self) -> State | None:
        """The state of this very training; None if the file is missing, is of another training, or
        is damaged, for which there is a warning."""
        try:
            content = self.path.read_bytes()
        except OSError:
            return None
        try:
            found, tensors = unpack(content, _KEY, str(self.path), "it is not used")
            header = Header.model_validate(found)
            # The best cost is infinite before the first epoch.
            check_finite({name: value for name, value in tensors.items() if name != "best"})
        except (InputError, ValidationError) as error:
            self.refuse(str(error).splitlines()[0])
            return None
        if header.fingerprint != self.fingerprint:
            return None
        return State(header.stage, header.epoch, list(header.history), tensors)

    def refuse(self, reason: str) -> None:
        """Warn that the training cannot go on from the file."""
        warnings.warn(
            f"checkpoint: {reason}; the training starts anew", GridlessWarning, stacklevel=2
        )

    def save(self, state: State) -> None:
        """Replace what the file holds."""
        header = {
            "fingerprint": self.fingerprint,
            "stage": state.stage,
            "epoch": state.epoch,
            "history": [asdict(epoch) for epoch in state.history],
        }
        write_whole(self.path, pack(state.tensors, _KEY, header))


def checkpoint_path(path: str | Path) -> Path:
    """Where this rank keeps its own checkpoint."""
    suffix = "" if distributed.size() == 1 else f".{distributed.rank()}"
    return Path(f"{path}{suffix}")


def fingerprint(arrays: list[Tensor], options: dict[str, object]) -> str:
    """A digest of data and options: equal if and only if both are."""
    digest = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    for array in arrays:
        digest.update(str((array.shape, array.dtype)).encode())
        digest.update(array.contiguous().numpy().tobytes())
    return digest.hexdigest()


def numbered(prefix: str, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """{prefix.0: ..., prefix.1: ...}, as `State.under` reads them."""
    return {f"{prefix}.{i}": tensor for i, tensor in enumerate(tensors)}
