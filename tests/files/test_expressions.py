"""Expressions compute what NumPy computes, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gridless.errors import InputError
from gridless.files.expressions import FUNCTIONS, evaluate, names

COLUMNS = {
    "pt": np.array([10.0, 40.0, 50.0, 35.0]),
    "eta": np.array([0.5, -1.0, 3.0, -2.6]),
    "n": np.array([0, 1, 2, 3], np.uint8),
    "tag": np.array([True, False, True, False]),
    "f": np.array([0.1, 0.2, 0.3, 0.4], np.float32),
}
PT, ETA, N, TAG = (COLUMNS[name] for name in ("pt", "eta", "n", "tag"))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("pt", PT),
        (" pt ", PT),
        ("sqrt(pt**2 + eta**2)", np.sqrt(PT**2 + ETA**2)),
        ("pt / eta - 2 * pi", PT / ETA - 2 * np.pi),
        ("-pt % 7", -PT % 7),
        ("(pt > 30) & (abs(eta) < 2.5)", [False, True, False, False]),
        ("pt > 30 and abs(eta) < 2.5", [False, True, False, False]),
        ("(pt > 45) | ~tag", [False, True, True, True]),
        ("pt > 45 or not tag or False", [False, True, True, True]),
        ("20 < pt <= 40", [False, True, False, True]),
        ("1 < 2 < pt", [True] * 4),
        ("n == 2 or n != n", [False, False, True, False]),
        ("where(tag, pt, -eta)", np.where(TAG, PT, -ETA)),
        ("minimum(pt, maximum(n, 36))", [10, 36, 36, 35]),
        ("arctan2(eta, pt) + hypot(pt, 1)", np.arctan2(ETA, PT) + np.hypot(PT, 1)),
        ("(pt > 30) + (n > 1) + tag", [1, 1, 3, 2]),
        ("-tag", [-1, 0, -1, 0]),
        ("exp(tag)", np.exp([1.0, 0.0, 1.0, 0.0])),
        ("(n & 1) > 0", [False, True, False, True]),
        ("(n & 2) | 1", [1, 1, 3, 3]),
        ("2.5", [2.5] * 4),
        ("True", [True] * 4),
    ],
)
def test_values(expression, expected):
    np.testing.assert_array_equal(evaluate(expression, COLUMNS), expected)


def test_storage_types_do_not_matter():
    assert evaluate("n - 3", COLUMNS).tolist() == [-3, -2, -1, 0]
    assert evaluate("n * 200 * 200", COLUMNS).tolist() == [0, 40_000, 80_000, 120_000]
    np.testing.assert_array_equal(evaluate("f * 3", COLUMNS), np.float64(COLUMNS["f"]) * 3)
    large = {"n": np.array([2**63 + 1, 4], np.uint64)}
    assert evaluate("n % 2", large).tolist() == [1, 0]
    assert evaluate("n * n", {"n": np.array([2**62])}).tolist() == [2.0**124]


def test_what_is_not_a_number_is_nan_or_inf_without_a_warning():
    values = evaluate("sqrt(0 - pt) + 1 / (n - n)", COLUMNS)
    assert np.isnan(values).all()
    assert np.isinf(evaluate("1 / 0 + pt", COLUMNS)).all()


@pytest.mark.parametrize("expression", ["9**9**9**9**9", "pt * 10**10000", "pt + 2**2**100"])
def test_absurd_exponents_are_harmless(expression):
    assert np.isinf(evaluate(expression, COLUMNS)).all()


def test_names():
    assert names("sqrt(px**2 + py**2) * pi") == {"px", "py"}
    assert names("where(a > 1 and not b, abs(c), log)") == {"a", "b", "c", "log"}
    assert names("1 + 2") == set()
    assert names(" jet.pt ", ["jet.pt", "x"]) == {"jet.pt"}
    assert names("pi", ["pi"]) == {"pi"}


@pytest.mark.parametrize("name", ["jet.pt", "m [GeV]", "__weight", "lambda", "2b", "x-y", "pi"])
def test_any_column_can_be_given_alone(name):
    assert evaluate(name, {name: np.arange(3), "x": np.ones(3)}).tolist() == [0, 1, 2]


def test_a_column_may_have_the_name_of_a_function():
    assert evaluate("abs(abs) + 1", {"abs": np.array([-1.0])}).tolist() == [2]


# Pairs of a text and what it means in NumPy, nested at random.
LEAVES = st.sampled_from(
    [("x", lambda c: c["x"]), ("y", lambda c: c["y"]), ("pi", lambda _: np.pi)]
) | st.floats(-9, 9).map(lambda v: (f"({v!r})", lambda _: v))
UNARY = {name: f for name, f in FUNCTIONS.items() if getattr(f, "nin", 3) == 1}
BINARY = {name: f for name, f in FUNCTIONS.items() if getattr(f, "nin", 3) == 2}
SIGNS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.mod,
    "**": lambda a, b: np.asarray(a, float) ** b,
}
COMPARISONS = {"<": np.less, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}
LOGIC = {"&": np.logical_and, "|": np.logical_or, "and": np.logical_and, "or": np.logical_or}


def _call(name, *parts):
    function = FUNCTIONS[name]
    text = f"{name}({', '.join(text for text, _ in parts)})"
    return text, lambda c: function(*(value(c) for _, value in parts))


def _infix(signs, sign, a, b):
    return f"({a[0]} {sign} {b[0]})", lambda c: signs[sign](a[1](c), b[1](c))


def _infixes(signs, parts):
    return st.builds(
        lambda sign, a, b: _infix(signs, sign, a, b), st.sampled_from([*signs]), parts, parts
    )


def _conditions(parts):
    simple = _infixes(COMPARISONS, parts)
    return simple | _infixes(LOGIC, simple)


def _numbers(parts):
    return (
        st.builds(_call, st.sampled_from([*UNARY]), parts)
        | st.builds(_call, st.sampled_from([*BINARY]), parts, parts)
        | _infixes(SIGNS, parts)
        | st.builds(_call, st.just("where"), _conditions(parts), parts, parts)
        | parts.map(lambda part: (f"(-{part[0]})", lambda c: -part[1](c)))
    )


NUMBERS = st.recursive(LEAVES, _numbers, max_leaves=8)
VALUES = hnp.arrays(np.float64, 5, elements=st.floats(-1e3, 1e3))


@given(expression=NUMBERS | _conditions(NUMBERS), x=VALUES, y=VALUES)
def test_expressions_equal_numpy(expression, x, y):
    text, meaning = expression
    columns = {"x": x, "y": y}
    with np.errstate(all="ignore"):
        expected = np.broadcast_to(meaning(columns), 5)
    np.testing.assert_array_equal(evaluate(text, columns), expected)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("pt.sum()", "a call of something that is not a function"),
        ("pt.T", "'pt.T': a dot is not allowed; allowed are column names"),
        ("().__class__", "is not allowed"),
        ("pt.__class__", "is not allowed"),
        ("__builtins__", "__builtins__ is not allowed"),
        ("__import__('os')", "the function __import__ is not allowed"),
        ("eval('1')", "the function eval is not allowed"),
        ("open('X')", "the function open is not allowed"),
        ("print(pt)", "the function print is not allowed"),
        ("(lambda: 1)()", "is not allowed"),
        ("lambda x: x", "lambda is not allowed"),
        ("[x for x in pt]", "a loop is not allowed"),
        ("{x for x in pt}", "a loop is not allowed"),
        ("sqrt(x for x in pt)", "a loop is not allowed"),
        ("pt[0]", "square brackets is not allowed"),
        ("[pt, eta]", "a list is not allowed"),
        ("pt, eta", "a list is not allowed"),
        ("{'a': pt}", "a list is not allowed"),
        ("'text'", "text is not allowed"),
        ("b'text'", "text is not allowed"),
        ("f'{pt}'", "text is not allowed"),
        ("1j * pt", "1j is not allowed"),
        ("None", "None is not allowed"),
        ("...", "Ellipsis is not allowed"),
        ("(pt := 3)", "an assignment is not allowed"),
        ("pt if tag else eta", r"write where\(condition, a, b\)"),
        ("pt ^ 2", r"a power is written \*\*"),
        ("pt // 2", "// is not allowed"),
        ("pt in eta", "In is not allowed"),
        ("pt is eta", "Is is not allowed"),
        ("n << 2", "LShift is not allowed"),
        ("pt @ eta", "MatMult is not allowed"),
        ("sqrt(*pt)", "a keyword or \\* in sqrt"),
        ("sqrt(pt, out=eta)", "a keyword or \\* in sqrt"),
        ("sqrt(pt, eta)", "2 arguments of sqrt; give 1"),
        ("where(tag)", "1 argument of where; give 3"),
        ("import os", "not understood"),
        ("pt = 3", "not understood"),
        ("pt; eta", "not understood"),
        ("pt +", "'pt \\+': not understood"),
        ("pt > 30 &", "not understood"),
        ("pt\0", "not understood"),
        ("(" * 500 + "pt" + ")" * 500, "not understood"),
        ("-" * 3_990 + "pt", "not understood|cannot be computed"),
        ("+".join(["pt"] * 1_300), "not understood|cannot be computed"),
        ("pt" * 2_001, "expression of 4002 characters"),
        ("", "empty or not text"),
        ("  ", "empty or not text"),
        (3, "expression 3: empty or not text"),
        (["pt"], "empty or not text"),
        ("pt > 30 & eta < 2", r"put each comparison in parentheses: \(a > 1\) & \(b < 2\)"),
        ("tag & n > 2", "& needs two conditions"),
        ("pt & eta", "& needs two conditions"),
        ("tag | n", r"\| needs two conditions"),
        ("~n", "~ needs a condition"),
        ("~pt > 30", "~ needs a condition"),
        ("ptt + 1", "there is no column ptt; there are pt, eta"),
        ("pt + sqrt", "there is no column sqrt"),
    ],
)
def test_refused_with_the_expression_and_what_is_allowed(expression, message):
    with pytest.raises(InputError, match=message):
        evaluate(expression, COLUMNS)


def test_columns_of_text_or_of_other_lengths_are_refused():
    with pytest.raises(InputError, match="column 's' holds <U1; give numbers"):
        evaluate("s", {"s": np.array(["a"])})
    with pytest.raises(InputError, match="cannot be computed"):
        evaluate("a + b", {"a": np.ones(2), "b": np.ones(3)})


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('touch {0}')",
        "open('{0}', 'w')",
        "().__class__.__base__.__subclasses__()",
        "pt.tofile('{0}')",
        "sqrt.__class__('{0}')",
        'exec(\'open("{0}", "w")\')',
        "[c for c in ().__class__.__base__.__subclasses__()]",
    ],
)
def test_nothing_is_executed(tmp_path, expression):
    target = tmp_path / "X"
    for use in (lambda text: evaluate(text, COLUMNS), names):
        with pytest.raises(InputError):
            use(expression.format(target))
    assert not target.exists()


def test_columns_are_not_written_to():
    before = {name: column.copy() for name, column in COLUMNS.items()}
    for expression in ("hypot(pt, eta)", "-pt", "abs(eta) + pt", "where(tag, pt, eta)"):
        evaluate(expression, COLUMNS)
    for name, column in COLUMNS.items():
        np.testing.assert_array_equal(column, before[name])


def test_a_column_called_pi_comes_before_the_constant():
    columns = {"pi": np.array([1.0, 200.0])}
    assert evaluate("pi < 100", columns).tolist() == [True, False]
    assert names("2 * pi", columns) == {"pi"}
    assert names("2 * pi", ["x"]) == set()


@pytest.mark.parametrize(
    "expression",
    ["n + 9223372036854775807", "n - m", "-m", "abs(m)", "u + u", "u - 1 + 1", "-u", "m - 1"],
)
def test_whole_numbers_that_would_wrap_around_are_refused(expression):
    columns = {
        "n": np.array([1, 2]),
        "m": np.array([1, -(2**63)]),
        "u": np.array([2**64 - 1, 0], np.uint64),
    }
    with pytest.raises(InputError, match=r"whole numbers beyond 2\*\*63|too large"):
        evaluate(expression, columns)


@pytest.mark.parametrize("expression", ["n % 0", "n % m", "7 % m", "n % (m > 1)"])
def test_modulo_0_is_refused_for_whole_numbers(expression):
    with pytest.raises(InputError, match="modulo 0 for some events"):
        evaluate(expression, {"n": np.array([5, 6]), "m": np.array([0, 4])})
    assert np.isnan(evaluate("n % 0.0", {"n": np.array([5, 6])})).all()
