"""Arrays with a JSON header in one safetensors file, and a digest of every byte of it.

Models and checkpoints are such files. A file that was changed or damaged is told by its digest;
nothing in a file is ever executed.
"""

import hashlib
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_arrays
from safetensors.torch import save
from torch import Tensor

from gridless import strict_json
from gridless.curves.chebyshev import SIZES
from gridless.errors import InputError
from gridless.templates.arrays import Array

# Kinds of files by the key of the metadata that has the header.
KINDS = {"gridless": "gridless model", "gridless-checkpoint": "gridless checkpoint"}
DIGEST = "digest"
# Stands in place of the digest while the digest is taken.
NO_DIGEST = "-" * 64


def pack(arrays: dict[str, Tensor], key: str, header: dict[str, Any]) -> bytes:
    """The file of some arrays and a header, which is under a key of the metadata."""
    # Copies: safetensors refuses arrays that share memory, as those of a model in two channels do,
    # and of a network with tied weights.
    own = torch.contiguous_format
    arrays = {name: a.detach().cpu().clone(memory_format=own) for name, a in arrays.items()}
    # safetensors writes several keys in an order that changes from call to call.
    return sign(save(arrays, {key: strict_json.dumps({DIGEST: NO_DIGEST, **header})}))


def sign(content: bytes) -> bytes:
    """The file with its digest in place of `NO_DIGEST`."""
    return content.replace(NO_DIGEST.encode(), _digest(content).encode(), 1)


def unpack(
    content: bytes, key: str, name: str, cure: str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and arrays of a file.

    Parameters
    ----------
    content : bytes
        The file.
    key : str
        Where the header is in the metadata.
    name, cure : str
        How messages call the file, and what they end with.
    """
    try:
        arrays = read_arrays(content)
    except (SafetensorError, KeyError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{name}: damaged, or not a safetensors file ({error}); {cure}") from error
    # A safetensors file begins with the length of its header, which is JSON.
    length = int.from_bytes(content[:8], "little")
    metadata = strict_json.loads(content[8 : 8 + length], name).get("__metadata__") or {}
    if key not in metadata:
        raise InputError(f"{name}: a safetensors file, but not a {KINDS[key]}; give one of those")
    header = strict_json.loads(metadata[key], f"{name}: its header is damaged")
    if not isinstance(header, dict):
        raise InputError(f"{name}: its header is damaged (no mapping); {cure}")
    digest = header.pop(DIGEST, None)
    if digest is None:
        raise InputError(f"{name}: has no digest: damaged, or written by version 0.1; {cure}")
    if not _is_digest(digest, content):
        raise InputError(f"{name}: changed or damaged since it was written; {cure}")
    return header, arrays


def take(arrays: dict[str, Tensor], name: str, *shape: int | range | None) -> Array:
    """An array of real numbers, if it is there and of that shape; see `check_shape`."""
    if name not in arrays:
        raise InputError(f"damaged, {name} is missing; save it again")
    array = arrays[name]
    kind = array.dtype if array.dtype in (torch.float32, torch.float64) else torch.float64
    check_shape(name, array, *shape, kind=kind)
    return np.asarray(array.numpy())


def check_shape(
    name: str, array: Tensor, *shape: int | range | None, kind: torch.dtype = torch.float32
) -> None:
    """Refuse an array of another type or shape; an axis may have one length, some, or any (None)
    but 0."""
    fits = array.dtype == kind and array.dim() == len(shape)
    for have, want in zip(array.shape, shape, strict=False):
        fits &= have > 0 if want is None else have in ((want,) if isinstance(want, int) else want)
    if not fits:
        raise InputError(
            f"damaged, {name} is {tuple(array.shape)} of {array.dtype}, which does not fit its "
            "header; save it again"
        )


def check_finite(arrays: dict[str, Tensor]) -> None:
    """Refuse NaN and infinities."""
    for name, array in arrays.items():
        if array.is_floating_point() and not bool(torch.isfinite(array).all()):
            raise InputError(f"damaged, {name} has values that are no numbers; save it again")


def curve(parameters: int) -> list[range]:
    """The shapes that Chebyshev coefficients may have, by the number of parameters."""
    return [range(1, SIZES[parameters][-1] + 1)] * parameters


def _is_digest(digest: Any, content: bytes) -> bool:
    if not isinstance(digest, str) or len(digest) != len(NO_DIGEST) or not digest.isascii():
        return False
    return digest == _digest(content.replace(digest.encode(), NO_DIGEST.encode(), 1))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
