"""What the peers are given: templates of an example, and observed samples of known theta."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gridless.examples import Example, OneObservable, SharpEdges, TopMass, TwoObservables

VALUES = tuple(round(0.1 * i, 1) for i in range(1, 10))


@dataclass(frozen=True)
class Problem:
    """Ten templates of `events` events each; nine observed samples of `observed` events."""

    name: str
    title: str
    example: Example
    events: int
    observed: int = 100_000

    def quick(self) -> "Problem":
        """The same with fewer observed events, which the judge takes longest over."""
        return replace(self, observed=20_000)

    def write_templates(self, folder: Path, seed: int) -> None:
        """The simulated events of one seed."""
        templates = self.example.templates(self.events, seed)
        theta = templates.grid.values[templates.template, 0]
        np.savez(folder / "templates.npz", x=templates.x, theta=theta)

    def write_observed(self, folder: Path) -> None:
        """The observed samples, the same for every peer and every seed."""
        x = [self.example.sample(t, self.observed, 1000 + i) for i, t in enumerate(VALUES)]
        np.savez(folder / "observed.npz", x=np.array(x))


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("one", "One observable, 10 x 10,000 events", OneObservable(), 10_000),
        Problem("two", "Two observables, 10 x 100,000 events", TwoObservables(), 100_000),
        Problem("six", "Top mass, six observables, 10 x 40,000 events", TopMass(), 40_000, 20_000),
        Problem(
            "edges", "Five observables with edges, 10 x 20,000 events", SharpEdges(), 20_000, 20_000
        ),
    )
}
