"""Flags that several verbs share, and their checks before a verb runs."""

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridless import strict_json
from gridless.analysis.channels import NAME
from gridless.errors import InputError
from gridless.registry import FORMATS

if TYPE_CHECKING:
    from gridless.model.model import Model

Command = Callable[..., Any]

# How curves begin that gridless writes to files of such names.
WRITTEN = {".csv": b"parameter,value,"}
WRITTEN |= dict.fromkeys((".yaml", ".yml"), b"independent_variables:")

as_json = click.option("--json", "machine", is_flag=True, help="Print JSON for machines.")
where = click.option(
    "--where", metavar="EXPRESSION", help="Use only these events, in this command alone."
)
weight = click.option("--weight", metavar="EXPRESSION", help="Weight of an event.")
observed_events = click.option(
    "--events",
    multiple=True,
    required=True,
    metavar="NUMBER",
    help="Events that will be observed; of several channels soft=NUMBER for each.",
)
model_file: Callable[[Command], Command] = click.argument("model", type=click.Path(path_type=Path))


def output_file(
    flag: str, help: str, default: Path | None = None, required: bool = False
) -> Callable[[Command], Command]:
    """A file to write: refused now, before the work, if it could not be written."""
    flags = ["-o", "--output"] if flag == "--output" else [flag]
    # To click a default of None is a value: a required flag would never be missing.
    given: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    return click.option(
        *flags,
        type=click.Path(path_type=Path),
        required=required,
        callback=_writable,
        help=help,
        **given,
    )


def _writable(ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    from gridless.files.write import check_writable

    if path is not None and not ctx.resilient_parsing:
        _check_not_theirs(check_writable(path))
    return path


def _check_not_theirs(path: Path) -> None:
    """Refuse to replace what by its name is a file of events or an analysis, but for one that
    gridless wrote."""
    if not exists(path) or not (_is_data(path) or path.suffix in WRITTEN):
        return
    begin = WRITTEN.get(path.suffix, b"")
    with path.open("rb") as file:
        found = file.read(len(begin) or 1)
    if found and found != begin:
        raise InputError(
            f"{path}: would overwrite what may be events or an analysis; give another name, or "
            "remove it"
        )


def executor_options(command: Command) -> Command:
    """What runs the tasks, if not this process: `dask` and `workers`."""
    return with_options(
        command,
        click.option(
            "--dask", metavar="ADDRESS", help="Address of a dask scheduler: tcp://host:8786."
        ),
        click.option("--workers", type=click.IntRange(1), help="Number of local worker processes."),
    )


def likelihood_options(command: Command) -> Command:
    """What is done to a likelihood before it is used: the verb gets `constrain`, name -> (value,
    error), `fix`, name -> value, and `level`."""
    return with_options(
        command,
        click.option(
            "--level",
            type=float,
            callback=_level,
            help="Confidence level of a further interval, such as 0.95.",
        ),
        click.option(
            "--constrain",
            type=(str, float, float),
            multiple=True,
            metavar="NAME VALUE ERROR",
            callback=_by_name,
            help="Gaussian constraint on a parameter, from another measurement.",
        ),
        click.option(
            "--fix",
            type=(str, float),
            multiple=True,
            metavar="NAME VALUE",
            callback=_by_name,
            help="Hold a parameter at a value.",
        ),
    )


def _by_name(
    ctx: click.Context, option: click.Parameter, rows: tuple[tuple[Any, ...], ...]
) -> dict[str, Any]:
    """--constrain or --fix by the names of parameters; each may be given once in both together."""
    names = [row[0] for row in rows]
    if option.name == "constrain":
        for name, _, error in rows:
            if not error > 0:
                raise InputError(
                    f"--constrain: an error of {error:g} for {name}; give a positive one"
                )
        found: dict[str, Any] = {name: (value, error) for name, value, error in rows}
    else:
        found = dict(rows)
    # Of the two flags, the one that is looked at last sees the other.
    names += [*(ctx.params.get("constrain") or ()), *(ctx.params.get("fix") or ())]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"--constrain, --fix: {', '.join(twice)} twice; give each once")
    return found


def _level(_ctx: click.Context, _option: click.Parameter, level: float | None) -> float | None:
    if level is not None and not 0 < level < 1:
        raise InputError(f"level: {level}; give a number between 0 and 1, such as 0.95")
    return level


def with_options(command: Command, *options: Any) -> Command:
    """The command with these options, listed in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def check_model_first(
    model: Path,
    data: Sequence[str] = (),
    outputs: Iterable[Path | None] = (),
    others: Iterable[str | None] = (),
) -> None:
    """Refuse a data file where the model belongs, a model where data belong, and outputs that are
    one of these or of `others`, which are read too."""
    swapped = [source for source in data if source.endswith(".safetensors")]
    if _is_data(model):
        cure = f"did you mean `{swapped[0]} {model}`?" if swapped else "give the model first"
        raise InputError(f"{model}: a file of events where the model belongs; {cure}")
    if swapped:
        raise InputError(f"{swapped[0]}: a model where data belong; give one model, then the data")
    from gridless.files.sources import check_readable
    from gridless.files.write import check_outputs
    from gridless.model.storage.header import split_channel

    check_readable(split_channel(model)[0], "give a model written by `gridless fit`")
    written = [path for path in outputs if path is not None]
    if written:
        # `soft=file` is a file of that name, or one of the channel.
        files = [*data, *(source.partition("=")[2] for source in data if "=" in source)]
        check_outputs(written, [model, *files, *(one for one in others if one is not None)])


def load_one(path: Path, what: str = "this", otherwise: str = "") -> "Model":
    """The model of a file; of one with several channels, it must be `path:channel`.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What takes one channel: a flag.
    otherwise : str
        What else may be done about it.
    """
    import gridless as gl

    model = gl.load(path)
    if isinstance(model, gl.Channels):
        raise InputError(
            f"{path}: holds the channels {', '.join(model)}, and {what} takes one; give "
            f"{path}:{next(iter(model))}{otherwise}"
        )
    return model


def channel_data(model: Any, data: Sequence[str], what: str = "DATA") -> Any:
    """The observed files as `read_likelihood` takes them: `soft=file` is for one channel.

    Parameters
    ----------
    model : Model or Channels
        A model has no channels: an = is then part of a file's name.
    data : sequence of str
        As they were typed.
    what : str
        How the shell calls them.
    """
    import gridless as gl

    if not isinstance(model, gl.Channels):
        return list(data)
    found: dict[str, list[str]] = {}
    unknown = []
    for source in data:
        name, equals, file = source.partition("=")
        if equals and name in model:
            found.setdefault(name, []).append(file)
        elif equals and NAME.fullmatch(name) and not exists(source.split(":")[0]):
            unknown.append(name)
    if unknown:
        raise InputError(f"{what}: there is no channel {unknown[0]!r}; there is {', '.join(model)}")
    if not found:
        return list(data)
    if sum(len(files) for files in found.values()) < len(data):
        raise InputError(
            f"{what}: some with a channel and some without; give files that all channels divide, "
            f"or each with its channel, {next(iter(model))}=FILE"
        )
    model.check_names(found, what)
    return found


def event_numbers(model: Any, given: tuple[str, ...]) -> Any:
    """A number of events, or by channel those that were typed as soft=NUMBER."""
    import gridless as gl

    channels = list(model) if isinstance(model, gl.Channels) else []
    pairs = [text.rpartition("=") for text in given]
    if (not channels and len(given) > 1) or any(bool(name) != bool(channels) for name, *_ in pairs):
        names = " ".join(f"--events {name}=NUMBER" for name in channels) or "--events NUMBER"
        raise InputError(f"--events: {' '.join(given)}; give {names}")
    try:
        found = {name: float(number) for name, _, number in pairs}
    except ValueError as error:
        raise InputError(f"--events: {' '.join(given)}; give numbers") from error
    return found if channels else found[""]


def check_restrictions(
    model: Any, constrain: dict[str, tuple[float, float]], fix: dict[str, float]
) -> None:
    """Refuse constraints that the parameters of a model cannot have, before events are read."""
    from gridless.likelihood.derived import check_restricted

    # Nuisance parameters have no bounds; the likelihood knows what else to refuse.
    nuisances = set(model.nuisances)
    known = [*model.grid.parameters, *model.nuisances]
    for name in (*constrain, *fix):
        if name not in known:
            raise InputError(f"there is no parameter {name!r}; there is {', '.join(known)}")
    check_restricted(
        model.grid,
        {name: pair for name, pair in constrain.items() if name not in nuisances},
        {name: value for name, value in fix.items() if name not in nuisances},
    )


def _is_data(path: Path) -> bool:
    """Whether a name is that of a file of events, with or without a tree behind a colon."""
    return any(f"{path}".split(":")[0].endswith(suffix) for suffix in FORMATS.names)


def command_line() -> str:
    """What was typed, as a shell takes it."""
    return shlex.join(["gridless", *sys.argv[1:]])


def print_result(result: Any, machine: bool) -> None:
    """A result as text or, for machines, its `to_dict()` as JSON."""
    click.echo(strict_json.dumps(result.to_dict(), indent=1) if machine else str(result))


def print_json(content: Any) -> None:
    """Anything as JSON."""
    click.echo(strict_json.dumps(content, indent=1))
