"""The one judge of all peers: from curves over theta to bias, error, slope and coverage."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

Array = NDArray[Any]
# Points of the scan that finds the lowest value; a parabola goes through three of them.
_SCAN = 2001


class Minima(NamedTuple):
    """Of each curve the minimum, and the ends of the interval where it has risen by 1/2."""

    value: Array
    low: Array
    high: Array

    @property
    def error(self) -> Array:
        """Half the interval."""
        return np.asarray((self.high - self.low) / 2)


def minima(curves: Array) -> Minima:
    """Minima of curves (curves, values) given at equal steps from 0 to 1, by cubic splines."""
    spline = CubicSpline(
        np.linspace(0, 1, curves.shape[1]), curves - curves.min(axis=1)[:, None], 1
    )
    scan = np.linspace(0, 1, _SCAN)
    values = spline(scan)
    lowest = values.argmin(axis=1)
    inner = lowest.clip(1, _SCAN - 2)
    left, middle, right = (values[np.arange(len(values)), inner + i] for i in (-1, 0, 1))
    bend = left - 2 * middle + right
    curved = (bend > 0) & (lowest == inner)
    shift = np.where(curved, 0.5 * (left - right) / np.where(curved, bend, 1.0), 0.0)
    value = scan[lowest] + shift * scan[1]
    floor = np.where(curved, middle - 0.25 * (left - right) * shift, values.min(axis=1))
    rise = values - floor[:, None]
    return Minima(value, *(_crossings(rise, scan, value, side) for side in (-1, 1)))


def _crossings(rise: Array, scan: Array, value: Array, side: int) -> Array:
    """Where each curve first reaches 1/2 on one side of its minimum; the bound if it does not."""
    ends = np.full(len(rise), scan[0] if side < 0 else scan[-1])
    for i, (curve, best) in enumerate(zip(rise, value, strict=True)):
        beyond = np.flatnonzero((curve > 0.5) & ((scan - best) * side > 0))
        if len(beyond):
            outer = beyond[-1] if side < 0 else beyond[0]
            inner = outer - side
            share = (0.5 - curve[inner]) / (curve[outer] - curve[inner])
            ends[i] = scan[inner] + share * (scan[outer] - scan[inner])
    return ends


def judge(truth: Array, events: int, curves: Array, toys: Array, exact: Array) -> dict[str, Any]:
    """Figures of one training from its curves (samples, values) of the observed samples, those of
    pseudo-experiments (samples, toys, values), and the exact curves (samples, values).

    The bias is against the exact estimate on the same events, in errors of 10,000 events. An
    interval of a pseudo-experiment covers when it contains the exact estimate of the sample that
    the experiment was drawn from.
    """
    # Errors are those of 10,000 events, taken over the width that they then have.
    found, ideal = (minima(c * (10_000 / events)) for c in (curves, exact))
    covered = []
    for sample, value in zip(toys, ideal.value, strict=True):
        experiments = minima(sample)
        covered.append(np.mean((experiments.low <= value) & (value <= experiments.high)))
    return {
        "estimates": found.value.round(5).tolist(),
        "bias": ((found.value - ideal.value) / ideal.error).round(4).tolist(),
        "ratio": (found.error / ideal.error).round(5).tolist(),
        "slope": round(float(np.polyfit(truth, found.value, 1)[0]), 5),
        "covered": [round(float(share), 4) for share in covered],
    }
