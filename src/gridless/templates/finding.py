"""One finding of an audit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One demand on the templates, and whether it is met.

    Attributes
    ----------
    demand : str
        Its name: `size`, `number`, `gap`, `range`, `overlap`, `difference`, `copies`,
        `sentinels`, `spacing`, `margin` or `weight`.
    met : bool
        Whether the templates meet it.
    value : float
        The number behind it.
    text : str
        What was found, and what to change.

    Examples
    --------
    >>> finding = Finding("size", True, 2000.0, "at least 2,000 effective events per template")
    >>> print(finding)
    ok     size at least 2,000 effective events per template
    """

    demand: str
    met: bool
    value: float
    text: str

    def __str__(self) -> str:
        return self.line(len(self.demand))

    def line(self, width: int) -> str:
        """The finding in one line, with the demand in a column of that width."""
        return f"{'ok    ' if self.met else 'CHANGE'} {self.demand:<{width}} {self.text}"
