"""Components with a mean and a width, in units of the range."""

import torch
from torch import Tensor

from gridless.density.basis import Basis
from gridless.errors import InputError
from gridless.templates.grid import Grid

# Widths run from 1e-8 to 1e8 of the range; beyond, their squares overflow in float32.
MAX_LOG_WIDTH = 18.0
# A broader floor than a quarter of the range would not leave room for a mean.
MAX_FLOOR = 0.25


def floor_for(grid: Grid) -> float:
    """Half the gap between templates: narrower components could collapse onto the templates."""
    return min(0.5 * grid.spacing, MAX_FLOOR)


def check_floor(floor: float) -> float:
    """The floor, if it is a share of the range."""
    if not 0 <= floor < 1:
        raise InputError(f"floor: {floor} of the range; give a number from 0 to below 1")
    return float(floor)


def width_from(z: Tensor, floor: float) -> Tensor:
    """width = floor + exp(z)."""
    return floor + torch.exp(z.clamp(-MAX_LOG_WIDTH, MAX_LOG_WIDTH))


class LocationScale(Basis):
    """Components of one parameter with a mean z_0 and a width = floor + exp(z_1)."""

    outputs = 2

    def __init__(self, floor: float = 0.0) -> None:
        self.floor = check_floor(floor)

    @classmethod
    def for_templates(cls, grid: Grid, events: float) -> Basis:
        super().for_templates(grid, events)
        return cls(floor_for(grid))

    def options(self) -> dict[str, float]:
        return {"floor": self.floor}

    def start(self, components: int) -> Tensor:
        centres = (torch.arange(components) + 0.5) / components
        return torch.stack([centres, torch.zeros(components)], dim=-1)

    def mean_width(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and width of the component before truncation, in units of the range."""
        return z[..., 0], width_from(z[..., 1], self.floor)
