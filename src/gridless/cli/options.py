"""Flags that several verbs share, and what is made of them before a verb runs."""

import functools
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from gridless import strict_json
from gridless.cli.analysis_flags import analysis_from_flags
from gridless.errors import InputError
from gridless.model.record import FitOptions
from gridless.registry import FORMATS

if TYPE_CHECKING:
    from gridless.model.model import Model

Command = Callable[..., Any]
# The flags of the penalty and the arguments of `gl.Penalty` that they give.
PENALTY = ("strength", "at", "density", "bins")

as_json = click.option("--json", "machine", is_flag=True, help="Print JSON for machines.")
where = click.option(
    "--where", metavar="EXPRESSION", help="Use only these events, in this command alone."
)
weight = click.option("--weight", metavar="EXPRESSION", help="Weight of an event.")
model_file: Callable[[Command], Command] = click.argument("model", type=click.Path(path_type=Path))


def output_file(
    flag: str, help: str, default: Path | None = None, required: bool = False
) -> Callable[[Command], Command]:
    """A file to write: refused now, before the work, if it could not be written."""
    flags = ["-o", "--output"] if flag == "--output" else [flag]
    return click.option(
        *flags,
        type=click.Path(path_type=Path),
        default=default,
        show_default=default is not None,
        required=required,
        callback=_writable,
        help=help,
    )


def _writable(ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    from gridless.files.write import check_writable

    if path is not None and not ctx.resilient_parsing:
        check_writable(path)
    return path


def executor_options(command: Command) -> Command:
    """What runs the tasks, if not this process: `dask` and `workers`."""
    return _with(
        command,
        click.option(
            "--dask", metavar="ADDRESS", help="Address of a dask scheduler: tcp://host:8786."
        ),
        click.option("--workers", type=click.IntRange(1), help="Number of local worker processes."),
    )


def template_options(command: Command) -> Command:
    """The templates as an analysis file, or as a pattern with flags; the verb gets `analysis`."""

    @functools.wraps(command)
    def checked(
        *,
        templates: str,
        bounds: tuple[tuple[str, float, float], ...],
        observables: tuple[str, ...],
        weight: str | None,
        selection: str | None,
        **others: Any,
    ) -> Any:
        analysis = analysis_from_flags(templates, bounds, observables, weight, selection)
        if templates.endswith((".yaml", ".yml")):
            check_places([others.get("output")], [Path(templates)])
        return command(analysis=analysis, **others)

    return _with(
        checked,
        click.argument("templates"),
        click.option(
            "--bounds",
            type=(str, float, float),
            multiple=True,
            metavar="NAME LOW HIGH",
            help="A parameter and its bounds; repeat the flag for each parameter.",
        ),
        click.option(
            "-x",
            "--observables",
            multiple=True,
            metavar="COLUMN[,...]",
            help="Columns, expressions of columns, or name=expression; with commas between them, "
            "or repeat the flag.",
        ),
        weight,
        click.option(
            "--selection",
            metavar="EXPRESSION",
            help="Use only these events; stored in the model and applied to data.",
        ),
        where,
    )


def fit_options(command: Command) -> Command:
    """Every option of a fit; the verb gets those that were given as `options`."""

    @functools.wraps(command)
    def checked(**values: Any) -> Any:
        given = {name: values.pop(name) for name in FitOptions.model_fields}
        penalty = {name: values.pop(f"penalty_{name}") for name in PENALTY}
        options = {name: value for name, value in given.items() if value is not None}
        if "hidden" in options:
            options["hidden"] = _layers(options["hidden"])
        settings = {name: value for name, value in penalty.items() if value not in (None, ())}
        if settings:
            options["objective"] = _penalty(options.get("objective"), settings)
        return command(options=options, **values)

    flags = [_fit_flag(name) for name in FitOptions.model_fields]
    return _with(
        checked,
        *flags,
        click.option(
            "--penalty-strength",
            type=click.FloatRange(0, min_open=True),
            help="Weight of the penalty, lambda.",
        ),
        click.option(
            "--penalty-at",
            multiple=True,
            metavar="VALUE[,...]",
            callback=_values,
            help="Where the penalty is taken: a value of each parameter; repeat the flag.",
        ),
        click.option(
            "--penalty-density",
            type=click.Choice(["events", "histogram"]),
            help="How the penalty averages over the observables.",
        ),
        click.option(
            "--penalty-bins", type=click.IntRange(2), help="Bins per observable of the histogram."
        ),
    )


def _fit_flag(name: str) -> Any:
    field = FitOptions.model_fields[name]
    kinds = [k for k in (int, float) if k in (field.annotation, *get_args(field.annotation))]
    # Several numbers, as of hidden, are text with commas.
    kind: Any = str if name == "hidden" or not kinds else kinds[0]
    return click.option(f"--{name}", type=kind, help=field.description)


def _penalty(objective: str | None, settings: dict[str, Any]) -> dict[str, Any]:
    if objective not in (None, "penalty"):
        flags = ", ".join(f"--penalty-{name}" for name in settings)
        raise InputError(f"{flags}: given for --objective {objective}; give --objective penalty")
    return {"penalty": settings}


def _values(
    _ctx: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[float | tuple[float, ...], ...]:
    """Numbers, or tuples of them where there are several parameters."""
    try:
        values = [tuple(float(part) for part in text.split(",")) for text in texts]
    except ValueError:
        raise InputError(
            f"--penalty-at: {', '.join(texts)}; give a number, or one for each parameter with "
            "commas between them"
        ) from None
    if len(values) == 1:
        raise InputError("--penalty-at: one value; give at least two, each with a flag of its own")
    return tuple(value[0] if len(value) == 1 else value for value in values)


def _layers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"hidden: {text!r}; give numbers such as 16 or 16,16") from None


def likelihood_options(command: Command) -> Command:
    """What is done to a likelihood before it is used: the verb gets `constrain`, name -> (value,
    error), `fix`, name -> value, and `level`."""

    @functools.wraps(command)
    def checked(
        *,
        constrain: tuple[tuple[str, float, float], ...],
        fix: tuple[tuple[str, float], ...],
        **others: Any,
    ) -> Any:
        for name, _, error in constrain:
            if not error > 0:
                raise InputError(
                    f"--constrain: an error of {error:g} for {name}; give a positive one"
                )
        given = [*(name for name, _, _ in constrain), *(name for name, _ in fix)]
        twice = sorted({name for name in given if given.count(name) > 1})
        if twice:
            raise InputError(f"--constrain, --fix: {', '.join(twice)} twice; give each once")
        measured = {name: (value, error) for name, value, error in constrain}
        return command(constrain=measured, fix=dict(fix), **others)

    return _with(
        checked,
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
            help="Gaussian constraint on a parameter, from another measurement.",
        ),
        click.option(
            "--fix",
            type=(str, float),
            multiple=True,
            metavar="NAME VALUE",
            help="Hold a parameter at a value.",
        ),
    )


def _level(_ctx: click.Context, _option: click.Parameter, level: float | None) -> float | None:
    if level is not None and not 0 < level < 1:
        raise InputError(f"level: {level}; give a number between 0 and 1, such as 0.95")
    return level


def _with(command: Command, *options: Any) -> Command:
    """The command with these options, listed in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def check_model_first(model: Path, data: Iterable[str] = ()) -> None:
    """Refuse a data file where the model belongs, and a model where data belong."""
    swapped = [source for source in data if source.endswith(".safetensors")]
    if _is_data(model):
        cure = f"did you mean `{swapped[0]} {model}`?" if swapped else "give the model first"
        raise InputError(f"{model}: a file of events where the model belongs; {cure}")
    if swapped:
        raise InputError(f"{swapped[0]}: a model where data belong; give one model, then the data")
    from gridless.files.table import check_readable
    from gridless.model.storage.header import split_channel

    check_readable(split_channel(model)[0], "give a model written by `gridless fit`")


def load_one(path: Path) -> "Model":
    """The model of a file; of one with several channels, it must be `path:channel`."""
    import gridless as gl

    model = gl.load(path)
    if isinstance(model, gl.Channels):
        raise InputError(
            f"{path}: holds the channels {', '.join(model)}, and this takes one; give "
            f"{path}:{next(iter(model))}"
        )
    return model


def channel_data(model: Any, data: Sequence[str]) -> Any:
    """The observed files as `read_likelihood` takes them: `soft=file` is for one channel.

    Parameters
    ----------
    model : Model or Channels
        A model has no channels: an = is then part of a file's name.
    data : sequence of str
        As they were typed.
    """
    import gridless as gl

    if not isinstance(model, gl.Channels):
        return list(data)
    found: dict[str, list[str]] = {}
    for source in data:
        name, equals, file = source.partition("=")
        if equals and name in model:
            found.setdefault(name, []).append(file)
    if not found:
        return list(data)
    if sum(len(files) for files in found.values()) < len(data):
        raise InputError(
            "DATA: some with a channel and some without; give files that all channels divide, or "
            f"each with its channel, {next(iter(model))}=FILE"
        )
    model.check_names(found, "DATA")
    return found


def data_paths(data: Sequence[str]) -> list[str]:
    """The names of observed files, with and without a channel before an =."""
    return [*data, *(source.partition("=")[2] for source in data if "=" in source)]


def check_places(outputs: Iterable[Path | None], inputs: Iterable[Any]) -> None:
    """Refuse an output that is an input (a path, a source, or a pattern of these) or another
    output."""
    from gridless.files.template_files import paths_of
    from gridless.files.write import check_outputs

    wanted = [path for path in outputs if path is not None]
    if wanted:
        check_outputs(wanted, [path for source in inputs for path in paths_of(source)])


def check_restrictions(
    model: Any, constrain: dict[str, tuple[float, float]], fix: dict[str, float]
) -> None:
    """Refuse constraints that the parameters of a model cannot have, before events are read."""
    from gridless.likelihood.derived import check_restricted

    # Nuisance parameters have no bounds; the likelihood knows what else to refuse.
    nuisances = set(model.nuisances)
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
