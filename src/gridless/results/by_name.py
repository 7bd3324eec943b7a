"""Results by parameter name: `estimate["mtop"]`, and shortcuts where there is only one."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from gridless.errors import InputError

T = TypeVar("T")


def chosen_parameter(parameters: Sequence[str], parameter: str | None) -> str:
    """The parameter that was asked for; without a name, the only one.

    Examples
    --------
    >>> chosen_parameter(["mtop"], None)
    'mtop'
    """
    if parameter is None and len(parameters) > 1:
        raise InputError(
            f"parameter: several, {', '.join(parameters)}; say which: parameter={parameters[0]!r}"
        )
    name = parameters[0] if parameter is None else parameter
    if name not in parameters:
        known = ", ".join(parameters)
        raise InputError(f"there is no parameter {name!r} of interest; there is {known}")
    return name


class ByName(ABC, Generic[T]):
    """The results of every parameter, in their order, found by name."""

    kind: ClassVar[str]
    """What messages call it, such as "estimate"."""

    @property
    @abstractmethod
    def by_name(self) -> Mapping[str, T]:
        """The result of each parameter."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.by_name)

    def __getitem__(self, parameter: str) -> T:
        if parameter not in self.by_name:
            known = ", ".join(self.parameters)
            raise InputError(f"there is no parameter {parameter!r}; there is {known}")
        return self.by_name[parameter]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def only(self, what: str) -> T:
        """The result of the only parameter; `what` is asked of it."""
        if len(self) > 1:
            examples = " or ".join(f"{self.kind}[{name!r}].{what}" for name in self)
            raise InputError(
                f"{what}: the {self.kind} has several parameters; say which: {examples}"
            )
        return next(iter(self.by_name.values()))
