"""Questions about a measurement: those that need observed events, or are better with them."""

from typing import Any

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.belt import FELDMAN_COUSINS, Settings, make_belt
from gridless.likelihood.groups import AT_BOUNDS, Groups
from gridless.model.observed import grouped
from gridless.validation.binned_check import binned_check
from gridless.validation.review.answer import (
    BAD,
    CAREFUL,
    GOOD,
    OPEN,
    Answer,
    Subject,
    by_p_value,
    by_size,
)
from gridless.validation.stability import stability

LEVELS = (0.683, 0.954)
QUARTERS = 4  # groups of observed events in their order, if no others are given
BELT_POINTS = 41
COVERAGE_SEED = 7
CAUTIOUS = 0.08  # of coverage: as much too high counts at the most
# Spread of the error of N events, relative to it, in units of 1 / sqrt(N): squares of a normal
# score scatter by sqrt(2), and their root by half of that.
ERROR_SPREAD = 0.7
NO_DATA = "give the observed events"
NOT_KEPT = "fit the model anew: it keeps no events"
NOT_PLAIN = "ask a model without systematics and backgrounds"


def coverage(subject: Subject) -> Answer:
    """Pseudo-experiments at the estimate, with the simulation fluctuating too."""
    question = "Do the total intervals cover at our number of events?"
    try:
        experiments = subject.likelihood.experiments()
    except InputError as refused:
        return Answer(question, str(refused), OPEN, NOT_KEPT)
    place, best = experiments.best_place, experiments.best
    vectors = experiments.draw(place, subject.toys, (COVERAGE_SEED,))
    numbers: dict[str, Any] = {"parameters": {}, "toys": subject.toys}
    worst, texts = 0.0, []
    for p, name in enumerate(experiments.parameters):
        lattice = experiments.lattice(place, p)
        rises, found = lattice.rises(experiments.curves(place, lattice.points)(vectors))
        one = experiments.estimate[name]
        pulls = (found - best[p]) * (one.bounds[1] - one.bounds[0]) / one.error
        if one.at_bound:  # where the error is that of one side, short by chance
            pulls = np.sign(pulls) * np.sqrt(2 * rises)
        # Estimates cut by a bound are inside of their intervals or not as the bound lets them.
        shares = [float((np.abs(pulls) <= z).mean()) for z in (1.0, 2.0)]
        # Intervals that are too long cost precision: no more than a reason to look.
        off = [min(share - level, CAUTIOUS) for share, level in zip(shares, LEVELS, strict=True)]
        worst = max(worst, *np.abs(off))
        edges = np.linspace(-4, 4, 33)
        numbers["parameters"][name] = {
            "covered": shares, "mean": float(pulls.mean()), "width": float(pulls.std()),
            "pulls": np.histogram(pulls, edges)[0].tolist(), "edges": edges.tolist(),
        }  # fmt: skip
        texts.append(f"{name} {shares[0]:.1%} and {shares[1]:.1%}")
    error = 0.5 / np.sqrt(subject.toys)
    text = (
        f"of {subject.toys:,} pseudo-experiments 68.3% and 95.4% intervals contain the truth in: "
    )
    text += "; ".join(texts)
    verdict = by_size(worst, 0.03 + 2 * error, 0.08 + 2 * error)
    cure = "quote intervals by --method feldman-cousins"
    return Answer(question, text, verdict, cure, numbers, "; ".join(texts))


def bounds(subject: Subject) -> Answer:
    """Wilks against Feldman and Cousins."""
    question = "Is the interval right near bounds and for few events?"
    likelihood = subject.likelihood
    numbers: dict[str, Any] = {}
    worst, texts = 0.0, []
    try:
        experiments = likelihood.experiments()
        for name in experiments.parameters:
            toys = max(200, subject.toys // 2)
            belt = make_belt(experiments, name, Settings(FELDMAN_COUSINS, toys, BELT_POINTS))
            rows: list[dict[str, Any]] = []
            for level in LEVELS:
                wilks, built = likelihood.interval(level, name), belt.interval(level)
                size = wilks[1] - wilks[0]
                ends = zip(wilks, built, strict=True)
                worst = max(worst, max(abs(a - b) for a, b in ends) / size if size else 0.0)
                rows.append({"level": level, "wilks": wilks, "feldman_cousins": built})
            numbers[name] = rows
            low, high = rows[1]["feldman_cousins"]
            texts.append(f"{name} in {low:.5g} to {high:.5g} at {LEVELS[1]:.1%}")
    except InputError as error:
        return Answer(question, str(error), OPEN, NOT_KEPT)
    text = (
        f"by construction {'; '.join(texts)}; ends differ from those of Wilks by at most "
        f"{worst:.0%} of the interval"
    )
    verdict, cure = by_size(worst, 0.1, np.inf), "quote --method feldman-cousins"
    return Answer(question, text, verdict, cure, numbers, f"ends within {worst:.0%} of Wilks'")


def data(subject: Subject) -> Answer:
    """Observed events against the simulation at the estimate."""
    question = "Do the data look like the simulation at the result?"
    if subject.x is None:
        return Answer(question, "no observed events", OPEN, NO_DATA)
    model, estimate = subject.model, subject.estimate
    whole = estimate.p_value
    if not subject.plain:
        if whole is None:
            return Answer(question, "the estimate has no p-value", OPEN, "fit the model anew")
        text = f"in cells of all observables together p-value {whole:.2g}"
        cure, numbers = "look at the report", {"p_value": whole}
        return Answer(question, text, by_p_value(whole), cure, numbers, f"p = {whole:.2g}")
    simulated = model.at(subject.place)
    each = {
        name: simulated.p_value(name, column, subject.weights)
        for name, column in zip(model.observables, subject.x.T, strict=True)
    }
    name = min(each, key=lambda one: each[one])
    single = min(1.0, each[name] * len(each))
    text = f"the least likely of {len(each)} observables is {name}, p-value {single:.2g}"
    text += " (times the number of tests)" if len(each) > 1 else ""
    if whole is not None:
        text += f"; in cells of all observables together p-value {whole:.2g}"
    p = min(single, 1.0 if whole is None else whole)
    cure = f"look at {name}: a background, a calibration or a selection is not simulated"
    found = {"p_values": each, "p_value": whole}
    return Answer(question, text, by_p_value(p), cure, found, f"p = {p:.2g}")


def groups(subject: Subject) -> Answer:
    """Estimates of groups of the events."""
    question = "Do groups of the data agree with each other?"
    if subject.x is None:
        return Answer(question, "no observed events", OPEN, NO_DATA)
    labels = subject.groups
    what = "the given groups"
    if labels is None:
        labels = np.arange(len(subject.x)) * QUARTERS // len(subject.x) + 1
        what = "quarters of the events in their order"
    found = grouped(subject.model.likelihood_of, subject.x, subject.weights, labels).by()
    cure = "look at what changed between the groups: conditions, calibration, selection"
    return _agree(question, found, f"{what}: ", cure)


def channels(subject: Subject) -> Answer:
    """Estimates of the channels."""
    question = "Do groups of the data agree with each other?"
    if subject.x is None:
        return Answer(question, "no observed events", OPEN, NO_DATA)
    cure = "find out what differs before combining them"
    return _agree(question, subject.likelihood.by(), "", cure)


def _agree(question: str, found: Groups, what: str, cure: str) -> Answer:
    """Whether groups agree, by the p-value of their chi2."""
    if not found.dof:
        return Answer(question, f"{what}{AT_BOUNDS}", OPEN, "widen the bounds")
    text = f"{what}chi2/dof = {found.chi2:.1f}/{found.dof}, p-value {found.p_value:.2g}"
    number = f"p = {found.p_value:.2g}"
    return Answer(question, text, by_p_value(found.p_value), cure, found.to_dict(), number)


def expected(subject: Subject) -> Answer:
    """The error that was to be expected."""
    question = "Is the error what was expected before the data?"
    model, estimate = subject.model, subject.estimate
    before = model.expected(subject.place, subject.number).maximum()
    numbers = {
        name: {"expected": before[name].error, "observed": estimate[name].error,
               "budget": dict(before[name].budget)}
        for name in model.grid.parameters
    }  # fmt: skip
    if subject.x is None:
        text = "; ".join(f"{name} +- {one['expected']:.3g}" for name, one in numbers.items())
        total = sum(one.number for one in subject.channels.values())
        found = f"expected of {total:,.0f} events: {text}"
        return Answer(question, found, GOOD, "", numbers, text)
    inside = [name for name in numbers if not estimate[name].at_bound]
    if not inside:
        text = f"{', '.join(numbers)} at a bound: the error is that of one side, short by chance"
        return Answer(question, text, CAREFUL, "quote --method feldman-cousins or upper", numbers)
    ratios = [estimate[name].error / before[name].error for name in inside]
    worst = max(ratios, key=lambda ratio: abs(np.log(ratio)))
    number = min(one.number for one in subject.channels.values())
    chance = ERROR_SPREAD / np.sqrt(number)
    text = f"observed over expected error {worst:.3f}; by chance it varies by some {chance:.1%}"
    verdict = by_size(abs(np.log(worst)), 0.1 + 3 * chance, 0.4 + 3 * chance)
    cure = "look at weights, and at data against simulation"
    return Answer(question, text, verdict, cure, numbers, f"ratio {worst:.3f}")


def binned(subject: Subject) -> Answer:
    """The binned fit of the score."""
    question = "Does a check that does not trust the network agree?"
    if subject.x is None:
        return Answer(question, "no observed events", OPEN, NO_DATA)
    if not subject.plain:
        return Answer(question, "the model has systematics or backgrounds", OPEN, NOT_PLAIN)
    try:
        found = binned_check(subject.model, subject.sample)
    except InputError as error:
        return Answer(question, str(error), OPEN, "fit the model anew")
    text = f"binned fits of the score differ by at most {found.worst:.1f} of their expected spread"
    cure = "look at data against simulation; simulate more templates"
    verdict, number = by_size(found.worst, 3.0, 4.5), f"{found.worst:.1f} of the spread"
    return Answer(question, text, verdict, cure, found.to_dict(), number)


def stable(subject: Subject) -> Answer:
    """Other fits."""
    question = "Is it stable against seed, size, observables and halves of the simulation?"
    if subject.x is None:
        return Answer(question, "no observed events", OPEN, NO_DATA)
    if not subject.plain:
        return Answer(question, "the model has systematics or backgrounds", OPEN, NOT_PLAIN)
    if subject.templates is None:
        return Answer(question, "the templates were not given", OPEN, "give --templates")
    found = stability(subject.model, subject.templates, subject.sample)
    worst = found.worst
    text = (
        f"{len(found.variants)} other fits differ by at most {worst:.1f} of the expected spread; "
        f"p-value of the largest at most {found.p_value:.2g}"
    )
    verdict = max(by_size(worst, 3.0, 5.0), GOOD, key=[GOOD, CAREFUL, BAD].index)
    cure = "an observable that is simulated badly shows where it is left out; else simulate more"
    return Answer(question, text, verdict, cure, found.to_dict(), f"{worst:.1f} of the spread")
