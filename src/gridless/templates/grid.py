"""The grid: at which values of theta there is simulation, and between which bounds theta lies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridless.errors import InputError, counted
from gridless.templates.arrays import Array, as_number, as_numbers

MAX_TEMPLATES = 1_000_000  # of a grid: more is a mistake
LEAST_SPAN = 0.02  # of the range, that templates are apart: polynomials beyond them know nothing


def grid(bounds: tuple[float, float], templates: int) -> Array:
    """Where to simulate: the centres of equal bins between the bounds (section 3 of the paper).

    theta_k = low + (k + 1/2) (high - low) / templates, k = 0, 1, ...

    Parameters
    ----------
    bounds : (float, float)
        Between which values theta will be estimated.
    templates : int
        How many values to simulate.

    Returns
    -------
    array (templates,)
        The values of theta.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.grid((165, 180), 5).tolist()
    [166.5, 169.5, 172.5, 175.5, 178.5]
    """
    low, high = _check_bounds(bounds, ["theta"])[0]
    number = as_number(templates, "templates")
    if not (2 <= number <= MAX_TEMPLATES and number == int(number)):
        raise InputError(
            f"templates: {templates}; give a whole number of at least 2, to interpolate between"
        )
    templates = int(number)
    return np.asarray(low + (np.arange(templates) + 0.5) * (high - low) / templates)


ROUNDING = 1e-9  # of the range, by which rounding may put a point beyond a bound


@dataclass(frozen=True, eq=False)
class Grid:
    """Template values with the parameters' names and bounds.

    Attributes
    ----------
    values : array (templates, parameters)
        The value of theta of each template, in rising order.
    bounds : array (parameters, 2)
        The low and high bound of each parameter.
    parameters : tuple of str
        Their names.
    labels : mapping from str to str
        How figures and tables call a parameter, with its unit: `$m_t$ [GeV]`.
    range : array (parameters,)
        high - low of each parameter.
    unit : array (templates, parameters)
        The template values in units of the range: 0 at the low bound, 1 at the high one.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.Templates([1.0, 2.0], [165.0, 175.0], (160, 180), parameters=["mtop"]).grid
    Grid of 2 values of mtop in [160, 180]
    """

    values: Array
    bounds: Array
    parameters: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    range: Array = field(init=False)
    unit: Array = field(init=False)

    def __post_init__(self) -> None:
        values, bounds = np.array(self.values, np.float64), np.array(self.bounds, np.float64)
        width = bounds[:, 1] - bounds[:, 0]
        unit = (values - bounds[:, 0]) / width
        arrays = {"values": values, "bounds": bounds, "range": width, "unit": unit}
        for name, array in arrays.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"Grid of {len(self)} values of {self.describe()}"

    def __len__(self) -> int:
        return len(self.values)

    def to_unit(self, theta: ArrayLike) -> Array:
        """t = (theta - low) / (high - low)."""
        values = as_numbers(theta, "theta")
        if values.shape[-1:] != (len(self.parameters),):
            raise InputError(f"theta: {theta!r:.80}; give {', '.join(self.parameters)}")
        return np.asarray((values - self.bounds[:, 0]) / self.range)

    def unit_point(self, theta: ArrayLike) -> Array:
        """One point in units of the range; anything but one number per parameter is refused."""
        values = np.atleast_1d(as_numbers(theta, "theta"))
        if values.shape != (len(self.parameters),):
            raise InputError(f"theta: {theta!r:.80}; give one number each: {self.describe()}")
        return self.to_unit(values)

    def unit_inside(self, t: Array, what: str = "theta") -> Array:
        """Points t (..., parameters) in units of the range, refused where one is not inside the
        bounds: a likelihood is a polynomial, which means nothing there."""
        if not ((t >= -ROUNDING) & (t <= 1 + ROUNDING)).all():
            raise InputError(
                f"{what}: a value is not inside the bounds, where nothing was simulated; "
                f"they are {self.describe()}"
            )
        return t

    def from_unit(self, t: ArrayLike) -> Array:
        """theta = low + t (high - low)."""
        return np.asarray(self.bounds[:, 0] + np.asarray(t, float) * self.range)

    @property
    def spacing(self) -> float:
        """The gap between neighbouring templates in units of the range: for one parameter the
        widest, for several that of a full grid with as many templates."""
        if len(self.parameters) == 1:
            return float(np.diff(np.sort(self.unit[:, 0])).max())
        return float(len(self) ** (-1 / len(self.parameters)))

    def nearest(self) -> NDArray[np.int64]:
        """For each template the one that lies nearest, in units of the range."""
        distance = np.linalg.norm(self.unit[:, None] - self.unit, axis=-1)
        np.fill_diagonal(distance, np.inf)
        return np.asarray(distance.argmin(axis=1))

    def neighbours(self) -> list[tuple[int, int]]:
        """Pairs of templates between which estimates interpolate: the next one for one parameter,
        the nearest one for several."""
        if len(self.parameters) == 1:
            order = self.unit[:, 0].argsort().tolist()
            return list(pairwise(order))
        return list(enumerate(self.nearest().tolist()))

    def around(self, values: Array) -> tuple[int, int]:
        """The two templates between which values (parameters,) lie: of one parameter those on
        either side, or the outermost two; of several the two nearest."""
        t = self.to_unit(values)
        if len(self.parameters) > 1:
            first, second = np.argsort(np.linalg.norm(self.unit - t, axis=1))[:2].tolist()
            return first, second
        order = np.argsort(self.unit[:, 0])
        above = int(np.searchsorted(self.unit[order, 0], t[0]).clip(1, len(order) - 1))
        return int(order[above - 1]), int(order[above])

    def describe(self) -> str:
        """`theta in [0, 1]`: the parameters with their bounds."""
        return ", ".join(
            f"{name} in [{low:g}, {high:g}]"
            for name, (low, high) in zip(self.parameters, self.bounds, strict=True)
        )

    def label(self, template: int) -> str:
        """`theta = 0.05`: how messages name a template."""
        pairs = zip(self.parameters, self.values[template], strict=True)
        return ", ".join(f"{name} = {value:g}" for name, value in pairs)


def make_grid(
    theta: Array, bounds: ArrayLike, parameters: Sequence[str]
) -> tuple[Grid, NDArray[np.int64]]:
    """The grid on which the events' theta (events, parameters) lie, and each event's template."""
    limits = _check_bounds(bounds, parameters)
    for column, (name, (low, high)) in enumerate(zip(parameters, limits, strict=True)):
        outside = (theta[:, column] < low) | (theta[:, column] > high)
        if outside.any():
            row = int(np.argmax(outside))
            raise InputError(
                f"theta: {name} = {theta[row, column]:g} in row {row} is outside the bounds "
                f"{low:g} to {high:g}; widen the bounds or leave out that template"
            )
    # Values that differ by rounding (0.15 and 0.15000000000000002) are one template.
    step = 1e-9 * (limits[:, 1] - limits[:, 0])
    rounded, first, template = np.unique(
        np.round((theta - limits[:, 0]) / step).astype(np.int64),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    if len(rounded) < 2:
        raise InputError(
            f"theta: all {len(theta)} events have the same value; give at least two templates"
        )
    _check_span(theta[first], limits, parameters)
    return Grid(theta[first], limits, tuple(parameters)), template.reshape(-1)


def _check_span(values: Array, limits: Array, parameters: Sequence[str]) -> None:
    """Refuse templates that are nearly one point of the range, or do not tell parameters apart."""
    for name, column, (low, high) in zip(parameters, values.T, limits, strict=True):
        first, last = column.min(), column.max()
        if last - first < LEAST_SPAN * (high - low):
            raise InputError(
                f"theta: the templates have {name} = {first:g} to {last:g}, less than "
                f"{LEAST_SPAN:.0%} of its bounds {low:g} to {high:g}; simulate at values that "
                "differ more, or give bounds near them"
            )
    t = (values - limits[:, 0]) / (limits[:, 1] - limits[:, 0])
    apart = np.linalg.svd(t - t.mean(axis=0), compute_uv=False)
    if len(parameters) > 1 and (len(values) <= len(parameters) or apart.min() < LEAST_SPAN):
        raise InputError(
            f"theta: {' and '.join(parameters)} change together in all {len(values)} templates; "
            "simulate at values that tell them apart"
        )


def _check_bounds(bounds: ArrayLike, parameters: Sequence[str]) -> Array:
    try:
        limits = np.asarray(bounds, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"bounds: {bounds!r:.80} ({error}); give numbers, (low, high)") from error
    if limits.shape == (2,):
        limits = limits[None, :]
    if limits.shape != (len(parameters), 2):
        raise InputError(
            f"bounds: shape {limits.shape} for {counted(len(parameters), 'parameter')}; "
            "give (low, high), or one such pair per parameter"
        )
    for name, (low, high) in zip(parameters, limits, strict=True):
        if not (np.isfinite(low) and np.isfinite(high)):
            raise InputError(f"bounds: {low} to {high} for {name}; both must be finite")
        if low >= high:
            raise InputError(
                f"bounds: {low:g} to {high:g} for {name}; the low bound must come first"
            )
    return limits
