"""The audit of systematics: is each variation what it is meant to be, and what does its noise cost?

Every observable is looked at in bins of equal content. What a variation does to the contents, and
the covariance of that, event by event where events are shared, answers all questions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc

from gridless.errors import check_kind
from gridless.results.printing import probability
from gridless.systematics.inputs import SIDES, check_backgrounds, check_systematics
from gridless.systematics.samples import (
    Events,
    ProcessSamples,
    Varied,
    background_samples,
    signal_samples,
)
from gridless.systematics.statistics import FOLDS, Mean, combined, sample_mean
from gridless.templates.arrays import Array
from gridless.templates.audit import Audit
from gridless.templates.finding import Finding
from gridless.templates.templates import Templates

BINS = 10  # of equal content, per observable
NOTHING = 1e-12  # square of a change of shares that is rounding
P_NOISE = 0.05  # p-value of no change above which a variation cannot be told from noise
SAME_SIGN = 0.7  # cosine of the angle between the changes up and down
SIGNIFICANT = 2.0  # mean square of a change in units of its noise, whose direction can be told
MAX_COST = 0.5  # noise of a variation in units of that of the templates
MOST_EVENTS = 50_000  # of a sample that are looked at, at one value of theta
FEW_EVENTS = 4_000  # of which a fit looks at first


def audit_systematics(templates: Templates, systematics: Any = (), backgrounds: Any = ()) -> Audit:
    """Check what each variation does to the distributions of the observables.

    Findings for each systematic: `vanishing` (nothing changes), `noise` (a change that cannot be
    told from the statistics of the samples), `same sign` (up and down change the same way), and
    `independent` (what it costs that the variations are not made of the templates' events).

    Parameters
    ----------
    templates : Templates
        The signal.
    systematics, backgrounds : sequence of Systematic, of Background
        As for `fit`.

    Returns
    -------
    Audit
        Findings by `systematic: question`.

    Examples
    --------
    >>> from gridless.examples import Nuisances
    >>> templates, systematics, backgrounds = Nuisances().simulate(2_000, seed=1)
    >>> audit = audit_systematics(templates, systematics, backgrounds)
    >>> audit.ok, audit["jes: noise"].met
    (True, True)
    """
    check_kind(templates, Templates, "templates")
    systematics = check_systematics(systematics, templates.observables)
    backgrounds = check_backgrounds(backgrounds, templates.observables)
    samples = [signal_samples(templates, systematics)]
    samples += [background_samples(one, templates.x.shape[1]) for one in backgrounds]
    return audit_samples(samples, [one.name for one in backgrounds])


def audit_samples(
    samples: Sequence[ProcessSamples], backgrounds: Sequence[str], few: bool = False
) -> Audit:
    """The same for the samples of the signal and of each background. With `few`, events are looked
    at that are enough to see that all is well; where it is not, as many as without."""
    most = FEW_EVENTS if few else MOST_EVENTS
    findings: list[Finding] = []
    for number, sample in enumerate(samples):
        prefix = f"{backgrounds[number - 1]}, " if number else ""
        cuts = [np.unique(np.quantile(x, np.arange(1, BINS) / BINS)) for x in sample.nominal.x.T]
        for varied in sample.varied:
            what = prefix + varied.name, "background" if number else "templates"
            found = _findings(sample, varied, _Bins(cuts, most), *what)
            if few and not all(one.met for one in found):
                found = _findings(sample, varied, _Bins(cuts, MOST_EVENTS), *what)
            findings += found
    numbers = ((len(samples[0].varied), "systematic"), (len(backgrounds), "background"))
    title = ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for number, name in numbers)
    return Audit(title, tuple(findings))


class _Bins(NamedTuple):
    """Edges of the bins of every observable, and how many events of a sample fill them."""

    cuts: Sequence[Array]
    most: int


def _findings(
    sample: ProcessSamples, varied: Varied, edges: _Bins, name: str, of: str
) -> list[Finding]:
    """All findings on one variation of one process, whose nominal events are those `of` it."""
    changes, covariances, costs = [], [], []
    ends: list[list[tuple[Array, Array]]] = []
    for point, template in enumerate(varied.template):
        sides = [_shares(side, point, edges) for side in varied.sides]
        nominal = None if template < 0 else _shares(sample.nominal, int(template), edges)
        if len(sides) == 2:
            change, covariance = combined([(0.5, sides[0]), (-0.5, sides[1])])
        elif nominal is None:
            continue
        else:
            change, covariance = combined([(1.0, sides[0]), (-1.0, nominal)])
        changes.append(change)
        covariances.append(covariance)
        if nominal is not None:
            noise = np.trace(nominal.mean_covariance)  # 0 where all events are in one bin
            if noise > 0:
                costs.append(np.sqrt(np.trace(covariance) / noise))
            if len(sides) == 2:
                ends.append([combined([(1.0, side), (-1.0, nominal)]) for side in sides])
    change, covariance = np.mean(changes, axis=0), np.sum(covariances, axis=0) / len(changes) ** 2
    size = float(np.sqrt(change @ change))
    chi2, dof = _chi2(change, covariance)
    p_value = float(chdtrc(dof, chi2)) if dof else 0.0
    nothing, chance = size**2 < NOTHING, probability(p_value)
    still = [] if nothing else _still(ends)
    cosine = _cosine(ends)
    cost = float(np.mean(costs)) if costs else np.nan
    return [
        Finding(
            f"{name}: vanishing",
            not nothing and not still,
            size,
            "nothing changes in any observable: leave it out, or look for a wrong file"
            if nothing
            else f"{still[0]} changes nothing, as if it were the {of}: look for a wrong file, or "
            "give one side alone"
            if still
            else f"shares of events change by up to {np.abs(change).max():.2g}",
        ),
        Finding(
            f"{name}: noise",
            nothing or p_value < P_NOISE,
            p_value,
            f"the change cannot be told from the statistics of the samples (p {chance}): "
            f"simulate more, {'' if varied.same else f'vary the events of the {of}, '}"
            "or leave it out"
            if not nothing and p_value >= P_NOISE
            else f"the change is beyond the statistics of the samples (p {chance})",
        ),
        Finding(
            f"{name}: same sign",
            not cosine >= SAME_SIGN,
            cosine,
            "up and down change the distributions in the same direction: look at both, or give one"
            if cosine >= SAME_SIGN
            else "up and down change the distributions in different directions"
            if np.isfinite(cosine)
            else "up and down cannot be compared within the statistics of the samples"
            if ends
            else "there is one side to compare",
        ),
        Finding(
            f"{name}: independent",
            varied.same or not cost > MAX_COST,
            cost,
            f"made of the events of the {of}: their common fluctuation cancels"
            if varied.same
            else f"other events than those of the {of}, whose noise is {cost:.2g} of theirs: "
            "less of the systematic can be told; vary the same events",
        ),
    ]


def _shares(events: Events, point: int, edges: _Bins) -> Mean:
    """Shares of the events in the bins of every observable; the last bin of each is the rest."""
    own = np.flatnonzero(events.point == point)
    step = -(-len(own) // edges.most)
    own = own[(events.key[own] // FOLDS) % step == 0] if step > 1 else own
    columns = [
        np.eye(len(cut) + 1)[np.searchsorted(cut, events.x[own, j])][:, :-1]
        for j, cut in enumerate(edges.cuts)
    ]
    key = events.key[own]
    return sample_mean(np.hstack(columns), events.weights[own], key, key % FOLDS, "a variation")


def _still(ends: list[list[tuple[Array, Array]]]) -> list[str]:
    """Which sides change nothing at any value of theta; see `_cosine`."""
    sizes = [[float(change @ change) for change, _ in point] for point in ends]
    largest = np.max(sizes, axis=0) if sizes else np.full(2, np.inf)
    return [side for side, size in zip(SIDES, largest, strict=True) if size < NOTHING]


def _cosine(ends: list[list[tuple[Array, Array]]]) -> float:
    """The cosine between the mean changes up and down in units of their noise; nan within the
    noise.

    Parameters
    ----------
    ends : list of [(change, covariance) of up, of down]
        At every value of theta.
    """
    if not ends:
        return np.nan
    found = []
    for side in range(2):
        change = np.mean([point[side][0] for point in ends], axis=0)
        variance = np.sum([np.diag(point[side][1]) for point in ends], axis=0) / len(ends) ** 2
        known = variance > 0
        found.append(np.where(known, change / np.sqrt(np.where(known, variance, 1.0)), 0.0))
    if min(float(np.mean(one**2)) for one in found) < SIGNIFICANT:
        return np.nan
    size = np.sqrt((found[0] @ found[0]) * (found[1] @ found[1]))
    return float(found[0] @ found[1] / size)


def _chi2(change: Array, covariance: Array) -> tuple[float, int]:
    values, vectors = np.linalg.eigh(covariance)
    keep = values > 1e-6 * max(values.max(), 1e-300)
    along = vectors[:, keep].T @ change
    return float((along**2 / values[keep]).sum()), int(keep.sum())
