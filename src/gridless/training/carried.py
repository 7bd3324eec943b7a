"""What two systematics do together, as far as they are like a change of theta.

mu(theta) moves by d_k with systematic k. The part of d_k along d mu / d theta acts as a change of
theta by c_k does: it also changes what the other systematics do, by c_k d d_l / d theta. Where no
event tells what two do together, that much of it is known,

    X_kl = c_l . d d_k / d theta + c_k . d d_l / d theta - c_k . d^2 mu / d theta^2 . c_l,

and a scale that looks like theta goes on doing so when another systematic is off.
"""

from collections.abc import Sequence

import numpy as np

from gridless.calibration.mean_curve import MeanCurve
from gridless.curves import chebyshev
from gridless.measurement.shift import Shift, shift_powers, shift_slopes, shift_terms
from gridless.templates.arrays import Array

POINTS = {1: 17, 2: 8, 3: 5}  # per parameter, at which X is taken
STEP = 1e-4  # of the range, for the second derivatives of the mean
SAME = 1e-6  # of the largest singular value: slopes along fewer directions than parameters
LEAST = 1e-3  # spreads of one event: a smaller X is not seen by a million events


def carried(
    t: Array, mean: MeanCurve, linear: Sequence[Shift], pairs: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], Array]]:
    """The pairs of systematics of which X is not negligible, with its polynomial (terms, d) in t.

    Parameters
    ----------
    t : array (templates, parameters)
        Where the templates are: X is taken in the box that they span.
    mean : MeanCurve
        mu(t).
    linear : sequence of Shift
        d_k(t).
    pairs : sequence of (int, int)
        Which pairs are asked for.

    Returns
    -------
    list of ((int, int), array (terms, d))
    """
    count = t.shape[1]
    powers = shift_powers(count)
    low, high = t.min(axis=0), t.max(axis=0)
    at = low + (high - low) * chebyshev.box_points((POINTS[count],) * count)
    phi, dphi = shift_terms(at, powers), shift_slopes(at, powers)
    along = np.linalg.pinv(mean.slopes(at), rcond=SAME)  # (points, d, parameters)
    bends = np.stack(
        [
            (mean.slopes(at + step) - mean.slopes(at - step)) / (2 * STEP)
            for step in STEP * np.eye(count)
        ],
        axis=1,
    )
    like = [np.einsum("nd,ndp->np", phi @ one.coefficients, along) for one in linear]
    slopes = [dphi @ one.coefficients for one in linear]
    found = []
    for k, j in pairs:
        x = np.einsum("np,npd->nd", like[j], slopes[k])
        x = x + np.einsum("np,npd->nd", like[k], slopes[j])
        x = x - np.einsum("np,npqd,nq->nd", like[k], bends, like[j])
        if np.linalg.norm(x, axis=1).max() > LEAST:
            found.append(((k, j), np.linalg.lstsq(phi, x)[0]))
    return found
