"""The audit: does a grid meet what the objective asks of it, and if not, what to change."""

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from gridless.templates.arrays import Array
from gridless.templates.grid import Grid

# A neighbour that shares less than this with the next template leaves a gap to interpolate over.
_LEAST_OVERLAP = 0.3
_BINS = 20
# Effective events per template, and widths of a posterior from one template to the next.
_LEAST_EVENTS, _WIDEST_GAP = 1000, 2.0


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
        lines, width = [self.title], max(len(f.demand) for f in self.findings)
        for finding in self.findings:
            mark = "ok    " if finding.met else "CHANGE"
            lines.append(f"  {mark} {finding.demand:<{width}} {finding.text}")
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
    objective: str,
) -> Audit:
    """Check what an objective asks of the templates.

    `posterior` and `penalty` take p(theta) as flat: equal spacing, half-gap margins, equal weights
    (section 3 of the paper). `template` asks for none of these.
    """
    weights = np.ones(len(x)) if weights is None else weights
    findings = []
    if objective != "template":
        if len(grid.parameters) == 1:
            findings += [_spacing(grid), _margin(grid)]
        else:
            findings += [_full_grid(grid)]
        findings += [_weight(template, weights, grid)]
    pairs = grid.neighbours()
    findings += [_size(template, weights, grid), _number(grid, components)]
    findings += [_gap(x, template, weights, grid, pairs), _range(grid)]
    findings += _overlap(x, template, weights, grid, observables, pairs)
    title = (
        f"{len(x):,} events at {len(grid)} values of {grid.describe()}, "
        f'{x.shape[1]} observable(s), objective "{objective}"'
    )
    return Audit(title, tuple(findings))


def _full_grid(grid: Grid) -> Finding:
    """Several parameters: every combination of equally spaced values, centred in the bounds."""
    axes = [np.unique(np.round(column, 9)) for column in grid.unit.T]
    full = len(grid) == np.prod([len(axis) for axis in axes])
    off = max(float(np.abs(axis - (np.arange(len(axis)) + 0.5) / len(axis)).max()) for axis in axes)
    met = bool(full and off < 1e-3)
    if met:
        sizes = " x ".join(str(len(axis)) for axis in axes)
        return Finding("spacing", True, off, f"a full grid of {sizes}, equally spaced")
    text = (
        "not a full grid of equally spaced values with half a gap to the bounds, so p(theta) is "
        'not flat and the estimate is biased: fit with objective="template"'
    )
    return Finding("spacing", False, off, text)


def _size(template: NDArray[np.int64], weights: Array, grid: Grid) -> Finding:
    """The effective number of events, (sum w)^2 / sum w^2, of the smallest template."""
    totals = np.bincount(template, weights, minlength=len(grid))
    squares = np.bincount(template, weights**2, minlength=len(grid))
    effective = totals**2 / squares
    least = int(effective.argmin())
    text = f"at least {effective[least]:,.0f} effective events per template ({grid.label(least)})"
    negative = float((weights < 0).mean())
    if negative:
        text += f", {negative:.0%} of the weights negative"
    met = bool(effective[least] >= _LEAST_EVENTS)
    if not met:
        text += f": fewer than {_LEAST_EVENTS:,} say little; simulate more, or leave it out"
    return Finding("size", met, float(effective[least]), text)


def _gap(
    x: Array,
    template: NDArray[np.int64],
    weights: Array,
    grid: Grid,
    pairs: list[tuple[int, int]],
) -> Finding:
    """The widest gap in units of what one event resolves: |mean_a - mean_b| in x over the spread
    of x, which for a shifted Gaussian is the gap over the width of the posterior."""
    totals = np.bincount(template, weights, minlength=len(grid))
    means = np.stack([np.bincount(template, weights * c, len(grid)) / totals for c in x.T], axis=1)
    within = x - means[template]
    covariance = np.cov(within.T, ddof=0).reshape(x.shape[1], x.shape[1])
    inverse = np.linalg.pinv(covariance)
    steps = np.array([means[b] - means[a] for a, b in pairs])
    widths = np.sqrt(np.einsum("ni,ij,nj->n", steps, inverse, steps).clip(min=0))
    worst = int(widths.argmax())
    between = f"{grid.label(pairs[worst][0])} and {grid.label(pairs[worst][1])}"
    text = f"the widest gap is {widths[worst]:.2g} widths of a posterior ({between})"
    met = bool(widths[worst] < _WIDEST_GAP)
    if not met:
        text += ": nothing says what lies between; simulate a value there"
    return Finding("gap", met, float(widths[worst]), text)


def _range(grid: Grid) -> Finding:
    """How far the bounds lie beyond the outermost templates, in gaps."""
    unit = grid.unit
    beyond = float(max(unit.min(axis=0).max(), (1 - unit.max(axis=0)).max()) / grid.spacing)
    low, high = grid.values.min(axis=0), grid.values.max(axis=0)
    if beyond <= 1.01:
        text = f"the bounds lie at most {beyond:.2g} gaps beyond the outermost templates"
        return Finding("range", True, beyond, text)
    ends = ", ".join(
        f"{name} {a:g} to {b:g}" for name, a, b in zip(grid.parameters, low, high, strict=True)
    )
    text = (
        f"the bounds lie {beyond:.2g} gaps beyond the outermost templates, where estimates are "
        f"extrapolated: simulate there, or set the bounds near {ends}"
    )
    return Finding("range", False, beyond, text)


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
        f"a gap ({half:g}): set the bounds to {proposed[0]:.6g} and {proposed[1]:.6g}, or fit with "
        'objective="template"',
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
    pairs: list[tuple[int, int]],
) -> list[Finding]:
    """Shared area of the histograms of neighbours, and whether the outermost two of each
    parameter differ at all."""
    shapes = np.stack(
        [_histograms(x[:, i], template, weights, len(grid)) for i in range(x.shape[1])]
    )
    first, second = np.array(pairs).T
    shared = np.minimum(shapes[:, first], shapes[:, second]).sum(axis=2)
    column, gap = np.unravel_index(shared.argmin(), shared.shape)
    least = float(shared[column, gap])
    a, b = pairs[int(gap)]
    where = f"{grid.label(a)} and {grid.label(b)} in {observables[column]}"
    text = f"neighbours share at least {least:.0%} of their events ({where})"
    if least < _LEAST_OVERLAP:
        text += ": too little to interpolate between; simulate values in between"
    findings = [Finding("overlap", least >= _LEAST_OVERLAP, least, text)]

    for p, name in enumerate(grid.parameters):
        findings.append(_difference(shapes, template, weights, grid, observables, p, name))
    return findings


def _difference(
    shapes: Array,
    template: NDArray[np.int64],
    weights: Array,
    grid: Grid,
    observables: tuple[str, ...],
    p: int,
    name: str,
) -> Finding:
    """Whether any observable tells the outermost templates of one parameter apart."""
    ends = int(grid.values[:, p].argmin()), int(grid.values[:, p].argmax())
    distance = 0.5 * np.abs(shapes[:, ends[0]] - shapes[:, ends[1]]).sum(axis=1)
    own = [weights[template == k] for k in ends]
    effective = [w.sum() ** 2 / (w**2).sum() for w in own]
    # Half the summed |difference| of two equal histograms is about sqrt(bins / pi n) for n events.
    noise = float(np.sqrt(_BINS / np.pi * sum(1 / n for n in effective) / 2))
    best = int(distance.argmax())
    value = float(distance[best])
    demand = "difference" if len(grid.parameters) == 1 else f"difference in {name}"
    if value > 3 * noise:
        text = f"{observables[best]} tells the outermost templates apart by {value:.0%}"
    else:
        text = (
            f"no single observable tells the outermost templates apart (by {value:.1%}, of which "
            f"{noise:.1%} is statistics): add observables that depend on {name}"
        )
    return Finding(demand, value > 3 * noise, value, text)


def _histograms(x: Array, template: NDArray[np.int64], weights: Array, templates: int) -> Array:
    """Each template's share of events (templates, bins) in bins of equal content of them all."""
    sample = x[:: max(1, len(x) // 100_000)]
    edges = np.unique(np.quantile(sample, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, x, side="right")
    counts = np.bincount(template * _BINS + bins, weights, minlength=templates * _BINS)
    counts = counts.reshape(templates, _BINS)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
