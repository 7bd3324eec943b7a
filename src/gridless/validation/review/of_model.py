"""Questions about a model, which need no observed events."""

from typing import Any

import numpy as np
from scipy.special import chdtrc

from gridless.errors import InputError
from gridless.validation.gaps import Gap, Gaps, gaps
from gridless.validation.leave_one_out import leave_one_out
from gridless.validation.plan import plan
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
from gridless.validation.template_checks import reliability, template_agreement

CAREFUL_LIMIT = 1e-3  # p-value of the probabilities
MUCH_OPEN = 2.0  # statistical errors between templates, with which a result is worth little
WIDE = 0.05  # of a probability: differences beyond are worth a look


def bias(subject: Subject) -> Answer:
    """Leaving templates out, what is open between them, and the score check."""
    question = "Is it unbiased on and between the templates at our number of events?"
    model = subject.model
    cure = "simulate templates closer together, or look at the one that is off"
    try:
        between = gaps(model, subject.number)
    except InputError as error:
        return Answer(question, str(error), OPEN, cure)
    open_gaps, widest = _gaps_of(subject, between), between.widest
    text = (
        f"the templates leave at most {widest.ratio:.2f} statistical errors open, between "
        f"{' and '.join(widest.ends)}"
    )
    numbers: dict[str, Any] = {"gaps": between.to_dict()}
    verdicts = [GOOD]
    if any(gap.wide for gap in open_gaps):
        verdicts.append(by_size(max(gap.ratio for gap in open_gaps), 0.0, MUCH_OPEN))
        cure = between.advice
    try:
        found = leave_one_out(model)
    except InputError:
        verdicts.append(CAREFUL)
        text = f"too few templates to leave one out; {text}"
    else:
        p = float(chdtrc(found.dof, found.chi2)) if found.dof else 1.0
        verdicts.append(by_p_value(p))
        pulls = [found[name].pull.tolist() for name in found.parameters]
        numbers |= {"chi2": found.chi2, "dof": found.dof, "p_value": p, "pulls": pulls,
                    "true": found.truth.tolist()}  # fmt: skip
        text = (
            f"every inner template by the others: chi2/dof = {found.chi2:.1f}/{found.dof}, p-value "
            f"{p:.2g}; {text}"
        )
    check = model.check
    if check.failed or check.suspects:
        verdicts.append(BAD)
        names = "; ".join(model.grid.label(k) for k in check.suspects) or "the curve of their means"
        text += f"; not like the others: {names}"
    verdict = max(verdicts, key=[GOOD, CAREFUL, BAD].index)
    number = f"{widest.ratio:.2f} statistical errors left open"
    return Answer(question, text, verdict, cure, numbers, number)


def _gaps_of(subject: Subject, between: Gaps) -> tuple[Gap, ...]:
    """The gaps that matter: with observed events the one around the estimate, else all."""
    grid = subject.model.grid
    if subject.x is None:
        return between.gaps
    ends = {grid.label(k) for k in grid.around(subject.place)}
    return tuple(gap for gap in between.gaps if set(gap.ends) == ends) or between.gaps


def simulation(subject: Subject) -> Answer:
    """The share of the simulation in the error."""
    question = "Is the uncertainty from simulation known, and small enough?"
    try:
        made = plan(subject.model, subject.number, theta=subject.place)
    except InputError as error:
        return Answer(question, str(error), OPEN, "fit the model anew")
    if subject.x is not None and any(one.at_bound for one in subject.estimate.results):
        return Answer(question, "the estimate is at a bound", OPEN, "widen the bounds")
    now = made.errors[made.factors == 1.0][0]
    ratio = float(now[2] / now[0])
    text = (
        f"{'nuisance parameters held, ' if made.held else ''}"
        f"total error {ratio:.2f} of the statistical one; within a tenth of it from "
        f"{made.enough:,.0f} simulated events on ({made.simulated:,.0f} at hand)"
    )
    verdict, number = by_size(ratio, 1.1, np.inf), f"total {ratio:.2f} of the statistical error"
    return Answer(question, text, verdict, made.advice, made.to_dict(), number)


def templates(subject: Subject) -> Answer:
    """Every template against all others."""
    question = "Do the templates agree with each other, observable by observable?"
    try:
        found = template_agreement(subject.model)
    except InputError as error:
        return Answer(question, str(error), OPEN, "fit the model anew")
    where, name = found.worst
    text = (
        f"the least likely is {name} at {where}, p-value {found.p_value:.2g} "
        "(times the number of tests)"
    )
    values = np.where(np.isfinite(found.p_values), found.p_values, -1.0)
    numbers = {
        "p_value": found.p_value, "templates": list(found.labels),
        "observables": list(found.observables),
        "p_values": [[None if v < 0 else v for v in row] for row in values.tolist()],
    }  # fmt: skip
    cure = f"look at {name} of the template {where}: made with other settings, or mislabelled"
    number = f"p = {found.p_value:.2g}"
    return Answer(question, text, by_p_value(found.p_value), cure, numbers, number)


def probabilities(subject: Subject) -> Answer:
    """The network's probabilities of templates."""
    question = "Are the network's probabilities of single events right?"
    try:
        found = reliability(subject.model)
    except InputError as error:
        return Answer(question, str(error), OPEN, "fit the model anew")
    text = (
        f"predicted and found shares differ by at most {found.largest:.4f}; chi2/dof = "
        f"{found.chi2:.0f}/{found.dof}. Estimates are right in any case; precision may suffer"
    )
    verdict = GOOD if found.p_value > CAREFUL_LIMIT or found.largest < WIDE else CAREFUL
    numbers = {
        "predicted": found.predicted.tolist(), "found": found.found.tolist(),
        "error": found.error.tolist(), "chi2": found.chi2, "dof": found.dof,
    }  # fmt: skip
    cure = "fit a larger network, or more simulated events"
    return Answer(question, text, verdict, cure, numbers, f"at most {found.largest:.4f} off")


def reproducible(subject: Subject) -> Answer:
    """What is needed to repeat and combine the measurement."""
    question = "Can it be reproduced and combined?"
    model = subject.model
    files, record = model.files, model.record
    unknown = [one.source for one in files if one.checksum is None]
    numbers = {
        "model": model.identity, "seed": model.options.seed, "versions": dict(record.versions),
        "files": [vars(one) for one in files], "command": record.command,
    }  # fmt: skip
    text = (
        f"model {model.identity[:12]}, seed {model.options.seed}, {len(files)} files with "
        "checksums; the likelihood is a file of numbers (gridless export --curve)"
    )
    if not files or unknown:
        text = f"model {model.identity[:12]}, seed {model.options.seed}; templates were in memory"
        cure = "fit from files, of which the model keeps names and checksums"
        return Answer(question, text, CAREFUL, cure, numbers, "no files")
    return Answer(question, text, GOOD, "", numbers, f"{len(files)} files with checksums")
