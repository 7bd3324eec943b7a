"""What a user says of systematics and backgrounds, checked at once."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridless.calibration.calibration import LARGEST
from gridless.errors import InputError
from gridless.files.read import Sample
from gridless.systematics.settings import RESERVED
from gridless.templates.arrays import Array, as_number, as_table, as_weights
from gridless.templates.templates import Templates

SIDES = ("up", "down")
NUMBERS_NEEDED = (2, 3)  # event numbers: of the nominal events, of up, and of down if there is one


@dataclass(frozen=True, eq=False)
class Side:
    """The up or the down variation of a systematic.

    Attributes
    ----------
    x : array (events, observables) or None
        The varied events; None where the nominal events get other weights.
    theta : array (events, parameters) or None
        The parameters of each event; None for a background, or if they are those of the nominal
        events.
    weights : array (events,) or None
        Their weights.
    numbers : array (events,) or None
        The number of each event.
    columns : tuple of str or None
        The names of the columns of x, where they have names: of a data frame.
    """

    x: Array | None
    theta: Array | None
    weights: Array | None
    numbers: NDArray[np.int64] | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Systematic:
    """A named change of the simulation, and how far it may be from 0.

    mu(theta, alpha) = mu + alpha (up - down) / 2 + alpha^2 ((up + down) / 2 - mu), linear beyond
    |alpha| = 2, for the mean of every summary of the events.

    Parameters
    ----------
    name : str
        Of the systematic and of its parameter alpha. Equal names in several channels are one
        parameter.
    up, down : Templates, (x, theta), (x, theta, weights), or array
        Events of the varied simulation at one or several values of theta, on the grid or not. An
        array with one axis has a weight for each event of the templates, instead of theirs; one
        with two axes has the observables of the templates' own events, in their order. Columns of
        data frames are found by their names. Without `down` the variation has one side:
        mu + alpha (up - mu).
    constraint : float or None
        The standard deviation of alpha, in units of the variation; None leaves it free.
    same_events : bool or (numbers, numbers of up, numbers of down), optional
        Whether the varied events are those of the templates, row by row; or the numbers of events
        of the templates and of the variations, by which they are found. By default rows are
        compared.

    Examples
    --------
    >>> import numpy as np, gridless as gl
    >>> x = np.array([[80.0], [81.0], [91.0]])
    >>> gl.Systematic("jes", up=(1.01 * x, [170, 170, 175]), down=(0.99 * x, [170, 170, 175]))
    Systematic jes: up and down, 3 and 3 events
    >>> gl.Systematic("fsr", up=[1.1, 0.9, 1.0])
    Systematic fsr: up, weights of 3 events
    """

    name: str
    sides: tuple[Side, ...]
    constraint: float | None
    same_events: bool | None
    numbers: NDArray[np.int64] | None

    def __init__(
        self,
        name: str,
        up: Any,
        down: Any = None,
        constraint: float | None = 1.0,
        same_events: Any = None,
    ) -> None:
        where = f"systematic {check_name(name)!r}"
        if constraint is not None:
            constraint = as_number(constraint, f"{where}: constraint")
            if not 1 / LARGEST < constraint < LARGEST:
                raise InputError(
                    f"{where}: a constraint of {constraint}; give a positive number, or None"
                )
        sides = [_side(value, f"{where}, {s}") for s, value in zip(SIDES, (up, down), strict=True)
                 if value is not None]  # fmt: skip
        if not sides or up is None:
            raise InputError(f"{where}: no up variation; give up=..., and down=... if there is one")
        if len(sides) > 1 and _equal(*sides):
            raise InputError(f"{where}: up and down are equal; give what changes in each direction")
        same, numbers = None, None
        if isinstance(same_events, bool | np.bool_):
            same = bool(same_events)
        elif same_events is not None:
            numbers, sides = _numbered(same_events, sides, where)
        for field, value in {
            "name": name,
            "sides": tuple(sides),
            "constraint": constraint,
            "same_events": same,
            "numbers": numbers,
        }.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        what = " and ".join(SIDES[: len(self.sides)])
        sizes = " and ".join(
            f"{len(side.weights if side.x is None else side.x):,}"  # type: ignore[arg-type]
            for side in self.sides
        )
        if self.sides[0].x is None:
            return f"Systematic {self.name}: {what}, weights of {sizes} events"
        return f"Systematic {self.name}: {what}, {sizes} events"


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Background:
    """A process that is mixed into every template with a share of all events.

    p(x | theta) = (1 - f) p_signal(x | theta) + f p_background(x), f = share + error alpha.

    Parameters
    ----------
    name : str
        Of the background and of its parameter alpha. Equal names in several channels are one
        parameter.
    x : array (events, observables), data frame or Sample
        Events of the background.
    share : float
        Its share of all observed events.
    error : float or None
        The uncertainty of the share. None leaves it free: f = share (1 + alpha) without constraint.
    weights : array (events,), optional
        Of either sign, with a positive total.
    systematics : sequence of Systematic
        How it varies. Samples have no theta: up=x, or up=(x, None, weights). Those with the name
        of a systematic of the signal are the same parameter.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.Background("wjets", [[60.0], [80.0], [120.0]], share=0.06, error=0.02)
    Background wjets: 3 events, share 0.06 +- 0.02
    """

    name: str
    x: Array
    share: float
    error: float | None
    weights: Array | None
    systematics: tuple[Systematic, ...]
    columns: tuple[str, ...] | None

    def __init__(
        self,
        name: str,
        x: Any,
        share: float,
        error: float | None,
        weights: Any = None,
        systematics: Sequence[Systematic] = (),
    ) -> None:
        where = f"background {check_name(name)!r}"
        share = as_number(share, f"{where}: share")
        error = None if error is None else as_number(error, f"{where}: error")
        if not 0 < share < 1:
            raise InputError(f"{where}: a share of {share:g} of all events; give one in 0 to 1")
        if error is not None and not 1 / LARGEST < error < LARGEST:
            raise InputError(f"{where}: an error of {error:g}; give a positive one, or None")
        table, own, columns = _events(x, where)
        given = _weights(own if weights is None else weights, len(table), where)
        if given is not None and not given.sum() > 0:
            raise InputError(
                f"{where}: a total weight of {given.sum():g}; it must be positive: check it"
            )
        for field, value in {
            "name": name,
            "x": table,
            "share": share,
            "error": error,
            "weights": given,
            "systematics": tuple(check_systematics(systematics)),
            "columns": columns,
        }.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        error = "free" if self.error is None else f"+- {self.error:g}"
        return f"Background {self.name}: {len(self.x):,} events, share {self.share:g} {error}"


def check_name(name: Any) -> str:
    """A name that a parameter may have."""
    if not isinstance(name, str) or not name:
        raise InputError(f"name: {name!r}; give a text, such as 'jes'")
    if name in RESERVED:
        raise InputError(f"name: {name!r} is a part of every budget; give another")
    return name


def check_systematics(
    systematics: Any, observables: tuple[str, ...] | None = None
) -> tuple[Systematic, ...]:
    """Systematics with different names; columns of data frames in the order of the observables."""
    found: tuple[Systematic, ...] = _distinct(systematics, Systematic, "systematics")
    return found if observables is None else tuple(_ordered(one, observables) for one in found)


def _ordered(one: Systematic, observables: tuple[str, ...]) -> Systematic:
    made = copy(one)
    where = f"systematic {one.name!r}"
    sides = tuple(
        replace(side, x=_by_name(side.x, side.columns, observables, where), columns=None)
        for side in one.sides
    )
    object.__setattr__(made, "sides", sides)
    return made


def _by_name(
    x: Array | None, columns: tuple[str, ...] | None, observables: tuple[str, ...], where: str
) -> Array | None:
    """The columns of the observables, by their names; in their order where names say nothing."""
    if x is None or columns is None or not set(columns) & set(observables):
        return x
    missing = [name for name in observables if name not in columns]
    if missing:
        raise InputError(
            f"{where}: there is no column {', '.join(missing)}; the data frame has "
            f"{', '.join(columns)}: give the observables of the templates, or an array"
        )
    return x[:, [columns.index(name) for name in observables]]


def check_backgrounds(
    backgrounds: Any, observables: tuple[str, ...] | None = None
) -> tuple[Background, ...]:
    """Backgrounds with different names, whose shares leave some to the signal; columns of data
    frames in the order of the observables."""
    found = _distinct(backgrounds, Background, "backgrounds")
    if observables is not None:
        given, found = found, tuple(copy(one) for one in found)
        for one, made in zip(given, found, strict=True):
            x = _by_name(one.x, one.columns, observables, f"background {one.name!r}")
            parts = {"x": x, "columns": None,
                     "systematics": check_systematics(one.systematics, observables)}  # fmt: skip
            for field, value in parts.items():
                object.__setattr__(made, field, value)
    total = sum(one.share for one in found)
    if total >= 1:
        raise InputError(f"backgrounds: their shares sum to {total:g}; leave some to the signal")
    return found


def _distinct(things: Any, kind: type, what: str) -> tuple[Any, ...]:
    if isinstance(things, kind):
        things = [things]
    found = tuple(things) if isinstance(things, Iterable) else (things,)
    for one in found:
        if not isinstance(one, kind):
            raise InputError(
                f"{what}: {type(one).__name__}; give a list of gl.{kind.__name__}(...)"
            )
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{what}: two are named {name!r}; give each a name of its own")
    return found


def _side(value: Any, where: str) -> Side:
    if isinstance(value, Side):
        return value
    if isinstance(value, Templates):
        return Side(value.x, value.theta, value.weights, columns=value.observables)
    if isinstance(value, tuple):
        return _of_tuple(value, where)
    if isinstance(value, Sample):
        return Side(value.x, None, value.weights, columns=value.observables)
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(
            f"{where}: lists of different lengths; give (x, theta) or an array of weights"
        ) from None
    if array.ndim == 1:
        return Side(None, None, _weights(array, len(array), where))
    table, _, columns = _events(value, where)
    return Side(table, None, None, columns=columns)


def _of_tuple(value: tuple[Any, ...], where: str) -> Side:
    """A side of (x, theta) or (x, theta, weights)."""
    if len(value) not in (2, 3):
        raise InputError(f"{where}: {len(value)} things; give (x, theta) or (x, theta, weights)")
    table, weights, columns = _events(value[0], where)
    theta = None
    if value[1] is not None:
        theta = _table(value[1], where)
        if len(theta) != len(table):
            raise InputError(
                f"{where}: {len(theta)} values of theta for {len(table)} events; give one each"
            )
    if len(value) > 2:
        weights = _weights(value[2], len(table), where)
    return Side(table, theta, weights, columns=columns)


def _numbered(given: Any, sides: list[Side], where: str) -> tuple[NDArray[np.int64], list[Side]]:
    """Event numbers of the nominal events, and the sides with theirs."""
    try:
        every = [np.asarray(one) for one in given]
    except (TypeError, ValueError):
        raise InputError(
            f"{where}: same_events is {given!r:.80}; give True, False or lists of event numbers"
        ) from None
    if len(every) not in NUMBERS_NEEDED or len(every) != len(sides) + 1:
        raise InputError(
            f"{where}: same_events has {len(every)} lists of numbers; give those of the nominal "
            "events and of each variation"
        )
    for one, side in zip(every[1:], sides, strict=True):
        if side.x is None or one.shape != (len(side.x),):
            raise InputError(f"{where}: same_events has {one.shape} numbers; give one per event")
    for one in every:
        if not np.issubdtype(one.dtype, np.integer):
            raise InputError(f"{where}: same_events are no whole numbers; give event numbers")
    return every[0].astype(np.int64), [
        replace(side, numbers=one.astype(np.int64))
        for side, one in zip(sides, every[1:], strict=True)
    ]


def _events(data: Any, where: str) -> tuple[Array, Array | None, tuple[str, ...] | None]:
    """Events as an array, the weights that they bring, and the names of their columns, if any."""
    if isinstance(data, Sample):
        return data.x, data.weights, data.observables
    columns = tuple(map(str, data.columns)) if hasattr(data, "columns") else None
    return _table(data, where), None, columns


def _table(data: Any, where: str) -> Array:
    try:
        return as_table(data, "x", None, "x")[0]
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _weights(weights: Any, events: int, where: str) -> Array | None:
    try:
        return as_weights(weights, events)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _equal(up: Side, down: Side) -> bool:
    return all(
        a is b or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in ((up.x, down.x), (up.weights, down.weights))
    )
