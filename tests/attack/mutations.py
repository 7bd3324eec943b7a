"""Damaged bytes, damaged JSON, and odd words, numbers, expressions and YAML, drawn at random."""

import json
import struct
from typing import Any

import numpy as np

Generator = np.random.Generator

ODD_NUMBERS = (
    *(0, -1, 1, 2, 3, 7, 1.5, -0.0, 1e-300, 1e300, 1e39, 1e-45, -1e18, 2**31, 2**63, 10**30),
    *(float("nan"), float("inf"), float("-inf"), 10**12),
)
ODD_TEXT = (
    *("", " ", ".", "$", "$$", "$\\undefined$", "$\\sqrt{x$", "\\frac{", "_", "^", "%", "{}"),
    *("<img src=x onerror=alert(1)>", "&amp;", '"', "'", ",", ";", "\n", "\t", "\x1b[31m", "\x07"),
    *("\x00", "=1+1", "@SUM(A1)", "é", "\u202e", "\U0001f600", "\udcff", "nan", "null", "None"),
    *("__class__", "theta", "x", "entry", "pi", "../..", "-h", "--json", "a" * 300, "a" * 5000),
)
FAULTS = ("flip", "flip", "flip", "byte", "cut", "lose", "double", "zero", "size")
FORMS = (
    *("({a} + {b})", "({a} - {b})", "{a} * {b}", "({a}) / (1 + abs({b}))", "-({a})", "abs({a})"),
    *("sqrt(abs({a}))", "({a}) ** 2", "minimum({a}, {b})", "where({a} > {b}, 1, 2)"),
)
TAGS = ("!!python/object/apply:os.system [true]", "!!binary aGk=", "!!set {a}", "&a *a")
LEAST_BYTES = 8  # that a file keeps when it is cut, so that some cuts look like a file


def choose(rng: Generator, options: Any) -> Any:
    """One of them; unlike `rng.choice` it leaves their types alone."""
    return options[int(rng.integers(len(options)))]


def damaged(content: bytes, rng: Generator) -> bytes:
    """Bytes with one to a few faults: bits flipped, a piece lost, doubled, zeroed, or cut off."""
    data = bytearray(content)
    for _ in range(int(choose(rng, (1, 1, 1, 2, 8)))):
        if len(data) < LEAST_BYTES:
            break
        # Half of the faults near the ends, where formats keep what they say of themselves.
        near = min(len(data), 2_000)
        start = int(rng.integers(len(data)))
        start = choose(rng, (start, start, start % near, len(data) - 1 - start % near))
        stop = min(len(data), start + int(rng.integers(1, 64)))
        fault = choose(rng, FAULTS)
        if fault == "flip":
            data[start] ^= 1 << int(rng.integers(8))
        elif fault == "byte":
            data[start] = int(rng.integers(256))
        elif fault == "cut":
            del data[start:]
        elif fault == "lose":
            del data[start:stop]
        elif fault == "double":
            data[start:start] = data[start:stop]
        elif fault == "zero":
            data[start:stop] = bytes(stop - start)
        else:
            huge = choose(rng, (0, -1, 2**31 - 1, 2**62, int(rng.integers(2**40))))
            data[start : start + 8] = struct.pack("<q", huge)
    return bytes(data)


def odd_value(rng: Generator, depth: int = 0) -> Any:
    """Anything that JSON or YAML can hold."""
    kind = int(rng.integers(8))
    if kind < 3:
        return choose(rng, ODD_NUMBERS)
    if kind < 5:
        return choose(rng, ODD_TEXT)
    if kind == 5 or depth > 2:
        return choose(rng, (None, True, False))
    inside = [odd_value(rng, depth + 1) for _ in range(int(rng.integers(4)))]
    if kind == 6:
        return inside
    return {str(choose(rng, ODD_TEXT)): value for value in inside}


def changed_json(content: Any, rng: Generator) -> Any:
    """A copy of a JSON value with one place, found by a random walk from the root, changed."""
    content = json.loads(json.dumps(content))
    place, key = {"root": content}, "root"
    root: Any = place
    while isinstance(place[key], dict | list) and place[key] and rng.random() < 0.85:
        place = place[key]
        key = choose(rng, list(place) if isinstance(place, dict) else list(range(len(place))))
    fault = choose(rng, ("value", "value", "number", "remove", "add", "deep", "long"))
    old = place[key]
    if fault == "remove" and place is not root:
        del place[key]
    elif fault == "number" and isinstance(old, int | float):
        place[key] = choose(rng, (-old, old + 1, old * 1e6, int(old), float(old), old - 1))
    elif fault == "add" and isinstance(old, dict):
        old[str(choose(rng, ODD_TEXT))] = odd_value(rng)
    elif fault == "add" and isinstance(old, list):
        old.append(odd_value(rng))
    elif fault == "deep":
        place[key] = choose(rng, (nested(50), nested(900)))
    elif fault == "long" and isinstance(old, list):
        place[key] = old * choose(rng, (2, 1000))
    else:
        place[key] = odd_value(rng)
    return root["root"]


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def arithmetic(rng: Generator, columns: tuple[str, ...], depth: int = 0) -> str:
    """A well-formed expression of columns that NumPy can check."""
    if depth > 3 or rng.random() < 0.25:
        return str(choose(rng, (*columns, *columns, "2", "0.5", "1e3")))
    a, b = (arithmetic(rng, columns, depth + 1) for _ in range(2))
    form = choose(rng, FORMS)
    return form.format(a=a, b=b)


def odd_expression(rng: Generator, columns: tuple[str, ...]) -> str:
    """An expression that may be anything: pieces of Python in random order, or too much of them."""
    fault = int(rng.integers(6))
    if fault == 0:
        return choose(rng, ("(", "-", "x+", "~", "not ", "x if x else ")) * int(
            rng.integers(1, 3000)
        )
    if fault == 1:
        sign, number = choose(rng, ("**", "<<", "*", "//")), choose(rng, ODD_NUMBERS)
        return f"{choose(rng, columns)} {sign} {number}"
    if fault == 2:
        return "9" * int(rng.integers(1, 6000))
    tokens = (
        *columns,
        *("(", ")", "+", "-", "*", "/", "**", "//", "%", "<", ">", "==", "&", "|", "~", ",", "."),
        *("[", "]", "0", "1", "1e400", "9**9**9", "0x", "'a'", "lambda", "if", "else", "for", "in"),
        *("abs", "sqrt", "where", "__import__", "__class__", "entry", "pi", "None", "True", "nan"),
        *ODD_TEXT[:20],
    )
    glue = choose(rng, ("", " "))
    return glue.join(str(choose(rng, tokens)) for _ in range(int(rng.integers(1, 12))))


def odd_yaml(text: str, rng: Generator) -> tuple[str, bool]:
    """A changed YAML text, and whether it must be refused whatever else it says."""
    lines = text.splitlines()
    settings = [i for i, line in enumerate(lines) if ":" in line]
    i = choose(rng, settings)
    fault = int(rng.integers(9))
    if fault == 0:  # The same key twice.
        lines.insert(i, lines[i])
        return "\n".join(lines), True
    if fault == 1:
        return "\n".join([*lines, bomb(rng)]), True
    if fault == 2:
        deep = choose(rng, "[{(") * int(rng.integers(1, 5000))
        return "\n".join([*lines, f"weight: {deep}"]), True
    key = lines[i].split(":")[0]
    if fault == 3:
        lines[i] = f"{key}: {json.dumps(odd_value(rng))}"
    elif fault == 4:
        lines[i] = f"{key}: {choose(rng, ODD_TEXT)}"
    elif fault == 5:
        lines[i] = f"{key}: {choose(rng, TAGS)}"
    elif fault == 6:
        del lines[i]
    elif fault == 7:
        lines[i] = " " * int(rng.integers(1, 4)) + lines[i]
    else:
        return damaged(text.encode(), rng).decode(errors="surrogateescape"), False
    return "\n".join(lines), False


def bomb(rng: Generator) -> str:
    """Aliases of aliases: some lines that stand for billions of values."""
    key = choose(rng, ("observables", "parameters", "templates", "weight", "fit", "more"))
    first = "a0: &a0 [x, x, x, x, x, x, x, x, x]"
    rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "\n".join([first, *rows, f"{key}: *a9"])
