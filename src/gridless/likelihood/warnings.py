"""Reasons to doubt an estimate, each with a name, a rule and a cure."""

from typing import NamedTuple


class EstimateWarning(NamedTuple):
    """A reason to doubt an estimate: its name, as in the documentation, and what it means here."""

    name: str
    text: str
