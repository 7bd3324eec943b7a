"""A reader without the project's history finds every term in docs/glossary.md."""

import re
from pathlib import Path

import pytest

from gridless.examples import OneObservable
from gridless.model.record import FitOptions

ROOT = Path(__file__).parent.parent
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
# The first column of its tables.
ENTRIES = re.findall(r"^\| (.+?) \|", GLOSSARY, re.MULTILINE)
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/[a-z]*.md")]
PROSE = "\n".join(page.read_text() for page in PAGES if page.name not in ("glossary.md", "api.md"))

# Words to which these pages give a meaning of their own, or that not every physicist knows. What
# they use more goes here and into the glossary.
TERMS = """
    audit, background, basis, belt, blind, bootstrap, budget, calibration, cell, channel,
    Chebyshev, closure, component, constraint, coverage, degree, effective size, ensemble,
    epoch, error, estimate, expression, Feldman-Cousins, floor, fold, gain, gap, goodness of
    fit, grid, held-out, impact, implied prior, in situ, influence, information, jes, leave one
    out, likelihood, MDN, model, morphing, network, Newton steps, NLE, NPE, nuisance parameter,
    objective, observables, ONNX, over-fitting, p-value, parameter of interest, pattern, pilot,
    plan, posterior, profile, pseudo-experiment, pull, query, replica, review, ridge, sandwich,
    score, score check, seed, selection, sentinel, share, simulation, single-event resolution,
    size, slope, standardised, stat, summary, systematic, template, template check, toy, UHI,
    units of log likelihood, validation, variation, virtual template, warning, whiten, Wilks,
    worker, zoo
"""


@pytest.mark.parametrize("term", [" ".join(term.split()) for term in TERMS.split(",")])
def test_a_term_of_the_pages_is_in_the_glossary(term):
    written = re.compile(rf"\b{re.escape(term)}".replace("\\ ", r"[\s-]+"), re.IGNORECASE)
    assert written.search(PROSE), f"no page has {term!r}: take it out of TERMS"
    assert written.search(GLOSSARY), f"docs/glossary.md lacks {term!r}"


def test_every_option_of_a_fit_is_in_the_glossary():
    names = [name.removesuffix("s") for name in FitOptions.model_fields]
    assert [name for name in names if not re.search(rf"\b{name}", GLOSSARY)] == []


def test_every_source_of_the_budget_is_an_entry():
    example = OneObservable()
    estimate = example.likelihood(example.sample(0.4, 100, seed=1)).maximum()
    for source in (*estimate.budget["theta"], "simulation", "model"):
        assert f"`{source}`" in ENTRIES


def test_no_word_is_explained_twice():
    words = [entry for entry in ENTRIES if entry != "word"]
    assert len(words) == len(set(words))
