"""docs/numbers.md: numbers that are known from elsewhere, beside ours.

`python -m benchmarks known` reproduces the paper (quickly; some minutes), measures the files of
`gridless example` with several seeds, and writes both tables. The same numbers come out again on
the same machine, so that a change of the code shows as a change of the page.
"""

import json
import tempfile
from contextlib import chdir
from pathlib import Path

from rich.console import Console

import gridless as gl
from benchmarks.peers.table import write_page
from gridless.example_files import DATA_MASS, write_example
from gridless.paper.choices import QUICK
from gridless.paper.run import choose_items, reproduce

PAGE = Path(__file__).parent.parent / "docs" / "numbers.md"
SEEDS = (1, 2, 3, 4, 5)


def paper_table(results: dict) -> str:
    """Every statement of the paper, what we find, and whether they agree."""
    rows = ["| item | the paper | gridless | |", "|---|---|---|---|"]
    for name, item in results["items"].items():
        for one in item["statements"]:
            verdict = "agrees" if one["agrees"] else "**differs**"
            rows.append(f"| {name} | {_cell(one['theirs'])} | {_cell(one['ours'])} | {verdict} |")
    return "\n".join(rows)


def example_table(seeds: tuple[int, ...] = SEEDS) -> str:
    """The mass that `gridless example` hides, found with simulation and data of several seeds."""
    rows = [
        "| seed | value [GeV] | error | stat | simulation | pull | p-value |",
        "|---|---|---|---|---|---|---|",
    ]
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            write_example(Path("top"), seed=seed)
            model = gl.fit_files("top/analysis.yaml")
            found = gl.read_likelihood(model, next(Path("top").glob("data.*"))).maximum()
        one = found["mtop"]
        pull = (one.value - DATA_MASS) / one.error
        numbers = f"{one.value:.2f} | {one.error:.2f} | {one.stat:.2f} | {one.simulation or 0:.2f}"
        rows.append(f"| {seed} | {numbers} | {pull:+.2f} | {found.p_value or 0:.2f} |")
    return "\n".join(rows)


def run(quick: bool, paper: Path | None = None) -> None:
    """Make both tables and write the page; quickly, print that of the example with one seed."""
    if quick:
        print(example_table(SEEDS[:1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        made = paper or Path(folder)
        if not (made / "results.json").is_file():
            reproduce(made, QUICK, choose_items(None), Console(quiet=True))
        results = json.loads((made / "results.json").read_text())
    write_page(PAGE, {"paper": paper_table(results), "example": example_table()})


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


if __name__ == "__main__":
    run(quick=False)
