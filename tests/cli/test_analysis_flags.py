"""Observables and bounds as flags."""

import pytest

from gridless.cli.analysis_flags import analysis_from_flags, named_expressions, split_at_commas
from gridless.errors import InputError

BOUNDS = [("mtop", 165.0, 180.0)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a,b"], {"a": "a", "b": "b"}),
        (["a", "b"], {"a": "a", "b": "b"}),
        (["a", "b, c"], {"a": "a", "b": "b", "c": "c"}),
        (["hypot(a, b)"], {"hypot(a, b)": "hypot(a, b)"}),
        (["m_T=sqrt(a * b), c"], {"m_T": "sqrt(a * b)", "c": "c"}),
        (["pt = hypot(px, py)"], {"pt": "hypot(px, py)"}),
        (["a == 1", "b <= 2"], {"a == 1": "a == 1", "b <= 2": "b <= 2"}),
        (["where(a == 1, b, c)"], {"where(a == 1, b, c)": "where(a == 1, b, c)"}),
    ],
)
def test_observables_accumulate_and_may_have_names(given, expected):
    assert named_expressions(given) == expected


def test_an_observable_given_twice_or_without_an_expression_is_refused():
    with pytest.raises(InputError, match="-x: a twice"):
        named_expressions(["a", "b,a"])
    with pytest.raises(InputError, match="-x: a= has no expression"):
        named_expressions(["a="])


def test_commas_inside_brackets_do_not_separate():
    assert split_at_commas("a, hypot(b, c) ,,d") == ["a", "hypot(b, c)", "d"]


def test_an_analysis_made_of_flags():
    analysis = analysis_from_flags("t_{mtop}.csv", BOUNDS, ["a", "r=a / b"], "w", "a > 1")
    assert analysis.parameters == {"mtop": (165, 180)}
    assert analysis.observables == {"a": "a", "r": "a / b"}
    assert (analysis.weight, analysis.selection) == ("w", "a > 1")


@pytest.mark.parametrize(
    ("bounds", "observables", "message"),
    [
        ([], ["a"], "--bounds: missing"),
        (BOUNDS, [], "-x: missing"),
        ([("mtop", 180.0, 165.0)], ["a"], "the low bound comes first"),
    ],
)
def test_flags_that_are_missing_or_wrong(bounds, observables, message):
    with pytest.raises(InputError, match=message):
        analysis_from_flags("t_{mtop}.csv", bounds, observables, None, None)


@pytest.mark.parametrize(("pattern", "name"), [("t_{mtop}.csv", "\udcff"), ("\udcff_{a}.csv", "b")])
def test_bytes_that_are_no_text_are_spelt_out_in_what_is_wrong_with_them(pattern, name):
    with pytest.raises(InputError, match=r"flags: (?=.*\\udcff).* in braces, and the parameters"):
        analysis_from_flags(pattern, [(name, 0.0, 1.0)], ["a"], None, None)


def test_flags_beside_an_analysis_file_are_refused_before_it_is_read():
    with pytest.raises(InputError, match=r"-x: nowhere\.yaml says it already"):
        analysis_from_flags("nowhere.yaml", [], ["a"], None, None)
