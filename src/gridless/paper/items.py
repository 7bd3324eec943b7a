"""What the paper shows, item by item: figures, numbers, and statements with computed verdicts."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gridless.examples import Example, OneObservable, TwoObservables
from gridless.model.model import Model
from gridless.paper import figures
from gridless.paper.functional_fit import (
    exact_density,
    fit_function,
    implied_prior,
    sampled_density,
)
from gridless.paper.workspace import Workspace
from gridless.parallel import progress_bar
from gridless.report.figures import draw_closure
from gridless.report.page import Section, Statement
from gridless.templates.arrays import Array
from gridless.templates.grid import grid
from gridless.validation.closure import Closure, closure

NARROW = 0.03  # width of x in units of the range: neighbouring templates do not overlap
BROAD = 4.0  # width of x in units of the range: all templates look alike


def fig1(work: Workspace) -> Section:  # noqa: ARG001
    """Where the templates are."""
    values = grid((0, 1), 10)
    statement = Statement(
        "Ten templates at 0.05, 0.15, ..., 0.95 cover the range from 0 to 1 evenly.",
        f"From {values[0]:.2f} to {values[-1]:.2f} in steps of {np.diff(values).mean():.2f}.",
        bool(np.allclose(values, np.arange(0.05, 1, 0.1))),
    )
    figure = figures.template_positions()
    return Section("Template positions", [statement], {"theta": values.tolist()}, figure)


def fig2(work: Workspace) -> Section:
    """Templates that are easy and hard to tell apart, and what each does to a fit."""
    ratio = work.number(
        "fig2",
        lambda: {
            name: fit_function(exact_density(width), False, width)[2] / width
            for name, width in (("narrow", NARROW), ("broad", BROAD))
        },
    )
    statement = Statement(
        "Where templates are distinguishable the edge bias is negligible; where they are hard to "
        "distinguish, correcting it is critical.",
        f"Fitted over true width: {ratio['narrow']:.3f} (left) and {ratio['broad']:.3f} (right), "
        "uncorrected.",
        abs(ratio["narrow"] - 1) < 0.02 and ratio["broad"] < 0.6,
    )
    return Section(
        "Overlap of templates", [statement], ratio, figures.template_overlap(NARROW, BROAD)
    )


def _exact_fits(work: Workspace) -> dict[str, list[float]]:
    """The functional fit in the limit of infinite data."""
    return dict(
        work.number(
            "functional-exact",
            lambda: {
                "true": [1.0, 0.0, BROAD],
                "uncorrected": fit_function(exact_density(), False).tolist(),
                "constrained": fit_function(exact_density(), True).tolist(),
            },
        )
    )


def fig3(work: Workspace) -> Section:
    """The joint density of the functional fit."""
    fits = {name: np.array(values) for name, values in _exact_fits(work).items()}
    ends = np.array([0.0, 0.5, 1.0])
    q = {name: implied_prior(fit, exact_density(), ends) for name, fit in fits.items()}
    statements = [
        Statement(
            "The uncorrected fit integrates to less at theta = 0 than at 0.5.",
            f"{q['uncorrected'][0]:.4f} at 0, {q['uncorrected'][1]:.4f} at 0.5.",
            bool(q["uncorrected"][0] < q["uncorrected"][1] - 0.01),
        ),
        Statement(
            "The constrained fit is a good approximation of the true density.",
            f"Its integral is {q['constrained'][0]:.4f}, {q['constrained'][1]:.4f} and "
            f"{q['constrained'][2]:.4f} at 0, 0.5 and 1.",
            bool(np.abs(q["constrained"] - 1).max() < 1e-3),
        ),
    ]
    numbers = {name: values.tolist() for name, values in q.items()}
    return Section(
        "Joint density of the functional fit", statements, numbers, figures.joint_density(fits)
    )


def table1(work: Workspace) -> Section:
    """The functional fit from finite samples and in the limit of infinite data."""
    choices = work.choices
    exact = _exact_fits(work)
    names = ("uncorrected", "constrained")
    finite: dict[str, list[list[float]]] = {name: [] for name in names}
    for repeat in range(choices.functional_repeats):
        fits = work.number(f"functional-{repeat}", partial(_sampled_fits, work, repeat))
        for name in names:
            finite[name].append(fits[name])
    rows = [["", "mu_m", "mu_b", "sigma"], ["true values", "1", "0", "4"]]
    statements: list[Statement] = []
    numbers: dict[str, Any] = {"exact": exact}
    paper = {"uncorrected": (0.17, 0.41, 1.65), "constrained": (1.03, -0.02, 3.99)}
    for name in names:
        values = np.array(finite[name])
        mean, std = values.mean(axis=0), values.std(axis=0, ddof=1)
        error = std / np.sqrt(len(values))
        rows.append([f"{name}, paper", *(f"{v:.2f}" for v in paper[name])])
        rows.append([f"{name}, infinite data", *(f"{v:z.4f}" for v in exact[name])])
        rows.append(
            [
                f"{name}, finite samples",
                *(f"{m:.4f} ± {s:.4f}" for m, s in zip(mean, std, strict=True)),
            ]
        )
        off = np.abs(mean - exact[name]) / error
        numbers[name] = {"mean": mean.tolist(), "std": std.tolist(), "repeats": len(values)}
        statements.append(
            Statement(
                f"{name.capitalize()}: {paper[name]}.",
                f"{', '.join(f'{v:z.4f}' for v in exact[name])} with infinite data; finite samples "
                f"are compatible with that within {off.max():.1f} standard errors of their mean.",
                bool(off.max() < 4 and np.abs(np.array(exact[name]) - paper[name]).max() < 0.04),
            )
        )
    return Section("Table 1: the functional fit", statements, numbers, None, rows)


def _sampled_fits(work: Workspace, repeat: int) -> dict[str, list[float]]:
    density = sampled_density(work.choices.functional_events, work.choices.seed + repeat)
    return {
        "uncorrected": fit_function(density, False).tolist(),
        "constrained": fit_function(density, True).tolist(),
    }


def fig4(work: Workspace) -> Section:
    """Four of the ten templates of the one-observable example."""
    values = grid((0, 1), 10)[[0, 3, 6, 9]]
    samples = {
        float(t): OneObservable().sample(t, work.choices.events, 100 + i)
        for i, t in enumerate(values)
    }
    off = max(abs(float(x.mean()) - t) * np.sqrt(len(x)) for t, x in samples.items())
    statement = Statement(
        "Templates are Gaussian with mean theta and width 1.",
        f"The samples' means agree with theta within {off:.1f} standard errors.",
        bool(off < 4),
    )
    return Section(
        "Templates with one observable", [statement], {}, figures.template_histograms(samples)
    )


def fig5(work: Workspace) -> Section:
    """Predicted mean and width against x."""
    uncorrected = work.model_1d("posterior", "flat")
    corrected = work.model_1d("penalty", "flat")
    x = np.linspace(-1, 2, 31)
    numbers: dict[str, Any] = {}
    for name, model in (("uncorrected", uncorrected), ("corrected", corrected)):
        mean, width = figures.mean_and_width(model, x)
        numbers[name] = {
            "width": float(width.mean()),
            "slope": float(np.polyfit(x, mean, 1)[0]),
            "largest deviation of the mean": float(np.abs(mean - x).max()),
        }
    naive, right = numbers["uncorrected"], numbers["corrected"]
    statements = [
        Statement(
            "Without correction the width is underestimated and the mean biased towards 0.5.",
            f"Mean width {naive['width']:.3f} instead of 1; the mean rises by {naive['slope']:.3f} "
            "per unit of x.",
            naive["width"] < 0.92 and naive["slope"] < 0.92,
        ),
        Statement(
            "With it, mean and width match the expectation.",
            f"Mean width {right['width']:.3f}; the mean rises by {right['slope']:.3f} per unit "
            "of x.",
            abs(right["width"] - 1) < 0.03 and abs(right["slope"] - 1) < 0.05,
        ),
    ]
    return Section(
        "Network outputs", statements, numbers, figures.predicted_nodes(uncorrected, corrected)
    )


def fig6(work: Workspace) -> Section:
    """Three single-event likelihoods and their sum."""
    model, true = work.model_1d("penalty", "flat"), 0.2
    x = OneObservable().sample(true, 3, work.choices.seed + 6)
    estimate = model.likelihood(x).maximum()
    low, high = estimate["theta"].stat_interval
    statement = Statement(
        "Three events at theta = 0.2 give an estimate statistically compatible with it.",
        f"{estimate.value:.2f}, 68 percent interval {low:.2f} to {high:.2f} within the bounds.",
        bool(model.likelihood(x).scan(true) < 2.0),
    )
    numbers = {"x": x[:, 0].tolist(), "value": estimate.value, "interval": [low, high]}
    return Section(
        "Likelihoods of single events", [statement], numbers, figures.single_events(model, x, true)
    )


def _test_set(work: Workspace, example: Example, number: int) -> list[tuple[float, Array]]:
    """The paper's test: samples at twenty values; `number` tells the sets apart."""
    values = grid((0, 1), work.choices.test_values)
    return [
        (float(t), example.sample(t, work.choices.test_events, 10_000 + 100 * number + i))
        for i, t in enumerate(values)
    ]


def _response(
    work: Workspace, example: Example, model: Model, paper: str
) -> tuple[Closure, Statement]:
    table = closure(model, _test_set(work, example, 0))
    slope = table.slope or np.nan  # none where all samples are at a bound
    ratio = table.chi2 / table.dof
    # The spread of chi2/dof for one set of n samples is sqrt(2 / n).
    limit = 3 * np.sqrt(2 / table.dof)
    statement = Statement(
        paper,
        f"Slope {slope:.4f}, chi2/dof = {ratio:.2f} for this one set.",
        bool(abs(slope - 1) < 0.03 and abs(ratio - 1) < limit),
    )
    return table, statement


def fig7(work: Workspace) -> Section:
    """True against estimated theta with one observable."""
    table, statement = _response(
        work,
        OneObservable(),
        work.model_1d("penalty", "flat"),
        "No bias is observed and the error estimates meet expectations: chi2/dof = 0.92.",
    )
    return Section(
        "Response with one observable", [statement], _closure_numbers(table), draw_closure(table)
    )


def fig8(work: Workspace) -> Section:
    """The two-observable densities at the extreme values."""
    example = TwoObservables()
    events = np.array([[0.0, 1.0], [0.0, 3.0]])
    change = example.log_density(events, 0.0) - example.log_density(events, 1.0)
    statement = Statement(
        "x1 tells theta apart for small x2 only.",
        f"From theta = 1 to 0, log p at x1 = 0 changes by {change[0]:.2f} at x2 = 1 and by "
        f"{change[1]:.4f} at x2 = 3.",
        bool(change[0] > 1 and abs(change[1]) < 0.05),
    )
    return Section(
        "Densities of two observables",
        [statement],
        {},
        figures.two_dimensional_densities(work.choices.seed),
    )


def fig9(work: Workspace) -> Section:
    """Posteriors of three observations with two observables."""
    model = work.model_2d()
    events = np.array([[0.0, 1.0], [1.0, 1.0], [0.5, 3.5]])
    theta = np.linspace(0, 1, 101)
    reach = [float(np.ptp(model.likelihood(event[None, :]).scan(theta))) for event in events]
    statement = Statement(
        "For large x2 the posterior is flat; for small x2 it depends on x1.",
        f"-log p varies over theta by {reach[0]:.2f} and {reach[1]:.2f} for the two at small x2, "
        f"by {reach[2]:.3f} for the one at large x2.",
        min(reach[:2]) > 1 and reach[2] < 0.1,
    )
    return Section(
        "Posteriors with two observables",
        [statement],
        {"variation": reach},
        figures.three_posteriors(model, events),
    )


def fig10(work: Workspace) -> Section:
    """True against estimated theta with two observables."""
    table, statement = _response(
        work,
        TwoObservables(),
        work.model_2d(),
        "No bias is observed and the error estimation works well.",
    )
    return Section(
        "Response with two observables", [statement], _closure_numbers(table), draw_closure(table)
    )


def _closure_numbers(table: Closure) -> dict[str, Any]:
    return {
        "true": table.true.tolist(),
        "value": table.value.tolist(),
        "interval": [list(e.results[0].stat_interval) for e in table.estimates],
        "slope": table.slope,
        "intercept": table.intercept,
        "chi2/dof": table.chi2 / table.dof,
    }


def _repeated(
    work: Workspace, name: str, example: Example, model: Callable[[int], Model]
) -> dict[str, Any]:
    """chi2/dof of the paper's test, for every training over many test sets."""
    trainings, sets = work.choices.trainings, work.choices.test_sets
    ratios = np.zeros((trainings, sets))
    with progress_bar(f"closure, {name}", trainings * sets) as report:
        for training, number in np.ndindex(ratios.shape):
            ratios[training, number] = work.number(
                f"closure-{name}-{training}-{number}",
                partial(_chi2_per_dof, work, example, model, training, number),
            )
            report(f"training {training + 1} of {trainings}")
    return {
        "mean per training": ratios.mean(axis=1).tolist(),
        "mean": float(ratios.mean()),
        "spread over test sets": float(ratios.std(axis=1, ddof=1).mean()),
        "test sets": ratios.shape[1],
    }


def _chi2_per_dof(
    work: Workspace, example: Example, model: Callable[[int], Model], training: int, number: int
) -> float:
    table = closure(model(training), _test_set(work, example, number))
    return table.chi2 / table.dof


def closures(work: Workspace) -> Section:
    """The paper's chi2/dof, repeated over trainings and test sets."""
    one, two = OneObservable(), TwoObservables()
    cases = {
        "1-D, penalty + flat": ("penalty", lambda t: work.model_1d("penalty", "flat", t), one),
        "1-D, default": ("default", lambda t: work.model_1d("template", "divide", t), one),
        "1-D, uncorrected": ("uncorrected", lambda t: work.model_1d("posterior", "flat", t), one),
        "2-D, default": ("two", work.model_2d, two),
    }
    rows = [["", "chi2/dof of each training, mean over test sets", "spread of one test set"]]
    numbers: dict[str, Any] = {}
    statements: list[Statement] = []
    # 0.85 to 1.25, or as much wider as three standard errors of few test sets are.
    error = float(np.sqrt(2 / (work.choices.test_values * work.choices.test_sets)))
    width = max(0.15, 3 * error)
    for title, (name, model, example) in cases.items():
        result = _repeated(work, name, example, model)
        numbers[title] = result
        means = result["mean per training"]
        listed = ", ".join(f"{m:.2f}" for m in means)
        rows.append([title, listed, f"{result['spread over test sets']:.2f}"])
        if title.endswith("uncorrected"):
            said = "Naive training produces biased results."
            agrees = min(means) > 30
        else:
            said = "chi2/dof = 0.92 in one test." if "1-D" in title else "No bias is observed."
            agrees = min(means) > 1 - width and max(means) < 1.1 + width
        ours = f"{title}: {listed} over {result['test sets']} test sets each."
        statements.append(Statement(said, ours, agrees))
    return Section("Closure over many trainings and test sets", statements, numbers, None, rows)


ITEMS: dict[str, Callable[[Workspace], Section]] = {
    "fig1": fig1,
    "fig2": fig2,
    "fig3": fig3,
    "table1": table1,
    "fig4": fig4,
    "fig5": fig5,
    "fig6": fig6,
    "fig7": fig7,
    "fig8": fig8,
    "fig9": fig9,
    "fig10": fig10,
    "closure": closures,
}
