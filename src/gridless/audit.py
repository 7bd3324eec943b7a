"""The audit: does a grid meet what section 3 of the paper asks, and if not, what to change."""

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from gridless.arrays import Array
from gridless.grid import Grid

# A neighbour that shares less than this with the next template leaves a gap to interpolate over.
_LEAST_OVERLAP = 0.3
_BINS = 20


@dataclass(frozen=True)
class Finding:
    """One demand on the grid: whether it is met, the number behind it, and what to change."""

    demand: str
    met: bool
    value: float
    text: str


@dataclass(frozen=True)
class Audit:
    """All findings on a set of templates; prints as a list."""

    title: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether every demand is met."""
        return all(finding.met for finding in self.findings)

    def __getitem__(self, demand: str) -> Finding:
        return next(finding for finding in self.findings if finding.demand == demand)

    def __str__(self) -> str:
        lines = [self.title]
        for finding in self.findings:
            mark = "ok    " if finding.met else "CHANGE"
            lines.append(f"  {mark} {finding.demand:<10} {finding.text}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'✓' if f.met else '✗'}</td><td>{escape(f.demand)}</td>"
            f"<td style='text-align:left'>{escape(f.text)}</td></tr>"
            for f in self.findings
        )
        return f"<table><caption>{escape(self.title)}</caption>{rows}</table>"


def audit_templates(
    x: Array,
    template: NDArray[np.int64],
    weights: Array | None,
    grid: Grid,
    observables: tuple[str, ...],
    components: int,
) -> Audit:
    """Check spacing, margin, weight, number and overlap of the templates of one parameter."""
    weights = np.ones(len(x)) if weights is None else weights
    findings = [_spacing(grid), _margin(grid), _weight(template, weights, grid)]
    findings += [_number(grid, components), *_overlap(x, template, weights, grid, observables)]
    title = (
        f"{len(x):,} events at {len(grid)} values of {grid.parameters[0]} "
        f"in [{grid.bounds[0, 0]:g}, {grid.bounds[0, 1]:g}], {x.shape[1]} observable(s)"
    )
    return Audit(title, tuple(findings))


def _spacing(grid: Grid) -> Finding:
    gaps = np.diff(grid.values[:, 0])
    unequal = float(gaps.max() / gaps.min() - 1)
    if unequal < 1e-3:
        return Finding("spacing", True, unequal, f"equal, {gaps.mean():g} apart")
    return Finding(
        "spacing",
        False,
        unequal,
        f"gaps run from {gaps.min():g} to {gaps.max():g}, so p(theta) is not flat and the "
        "estimate is biased: simulate at equal spacing (see gridless.grid), or fit with "
        'objective="template", prior="divide"',
    )


def _margin(grid: Grid) -> Finding:
    values = grid.values[:, 0]
    half = 0.5 * np.diff(values).mean()
    low, high = grid.bounds[0]
    proposed = values[0] - half, values[-1] + half
    off = float(max(abs(low - proposed[0]), abs(high - proposed[1])) / half)
    if off < 0.01:
        return Finding("margin", True, off, f"half a gap ({half:g}) on either side")
    return Finding(
        "margin",
        False,
        off,
        f"{values[0] - low:g} below and {high - values[-1]:g} above the templates instead of half "
        f"a gap ({half:g}): set the bounds to {proposed[0]:.6g} and {proposed[1]:.6g}",
    )


def _weight(template: NDArray[np.int64], weights: Array, grid: Grid) -> Finding:
    totals = np.bincount(template, weights, minlength=len(grid))
    ratio = float(totals.max() / totals.min())
    if ratio < 1.01:
        return Finding("weight", True, ratio, f"equal, {totals.mean():,.6g} per template")
    least, most = int(totals.argmin()), int(totals.argmax())
    return Finding(
        "weight",
        False,
        ratio,
        f"{totals[least]:,.6g} at {grid.label(least)} but {totals[most]:,.6g} at "
        f"{grid.label(most)}: fit() scales each template to the same total, but the smallest "
        "limits the precision; simulate more there",
    )


def _number(grid: Grid, components: int) -> Finding:
    if len(grid) >= 3 * components:
        text = f"{len(grid)} templates for {components} component(s)"
        return Finding("number", True, len(grid), text)
    return Finding(
        "number",
        False,
        len(grid),
        f"{len(grid)} templates for {components} component(s), which can collapse onto them: use "
        f"at most {max(1, len(grid) // 3)} component(s), or at least {3 * components} templates",
    )


def _overlap(
    x: Array,
    template: NDArray[np.int64],
    weights: Array,
    grid: Grid,
    observables: tuple[str, ...],
) -> list[Finding]:
    """Shared area of the histograms of neighbours, and whether the outermost two differ at all."""
    shapes = np.stack(
        [_histograms(x[:, i], template, weights, len(grid)) for i in range(x.shape[1])]
    )
    shared = np.minimum(shapes[:, :-1], shapes[:, 1:]).sum(axis=2)
    column, gap = np.unravel_index(shared.argmin(), shared.shape)
    least = float(shared[column, gap])
    where = f"{grid.label(int(gap))} and {grid.values[gap + 1, 0]:g} in {observables[column]}"
    text = f"neighbours share at least {least:.0%} of their events ({where})"
    if least < _LEAST_OVERLAP:
        text += ": too little to interpolate between; simulate values in between"
    findings = [Finding("overlap", least >= _LEAST_OVERLAP, least, text)]

    distance = 0.5 * np.abs(shapes[:, 0] - shapes[:, -1]).sum(axis=1)
    ends = [weights[template == k] for k in (0, len(grid) - 1)]
    effective = [w.sum() ** 2 / (w**2).sum() for w in ends]
    # Half the summed |difference| of two equal histograms is about sqrt(bins / pi n) for n events.
    noise = float(np.sqrt(_BINS / np.pi * sum(1 / n for n in effective) / 2))
    best = int(distance.argmax())
    value = float(distance[best])
    if value > 3 * noise:
        text = f"{observables[best]} tells the outermost templates apart by {value:.0%}"
    else:
        text = (
            f"no single observable tells the outermost templates apart (by {value:.1%}, of which "
            f"{noise:.1%} is statistics): add observables that depend on {grid.parameters[0]}"
        )
    return [*findings, Finding("difference", value > 3 * noise, value, text)]


def _histograms(x: Array, template: NDArray[np.int64], weights: Array, templates: int) -> Array:
    """Each template's share of events (templates, bins) in bins of equal content of them all."""
    sample = x[:: max(1, len(x) // 100_000)]
    edges = np.unique(np.quantile(sample, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, x, side="right")
    counts = np.bincount(template * _BINS + bins, weights, minlength=templates * _BINS)
    counts = counts.reshape(templates, _BINS)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
