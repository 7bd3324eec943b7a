"""The query: which numbers to take of every event, how it is weighted, and which events to use."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gridless.errors import InputError
from gridless.templates.arrays import as_names

# One name alone, several names, or names with an expression each.
Columns = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class Query:
    """What is read of a table of events: observables, weight and selection.

    Templates and models carry their query, so that observed events are read as the simulated ones
    were.

    Parameters
    ----------
    observables : dict of str to str
        Names with a column or an expression of columns each.
    weight : str, optional
        Expression for the weight of a simulated event.
    selection : str, optional
        Expression that is true for the events to use, simulated and observed. Weight and selection
        may use the names of observables, unless a column has the same name.
    labels : dict of str to str, optional
        How figures call an observable, with its unit: `$m_{jj}$ [GeV]`.

    Examples
    --------
    >>> query = Query.of(["m_jjb", "m_jj"], selection="m_jj > 40")
    >>> query.where("entry % 4 == 0").selection
    '(m_jj > 40) & (entry % 4 == 0)'
    """

    observables: dict[str, str]
    weight: str | None = None
    selection: str | None = None
    labels: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, columns: Columns, weight: str | None = None, selection: str | None = None
    ) -> "Query":
        """The query for columns by their names or expressions, or under names of their own.

        Parameters
        ----------
        columns : str, sequence of str, or mapping of str to str
            One column or expression, several, or names with one of these each.
        weight, selection : str, optional
            As in `Query`.

        Returns
        -------
        Query
        """
        if not isinstance(columns, Mapping):
            listed = as_names(columns, "columns")
            if len(set(listed)) < len(listed):
                raise InputError(f"columns: {', '.join(listed)} repeat; give each once")
            columns = {column: column for column in listed}
        if not columns:
            raise InputError("columns: none; give at least one column or expression")
        as_names(columns, "columns")
        return cls(dict(columns), weight, selection)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the observables."""
        return tuple(self.observables)

    def where(self, condition: str | None) -> "Query":
        """The same query of those events only that meet a further condition."""
        return replace(self, selection=both(self.selection, condition))

    def within(self, other: "Query") -> bool:
        """Whether the events are selected as those of another query are, or further by `where`."""
        selection = self.selection or ""
        return other.selection in (None, selection) or selection.startswith(
            f"({other.selection}) & ("
        )

    def to_dict(self) -> dict[str, Any]:
        """The query in what JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class FileRecord:
    """A file that events came from.

    Attributes
    ----------
    source : str
        Its name, as it was given.
    events : int
        How many of its events were used.
    checksum : str or None
        Its SHA-256; None for a table in memory.
    of : int or None
        How many events it has; None where that was not counted.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.read({"m": [1.0, 2.0]}, "m").record
    FileRecord(source='dict in memory', events=2, checksum=None, of=2)
    """

    source: str
    events: int
    checksum: str | None = None
    of: int | None = None

    def describe(self) -> str:
        """`6,853 of 10,000 events`: how many were used, and of how many."""
        return used_of(self.events, self.of)


def used_of(events: int, of: int | None) -> str:
    """`6,853 of 10,000 events`, or `10,000 events` where all were used."""
    return f"{events:,} events" if of in (None, events) else f"{events:,} of {of:,} events"


def both(first: str | None, second: str | None) -> str | None:
    """Two selections at once; None stands for all events."""
    if first and second:
        return f"({first}) & ({second})"
    return first or second
