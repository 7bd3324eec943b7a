"""`gridless audit`: whether the templates will do, before anything is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gridless.analysis.analysis import Analysis
from gridless.analysis.fitting import check_sources
from gridless.analysis.loading import by_channel
from gridless.cli.analysis_flags import template_options
from gridless.cli.options import as_json, print_json, print_result
from gridless.errors import errors_of
from gridless.registry import OBJECTIVES

if TYPE_CHECKING:
    from gridless.templates.audit import Audit


@click.command()
@template_options
@click.option("--components", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES.names),
    default="template",
    show_default=True,
    help="The objective of the fit; each asks something else of the templates.",
)
@as_json
def audit(
    analysis: Analysis | dict[str, Analysis],
    components: int,
    objective: str,
    where: str | None,
    machine: bool,
) -> None:
    """Check whether the templates are fit for the purpose, and say what to change.

    Systematics and backgrounds of an analysis.yaml are checked too, and every channel.

    Example: gridless audit 'mtop_{mtop}.root:events' --bounds mtop 165 180 -x m_jjb,m_jj
    """
    check_sources(by_channel(analysis), where)
    if isinstance(analysis, Analysis):
        print_result(_audit(analysis, components, objective, where), machine)
        return
    found = {}
    for name, one in analysis.items():
        with errors_of(name):
            found[name] = _audit(one, components, objective, where)
    if machine:
        print_json({"channels": {name: one.to_dict() for name, one in found.items()}})
    else:
        click.echo("\n\n".join(f"channel {name}: {one}" for name, one in found.items()))


def _audit(analysis: Analysis, components: int, objective: str, where: str | None) -> Audit:
    """The audit of one channel."""
    templates = analysis.read_templates(where)
    systematics, backgrounds, _ = analysis.read_measurement(where)
    found = templates.audit(components, objective)
    if not systematics and not backgrounds:
        return found
    from gridless.systematics.audit import audit_systematics

    return found.joined(audit_systematics(templates, systematics, backgrounds))
