"""The audit: does a grid meet what the objective asks of it, and if not, what to change.

Sums over events are sums over all ranks, if several train together.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.distributed import of_first, total
from gridless.errors import InputError, counted
from gridless.templates.arrays import LARGEST_VALUE, Array, unusable_units
from gridless.templates.event_findings import find_copies, find_sentinels
from gridless.templates.finding import Finding
from gridless.templates.grid import Grid

if TYPE_CHECKING:
    from gridless.templates.templates import Templates

Pairs = list[tuple[int, int]]

BINS = 20  # of equal content, per observable, for overlap and difference
MIN_OVERLAP = 0.3  # of events; neighbours that share less leave a gap to interpolate over
MIN_EVENTS = 1000  # effective ones per template; fewer say little about its distribution
MAX_GAP = 2.0  # resolutions of one event; beyond, closure fails (docs/howto/choosing_the_grid.md)
MAX_BEYOND = 1.01  # gaps from the outermost template to a bound, with room for rounding
MIN_SIGNIFICANCE = 3.0  # standard deviations by which the outermost templates must differ
MAX_UNEQUAL_GAPS = 1e-3  # relative; more than rounding of template values
MAX_UNEQUAL_MARGIN = 0.01  # of half a gap
MAX_UNEQUAL_WEIGHT = 1.01  # largest over smallest total weight of a template
MISPLACED = 2.0  # times larger or smaller than in other templates: perhaps in other units
MISPLACED_SPREADS = 10.0  # median deviations of the templates' sizes, beyond which one is no tail
MAX_SAMPLE = 100_000  # events from which the edges of bins are taken


@dataclass(frozen=True)
class Audit:
    """All findings on a set of templates; prints as a list, in a notebook as a table.

    Attributes
    ----------
    title : str
        What was audited.
    findings : tuple of Finding
        One per demand.

    Examples
    --------
    >>> from gridless.examples import OneObservable
    >>> audit = OneObservable().templates(events=2_000, seed=1).audit()
    >>> audit.ok
    True
    >>> audit["number"].text
    '10 templates for 1 component'
    >>> sorted(audit.to_dict())
    ['findings', 'ok', 'title']
    """

    title: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether every demand is met."""
        return all(finding.met for finding in self.findings)

    def __getitem__(self, demand: str) -> Finding:
        for finding in self.findings:
            if finding.demand == demand:
                return finding
        known = ", ".join(finding.demand for finding in self.findings)
        raise InputError(f"demand: there is no {demand!r} in this audit; there are {known}")

    def joined(self, other: "Audit") -> "Audit":
        """The findings of both."""
        return Audit(f"{self.title}; {other.title}", (*self.findings, *other.findings))

    def value_of(self, demand: str) -> float | None:
        """The number behind a demand, if the audit asked for it: those of old models did not."""
        found = [finding.value for finding in self.findings if finding.demand == demand]
        return found[0] if found else None

    def to_dict(self) -> dict[str, Any]:
        """Title, verdict and findings in what JSON can hold."""
        findings = [asdict(finding) for finding in self.findings]
        return {"title": self.title, "ok": self.ok, "findings": findings}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Audit":
        """The audit that `to_dict` gave."""
        return cls(content["title"], tuple(Finding(**finding) for finding in content["findings"]))

    def __repr__(self) -> str:
        width = max((len(finding.demand) for finding in self.findings), default=0)
        return "\n".join([self.title, *(f"  {finding.line(width)}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'✓' if f.met else '✗'}</td><td>{escape(f.demand)}</td>"
            f"<td style='text-align:left'>{escape(f.text)}</td></tr>"
            for f in self.findings
        )
        return f"<table><caption>{escape(self.title)}</caption>{rows}</table>"


def audit(templates: "Templates", components: int, objective: str, flat_grid: bool) -> Audit:
    """Check what an objective asks of the templates.

    Parameters
    ----------
    templates : Templates
        The simulated events.
    components : int
        Components of the mixture to be fitted.
    objective : str
        Name of the objective, for the title.
    flat_grid : bool
        Whether the objective takes p(theta) as flat. It then needs equal spacing, half-gap margins
        and equal weights (section 3 of the paper).

    Returns
    -------
    Audit
    """
    for name, column in zip(templates.observables, templates.x.T, strict=True):
        if np.abs(column).max() > LARGEST_VALUE:
            raise unusable_units(name, column)
    grid = templates.grid
    pairs = grid.neighbours()
    findings: list[Finding] = []
    if flat_grid:
        one = len(grid.parameters) == 1
        findings += [_spacing(grid), _margin(grid)] if one else [_full_grid(grid)]
        findings += [_weight(templates)]
    cause = _misplaced(templates)
    findings += [_size(templates), _number(grid, components)]
    findings += [_gap(templates, pairs, cause), _range(grid)]
    shapes = np.stack([_histograms(templates, column) for column in templates.x.T])
    findings += [_overlap(templates, shapes, pairs, cause)]
    findings += [_difference(templates, shapes, p) for p in range(len(grid.parameters))]
    findings += [find_copies(templates), find_sentinels(templates)]
    title = (
        f"{_events(templates):,} events at {len(grid)} values of {grid.describe()}, "
        f'{counted(len(templates.observables), "observable")}, objective "{objective}"'
    )
    return Audit(title, tuple(findings))


def _events(templates: "Templates") -> int:
    """The number of events on all ranks."""
    return int(total(np.array([len(templates)], float))[0])


def _full_grid(grid: Grid) -> Finding:
    """Several parameters: every combination of equally spaced values, centred in the bounds."""
    axes = [np.unique(np.round(column, 9)) for column in grid.unit.T]
    full = len(grid) == np.prod([len(axis) for axis in axes])
    off = max(float(np.abs(axis - (np.arange(len(axis)) + 0.5) / len(axis)).max()) for axis in axes)
    met = bool(full and off < MAX_UNEQUAL_GAPS)
    if met:
        sizes = " x ".join(str(len(axis)) for axis in axes)
        return Finding("spacing", True, off, f"a full grid of {sizes}, equally spaced")
    text = (
        "not a full grid of equally spaced values with half a gap to the bounds, so p(theta) is "
        'not flat and the estimate is biased: fit with objective="template"'
    )
    return Finding("spacing", False, off, text)


def _size(templates: "Templates") -> Finding:
    """The effective number of events of the smallest template."""
    effective = templates.effective_sizes()
    least = int(effective.argmin())
    label = templates.grid.label(least)
    text = f"at least {effective[least]:,.0f} effective events per template ({label})"
    count = total(np.array([(templates.event_weights < 0).sum()], float))[0]
    negative = float(count / _events(templates))
    if negative:
        text += f", {negative:.0%} of the weights negative"
    met = bool(effective[least] >= MIN_EVENTS)
    if not met:
        text += f": fewer than {MIN_EVENTS:,} say little; simulate more, or leave it out"
    return Finding("size", met, float(effective[least]), text)


def _misplaced(templates: "Templates") -> str:
    """A column that is many times larger or smaller in a few templates than in all others."""
    some = slice(None, None, max(1, len(templates) // MAX_SAMPLE))
    template = templates.template[some]
    for name, column in zip(templates.observables, np.abs(templates.x[some]).T, strict=True):
        parts = [column[template == k] for k in range(len(templates.grid))]
        size = of_first(np.array([np.median(part) if len(part) else 0.0 for part in parts]))
        if not (size > 0).all():
            continue
        off = np.log(size) - np.median(np.log(size))
        limit = max(np.log(MISPLACED), MISPLACED_SPREADS * np.median(np.abs(off)))
        if (np.abs(off) > limit).any():
            worst = int(np.abs(off).argmax())
            times, side = np.exp(abs(off[worst])), "larger" if off[worst] > 0 else "smaller"
            return (
                f"{name} at {templates.grid.label(worst)} is about {float(f'{times:.1g}'):,.0f} "
                f"times {side} than in the other templates: other units, or a wrong file?"
            )
    return ""


def _because(cause: str, found: str, cure: str) -> str:
    """What was found and its cure, or the cause that is behind it."""
    return f"{cause} ({found})" if cause else f"{found}: {cure}"


def _gap(templates: "Templates", pairs: Pairs, cause: str) -> Finding:
    """The widest gap in units of what one event resolves: |mean_a - mean_b| in x over the spread
    of x, which for a shifted Gaussian is the gap over the width of the posterior."""
    x, grid, weights = templates.x, templates.grid, templates.event_weights
    sums = np.stack([np.bincount(templates.template, weights * c, len(grid)) for c in x.T], axis=1)
    means = total(sums) / total(templates.totals())[:, None]
    within, events = x - means[templates.template], _events(templates)
    centre = total(within.sum(axis=0)) / events
    covariance = total(within.T @ within) / events - np.outer(centre, centre)
    inverse = np.linalg.pinv(covariance)
    steps = np.array([means[b] - means[a] for a, b in pairs])
    widths = np.sqrt(np.einsum("ni,ij,nj->n", steps, inverse, steps).clip(min=0))
    worst = int(widths.argmax())
    between = f"{grid.label(pairs[worst][0])} and {grid.label(pairs[worst][1])}"
    text = f"the widest gap is {widths[worst]:.2g} of the single-event resolution ({between})"
    met = bool(widths[worst] < MAX_GAP)
    if not met:
        text = _because(cause, text, "nothing says what lies between; simulate a value there")
    return Finding("gap", met, float(widths[worst]), text)


def _range(grid: Grid) -> Finding:
    """How far the bounds lie beyond the outermost templates, in gaps."""
    unit = grid.unit
    beyond = float(max(unit.min(axis=0).max(), (1 - unit.max(axis=0)).max()) / grid.spacing)
    low, high = grid.values.min(axis=0), grid.values.max(axis=0)
    if beyond <= MAX_BEYOND:
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
    if unequal < MAX_UNEQUAL_GAPS:
        return Finding("spacing", True, unequal, f"equal, {gaps.mean():g} apart")
    text = (
        f"gaps run from {gaps.min():g} to {gaps.max():g}, so p(theta) is not flat and the "
        "estimate is biased: simulate at equal spacing (see gridless.grid), or fit with "
        'objective="template", prior="divide"'
    )
    return Finding("spacing", False, unequal, text)


def _margin(grid: Grid) -> Finding:
    values = grid.values[:, 0]
    half = 0.5 * np.diff(values).mean()
    low, high = grid.bounds[0]
    proposed = values[0] - half, values[-1] + half
    off = float(max(abs(low - proposed[0]), abs(high - proposed[1])) / half)
    if off < MAX_UNEQUAL_MARGIN:
        return Finding("margin", True, off, f"half a gap ({half:g}) on either side")
    text = (
        f"{values[0] - low:g} below and {high - values[-1]:g} above the templates instead of half "
        f"a gap ({half:g}): set the bounds to {proposed[0]:.6g} and {proposed[1]:.6g}, or fit with "
        'objective="template"'
    )
    return Finding("margin", False, off, text)


def _weight(templates: "Templates") -> Finding:
    totals, grid = total(templates.totals()), templates.grid
    ratio = float(totals.max() / totals.min())
    if ratio < MAX_UNEQUAL_WEIGHT:
        return Finding("weight", True, ratio, f"equal, {totals.mean():,.6g} per template")
    least, most = int(totals.argmin()), int(totals.argmax())
    text = (
        f"{totals[least]:,.6g} at {grid.label(least)} but {totals[most]:,.6g} at "
        f"{grid.label(most)}: this objective scales each template to the same total, but the "
        "smallest limits the precision; simulate more there"
    )
    return Finding("weight", False, ratio, text)


def _number(grid: Grid, components: int) -> Finding:
    text = f"{len(grid)} templates for {counted(components, 'component')}"
    met = len(grid) >= 3 * components
    if not met:
        most = counted(max(1, len(grid) // 3), "component")
        fewer = f"at most {most}, or " if components > 1 else ""
        text += f", which can collapse onto them: use {fewer}at least {3 * components} templates"
    return Finding("number", met, float(len(grid)), text)


def _overlap(templates: "Templates", shapes: Array, pairs: Pairs, cause: str) -> Finding:
    """The least shared area of the histograms of two neighbours."""
    first, second = np.array(pairs).T
    shared = np.minimum(shapes[:, first], shapes[:, second]).sum(axis=2)
    column, gap = np.unravel_index(shared.argmin(), shared.shape)
    least = float(shared[column, gap])
    a, b = (templates.grid.label(template) for template in pairs[int(gap)])
    where = f"{a} and {b} in {templates.observables[column]}"
    text = f"neighbours share at least {least:.0%} of their events ({where})"
    if least < MIN_OVERLAP:
        cure = "too little to interpolate between; simulate values in between"
        text = _because(cause, text, cure)
    return Finding("overlap", least >= MIN_OVERLAP, least, text)


def _difference(templates: "Templates", shapes: Array, parameter: int) -> Finding:
    """Whether any observable tells the outermost templates of one parameter apart, or one of them
    from the middle one: an angle, or a parameter whose sign does not matter, comes back."""
    grid = templates.grid
    values, name = grid.values[:, parameter], grid.parameters[parameter]
    low, high = int(values.argmin()), int(values.argmax())
    middle = int(np.abs(values - values[[low, high]].mean()).argmin())
    demand = "difference" if len(grid.parameters) == 1 else f"difference in {name}"
    for one, other in ((low, high), (low, middle), (middle, high)):
        distance = 0.5 * np.abs(shapes[:, one] - shapes[:, other]).sum(axis=1)
        best = int(distance.argmax())
        value, noise = float(distance[best]), _noise_of_difference(templates, one, other)
        if value > MIN_SIGNIFICANCE * noise:
            which = "the outermost templates" if {one, other} == {low, high} else (
                f"{grid.label(one)} and {grid.label(other)}"
            )  # fmt: skip
            text = f"{templates.observables[best]} tells {which} apart by {value:.0%}"
            return Finding(demand, True, value, text)
    value = float(0.5 * np.abs(shapes[:, low] - shapes[:, high]).sum(axis=1).max())
    noise = _noise_of_difference(templates, low, high)
    text = (
        f"the outermost templates differ by {value:.1%} at most in any observable; statistics "
        f"alone give {noise:.1%}, and {MIN_SIGNIFICANCE:g} times that is asked for: simulate "
        f"more events or a wider range, or add observables that depend on {name}"
    )
    return Finding(demand, False, value, text)


def _noise_of_difference(templates: "Templates", one: int, other: int) -> float:
    """Half the summed |difference| of two histograms that differ by statistics alone: about
    sqrt(bins / pi n) for n events in each."""
    return float(np.sqrt(BINS / np.pi * (1 / templates.effective_sizes()[[one, other]]).sum() / 2))


def _histograms(templates: "Templates", column: Array) -> Array:
    """Each template's share of events (templates, bins) in bins of equal content of them all."""
    sample = column[:: max(1, len(column) // MAX_SAMPLE)]
    edges = np.unique(of_first(np.quantile(sample, np.linspace(0, 1, BINS + 1)[1:-1])))
    bins = np.searchsorted(edges, column, side="right")
    contents = templates.contents(bins, BINS)
    return np.asarray(contents / contents.sum(axis=1, keepdims=True))
