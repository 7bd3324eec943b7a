"""Where the effect of a nuisance parameter turns over.

The mean of the summary has a term l alpha and a term s alpha^2. If up and down move it the same
way, the turning point alpha* = -l.s / (2 s.s) lies between them, and alpha and 2 alpha* - alpha do
about the same to the events. The likelihood may then have a minimum on either side.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gridless.curves.newton import inverse_on
from gridless.measurement.term import SummaryTerm
from gridless.templates.arrays import Array

# Errors by which alpha^2 moves the summary where no other parameter can make up for it: less hardly
# makes a second minimum, and may be the noise of the samples.
LEAST_BEND = 0.5
FARTHEST_TURN = 3.0  # variations: the effect is straight beyond two of them
NEAREST_START = 0.5  # variations from the turning point: at the point itself there is no slope


def turning_points(
    terms: Sequence[SummaryTerm], hessian: Array, p: Array, free: NDArray[np.bool_]
) -> dict[int, float]:
    """The nuisance parameters whose effect turns over, by place, and where it does.

    l and s count as far as the other parameters do not do the same.

    Parameters
    ----------
    terms : sequence of SummaryTerm
        The channels.
    hessian : array (names, names)
        The expected second derivatives of the likelihood.
    p : array (names,)
        Values of all parameters, nuisance parameters at 0.
    free : array of bool (names,)
        Which parameters may move.

    Returns
    -------
    dict from int to float
    """
    count = len(p)
    # Products with the slopes of all parameters, and of l and s with s.
    along, crossed, squared = np.zeros((2, count, count)), np.zeros(count), np.zeros(count)
    for term in terms:
        own, interest = p[term.places], len(term.known.grid.parameters)
        varied = np.arange(interest, len(own))
        points = np.tile(own, (3, len(varied), 1))
        points[:, np.arange(len(varied)), varied] = np.array([[-1.0], [0.0], [1.0]])
        down, nominal, up = term.known.at(points).mean
        linear, square = (up - down) / 2, (up + down) / 2 - nominal
        weighted, places = square @ term.inverse, term.places[varied]
        crossed[places] += np.einsum("kd,kd->k", linear, weighted)
        squared[places] += np.einsum("kd,kd->k", square, weighted)
        slopes = term.around(p).slopes @ term.inverse
        along[0, places] += linear @ slopes.T
        along[1, places] += square @ slopes.T
    found = {}
    for place in np.flatnonzero(free & (squared > LEAST_BEND**2)):
        others = free & (np.arange(count) != place)
        inverse = inverse_on(hessian, others)
        if inverse is None:
            continue
        made_up = along[:, place] @ inverse @ along[1, place]
        bend = squared[place] - made_up[1]
        if bend > LEAST_BEND**2:
            found[int(place)] = float(-(crossed[place] - made_up[0]) / (2 * bend))
    return {place: turn for place, turn in found.items() if abs(turn) < FARTHEST_TURN}


def other_side(p: Array, place: int, turn: float) -> Array:
    """The point whose parameter at a place lies as far on the other side of the turning point."""
    off = p[place] - turn
    found = p.copy()
    found[place] = turn - np.copysign(max(abs(off), NEAREST_START), off)
    return found
