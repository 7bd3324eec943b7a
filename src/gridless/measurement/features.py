"""Features of an event, of which the coefficient of each systematic is a linear function.

The score of a small change of the simulation, d log p / d alpha, is approximated by least squares:
s(x) = Delta' (Sigma + ridge)^-1 f(x), Delta the change of the mean of the features f and Sigma
their covariance. f has the network's own summary, the standardised observables z, their products,
and tanh of fixed random directions.
"""

from dataclasses import dataclass

import numpy as np

from gridless.templates.arrays import Array

RANDOM = 64  # random directions, of which tanh is taken
MAX_PRODUCTS = 20  # observables up to which all products are features
DIRECTION = 0.8  # typical size of z along a random direction
LARGEST = 30.0  # of a standardised observable in a product: outliers make no leverage
RIDGES = (1e-6, 1e-4, 1e-2, 1.0)  # relative to the variance of each feature


@dataclass(frozen=True, eq=False)
class Features:
    """f(c, z) of events.

    Attributes
    ----------
    directions, offsets : array (observables, random), array (random,)
        Of the random features.
    """

    directions: Array
    offsets: Array

    def __call__(self, c: Array, z: Array) -> Array:
        """The features (events, size) of summaries c (events, d) and inputs z (events, n)."""
        z = z.clip(-LARGEST, LARGEST)
        parts = [c, z]
        if z.shape[1] <= MAX_PRODUCTS:
            first, second = np.triu_indices(z.shape[1])
            parts.append(z[:, first] * z[:, second])
        parts.append(np.tanh(z @ self.directions + self.offsets))
        return np.hstack(parts)


def feature_size(features: Features, summary: int) -> int:
    """The number of features of events with a network's summary of so many numbers."""
    count = len(features.directions)
    products = count * (count + 1) // 2 if count <= MAX_PRODUCTS else 0
    return summary + count + products + len(features.offsets)


def make_features(observables: int, seed: int) -> Features:
    """Features with random directions from a seed."""
    random = np.random.default_rng(seed)
    directions = random.normal(0, DIRECTION / np.sqrt(min(observables, 3)), (observables, RANDOM))
    # Few observables at a time, where there are many: smooth functions of a few are what matters.
    if observables > 3:
        keep = random.random((observables, RANDOM)).argsort(axis=0) < 3
        directions = np.where(keep, directions, 0.0)
    return Features(directions, random.normal(0, 1, RANDOM))


def discriminants(deltas: Array, covariance: Array) -> Array:
    """Projections (folds, features, changes) of the features, one for each change.

    Parameters
    ----------
    deltas : array (folds, changes, features)
        How the mean of the features changes, in the events of each fold.
    covariance : array (features, features)
        Of one event.

    Returns
    -------
    array
        Of each fold, those that its own events gave, of unit variance. The ridge of each change is
        the one whose projections tell the changes of the other folds best.
    """
    folds, changes, size = deltas.shape
    scale = np.sqrt(np.diag(covariance))
    used = scale > 1e-12
    scale = np.where(used, scale, 1.0)
    scaled = covariance / np.outer(scale, scale)
    d = np.where(used, deltas / scale, 0.0)
    found, gains = [], []
    for ridge in RIDGES:
        inverse = np.linalg.inv(scaled + ridge * np.eye(size))
        p = np.einsum("fkm,mn->fkn", d, inverse)
        norm = np.sqrt(np.einsum("fkm,mn,fkn->fk", p, scaled, p)).clip(min=1e-300)
        p = p / norm[..., None]
        others = (d.sum(axis=0) - d) / max(folds - 1, 1)
        gains.append(np.einsum("fkm,fkm->k", p, others if folds > 1 else d))
        found.append(p)
    best = np.array(gains).argmax(axis=0)
    chosen = np.stack([found[best[k]][:, k] for k in range(changes)], axis=2)
    return np.asarray(chosen / scale[None, :, None])
