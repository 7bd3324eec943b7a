"""YAML without its traps: no key twice, no aliases, no half characters, no absurd depth or size."""

import re
from typing import Any
from unicodedata import category

import yaml

from gridless.errors import InputError

MAX_SIZE = 1_000_000  # characters; an analysis has some thousand
MAX_DEPTH = 20  # lists in lists; an analysis has four
PATTERN = re.compile(r"\s\{\w+\}[^\s,}\]]")  # {mtop}.root, which YAML takes for a mapping
HALF = {"Cs"}  # the Unicode category of halves of characters, "\\udcff"


def load(text: str, name: str) -> tuple[Any, yaml.Node]:
    """The content of some YAML, and its tree, which knows the lines.

    Parameters
    ----------
    text : str
        The YAML.
    name : str
        How messages call it.

    Examples
    --------
    >>> load("seed: 1", "analysis.yaml")[0]
    {'seed': 1}
    >>> load("seed: 1\\nseed: 2", "analysis.yaml")
    Traceback (most recent call last):
    gridless.errors.InputError: analysis.yaml: line 2: 'seed' is there twice; leave one out
    """
    if len(text) > MAX_SIZE:
        raise InputError(f"{name}: {len(text):,} characters of YAML; give at most {MAX_SIZE:,}")
    try:
        _check_events(text, name)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        _check_keys(root, name)
        return yaml.safe_load(text), root
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        cure = "`gridless init` shows one"
        if mark and PATTERN.search("".join(text.splitlines()[mark.line : mark.line + 1])):
            cure = "put the pattern in quotes: a text of YAML may not begin with {"
        raise InputError(f"{name}:{line} not YAML: {problem}; {cure}") from error
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        # Dates that do not exist, numbers of thousands of digits.
        raise InputError(f"{name}: not YAML: {error}; `gridless init` shows one") from error


def _check_events(text: str, name: str) -> None:
    """Refuse what would grow or nest without end, before anything is made of it."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise InputError(f"{name}: line {line}: an alias, *{event.anchor}; write it out")
        if isinstance(event, yaml.ScalarEvent) and HALF & {category(c) for c in event.value}:
            raise InputError(f"{name}: line {line}: {event.value!r} is no text; spell it in UTF-8")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InputError(
                f"{name}: line {line}: nested more than {MAX_DEPTH} deep; close the brackets"
            )


def _check_keys(node: yaml.Node | None, name: str) -> None:
    """Refuse a key that is there twice: YAML would let the last one win."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(item, name)
    if not isinstance(node, yaml.MappingNode):
        return
    seen = set()
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                line = key.start_mark.line + 1
                raise InputError(
                    f"{name}: line {line}: {key.value!r} is there twice; leave one out"
                )
            seen.add(key.value)
        _check_keys(value, name)
