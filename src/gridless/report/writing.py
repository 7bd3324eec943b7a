"""Writing a report: its sections, in their order, with a card at the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import NoneType

from markupsafe import Markup

from gridless.errors import InputError, counted
from gridless.files.sources import as_path
from gridless.files.write import write_whole
from gridless.likelihood.likelihood import Likelihood
from gridless.model.combined import Channels, models_of
from gridless.model.model import Model
from gridless.report.card import make_card
from gridless.report.page import render_report
from gridless.report.sections import make_sections
from gridless.report.subject import Subject
from gridless.report.typeset import ranges_html, symbol_html, symbols_html
from gridless.templates.query import FileRecord
from gridless.validation.closure import Closure


def write_report(  # noqa: PLR0913
    path: str | Path,
    model: Model | Channels,
    likelihood: Likelihood | None = None,
    closure: Closure | None = None,
    *,
    level: float = 0.95,
    command: str | None = None,
    data: Sequence[FileRecord] | Mapping[str, Sequence[FileRecord]] = (),
    experiment: str | None = None,
) -> Path:
    """Write one self-contained HTML page about a model, a measurement and a closure test.

    At the top stand the result and whether to trust it, then the figures that a reader looks at
    first; the rest is folded. Sections for which there is nothing to show are left out. Needs the
    extra `report`.

    Parameters
    ----------
    path : str or Path
        The page to write.
    model : Model or Channels
        The model; its audit, distributions, training and files are shown. Of channels, those of
        each, and whether the channels agree.
    likelihood : Likelihood, optional
        Of the observed events: adds the measurement.
    closure : Closure, optional
        Adds the table and the figure of the closure test.
    level : float
        Confidence level of the second interval.
    command : str, optional
        The command line that made the page, to be shown on it.
    data : sequence of FileRecord, optional
        The observed files, to be shown with their checksums. Of channels, such a sequence by the
        name of each.
    experiment : str, optional
        A label for the figures, such as "Private work".

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> example = OneObservable()
    >>> model = gl.fit(example.templates(500, seed=1), hidden=3, epochs=2, replicas=4)
    >>> likelihood = model.likelihood(example.sample(0.4, 1_000, seed=2))
    >>> gl.write_report("report.html", model, likelihood).name
    'report.html'
    """
    _check_kinds(path, model, likelihood, closure)
    estimate = None if likelihood is None else likelihood.maximum()
    channels = models_of(model)
    first, *_ = channels.values()
    if isinstance(model, Channels) and data:
        model.check_names(data, "data")
    files = data if isinstance(data, Mapping) else {"": data}
    subject = Subject(
        first, likelihood, estimate, closure, level, command, files, experiment, channels
    )
    what = "A model of" if subject.estimate is None else "Measurement of"
    page = render_report(
        Markup(f"{what} ") + symbols_html(model.grid),
        Markup(" ").join(_intro(own, name) for name, own in channels.items()),
        make_sections(subject),
        card=make_card(subject),
    )
    target = as_path(path)
    write_whole(target, page)
    return target


def _check_kinds(path: object, model: object, likelihood: object, closure: object) -> None:
    """Refuse arguments that are something else, such as another argument of the same call."""
    given: tuple[tuple[str, object, tuple[type, ...], str], ...] = (
        ("path", path, (str, PathLike), "the name of a file; it comes first, then the model"),
        ("model", model, (Model, Channels), "what fit or load returns"),
        ("likelihood", likelihood, (Likelihood, NoneType), "what model.likelihood(x) returns"),
        ("closure", closure, (Closure, NoneType), "what closure returns"),
    )
    for name, value, kinds, cure in given:
        if not isinstance(value, kinds):
            raise InputError(f"{name}: {type(value).__name__}; give {cure}")


def _intro(model: Model, channel: str) -> Markup:
    """What the model of a channel was made of."""
    count = len(model.observables)
    labels = model.query.labels
    names = Markup(", ").join(symbol_html(n, labels.get(n, "")) for n in model.observables)
    observables = Markup(f"{counted(count, 'observable')}: {names}")
    simulated = Markup(f"{len(model.grid)} templates of {ranges_html(model.grid)}")
    if model.files:
        simulated += f" with {sum(file.events for file in model.files):,} simulated events"
        simulated += ", variations and backgrounds included" if model.nuisances else ""
    start = f"{channel}: from" if channel else "From"
    return Markup("{} {}; {}.").format(start, observables, simulated)
