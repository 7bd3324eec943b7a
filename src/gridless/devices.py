"""Where networks are trained: a processor, or a graphics card of this machine.

Only training moves there. What is summed over events, and matrices of the network's parameters,
stay in float64 on the processor, and so does every model: files do not depend on the device.
"""

import os

import torch

from gridless.errors import InputError

_HELP = "give cpu, cuda, cuda:1 or mps"


def find_device(name: str) -> torch.device:
    """The device of that name, if torch can use it here.

    Of several processes that torchrun has started with "cuda", each gets the next card.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"device: there is no {name!r}; {_HELP}") from error
    if device.type == "cpu":
        return device
    if device.type == "mps":
        if not torch.backends.mps.is_available():
            raise InputError("device: torch finds no mps on this machine; give cpu")
        return device
    if device.type != "cuda":
        raise InputError(f"device: {name!r} is not one that networks are trained on; {_HELP}")
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not cards:
        raise InputError("device: torch finds no cuda on this machine; give cpu")
    if device.index is None:
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % cards)
    if device.index >= cards:
        raise InputError(f"device: {name!r}, but there are {cards}, counted from cuda:0")
    return device
