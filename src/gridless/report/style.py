"""The look of our figures, and saving them. Needs the extra `figures`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridless.errors import InputError
from gridless.files.write import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, which people with any kind of colour vision can tell apart.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
RED = "#D55E00"
GREY = "#666666"
LONGEST_NAME = 80  # characters that a figure shows
# Changes to mplhep's ATLAS style: font sizes for figures of one or two columns, and axes that end
# at the data instead of at round numbers.
_STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 13,
    "axes.labelpad": 4,
    "axes.autolimit_mode": "data",
    "axes.xmargin": 0.05,
    "xaxis.labellocation": "center",
    "yaxis.labellocation": "center",
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "ytick.major.size": 5,
    "ytick.minor.size": 3,
    "lines.linewidth": 1.5,
    "legend.fontsize": 11,
    "legend.borderpad": 0.5,
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
}


@contextmanager
def style() -> Iterator[None]:
    """Our look for everything drawn inside."""
    try:
        import matplotlib as mpl
        import mplhep
    except ModuleNotFoundError as error:
        raise InputError(f"figures need {error.name}; pip install 'gridless[figures]'") from error
    with mpl.rc_context(mplhep.style.ATLAS | _STYLE):
        yield


def symbol(name: str) -> str:
    """A parameter's or observable's name as it is set in a figure: theta is a Greek letter, and
    mathematics in dollars is set as such if matplotlib understands it."""
    if name == "theta":
        return r"$\theta$"
    if len(name) > LONGEST_NAME:
        name = name[:LONGEST_NAME] + "..."
    if "$" not in name:
        return name
    from matplotlib.mathtext import MathTextParser

    try:
        if name.count("$") % 2:
            raise ValueError("a dollar without its partner")
        MathTextParser("path").parse(name)
    except (ValueError, RuntimeError):
        return name.replace("$", r"\$")
    return name


def save_figure(figure: Figure, path: str | Path) -> list[Path]:
    """Write a figure as PDF and as PNG.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What a `draw_` function gives.
    path : str or Path
        Where to; the ending is replaced by `.pdf` and `.png`. Folders are made.

    Returns
    -------
    list of Path
        The two files.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> likelihood = example.likelihood(example.sample(0.4, 1_000, seed=1))
    >>> [path.name for path in gl.save_figure(gl.draw_likelihood(likelihood), "figures/curve")]
    ['curve.pdf', 'curve.png']
    """
    path = Path(path)
    paths = [path.with_suffix(suffix) for suffix in (".pdf", ".png")]
    with style():
        for target in paths:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=target.suffix[1:])
            write_whole(target, buffer.getvalue())
    return paths
