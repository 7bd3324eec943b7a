"""Sizes that a network may have, from simple to complex."""

from dataclasses import dataclass

from gridless.model.record import FitOptions

DEFAULT_HIDDEN = (16,)
# Tried one after the other, by the number of parameters: degree in theta, and units.
LADDERS: dict[int, tuple[tuple[int, tuple[int, ...]], ...]] = {
    1: ((2, ()), (2, (8,)), (3, (16,)), (5, (32,)), (6, (64,))),
    2: ((2, ()), (2, (16,)), (3, (32,))),
    3: ((2, ()), (2, (16,)), (2, (32,))),
}


@dataclass(frozen=True)
class Size:
    """Degree of the exponent in theta, units of the hidden layers, and networks side by side."""

    degree: int
    hidden: tuple[int, ...]
    members: int = 1

    def __str__(self) -> str:
        units = " x ".join(str(n) for n in self.hidden) or "no"
        return f"degree {self.degree}, {units} hidden units"


def sizes_to_try(options: FitOptions, parameters: int) -> list[Size]:
    """The only size that the options leave, or those that the events shall choose from."""
    by_hand = (options.basis, options.hidden, options.network)
    if all(one is None for one in by_hand) and options.components == 1 and options.calibrate:
        return [Size(degree, hidden) for degree, hidden in LADDERS[parameters]]
    return [Size(2, DEFAULT_HIDDEN if options.hidden is None else options.hidden)]
