"""From an analysis.yaml to a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gridless.analysis.analysis import Analysis
from gridless.analysis.channels import check_channels
from gridless.analysis.loading import by_channel, load_analysis
from gridless.errors import errors_of
from gridless.model.record import FitOptions

if TYPE_CHECKING:
    from gridless.model.combined import Channels
    from gridless.model.model import Model
    from gridless.systematics.inputs import Background, Systematic
    from gridless.templates.query import FileRecord
    from gridless.templates.templates import Templates


def fit_files(
    analysis: str | Path | Analysis | Mapping[str, Analysis],
    *,
    where: str | None = None,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Model | Channels:
    """Read the templates of an analysis file and fit a model to them, as `gridless fit` does.

    The model keeps the audit of the templates, the distributions of their observables, and name,
    number of events and checksum of every file.

    Parameters
    ----------
    analysis : str, Path, Analysis or mapping from str to Analysis
        An analysis.yaml, or what it holds; several by the names of their channels.
    where : str, optional
        Use only these events, in this fit alone. (The `selection` of the analysis is stored in the
        model and applied to data.)
    checkpoint : str or Path, optional
        As in `fit`: after an interruption the same call goes on from there.
    **options : Any
        Arguments of `fit`, in place of those in the file.

    Returns
    -------
    Model or Channels
        Channels of an analysis with `channels:`, a model of each.

    Examples
    --------
    >>> import numpy as np
    >>> import gridless as gl
    >>> from pathlib import Path
    >>> for value in gl.grid((0, 1), 5):
    ...     x = np.random.default_rng(1).normal(value, 1, 500)
    ...     np.savez(f"mc_{value:.1f}.npz", x=x)
    >>> _ = Path("analysis.yaml").write_text('''
    ... templates: mc_{theta}.npz
    ... parameters: {theta: [0, 1]}
    ... observables: [x]
    ... fit: {hidden: 3, epochs: 2}
    ... ''')
    >>> model = gl.fit_files("analysis.yaml", where="entry % 4 != 3", replicas=4, seed=1)
    >>> sum(file.events for file in model.files)
    1875
    """
    from gridless import distributed

    content = load_analysis(Path(analysis)) if isinstance(analysis, str | Path) else analysis
    found = by_channel(content)
    chosen = {name: one.fit_options(**options) for name, one in found.items()}
    for one in chosen.values():
        distributed.find_device(one.device)
    if not isinstance(content, Analysis):
        check_channels(content)
    # All is found before anything is read, and read before anything is trained: mistakes in the
    # last channel show at once.
    check_sources(found, where)
    inputs = {name: _read(name, one, where) for name, one in found.items()}
    models = {
        name: _fit(inputs.pop(name), one, where, channel_checkpoint(checkpoint, name))
        for name, one in chosen.items()
    }
    if isinstance(content, Analysis):
        return models[""]
    from gridless.model.combined import Channels

    return Channels(models)


def channel_checkpoint(checkpoint: str | Path | None, channel: str) -> str | Path | None:
    """Where the training of a channel stands; "" is the only one."""
    return f"{checkpoint}.{channel}" if checkpoint is not None and channel else checkpoint


def check_sources(analyses: Mapping[str, Analysis], where: str | None) -> None:
    """`Analysis.check_sources` of every channel."""
    for channel, one in analyses.items():
        with errors_of(channel):
            one.check_sources(where)


class Inputs(NamedTuple):
    """The simulated events of a channel, and the files beside those of the templates."""

    templates: Templates
    systematics: list[Systematic]
    backgrounds: list[Background]
    files: list[FileRecord]


def _read(channel: str, analysis: Analysis, where: str | None) -> Inputs:
    """What a channel is fitted to; errors name the channel."""
    from gridless import distributed
    from gridless.templates.query import both

    # Each of several ranks reads its own share of the events.
    ranks, rank = distributed.size(), distributed.rank()
    used = both(where, f"entry % {ranks} == {rank}" if ranks > 1 else None)
    with errors_of(channel):
        templates = analysis.read_templates(used)
        return Inputs(templates, *analysis.read_measurement(used))


def _fit(
    inputs: Inputs, options: FitOptions, where: str | None, checkpoint: str | Path | None
) -> Model:
    """The model of one channel."""
    from dataclasses import replace

    from gridless.fitting import fit

    given = dict(options)
    model = fit(
        inputs.templates,
        checkpoint=checkpoint,
        systematics=inputs.systematics,
        backgrounds=inputs.backgrounds,
        **given,
    )
    files = tuple(dict.fromkeys((*model.files, *inputs.files)))
    return replace(model, files=files, record=replace(model.record, where=where))
