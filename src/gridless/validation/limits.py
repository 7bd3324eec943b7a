"""Numbers of pseudo-experiments that can be asked for; without torch, for the command line."""

from typing import Any

from gridless.templates.arrays import as_count

MAX_EXPERIMENTS = 10_000_000
MAX_EVENTS = 1_000_000_000  # of one experiment
MAX_FIRST = 2**31  # the number of an experiment


def check_experiments(toys: Any, events: Any = None, seed: Any = 0, first: Any = 0) -> None:
    """Refuse numbers that no pseudo-experiments can have."""
    limits = {
        "toys": (toys, 2, MAX_EXPERIMENTS),
        "events": (1 if events is None else events, 1, MAX_EVENTS),
        "seed": (seed, 0, 2**63 - 1),
        "first": (first, 0, MAX_FIRST),
    }
    for name, (value, least, most) in limits.items():
        as_count(value, name, least, most)
