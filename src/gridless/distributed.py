"""Where the work is done: ranks that train together, the device, and the number of threads.

Ranks are processes that `torchrun` starts. Each holds its own share of the events, and sums over
events become sums over ranks, so that all ranks take the same steps. They work together only
inside `with joined():`, which every rank enters and in which every rank makes the same calls.
Elsewhere, also in a program that uses `torch.distributed` for itself, a process is alone: it is
rank 0 of 1, and sums over ranks are the values themselves.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gridless.errors import InputError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# torch is imported where it is needed: the audit of templates adds over ranks and loads without it.
Values = TypeVar("Values", "Tensor", np.ndarray[Any, Any])

KNOWN_DEVICES = "give cpu, cuda, cuda:1 or mps"
# Weights of a network up to which one thread is fastest: its operations take microseconds, less
# than threads need to meet. Measured: with two threads and 18,000 weights a fit took 5 to 15 times
# as long on two busy cores.
MAX_WEIGHTS_ON_ONE_THREAD = 20_000

# The group of the ranks that have joined; None for a process that is alone.
_group: Any = None


@contextmanager
def joined() -> Iterator[None]:
    """Work together with the other ranks, if torchrun has started this process.

    A program that has initialised `torch.distributed` keeps its own group.

    Examples
    --------
    >>> from gridless import distributed
    >>> with distributed.joined():  # not started by torchrun: nothing happens
    ...     distributed.rank(), distributed.size()
    (0, 1)
    """
    global _group
    if _group is not None or not _has_others():
        yield
        return
    import torch.distributed as dist

    ours = not dist.is_initialized()
    if ours:
        dist.init_process_group("gloo")
    _group = dist.group.WORLD if ours else dist.new_group(backend="gloo")
    try:
        yield
    finally:
        dist.destroy_process_group(_group)
        _group = None


def _has_others() -> bool:
    """Whether torchrun, or the program itself, has other ranks."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return True
    # A program that has not imported torch.distributed has not initialised it.
    dist = sys.modules.get("torch.distributed")
    return bool(
        dist and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    )


def size() -> int:
    """The number of ranks that have joined; 1 for a process that is alone."""
    if _group is None:
        return 1
    return int(_group.size())


def rank() -> int:
    """The number of this rank, from 0."""
    return 0 if _group is None else int(_group.rank())


def total(values: Values) -> Values:
    """The sum of a tensor or an array over all ranks."""
    if _group is None:
        return values
    import torch
    import torch.distributed as dist

    if isinstance(values, np.ndarray):
        return total(torch.as_tensor(values)).numpy()
    summed = values.detach().clone().cpu()  # gloo adds on the CPU
    dist.all_reduce(summed, group=_group)
    return summed.to(values)


def totals(values: "list[Tensor]") -> "list[Tensor]":
    """The sums of several tensors over all ranks, in one exchange."""
    if _group is None:
        return values
    import torch

    flat = total(torch.cat([v.reshape(-1) for v in values]))
    pieces = torch.split(flat, [v.numel() for v in values])
    return [piece.reshape(v.shape) for piece, v in zip(pieces, values, strict=True)]


def least(value: int) -> int:
    """The smallest of the ranks' values."""
    if _group is None:
        return value
    import torch

    return int(lowest(torch.tensor([value])))


def lowest(values: "Tensor") -> "Tensor":
    """The smallest of the ranks' values, number by number."""
    if _group is None:
        return values
    import torch.distributed as dist

    found = values.detach().clone()
    dist.all_reduce(found, dist.ReduceOp.MIN, group=_group)
    return found


def of_first(values: Values) -> Values:
    """The values of rank 0, which have the same shape on all ranks."""
    if _group is None:
        return values
    import torch
    import torch.distributed as dist

    if isinstance(values, np.ndarray):
        return of_first(torch.as_tensor(values)).numpy()
    values = values.detach().clone().contiguous()
    dist.broadcast(values, group=_group, group_src=0)
    return values


def find_device(name: str) -> "torch.device":
    """The device of that name, if torch can use it here.

    Only training moves to a GPU. Sums over events, and matrices of the network's weights, stay in
    float64 on the CPU, and so does every model: files do not depend on the device. Ranks that
    torchrun has started with "cuda" take one GPU after the other.
    """
    import torch

    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"device: there is no {name!r}; {KNOWN_DEVICES}") from error
    if device.type == "cpu":
        return device
    if device.type == "mps":
        if not torch.backends.mps.is_available():
            raise InputError("device: torch finds no mps on this machine; give cpu")
        return device
    if device.type != "cuda":
        raise InputError(
            f"device: {name!r} is not one that networks are trained on; {KNOWN_DEVICES}"
        )
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not gpus:
        raise InputError("device: torch finds no cuda on this machine; give cpu")
    if device.index is None:
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % gpus)
    if device.index >= gpus:
        raise InputError(f"device: {name!r}, but there are {gpus}, counted from cuda:0")
    return device


# Threads of torch that the user has set, while one of our calls has its own number of them.
_users_threads = 1
_calls = 0
_lock = threading.Lock()
_of_this_thread = threading.local()


@contextmanager
def own_threads(network: "torch.nn.Module | None" = None) -> Iterator[None]:
    """Let torch work on as many threads as suit a network; afterwards on as many as before.

    Parameters
    ----------
    network : torch.nn.Module, optional
        A small network, or none, gets one thread; a large one those that the user has set.

    Examples
    --------
    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with own_threads():
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    global _users_threads, _calls
    import torch

    # Several Python threads may be here at once: the first to come sees what the user has set.
    with _lock:
        if _calls == 0:
            _users_threads = torch.get_num_threads()
        _calls += 1
    weights = 0 if network is None else sum(p.numel() for p in network.parameters())
    outer = getattr(_of_this_thread, "threads", None)  # of a call of ours around this one
    _of_this_thread.threads = 1 if weights <= MAX_WEIGHTS_ON_ONE_THREAD else _users_threads
    torch.set_num_threads(_of_this_thread.threads)
    try:
        yield
    finally:
        _of_this_thread.threads = outer
        torch.set_num_threads(_users_threads if outer is None else outer)
        with _lock:
            _calls -= 1
