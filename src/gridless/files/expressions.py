"""Expressions of columns, such as `m_jjb / m_jj` or `(pt > 30) & (abs(eta) < 2.5)`.

They are parsed, checked against a short list of what is allowed, and computed on whole columns by
simpleeval; nothing in them is ever run as Python.
"""

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
from simpleeval import InvalidExpression, SimpleEval

from gridless.errors import InputError, counted
from gridless.files.table import Column

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log10": np.log10,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "hypot": np.hypot,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "where": np.where,
}
CONSTANTS = {"pi": np.pi}
ALLOWED = (
    "allowed are column names, numbers, pi, + - * / ** %, comparisons, & | ~ and or not, and "
    + " ".join(FUNCTIONS)
    + "; a column whose name is not a plain word can only be given alone"
)
MAX_LENGTH = 4_000  # characters; longer ones could exhaust the stack of Python's parser
_REFUSED = {
    ast.Attribute: "a dot",
    ast.Subscript: "square brackets",
    ast.JoinedStr: "text",
    ast.Lambda: "lambda",
    ast.IfExp: "if ... else (write where(condition, a, b))",
    ast.NamedExpr: "an assignment",
    ast.BitXor: "^ (a power is written **)",
    ast.FloorDiv: "//",
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), "a loop"),
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set, ast.Dict), "a list"),
}


def names(expression: str, columns: Collection[str] = ()) -> set[str]:
    """The columns that an expression needs; the whole of it may be the name of one of `columns`.

    A column that is called as a constant is, `pi`, comes first.
    """
    if not isinstance(expression, str) or not expression.strip():
        raise InputError(f"expression {expression!r}: empty or not text; {ALLOWED}")
    if expression.strip() in columns:
        return {expression.strip()}
    constants = set(CONSTANTS) - set(columns)
    return {node.id for node in _columns_of(_parse(expression))} - constants


def check_expression(expression: str) -> None:
    """Refuse what cannot be an expression of any columns; a column may have any printable name."""
    try:
        names(expression)
    except InputError:
        # A column may have that name, such as `m [GeV]`, if every bracket is closed.
        pairs = [(expression.count(a), expression.count(b)) for a, b in ("()", "[]", "{}")]
        if not expression.strip() or "\n" in expression or any(a != b for a, b in pairs):
            raise


def evaluate(expression: str, columns: Mapping[str, Column]) -> Column:
    """The value of an expression for every event, computed on whole columns.

    Floating-point columns count as float64 and integer ones as int64, so that the result does not
    depend on how a file stores them. sqrt(-1) and 1/0 are nan and inf, as in NumPy.
    """
    needed = names(expression, columns)
    _check_known(expression, needed, columns)
    values = {name: _widen(expression, name, columns[name]) for name in needed}
    if needed == {expression.strip()}:
        return values[expression.strip()]
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(_evaluator(values).eval(expression, _parse(expression)))
            if result.dtype == object:  # whole numbers beyond those of a processor
                result = result.astype(np.float64)
            like = [np.shape(column) for column in (values or columns).values()]
            shape = np.broadcast_shapes(result.shape, *like)
    except (ArithmeticError, InvalidExpression, RecursionError, TypeError, ValueError) as error:
        raise InputError(
            f"expression {expression!r}: cannot be computed ({error}); {ALLOWED}"
        ) from error
    return result if result.shape == shape else np.broadcast_to(result, shape)


def compares_nan(expression: str, columns: Mapping[str, Column]) -> Column:
    """Whether an expression that can be computed compares nan with something, for every event."""
    needed = names(expression, columns)
    found: Any = np.zeros(max(len(column) for column in columns.values()), bool)
    if needed == {expression.strip()}:
        return np.asarray(found)
    evaluator = _evaluator({name: _widen(expression, name, columns[name]) for name in needed})
    for node in ast.walk(_parse(expression)):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                with np.errstate(all="ignore"):
                    value = evaluator.eval(expression, side)
                found = found | np.isnan(np.asarray(value, np.float64))
    return np.asarray(found)


@lru_cache(maxsize=256)
def _parse(expression: str) -> ast.expr:
    """The checked tree of an expression; everything that is not on the list is refused."""
    if len(expression) > MAX_LENGTH:
        raise InputError(
            f"expression of {len(expression)} characters, {expression[:40]!r}...; "
            f"give at most {MAX_LENGTH}"
        )
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (MemoryError, RecursionError, SyntaxError, ValueError) as error:
        reason = getattr(error, "msg", None) or type(error).__name__
        message = f"expression {expression!r}: not understood ({reason}); {ALLOWED}"
        raise InputError(message) from error
    for node in ast.walk(tree):
        _check_node(expression, node)
    return tree


def _check_node(expression: str, node: ast.AST) -> None:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            return
        case ast.Constant():
            _refuse(expression, "text" if isinstance(node.value, str | bytes) else str(node.value))
        case ast.Name():
            if node.id.startswith("__"):
                _refuse(expression, node.id)
        case ast.Call():
            _check_call(expression, node)
        case ast.Compare():
            _check_comparison(expression, node)
        case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.And() | ast.Or() | ast.Load():
            return
        case _:
            if type(node) not in OPERATORS:
                _refuse(expression, _REFUSED.get(type(node), type(node).__name__))


def _check_call(expression: str, node: ast.Call) -> None:
    if not isinstance(node.func, ast.Name):
        _refuse(expression, "a call of something that is not a function")
    name = node.func.id
    if name not in FUNCTIONS:
        _refuse(expression, f"the function {name}")
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        _refuse(expression, f"a keyword or * in {name}()")
    # More arguments than inputs would be written to: NumPy takes them for the output.
    inputs = getattr(FUNCTIONS[name], "nin", 3)
    if len(node.args) != inputs:
        raise InputError(
            f"expression {expression!r}: {counted(len(node.args), 'argument')} of {name}; give "
            f"{inputs}"
        )


def _check_comparison(expression: str, node: ast.Compare) -> None:
    """Refuse `a > 1 & b < 2`, which Python reads as `a > (1 & b) < 2`."""
    for operand in (node.left, *node.comparators):
        if (
            len(node.ops) > 1
            and isinstance(operand, ast.BinOp)
            and isinstance(operand.op, ast.BitAnd | ast.BitOr)
        ):
            raise InputError(
                f"expression {expression!r}: & and | bind tighter than comparisons; put each "
                "comparison in parentheses: (a > 1) & (b < 2)"
            )


def _refuse(expression: str, what: str) -> NoReturn:
    raise InputError(f"expression {expression!r}: {what} is not allowed; {ALLOWED}")


def _columns_of(tree: ast.expr) -> list[ast.Name]:
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions
    ]


def _check_known(expression: str, needed: set[str], columns: Collection[str]) -> None:
    missing = sorted(needed - set(columns))
    if missing:
        raise InputError(
            f"expression {expression!r}: there is no column {', '.join(missing)}; "
            f"there are {', '.join(columns)}"
        )


def _widen(expression: str, name: str, column: Column) -> Column:
    values = np.asarray(column)
    match values.dtype.kind:
        case "f":
            return values.astype(np.float64, copy=False)
        case "i":
            return values.astype(np.int64, copy=False)
        case "u":
            # Unsigned numbers would wrap around in 2 - n.
            fits = values.size == 0 or values.max() <= np.iinfo(np.int64).max
            return values.astype(np.int64) if fits else values
        case "b":
            return values
    raise InputError(
        f"expression {expression!r}: column {name!r} holds {values.dtype}; give numbers"
    )


def _evaluator(values: Mapping[str, Column]) -> Any:
    functions = {name: _arithmetic(function) for name, function in FUNCTIONS.items()}
    functions |= {"abs": _whole(np.abs)}
    evaluator = SimpleEval(
        operators=OPERATORS,
        functions=functions | {"where": np.where},
        names={**CONSTANTS, **values},
    )

    def compute(node: ast.AST) -> Any:
        return evaluator.eval(evaluator.expr, node)

    def compare(node: ast.Compare) -> Any:
        sides = [compute(side) for side in (node.left, *node.comparators)]
        parts = [OPERATORS[type(kind)](*sides[i : i + 2]) for i, kind in enumerate(node.ops)]
        return np.logical_and.reduce(np.broadcast_arrays(*parts))

    def connect(node: ast.BoolOp) -> Any:
        every = isinstance(node.op, ast.And)
        parts = np.broadcast_arrays(*(compute(part) for part in node.values))
        return (np.logical_and if every else np.logical_or).reduce(parts)

    kept = (ast.Name, ast.Constant, ast.UnaryOp, ast.BinOp, ast.Call)
    evaluator.nodes = {kind: evaluator.nodes[kind] for kind in kept} | {
        ast.Compare: compare,
        ast.BoolOp: connect,
    }
    return evaluator


def _as_number(value: Any) -> Any:
    """Conditions count as 0 and 1, so that (a > 1) + (b > 1) is how many hold."""
    return np.asarray(value, np.int64) if np.asarray(value).dtype == bool else value


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: function(*(_as_number(value) for value in values))


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but whole numbers that do not fit into 64 bits are refused: they would wrap
    around."""

    def compute(*values: Any) -> Any:
        numbers = [_as_number(value) for value in values]
        result = function(*numbers)
        kind = np.asarray(result).dtype
        if kind.kind in "iu":
            rough = np.asarray(function(*(np.asarray(n, np.float64) for n in numbers)))
            signed = kind.kind == "i"
            if (np.abs(rough) >= 2.0 ** (63 if signed else 64)).any() or (
                not signed and (rough < 0).any()
            ):
                raise OverflowError("whole numbers beyond 2**63; use a decimal point: 1.0 * n")
        return result

    return compute


def _modulo(a: Any, b: Any) -> Any:
    # Of whole numbers NumPy gives 0.
    if np.asarray(b).dtype.kind in "iu" and (np.asarray(b) == 0).any():
        raise ZeroDivisionError("modulo 0 for some events; write n % where(m == 0, 1, m)")
    return np.mod(a, b)


def _multiply(a: Any, b: Any) -> Any:
    # Python's integers could grow without end, and NumPy's wrap around.
    return np.multiply(a, b, dtype=np.float64)


def _power(a: Any, b: Any) -> Any:
    # In floating point 9**9**9 is inf at once, where Python's integers would take for ever.
    exponent = np.asarray(b, np.float64)
    return np.asarray(a, np.float64) ** (exponent if exponent.ndim else float(exponent))


def _bitwise(function: Callable[..., Any], symbol: str) -> Callable[..., Any]:
    def combine(a: Any, b: Any) -> Any:
        kinds = {np.asarray(value).dtype.kind for value in (a, b)}
        if kinds != {"b"} and not kinds <= {"i", "u"}:
            raise TypeError(
                f"{symbol} needs two conditions, each in parentheses: (a > 1) {symbol} (b < 2)"
            )
        return function(a, b)

    return combine


def _invert(a: Any) -> Any:
    if np.asarray(a).dtype != bool:
        raise TypeError("~ needs a condition in parentheses: ~(a > 1)")
    return np.logical_not(a)


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _whole(operator.add),
    ast.Sub: _whole(operator.sub),
    ast.Mult: _arithmetic(_multiply),
    ast.Div: _arithmetic(np.true_divide),
    ast.Mod: _arithmetic(_modulo),
    ast.Pow: _power,
    ast.USub: _whole(operator.neg),
    ast.UAdd: _arithmetic(operator.pos),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.BitAnd: _bitwise(operator.and_, "&"),
    ast.BitOr: _bitwise(operator.or_, "|"),
    ast.Invert: _invert,
    ast.Not: np.logical_not,
}
