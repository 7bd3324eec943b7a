"""Markdown of the results, and where it stands in the page."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.floors import FLOORS
from benchmarks.machine import describe
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.problems import PROBLEMS

Records = list[dict[str, Any]]
HEAD = (
    "| | seeds | closure slope | bias, mean | bias, rms | error / exact | coverage "
    "| training, CPU s | million events, CPU s | memory, MB |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def page_parts(results: dict[str, Any]) -> dict[str, str]:
    """What the page shows between its markers, by the name of the marker."""
    parts = {"machine": sessions(results)}
    for name, problem in PROBLEMS.items():
        lines = [HEAD]
        for peer in PEERS[name]:
            records = select(results, name, peer.name)
            if records:
                lines.append(f"| {peer.label} | {row(records)} |")
        if name == "two":
            for floor, label in FLOORS.items():
                found = results["floors"][floor]
                cost = f"{found['million_cpu']:.2g} | {found['memory_mb']:.0f}"
                lines.append(f"| floor: {label} | | | | | | | | {cost} |")
        parts[name] = "\n".join([f"**{problem.title}.**", "", *lines])
    verdicts = checks(results)
    if verdicts:
        parts["checks"] = "\n".join(f"- {line}" for line in verdicts)
    return parts


def sessions(results: dict[str, Any]) -> str:
    """When and on what the rows were measured, and how busy the machine was.

    Rows of different sessions were not measured side by side, which the page has to say.
    """
    lines = []
    for session, found in results["sessions"].items():
        runs = [run for run in results["runs"] if run["session"] == session]
        if not runs:
            continue
        names = ", ".join(dict.fromkeys(run["peer"] for run in runs))
        loads = [run["load"] for run in runs if run["load"] is not None]
        line = f"- {session}, {names}: {describe(found)}"
        if loads:
            span = _range(min(loads), max(loads), ".1f")
            line += f" Load of the machine, these runs included: {span}."
        lines.append(line)
    return "\n".join(lines)


def select(results: dict[str, Any], problem: str, peer: str) -> Records:
    """The trainings of one peer on one problem."""
    runs = results["runs"]
    return [r for r in runs if r["problem"] == problem and r["peer"] == peer]


def row(records: Records) -> str:
    """The cells of one peer: means over seeds with the spread of the seeds."""
    slopes = [record["slope"] for record in records]
    ratio = _numbers(records, "ratio")
    training = [record["train_cpu"] for record in records]
    cells = [
        str(len(records)),
        _spread(slopes, ".3f"),
        f"{mean_bias(records):.2f}",
        f"{rms_bias(records):.2f}",
        _range(ratio.min(), ratio.max(), ".3f"),
        f"{100 * np.mean(_numbers(records, 'covered')):.1f} %",
        _training(records, training),
        f"{np.mean([record['million_cpu'] for record in records]):.2g}",
        f"{max(record['memory_mb'] for record in records):.0f}",
    ]
    return " | ".join(cells)


def mean_bias(records: Records) -> float:
    """The largest over theta of the mean bias over seeds."""
    return float(np.abs(_numbers(records, "bias").mean(axis=0)).max())


def rms_bias(records: Records) -> float:
    """Over theta and seeds."""
    return float(np.sqrt((_numbers(records, "bias") ** 2).mean()))


def checks(results: dict[str, Any]) -> list[str]:
    """What gridless claims of itself against its peers, computed."""
    lines = []
    two = {name: select(results, "two", name) for name in ("gridless", "classifier", "nle")}
    if all(two.values()):
        ratio = _numbers(two["gridless"], "ratio")
        off = 100 * np.abs(ratio.mean(axis=0) - 1).max()
        worst = 100 * np.abs(ratio - 1).max()
        lines.append(
            f"Two observables: mean bias over {len(ratio)} seeds at any of nine values at most "
            f"{mean_bias(two['gridless']):.2f} of the error of 10,000 events; "
            f"mean error off by at most {off:.1f} percent, that of the worst seed by {worst:.1f}."
        )
        lines.append(
            f"Two observables: CPU time of training {_ratio(two, 'classifier')} of the "
            f"classifier's; {_more(two, 'nle')} times less than sbi's NLE."
        )
    one = {name: select(results, "one", name) for name in ("gridless", "gridless-gaussian", "nle")}
    if all(one.values()):
        for name, label in (("gridless", "defaults"), ("gridless-gaussian", "one Gaussian")):
            lines.append(
                f"One observable, {label}: CPU time of training {_more(one, 'nle', name)} times "
                f"less than sbi's NLE; bias, rms, {rms_bias(one[name]):.2f} against "
                f"{rms_bias(one['nle']):.2f}."
            )
    return lines


def write_page(page: Path, parts: dict[str, str]) -> None:
    """Put each part between its markers."""
    text = page.read_text()
    for name, part in parts.items():
        begin, end = f"<!-- {name}: made by the program -->", f"<!-- {name}: end -->"
        if begin not in text:
            raise ValueError(f"{page.name}: no marker {begin}")
        before, rest = text.split(begin, 1)
        _, after = rest.split(end, 1)
        text = f"{before}{begin}\n{part}\n{end}{after}"
    page.write_text(text)


def _numbers(records: Records, name: str) -> Any:
    """(seeds, values of theta)."""
    return np.array([record[name] for record in records], float)


def _cpu(records: Records) -> float:
    return float(np.mean([record["train_cpu"] for record in records]))


def _ratio(records: dict[str, Records], other: str, own: str = "gridless") -> str:
    return f"{_cpu(records[own]) / _cpu(records[other]):.2f}"


def _more(records: dict[str, Records], other: str, own: str = "gridless") -> str:
    ratio = _cpu(records[other]) / _cpu(records[own])
    least = "at least " if any(r["notes"].get("stopped") for r in records[other]) else ""
    return f"{least}{ratio:.0f}"


def _training(records: Records, seconds: list[float]) -> str:
    if any(record["notes"].get("stopped") for record in records):
        return f"stopped after {max(seconds):,.0f}"
    if max(seconds) < 0.05:
        return f"{np.mean(seconds):.2f}"
    return _spread(seconds, ".1f")


def _spread(values: list[float], form: str) -> str:
    """Mean, and least to largest."""
    if len(values) == 1:
        return f"{values[0]:{form}}"
    return f"{np.mean(values):{form}} ({_range(min(values), max(values), form)})"


def _range(low: float, high: float, form: str) -> str:
    first, last = f"{low:{form}}", f"{high:{form}}"
    return first if first == last else f"{first} to {last}"
