"""Several channels in one analysis.yaml: what stands at the top holds in each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gridless.errors import InputError
from gridless.templates.query import both

if TYPE_CHECKING:
    from gridless.analysis.analysis import Analysis

CHANNELS = "channels"
# Lists of things with names: a channel adds its own, and replaces those of the same name.
LISTS = ("backgrounds", "systematics")
# Mappings, to which a channel adds its own.
MAPPINGS = ("labels", "fit")
# Names stand before an = in the shell and behind a colon, and in names of files.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
MAX_PARAMETERS = 3  # that all channels have together: as many as one may have

Place = tuple[str, ...]


class ChannelContent(NamedTuple):
    """The settings of a channel with those that it takes from the top of the file.

    `origins` has the place in the file of every setting, and of every item of a list:
    ("systematics", "2") -> ("channels", "soft", "systematics", "0").
    """

    name: str
    content: dict[str, Any]
    origins: dict[Place, Place]

    def place(self, where: list[str]) -> list[str]:
        """Where a setting of the channel stands in the file."""
        for length in (2, 1):
            known = self.origins.get(tuple(where[:length]))
            if known is not None:
                return [*known, *where[length:]]
        return [CHANNELS, self.name, *where]


def split_channels(content: dict[str, Any], path: Any) -> list[ChannelContent]:
    """The settings of each channel of a file, not yet checked.

    Parameters
    ----------
    content : dict
        The whole file.
    path : Path
        How messages call it.

    Examples
    --------
    >>> file = {"weight": "w", "selection": "m > 0",
    ...         "channels": {"soft": {"selection": "pt < 60"}, "hard": {"weight": "v"}}}
    >>> soft, hard = split_channels(file, "analysis.yaml")
    >>> soft.content, hard.content
    ({'weight': 'w', 'selection': '(m > 0) & (pt < 60)'}, {'weight': 'v', 'selection': 'm > 0'})
    >>> hard.place(["weight"]), hard.place(["selection"])
    (['channels', 'hard', 'weight'], ['selection'])
    """
    channels = content[CHANNELS]
    if not isinstance(channels, dict) or len(channels) < 2:
        raise InputError(
            f"{path}: {CHANNELS}: give two or more by name, `soft: {{selection: pt < 60}}`; one "
            f"alone needs no `{CHANNELS}:`"
        )
    for name, own in channels.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(
                f"{path}: {CHANNELS}: {name!r} is no name of a channel; use letters, digits, _, -, "
                "+ and . (in quotes where it is a number)"
            )
        if not isinstance(own, dict | None):
            raise InputError(f"{path}: {CHANNELS}.{name}: holds no settings; give a mapping")
    top = {key: value for key, value in content.items() if key != CHANNELS}
    found = [_joined(str(name), top, own or {}) for name, own in channels.items()]
    for one in found:
        _keep_own_labels(top.get("labels"), one.content)
    return found


def _joined(name: str, top: dict[str, Any], own: dict[str, Any]) -> ChannelContent:
    """The settings of one channel; each knows whether it stands at the top or in the channel."""
    content = {**top, **own}
    origins: dict[Place, Place] = {(key,): (key,) for key in top if key not in own}
    here = (CHANNELS, name)
    for key in LISTS:
        if isinstance(top.get(key), list) and isinstance(own.get(key), list):
            kept = {_name(one) for one in own[key]}
            items: list[tuple[Any, Place]]
            items = [(one, (key, str(i))) for i, one in enumerate(top[key])]
            items = [(one, place) for one, place in items if _name(one) not in kept]
            items += [(one, (*here, key, str(i))) for i, one in enumerate(own[key])]
            content[key] = [one for one, _ in items]
            origins |= {(key, str(i)): place for i, (_, place) in enumerate(items)}
    for key in MAPPINGS:
        if isinstance(top.get(key), dict) and isinstance(own.get(key), dict):
            content[key] = top[key] | own[key]
            origins |= {(key, str(k)): (key, str(k)) for k in top[key] if k not in own[key]}
    if isinstance(top.get("selection"), str) and isinstance(own.get("selection"), str):
        content["selection"] = both(top["selection"], own["selection"])
    return ChannelContent(name, content, origins)


def _name(item: Any) -> Any:
    """The name of an item of a list; the item itself where it has none, which is refused later."""
    return item.get("name", id(item)) if isinstance(item, dict) else id(item)


def _keep_own_labels(labels: Any, content: dict[str, Any]) -> None:
    """Of the labels at the top, leave a channel those of its own names."""
    own = content.get("labels")
    if not isinstance(labels, dict) or not isinstance(own, dict):
        return
    listed = [content.get(key) for key in ("parameters", "observables")]
    names = {str(name) for one in listed if isinstance(one, dict | list) for name in one}
    content["labels"] = {
        key: text for key, text in own.items() if key in names or key not in labels
    }


def check_labels(labels: Any, analyses: Iterable[Analysis]) -> None:
    """Refuse a label at the top of the file that no channel can use."""
    names = {name for one in analyses for name in (*one.parameters, *one.observables)}
    for key in labels if isinstance(labels, dict) else ():
        if key not in names:
            raise InputError(
                f"labels: there is no {key!r} in any channel; give parameters or observables: "
                f"{', '.join(sorted(names))}"
            )


def check_channels(analyses: Mapping[str, Analysis]) -> None:
    """Refuse channels that cannot be measured together.

    Channels share parameters, systematics and backgrounds by name: what has one name must be one
    thing in all of them.
    """
    bounds: dict[str, tuple[str, tuple[float, float]]] = {}
    kinds: dict[str, tuple[str, str, Any]] = {}
    for channel, one in analyses.items():
        for name, own in one.parameters.items():
            first, known = bounds.setdefault(name, (channel, own))
            if known != own:
                raise InputError(
                    f"channels: {name} is in [{known[0]:g}, {known[1]:g}] in {first} and in "
                    f"[{own[0]:g}, {own[1]:g}] in {channel}; give both the same bounds"
                )
        things: list[tuple[str, str, Any]]
        things = [(name, "a parameter", None) for name in one.parameters]
        varied = [*one.systematics, *(s for b in one.backgrounds for s in b.systematics)]
        things += [(s.name, "a systematic", ("constraint", s.constraint)) for s in varied]
        things += [
            (b.name, "a background", ("error", "null" if b.error is None else "a number"))
            for b in one.backgrounds
        ]
        for name, kind, detail in things:
            first, known_kind, known_detail = kinds.setdefault(name, (channel, kind, detail))
            if kind != known_kind:
                raise InputError(
                    f"channels: {name!r} is {known_kind} in {first} and {kind} in {channel}; "
                    "rename one"
                )
            if detail != known_detail:
                what = detail[0]
                raise InputError(
                    f"channels: {name} has {what} {known_detail[1]} in {first} and {detail[1]} in "
                    f"{channel}; give both the same, or two names"
                )
    for channel, one in analyses.items():
        others = {n for c, other in analyses.items() if c != channel for n in other.parameters}
        if not others & set(one.parameters):
            raise InputError(
                f"channels: {channel} shares no parameter with another channel; measure it alone"
            )
    if len(bounds) > MAX_PARAMETERS:
        raise InputError(
            f"channels: {len(bounds)} parameters in all, {', '.join(bounds)}; give at most "
            f"{MAX_PARAMETERS}"
        )
