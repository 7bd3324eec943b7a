"""Where pseudo-experiments of a channel come from: simulation at any theta."""

from abc import ABC, abstractmethod

import numpy as np

from gridless.templates.arrays import Array

# A draw of everything that a channel's simulation leaves open uses the same random numbers in all
# parts of one model; this is their seed's last part.
SHARED = 1


class Toys(ABC):
    """Draws likelihoods of events at any theta, as many events as were observed.

    The likelihood of a pseudo-experiment is -sum_j Y_j f_j(t) + g(t), with a short vector Y.
    """

    @abstractmethod
    def draw(self, t: Array, toys: int, seed: tuple[int, ...], stat: bool) -> Array:
        """Vectors Y (toys, size) of events at one point of the unit box.

        `stat` leaves out that the simulation could have come out otherwise.
        """

    @abstractmethod
    def functions(self, t: Array) -> tuple[Array, Array]:
        """f (size, points) and g (points,) at points (points, parameters)."""

    @abstractmethod
    def __add__(self, other: "Toys") -> "Toys":
        """Those of both sets of events of one model."""

    @abstractmethod
    def restrict(self, axis: int, t: float) -> "Toys":
        """With one parameter held at t."""


def generator(*seed: int) -> np.random.Generator:
    """Random numbers of their own for every tuple."""
    return np.random.default_rng(seed)
