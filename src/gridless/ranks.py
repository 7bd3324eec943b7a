"""Several processes that train one network together, as `torchrun` starts them.

Each, a rank, holds its own share of the events. Sums over events become sums over ranks, so that
all ranks take the same steps. In a single process nothing here does anything.
"""

import os

import torch
import torch.distributed as dist
from torch import Tensor


def join() -> None:
    """Meet the other processes, if torchrun has started this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        dist.init_process_group("gloo")


def leave() -> None:
    """Part from the other processes."""
    if count() > 1:
        dist.destroy_process_group()


def count() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def number() -> int:
    """Which of them this is, from 0."""
    return dist.get_rank() if count() > 1 else 0


def total(values: Tensor) -> Tensor:
    """The sum of the values over all processes."""
    if count() == 1:
        return values
    summed = values.detach().clone().cpu()  # gloo adds on the processor
    dist.all_reduce(summed)
    return summed.to(values)


def totals(values: list[Tensor]) -> list[Tensor]:
    """The sums of several tensors, in one exchange."""
    if count() == 1:
        return values
    flat = total(torch.cat([v.reshape(-1) for v in values]))
    pieces = torch.split(flat, [v.numel() for v in values])
    return [piece.reshape(v.shape) for piece, v in zip(pieces, values, strict=True)]


def least(value: int) -> int:
    """The smallest of the processes' values."""
    if count() == 1:
        return value
    values = torch.tensor([value])
    dist.all_reduce(values, dist.ReduceOp.MIN)
    return int(values)


def of_first(values: Tensor) -> Tensor:
    """The values that process 0 has; those of the others have the same shape."""
    if count() > 1:
        values = values.detach().clone().contiguous()
        dist.broadcast(values, 0)
    return values
