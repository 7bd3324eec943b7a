"""`gridless audit`: whether the templates will do, before anything is trained."""

import click

from gridless.analysis import Analysis
from gridless.cli.options import as_json, print_result, template_options
from gridless.registry import OBJECTIVES


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
    analysis: Analysis, components: int, objective: str, where: str | None, machine: bool
) -> None:
    """Check whether the templates are fit for the purpose, and say what to change.

    Systematics and backgrounds of an analysis.yaml are checked too.

    Example: gridless audit 'mtop_{mtop}.root:events' --bounds mtop 165 180 -x m_jjb,m_jj
    """
    systematics, backgrounds, _ = analysis.read_measurement(where)
    templates = analysis.read_templates(where)
    found = templates.audit(components, objective)
    if systematics or backgrounds:
        from gridless.systematics.audit import audit_systematics

        found = found.joined(audit_systematics(templates, systematics, backgrounds))
    print_result(found, machine)
