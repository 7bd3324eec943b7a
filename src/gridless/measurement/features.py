"""Features of an event, of which the coefficient of each systematic is a linear function.

The score of a small change of the simulation, d log p / d alpha, is approximated by least squares:
s(x) = Delta' (Sigma + ridge)^-1 f(x), Delta the change of the mean of the features f and Sigma
their covariance. f has the network's own summary, the standardised observables z, their products,
hat functions of each observable between quantiles of the simulation, which resolve a peak however
long its tails are, and tanh of fixed random directions in the places among those quantiles.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from gridless.templates.arrays import Array, slices

RANDOM = 128  # random directions, of which tanh is taken
MAX_PRODUCTS = 20  # observables up to which all products are features
DIRECTION = 1.5  # typical size along a random direction of places, which have a spread of 1
PLACES = np.sqrt(3.0)  # half the range of places: evenly filled, their spread is 1
TOGETHER = 3  # observables in a random direction: smooth functions of a few are what matters
LARGEST = 30.0  # of a standardised observable in a product: outliers make no leverage
HATS = 16  # of each observable at the most
MOST_HATS = 192  # of all together
KNOT_EVENTS = 200_000  # of which quantiles are taken
BLOCK = 512  # events at a time: their features stay in a processor's cache
NO_CHANGE = 1e-12  # of the mean of a feature, in units of its spread: rounding
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # in units of the variance of each feature


@dataclass(frozen=True, eq=False)
class Features:
    """f(c, z) of events.

    Attributes
    ----------
    directions, offsets : array (observables, random), array (random,)
        Of the random features.
    knots : array (observables, hats + 1)
        Quantiles of each standardised observable, between which its hat functions are linear.
    """

    directions: Array
    offsets: Array
    knots: Array

    def __call__(self, c: Array, z: Array) -> Array:
        """The features (events, size) of summaries c (events, d) and inputs z (events, n)."""
        z = z.clip(-LARGEST, LARGEST)
        summary, (products, tanhs, size) = c.shape[1], self.sizes(c.shape[1])
        result = np.empty((len(z), size))
        result[:, :summary] = c
        result[:, summary : summary + z.shape[1]] = z
        if z.shape[1] <= MAX_PRODUCTS:
            first, second = np.triu_indices(z.shape[1])
            result[:, summary + z.shape[1] : products] = z[:, first] * z[:, second]
        # Where each observable is among its knots, 0 to the last: the tails end there.
        last = self.knots.shape[1] - 1
        steps = np.arange(last + 1.0)
        place = np.stack([np.interp(z[:, j], k, steps) for j, k in enumerate(self.knots)], axis=1)
        scaled = PLACES * (2 * place / last - 1)
        np.tanh(scaled @ self.directions + self.offsets, out=result[:, products:tanhs])
        # All hats of an observable sum to 1: the first is left out.
        hats = place[:, :, None] - steps[1:]
        np.subtract(1, np.abs(hats, out=hats), out=hats)
        result[:, tanhs:] = hats.clip(min=0, out=hats).reshape(len(z), -1)
        return result

    def blocks(self, c: Array, z: Array) -> Iterator[tuple[slice, Array]]:
        """The features of some events at a time."""
        for part in slices(len(z), BLOCK):
            yield part, self(c[part], z[part])

    def project(self, c: Array, z: Array, matrix: Array) -> Array:
        """f @ matrix (events, columns), for a matrix (size, columns)."""
        result = np.empty((len(z), matrix.shape[1]))
        for part, f in self.blocks(c, z):
            np.matmul(f, matrix, out=result[part])
        return result

    def sizes(self, summary: int) -> tuple[int, int, int]:
        """How many features there are with a network's summary of so many numbers: up to the
        products, with the random ones, and with the hat functions."""
        count = len(self.directions)
        products = count * (count + 1) // 2 if count <= MAX_PRODUCTS else 0
        first = summary + count + products
        second = first + len(self.offsets)
        return first, second, second + count * (self.knots.shape[1] - 1)


def make_features(z: Array, seed: int) -> Features:
    """Features with random directions from a seed, and knots at quantiles of z (events, n)."""
    random = np.random.default_rng(seed)
    observables = z.shape[1]
    together = min(observables, TOGETHER)
    directions = random.normal(0, DIRECTION / np.sqrt(together), (observables, RANDOM))
    keep = random.random((observables, RANDOM)).argsort(axis=0) < together
    hats = int(np.clip(MOST_HATS // observables, 1, HATS))
    some = z[:: len(z) // KNOT_EVENTS + 1].clip(-LARGEST, LARGEST)
    return Features(
        np.where(keep, directions, 0.0),
        random.normal(0, DIRECTION, RANDOM),
        np.quantile(some, np.linspace(0, 1, hats + 1), axis=0).T,
    )


def discriminants(deltas: Array, covariance: Array, sizes: Sequence[int]) -> Array:
    """Projections (folds, features, changes) of the features, one for each change.

    Parameters
    ----------
    deltas : array (folds, changes, features)
        How the mean of the features changes, in the events of each fold.
    covariance : array (features, features)
        Of one event.
    sizes : sequence of int
        Numbers of features to choose from: the first so many are used.

    Returns
    -------
    array
        The projections learnt from the events of each fold, of unit variance. The number of
        features and the ridge of each change are those that describe the other folds best.
    """
    folds, changes, _ = deltas.shape
    scale = np.sqrt(np.diag(covariance).clip(min=0))
    used = scale > 1e-12
    scale = np.where(used, scale, 1.0)
    scaled = covariance / np.outer(scale, scale)
    d = np.where(used, deltas / scale, 0.0)
    others = (d.sum(axis=0) - d) / max(folds - 1, 1) if folds > 1 else d
    found, gains = [], []
    for size, ridge in product(sizes, RIDGES):
        own = scaled[:size, :size]
        inverse = np.linalg.inv(own + ridge * np.eye(size))
        p = np.zeros_like(d)
        p[..., :size] = np.einsum("fkm,mn->fkn", d[..., :size], inverse)
        square = np.einsum("fkm,mn,fkn->fk", p, scaled, p, optimize=True)
        # Along features that do not vary, the square is nothing but rounding.
        square = np.maximum(square, NO_CHANGE * (p**2).sum(axis=-1))
        norm = np.sqrt(square.clip(min=NO_CHANGE**2))
        p = p / norm[..., None]
        gains.append(np.einsum("fkm,fkm->k", p, others))
        found.append(p)
    best = np.array(gains).argmax(axis=0)
    chosen = np.stack([found[best[k]][:, k] for k in range(changes)], axis=2)
    return np.asarray(chosen / scale[None, :, None])
