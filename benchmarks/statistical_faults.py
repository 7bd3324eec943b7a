"""Which check sees which fault of data or templates: the table in docs/faults.md.

`python -m benchmarks.statistical_faults [--models n] [--first seed]` trains good models and models
of faulty templates on the two-observable example, estimates good and faulty data with them, and
counts warnings by name. `--only data` or `--only templates` keeps what is stored of the other kind;
`--page` only writes the table of the stored results into the page.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gridless as gl
from gridless.examples import TwoObservables

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "statistical_faults.json"
PAGE = ROOT / "docs" / "faults.md"
BEGIN, END = "<!-- table of faults -->\n", "<!-- end of the table -->"
EXAMPLE = TwoObservables()
TRUTH = 0.42
TRUTHS = (0.2, 0.3, 0.42, 0.5, 0.58, 0.7, 0.8)  # for models of faulty templates
PER_TEMPLATE = 3_000
OBSERVED = 5_000
Random = np.random.Generator
Array = Any

HIDDEN = "looks like another theta"  # why a fault cannot be seen from inside


@dataclass(frozen=True)
class Fault:
    """A fault, what makes it, and why it cannot be seen from inside, if it cannot."""

    name: str
    make: Callable[..., Any]
    hidden: str = ""


@dataclass
class Row:
    """What came of a fault: pulls in total errors by the true theta, estimates at a bound, which
    have none, and warnings by name."""

    name: str
    kind: str
    hidden: str = ""
    pulls: dict[str, list[float]] = field(default_factory=dict)
    at_bound: int = 0
    estimates: int = 0
    warned: int = 0
    refused: int = 0
    names: dict[str, int] = field(default_factory=dict)

    def add(self, estimate: gl.Estimate, truth: float) -> None:
        """Count an estimate."""
        self.estimates += 1
        self.warned += bool(estimate.warnings)
        found = estimate["theta"]
        if found.at_bound:
            self.at_bound += 1
        else:
            pull = (found.value - truth) / found.error
            self.pulls.setdefault(f"{truth:g}", []).append(round(pull, 3))
        # The audit has several demands, which say more than its name.
        names = {
            f"audit ({w.text.split(':')[0]})" if w.name == "audit" else w.name
            for w in estimate.warnings
        }
        for name in names:
            self.names[name] = self.names.get(name, 0) + 1

    def refuse(self) -> None:
        """Count events or templates that were refused with an error."""
        self.estimates += 1
        self.warned += 1
        self.refused += 1
        self.names["refused"] = self.refused

    def cells(self) -> list[str]:
        """The row of the table."""
        mean = rms = "at a bound" if self.at_bound else "-"
        if self.pulls:
            mean = f"{max((float(np.mean(p)) for p in self.pulls.values()), key=abs):+.1f}"
            every = np.concatenate(list(self.pulls.values()))
            rms = f"{np.sqrt(np.mean(np.square(every))):.1f}"
        by = ", ".join(f"{name} {n}" for name, n in Counter(self.names).most_common(4))
        note = f"cannot be seen: {self.hidden}" if self.hidden else ""
        return [self.name, mean, rms, f"{self.warned}/{self.estimates}", by or "-", note]


def shifted(first: float, second: float) -> Callable[[Array, Random], Array]:
    """Both observables moved."""
    return lambda x, _: x + np.array([first, second])


def replaced(
    share: float, draw: Callable[[int, Random], Array]
) -> Callable[[Array, Random], Array]:
    """Some of the events drawn from something else."""

    def make(x: Array, random: Random) -> Array:
        n = round(share * len(x))
        return np.concatenate([draw(n, random), x[n:]])

    return make


def with_value(n: int, value: float, events: int = OBSERVED) -> Callable[[Array, Random], Array]:
    """So many of so many events with the first observable at a value."""

    def make(x: Array, random: Random) -> Array:
        x = EXAMPLE.sample(TRUTH, events, int(random.integers(2**31)))
        x[:n, 0] = value
        return x

    return make


def weighted(weight: Callable[[Array], Array]) -> Callable[[Array, Random], Any]:
    """Events with weights."""
    return lambda x, _: (x, weight(x))


def thinned(x: Array, random: Random) -> Array:
    """An efficiency that depends on x1 and is not corrected for."""
    return x[random.random(len(x)) < 1 / (1 + np.exp(-2 * x[:, 0]))]


def uniform(n: int, random: Random) -> Array:
    return random.uniform([-2, -1], [4, 5], (n, 2))


DATA = (
    Fault("none", lambda x, _: x),
    Fault("x1 shifted by 0.1 sigma", shifted(0.05, 0.0), HIDDEN),
    Fault("x1 scaled by 1.05", lambda x, _: x * [1.05, 1]),
    Fault("resolution of x1 30 % worse", lambda x, r: x + r.normal(0, [0.41, 1e-9], x.shape)),
    Fault("x2 shifted by 0.2 sigma", shifted(0.0, 0.1)),
    Fault("5 % uniform background", replaced(0.05, uniform)),
    Fault(
        "5 % exponential background",
        replaced(0.05, lambda n, r: np.stack([r.exponential(1, n), r.normal(1, 0.5, n)], axis=1)),
    ),
    Fault("5 % in a narrow peak", replaced(0.05, lambda n, r: r.normal([1.5, 1], 0.05, (n, 2)))),
    Fault(
        "5 % of the events from theta = 1",
        replaced(0.05, lambda n, r: EXAMPLE.sample(1.0, n, int(r.integers(2**31)))),
        HIDDEN,
    ),
    Fault("1 % uniform background", replaced(0.01, uniform)),
    Fault("a cut on the data alone (x1 > 0)", lambda x, _: x[x[:, 0] > 0]),
    Fault("columns swapped", lambda x, _: x[:, ::-1]),
    Fault("other units (x 1,000)", lambda x, _: 1000 * x),
    Fault("every event twice", lambda x, _: np.repeat(x, 2, axis=0)),
    Fault("every event ten times", lambda x, _: np.repeat(x, 10, axis=0)),
    Fault("1 of 1,000 events at -999", with_value(1, -999.0, 1_000)),
    Fault("30 of 1,000 events at -999", with_value(30, -999.0, 1_000)),
    Fault("3 of 5,000 events at 1e6", with_value(3, 1e6)),
    Fault("3 of 5,000 events at 1e39", with_value(3, 1e39)),
    Fault("30 of 200,000 events at -999", with_value(30, -999.0, 200_000)),
    Fault("weights that depend on x1", weighted(lambda x: np.exp(0.3 * x[:, 0]))),
    Fault("forgotten efficiency", thinned),
)


def labels(change: Callable[[Array], Array]) -> Callable[[Array, Array, Random], Any]:
    """Templates with other values of theta."""
    return lambda x, theta, _: (x, change(theta))


def exchanged(a: float, b: float) -> Callable[[Array], Array]:
    """The values of two templates exchanged."""

    def change(theta: Array) -> Array:
        first, second = np.isclose(theta, a), np.isclose(theta, b)
        return np.where(first, b, np.where(second, a, theta))

    return change


def events_of(
    value: float, share: float, draw: Callable[[int, Random], Array]
) -> Callable[[Array, Array, Random], Any]:
    """A share of the events of one template drawn from something else."""

    def make(x: Array, theta: Array, random: Random) -> Any:
        x = x.copy()
        own = np.flatnonzero(np.isclose(theta, value))
        some = own[: round(share * len(own))]
        x[some] = draw(len(some), random)
        return x, theta

    return make


def at(theta: float) -> Callable[[int, Random], Array]:
    """Events at another theta."""
    return lambda n, random: EXAMPLE.sample(theta, n, int(random.integers(2**31)))


def offsets(x: Array, theta: Array, random: Random) -> Any:
    """Each template with a shift of its own."""
    values, place = np.unique(theta, return_inverse=True)
    return x + random.normal(0, 0.05, len(values))[place, None] * np.array([1, 0]), theta


def only(keep: Callable[[Array], Array]) -> Callable[[Array, Array, Random], Any]:
    """Some of the templates, or of their events."""

    def make(x: Array, theta: Array, _: Random) -> Any:
        kept = keep(theta)
        return x[kept], theta[kept]

    return make


def few(events: int) -> Callable[[Array, Array, Random], Any]:
    """Templates of so many events."""
    return only(lambda theta: np.arange(len(theta)) % PER_TEMPLATE < events)


def forgotten(x: Array, theta: Array, random: Random) -> Any:
    """Events kept by importance, whose weights are then not used."""
    kept = random.random(len(x)) < np.clip(np.exp(0.8 * (x[:, 0] - 1)), 0, 1)
    return x[kept], theta[kept]


def too_many_weights(x: Array, theta: Array, _: Random) -> Any:
    return x, theta, np.exp(0.3 * theta * x[:, 0])


def doubled(x: Array, theta: Array, _: Random) -> Any:
    return np.repeat(x, 2, axis=0), np.repeat(theta, 2)


def same_file(x: Array, theta: Array, _: Random) -> Any:
    """One template is a copy of another."""
    x = x.copy()
    x[np.isclose(theta, 0.45)] = x[np.isclose(theta, 0.85)]
    return x, theta


REVERSED = "the labels alone say what theta is"
TEMPLATES = (
    Fault("none", lambda x, theta, _: (x, theta)),
    Fault("neighbours exchanged (0.35, 0.45)", labels(exchanged(0.35, 0.45))),
    Fault("0.25 and 0.65 exchanged", labels(exchanged(0.25, 0.65))),
    Fault("0.05 and 0.95 exchanged", labels(exchanged(0.05, 0.95))),
    Fault("0.45 written 0.4", labels(lambda t: np.where(np.isclose(t, 0.45), 0.4, t))),
    Fault("all labels reversed", labels(lambda t: 1 - t), REVERSED),
    Fault("one template 20 % from theta = 0.95", events_of(0.45, 0.2, at(0.95))),
    Fault("one template wholly from theta = 0.95", events_of(0.45, 1.0, at(0.95))),
    Fault("edge template 20 % from the other edge", events_of(0.05, 0.2, at(0.95))),
    Fault("one template 20 % uniform", events_of(0.45, 0.2, uniform)),
    Fault(
        "one template 1 % at -999",
        events_of(0.45, 0.01, lambda n, _: np.full((n, 2), -999.0)),
    ),
    Fault("a shift of 0.1 sigma of its own in each", offsets),
    Fault("weights exp(0.3 theta x1) too many", too_many_weights, "another simulation"),
    Fault("weights of importance sampling forgotten", forgotten),
    Fault("every event twice", doubled),
    Fault("the same file for two templates", same_file),
    Fault("100 events per template", few(100)),
    Fault("300 events per template", few(300)),
    Fault("two templates", only(lambda t: np.isclose(t, 0.25) | np.isclose(t, 0.75))),
    Fault("a gap of half the range", only(lambda t: (t < 0.3) | (t > 0.8))),
    Fault("no templates below 0.5", only(lambda t: t > 0.5)),
)


def arrays(seed: int) -> tuple[Array, Array]:
    """Events and theta of good templates."""
    templates = EXAMPLE.templates(PER_TEMPLATE, seed=seed)
    return templates.x, templates.theta[:, 0]


def fit(x: Array, theta: Array, weights: Array | None = None, seed: int = 0) -> gl.Model:
    """A model of templates, with all defaults."""
    names = EXAMPLE.observables
    return gl.fit(gl.Templates(x, theta, (0, 1), weights, observables=names), seed=seed)


def data_rows(seeds: range, samples: int) -> list[Row]:
    """Every fault of data, with good models."""
    rows = [Row(fault.name, "data", fault.hidden) for fault in DATA]
    for seed in seeds:
        model = fit(*arrays(seed), seed=seed)
        for number in range(samples):
            x = EXAMPLE.sample(TRUTH, OBSERVED, 1_000 * seed + number + 500)
            for fault, row in zip(DATA, rows, strict=True):
                made = fault.make(x, np.random.default_rng([seed, number]))
                events = made if isinstance(made, tuple) else (made,)
                try:
                    row.add(model.likelihood(*events).maximum(), TRUTH)
                except gl.InputError:
                    row.refuse()
    return rows


def template_rows(seeds: range, names: Sequence[str] = ()) -> list[Row]:
    """Every fault of templates, or those of some names, with good data at several theta."""
    rows = []
    for fault in TEMPLATES:
        if names and fault.name not in names:
            continue
        row = Row(fault.name, "templates", fault.hidden)
        for seed in seeds:
            made = fault.make(*arrays(seed), np.random.default_rng(seed))
            try:
                model = fit(*made, seed=seed)
            except gl.InputError:
                row.refuse()
                continue
            for number, truth in enumerate(TRUTHS):
                x = EXAMPLE.sample(truth, OBSERVED, 1_000 * seed + number + 700)
                row.add(model.likelihood(x).maximum(), truth)
        rows.append(row)
        print(" | ".join(row.cells()), flush=True)
    return rows


def table(rows: list[Row], kind: str) -> str:
    """The rows of one kind in Markdown."""
    head = "| fault | worst mean pull | rms | warned | by | |\n|---|---|---|---|---|---|"
    lines = [f"| {' | '.join(row.cells())} |" for row in rows if row.kind == kind]
    return "\n".join([head, *lines])


def write_page(rows: list[Row], page: Path = PAGE) -> None:
    """Put the tables into the page."""
    text = page.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    parts = ["\n## Faults of the observed events\n", table(rows, "data")]
    parts += ["\n## Faults of the templates\n", table(rows, "templates"), "\n"]
    page.write_text(before + BEGIN + "\n".join(parts) + END + after)


def stored() -> list[Row]:
    """The rows of the last run."""
    return [Row(**row) for row in json.loads(RESULTS.read_text())]


def store(rows: list[Row]) -> None:
    """Keep the rows, in place of those of the same faults."""
    new = {(row.kind, row.name): row for row in rows}
    kept = [new.pop((row.kind, row.name), row) for row in stored()]
    every = [asdict(row) for row in [*kept, *new.values()]]
    RESULTS.write_text(json.dumps(every, indent=1) + "\n")


def main() -> None:
    """Run it, store the rows and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=8, help="models for faulty data")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=("data", "templates"), help="faults of this kind")
    parser.add_argument("--fault", nargs="*", default=(), help="faults of the templates by name")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if not given.page and given.only != "templates":
        store(data_rows(range(given.first, given.first + given.models), 3))
    if not given.page and given.only != "data":
        half = max(1, given.models // 2)
        store(template_rows(range(given.first, given.first + half), given.fault))
    write_page(stored())


if __name__ == "__main__":
    main()
