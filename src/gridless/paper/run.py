"""`gridless paper`: make the items, write figures, results.json and the report."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from gridless import __version__, strict_json
from gridless.errors import InputError
from gridless.files.write import check_writable, write_whole
from gridless.paper.choices import Choices
from gridless.paper.items import ITEMS
from gridless.paper.workspace import Workspace
from gridless.report.page import Section, render_report
from gridless.report.style import save_figure

QUICK_NOTICE = (
    "Quick run: fewer trainings, test sets and repetitions than in the full one, so the numbers "
    "fluctuate more and the verdicts on closure allow for that."
)


def choose_items(only: str | None) -> list[str]:
    """The names of the items to make, in the order of the paper."""
    if only is None:
        return list(ITEMS)
    wanted = [name.strip() for name in only.split(",")]
    unknown = [name for name in wanted if name not in ITEMS]
    if unknown:
        known = ", ".join(ITEMS)
        raise InputError(f"--only: there is no {', '.join(unknown)}; give some of {known}")
    return [name for name in ITEMS if name in wanted]


def reproduce(folder: Path, choices: Choices, names: Sequence[str], console: Console) -> bool:
    """Make the items, write what they give to `folder`, and say whether all statements agree."""
    for name in ("results.json", "report.html"):
        check_writable(folder / name)  # before hours of work
    work = Workspace(folder, choices)
    made: dict[str, Section] = {}
    for name in names:
        item = made[name] = ITEMS[name](work)
        if item.figure is not None:
            save_figure(item.figure, folder / "figures" / name)
        for statement in item.statements:
            mark = "[green]agrees[/]" if statement.agrees else "[red]differs[/]"
            console.print(f"{name:8} {mark}  {statement.ours}", highlight=False)
    write_whole(
        folder / "results.json", strict_json.dumps(_results(made, choices), indent=1).encode()
    )
    statements = [s for item in made.values() for s in item.statements]
    agree = sum(s.agrees for s in statements)
    page = render_report(
        "Mixture density network estimation from discrete training samples, reproduced",
        "Everything that Burton, Stubbs and Onyisi show in arXiv:2103.13416, made anew by gridless "
        f"{__version__}, beside what the paper says. The verdicts are computed: {agree} of "
        f"{len(statements)} statements agree.",
        made | {"choices": _choices_section(choices)},
        theirs="The paper",
        notices=[QUICK_NOTICE] if choices.name == "quick" else [],
    )
    write_whole(folder / "report.html", page)
    console.print(f"{agree} of {len(statements)} statements agree")
    console.print(f"open {folder / 'report.html'}", highlight=False)
    return agree == len(statements)


def _choices_section(choices: Choices) -> Section:
    rows = [["What", "Our choice"], *(line.split(": ", 1) for line in choices.described())]
    return Section("What the paper leaves unsaid: our choices", table=rows)


def _results(made: dict[str, Section], choices: Choices) -> dict[str, Any]:
    return {
        "gridless": __version__,
        "choices": asdict(choices),
        "items": {
            name: {
                "title": item.title,
                "statements": [asdict(statement) for statement in item.statements],
                "numbers": item.numbers,
            }
            for name, item in made.items()
        },
    }
