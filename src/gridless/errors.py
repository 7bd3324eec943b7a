"""The errors and warnings a user can meet, each with a text that names the cure."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

# How what was given leads to what is asked for, by the names of the two classes.
LEADS = {
    ("Channels", "Model"): "one of them: channels[{name!r}]",
    ("Channels", "Likelihood"): "channels.likelihood(x)",
    ("Model", "Likelihood"): "model.likelihood(x)",
    ("Channels", "Estimate"): "channels.likelihood(x).maximum()",
    ("Model", "Estimate"): "model.likelihood(x).maximum()",
    ("Likelihood", "Estimate"): "likelihood.maximum()",
    ("Model", "Closure"): "gl.closure(model, samples)",
    ("Estimate", "Likelihood"): "that whose maximum it is",
}


def counted(number: int, what: str) -> str:
    """How many of a thing.

    Examples
    --------
    >>> counted(1, "event"), counted(2_000, "event")
    ('1 event', '2,000 events')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


class InputError(ValueError):
    """Something given by the user is wrong; the message says what, where and how to cure it."""


class GridlessWarning(UserWarning):
    """Something that works but that the user should know of."""


@contextmanager
def errors_of(channel: str) -> Iterator[None]:
    """Errors name the channel; "" is the only one."""
    try:
        yield
    except InputError as error:
        raise error if not channel else InputError(f"channel {channel}: {error}") from error


def check_kind(value: object, kind: type, what: str) -> None:
    """Refuse anything but an object of that kind."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        text = f"{what}: {type(value).__name__}; give {article} {kind.__name__}"
        raise InputError(", ".join([text, *_lead(value, kind)]))


def _lead(value: object, kind: type) -> list[str]:
    """How to get an object of that kind from what was given, if there is a way."""
    name = next(iter(value), "") if isinstance(value, Mapping) else ""
    known = [(base.__name__, kind.__name__) for base in type(value).__mro__]
    return [LEADS[pair].format(name=name) for pair in known if pair in LEADS][:1]


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a choice that is not among those that are known."""
    if value not in known:
        raise InputError(f"{name}: there is no {value!r:.80}; give one of {', '.join(known)}")
