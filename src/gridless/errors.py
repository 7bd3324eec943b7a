"""The errors and warnings a user can meet, each with a text that names the cure."""

from collections.abc import Iterator
from contextlib import contextmanager


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
        raise InputError(f"{what}: {type(value).__name__}; give a {kind.__name__}")


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a choice that is not among those that are known."""
    if value not in known:
        raise InputError(f"{name}: there is no {value!r:.80}; give one of {', '.join(known)}")
