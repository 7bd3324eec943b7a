"""Small pictures of likelihoods in a notebook: SVG without scripts, which shows values under the
pointer."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WIDTH, HEIGHT = 420, 210  # pixels
SIDE = 12  # left and right of what is drawn
HEAD = 20  # above it, for words
FOOT = 26  # below it, for the scale
BOTTOM = HEIGHT - FOOT
HIGHEST = 4.5  # units of log likelihood: the rise at three errors
BLUE, SKY = "#0072B2", "#56B4E9"
# What belongs to a value is seen while the pointer is over it. Notebooks need to trust no script.
_STYLE = (
    "<style>.gridless .at g{visibility:hidden}.gridless .at:hover g{visibility:visible}"
    ".gridless svg{max-width:100%;height:auto;display:block}</style>"
)
_TEXT = "fill='currentColor' font-size='12'"


def likelihood_picture(
    name: str, theta: Array, rise: Array, best: float, interval: tuple[float, float]
) -> str:
    """-Delta log L against a parameter, with its 68 percent interval; under the pointer the
    values.

    Parameters
    ----------
    name : str
        The parameter, with its unit.
    theta, rise : array (points,)
        The curve.
    best : float
        Where it is least.
    interval : tuple of float
        The ends of the band.

    Returns
    -------
    str
        SVG.

    Examples
    --------
    >>> theta = np.linspace(-1, 1, 5)
    >>> picture = likelihood_picture("theta", theta, theta**2 / 2, 0.0, (-1.0, 1.0))
    >>> picture.count("class='at'")
    5
    """
    low, high = float(theta[0]), float(theta[-1])

    def across(value: float) -> float:
        inside = min(max(value, low), high)
        return SIDE + (WIDTH - 2 * SIDE) * (inside - low) / (high - low)

    heights = BOTTOM - (BOTTOM - HEAD) * np.clip(rise, 0, HIGHEST) / HIGHEST
    places = [across(value) for value in theta.tolist()]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(places, heights, strict=True))
    left, right, middle = across(interval[0]), across(interval[1]), across(best)
    shown = escape(name)
    half = (places[1] - places[0]) / 2
    marks = ""
    for value, more, x, y in zip(theta.tolist(), rise.tolist(), places, heights, strict=True):
        marks += (
            f"<g class='at'><rect x='{x - half:.1f}' y='0' width='{2 * half:.1f}' "
            f"height='{BOTTOM}' fill='transparent'/><g><line x1='{x:.1f}' x2='{x:.1f}' y1='{HEAD}' "
            f"y2='{BOTTOM}' stroke='currentColor' stroke-opacity='0.4'/><circle cx='{x:.1f}' "
            f"cy='{y:.1f}' r='4' fill='{BLUE}'/><text x='{WIDTH - SIDE}' y='14' text-anchor='end' "
            f"{_TEXT}>{shown} = {value:.6g}: {more:.3g}</text></g></g>"
        )
    return (
        f"{_STYLE}<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' role='img' "
        f"aria-label='likelihood of {shown}'>"
        f"<rect x='{left:.1f}' width='{right - left:.1f}' y='{HEAD}' height='{BOTTOM - HEAD}' "
        f"fill='{SKY}' fill-opacity='0.35'/>"
        f"<line x1='{middle:.1f}' x2='{middle:.1f}' y1='{HEAD}' y2='{BOTTOM}' "
        f"stroke='{BLUE}' stroke-dasharray='4 3'/>"
        f"<polyline points='{points}' fill='none' stroke='{BLUE}' stroke-width='2'/>{marks}"
        f"{_scale(low, high, shown)}<text x='{SIDE + 4}' y='14' {_TEXT}>&minus;&Delta;log L, "
        "band: 68 %</text></svg>"
    )


def contour_picture(
    names: Sequence[str], contours: Mapping[str, Array], best: Sequence[float]
) -> str:
    """Contours of two parameters around their best values.

    Parameters
    ----------
    names : sequence of str
        The two parameters, with their units.
    contours : mapping from str to array (points, 2)
        Closed curves by what they are called, the widest last.
    best : sequence of float
        The best values.

    Returns
    -------
    str
        SVG.

    Examples
    --------
    >>> circle = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    >>> contour_picture(["a", "b"], {"68 %": circle}, (0, 0)).count("<polygon")
    1
    """
    every = np.concatenate(list(contours.values()))
    low, high = every.min(axis=0), every.max(axis=0)
    margin = 0.06 * (high - low)
    low, high = low - margin, high + margin

    def place(point: Array) -> tuple[float, float]:
        x, y = (np.asarray(point) - low) / (high - low)
        return SIDE + (WIDTH - 2 * SIDE) * float(x), BOTTOM - (BOTTOM - HEAD) * float(y)

    first, second = (escape(name) for name in names)
    shapes = ""
    for text, curve in reversed(list(contours.items())):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, curve))
        shapes += (
            f"<g class='at'><polygon points='{points}' fill='{SKY}' fill-opacity='0.35' "
            f"stroke='{BLUE}' stroke-width='1.5'/><g><text x='{WIDTH - SIDE}' y='14' "
            f"text-anchor='end' {_TEXT}>{escape(text)}</text></g></g>"
        )
    x, y = place(np.asarray(best, float))
    words = f"{first} = {best[0]:.6g}, {second} = {best[1]:.6g}"
    shapes += (
        f"<g class='at'><circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{BLUE}'/><g>"
        f"<text x='{WIDTH - SIDE}' y='14' text-anchor='end' {_TEXT}>{words}</text></g></g>"
    )
    return (
        f"{_STYLE}<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' role='img' "
        f"aria-label='contours of {first} and {second}'>{shapes}"
        f"{_scale(low[0], high[0], first)}"
        f"<text x='{SIDE}' y='14' {_TEXT}>{second}: {low[1]:.5g} to {high[1]:.5g}</text></svg>"
    )


def _scale(low: float, high: float, name: str) -> str:
    """The line below a picture, with its ends and what it is."""
    foot = HEIGHT - 8
    return (
        f"<line x1='{SIDE}' x2='{WIDTH - SIDE}' y1='{BOTTOM}' y2='{BOTTOM}' "
        f"stroke='currentColor'/><text x='{SIDE}' y='{foot}' {_TEXT}>{low:.5g}</text>"
        f"<text x='{WIDTH / 2}' y='{foot}' text-anchor='middle' {_TEXT}>{name}</text>"
        f"<text x='{WIDTH - SIDE}' y='{foot}' text-anchor='end' {_TEXT}>{high:.5g}</text>"
    )
