"""The look of our figures, their labels, and saving them. Needs the extra `figures`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridless.errors import InputError, check_kind
from gridless.files.sources import as_path
from gridless.files.write import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, which people with any kind of colour vision can tell apart.
BLUE = "#0072B2"
SKY = "#56B4E9"
ORANGE = "#E69F00"
GREEN = "#009E73"
RED = "#D55E00"
GREY = "#666666"
BLACK = "#000000"
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
    "axes.formatter.limits": (-3, 5),  # powers of ten beyond which numbers have a factor
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
    "mathtext.cal": "sans:italic",
    # Glyphs as outlines, so that a figure looks alike everywhere; and the same names in every run.
    "svg.fonttype": "path",
    "svg.hashsalt": "gridless",
}
NOTEBOOK_DPI = 100  # dots per inch of a figure in a notebook
LABEL_ABOVE_PANEL = 5  # points between a panel and an experiment's label
LEGEND_ROW = 19  # points that a row of a legend above the panel takes


@contextmanager
def style(ax: object = None) -> Iterator[None]:
    """Our look for everything drawn inside; the user's own look in axes `ax` of the user."""
    try:
        import matplotlib as mpl
        import mplhep
    except ModuleNotFoundError as error:
        raise InputError(f"figures need {error.name}; pip install 'gridless[figures]'") from error
    if ax is not None:
        yield
        return
    with mpl.rc_context(mplhep.style.ATLAS | _STYLE):
        yield


@cache
def _figure_class() -> type[Figure]:
    """A figure that keeps our look when it is drawn later, and that notebooks show by itself."""
    from matplotlib import figure

    class Figure(figure.Figure):
        def draw(self, renderer: Any) -> None:
            with style():
                super().draw(renderer)

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=NOTEBOOK_DPI)
            return buffer.getvalue()

    return Figure


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure of this size in inches."""
    return _figure_class()(figsize=size)


def panel(ax: Any, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The figure and the axes to draw into: those given, or new ones of this size in inches."""
    if ax is not None:
        return ax.get_figure(), ax
    figure = new_figure(size)
    return figure, figure.subplots()


@contextmanager
def drawing(
    ax: Any, size: tuple[float, float], experiment: str | None, *, legend_columns: int = 0
) -> Iterator[tuple[Figure, Axes]]:
    """A figure of one panel in our look, with the experiment's label above what is drawn inside."""
    with style(ax):
        figure, axes = panel(ax, size)
        yield figure, axes
        experiment_label(axes, experiment, legend_columns=legend_columns)


def two_panels(ax: Any, size: tuple[float, float]) -> tuple[Figure, Axes, Axes]:
    """A figure with a panel and a lower one below it; of given axes the lower part is cut off.

    A pair of axes, (upper, lower), is taken as it is.
    """
    if isinstance(ax, tuple | list):
        top, bottom = ax
        return top.get_figure(), top, bottom
    if ax is not None:
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        bottom = make_axes_locatable(ax).append_axes("bottom", "33%", pad=0.08, sharex=ax)
        ax.tick_params(labelbottom=False)
        return ax.get_figure(), ax, bottom
    figure = new_figure(size)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    return figure, top, bottom


def symbol(name: str, labels: Mapping[str, str] | None = None) -> str:
    """How a figure calls a parameter or observable: its label, or its name with theta in Greek."""
    label = (labels or {}).get(name)
    if label:
        _check_formula(name, label)
        return label
    if name == "theta":
        return r"$\theta$"
    if len(name) > LONGEST_NAME:
        name = name[:LONGEST_NAME] + "..."
    return name.replace("$", r"\$")


@lru_cache(maxsize=256)
def _check_formula(name: str, label: str) -> None:
    """Refuse a label that matplotlib cannot set."""
    from matplotlib.mathtext import MathTextParser

    if label.count("$") - label.count(r"\$") < 2:
        return
    try:
        MathTextParser("path").parse(label)
    except ValueError as error:
        reason = str(error).strip().splitlines()[-1]
        raise InputError(
            f"labels: {label!r} for {name} is no formula that matplotlib knows ({reason}); write "
            "formulas between dollars, such as '$m_t$ [GeV]'"
        ) from None


def experiment_label(ax: Axes, text: str | None, *, legend_columns: int = 0) -> None:
    """An experiment's label, such as "Private work", above a panel and above a legend there."""
    if not text:
        return
    legend = ax.get_legend() if legend_columns else None
    rows = -(-len(legend.get_texts()) // legend_columns) if legend is not None else 0
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    height = LABEL_ABOVE_PANEL + LEGEND_ROW * rows
    ax.annotate(text, (0, 1), (0, height), style="italic", weight="bold", va="bottom", **place)


def legend_above(ax: Axes, columns: int) -> None:
    """A legend above the panel: inside, it would lie on what is drawn."""
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    ax.legend(ncols=columns, columnspacing=1.2, handlelength=1.6, frameon=False, **place)


def few_ticks() -> Any:
    """At most six numbers on an axis, however long they are."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10])


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
    path = as_path(path)
    paths = [path.with_suffix(suffix) for suffix in (".pdf", ".png")]
    with style():
        from matplotlib.figure import Figure

        check_kind(figure, Figure, "figure")
        for target in paths:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=target.suffix[1:])
            write_whole(target, buffer.getvalue())
    return paths
