"""Labels such as `$m_t$ [GeV]` set in HTML, and their parts: symbol and unit."""

import re
from html import escape

# What TeX calls letters and signs that labels of observables have.
SIGNS = {
    **{name: chr(code) for code, name in enumerate(
        ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
         "lambda", "mu", "nu", "xi", "omicron", "pi", "rho", "varsigma", "sigma", "tau",
         "upsilon", "varphi", "chi", "psi", "omega"), start=0x3B1)},
    "phi": "φ", "varepsilon": "ε", "vartheta": "ϑ",
    "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ",
    "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "ell": "\u2113", "times": "\u00d7", "cdot": "·",
    "pm": "±", "to": "→", "rightarrow": "→", "leq": "≤", "geq": "≥", "sqrt": "√", "infty": "∞",
    "prime": "\u2032",
    "log": "log", "ln": "ln", "cos": "cos", "sin": "sin", "min": "min", "max": "max",
    ",": " ", ";": " ", " ": " ", "!": "", "left": "", "right": "", "%": "%", "{": "{", "}": "}",
}  # fmt: skip
# Commands whose argument is set upright, or as it is.
UPRIGHT = {"mathrm", "text", "rm", "textrm", "operatorname", "mathbf", "mathit"}
# Marks above a letter.
ACCENTS = {"bar": "̄", "overline": "̄", "hat": "̂", "tilde": "̃", "vec": "⃗", "dot": "̇"}
MARKS = {"_": "sub", "^": "sup"}
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)
_UNIT = re.compile(r"\s*[\[(]([^\[\]()]+)[\])]\s*$")


def label_html(label: str) -> str:
    """A label in HTML: what stands between dollars as a formula, the rest as it is.

    Examples
    --------
    >>> label_html("$m_{t}$ [GeV]")
    '<i>m</i><sub><i>t</i></sub> [GeV]'
    """
    parts = label.split("$")
    if len(parts) % 2 == 0:  # an odd number of dollars is no formula
        return escape(label)
    return "".join(_formula(p) if i % 2 else escape(p) for i, p in enumerate(parts))


def unit_of(label: str) -> str:
    """The unit of a label, which stands in brackets at its end; empty where there is none.

    Examples
    --------
    >>> unit_of("$m_t$ [GeV]"), unit_of("m_jj / GeV")
    ('GeV', '')
    """
    found = _UNIT.search(label)
    return found[1].strip() if found else ""


def symbol_of(label: str) -> str:
    """A label without its unit.

    Examples
    --------
    >>> symbol_of("$m_t$ [GeV]")
    '$m_t$'
    """
    return _UNIT.sub("", label)


def _formula(text: str) -> str:
    tokens = _TOKEN.findall(text)
    pieces = []
    while tokens:
        pieces.append(_piece(tokens, upright=False))
    return "".join(pieces)


def _piece(tokens: list[str], upright: bool) -> str:
    """The next piece of a formula; takes its tokens away."""
    token = tokens.pop(0)
    if token in MARKS and tokens:
        tag = MARKS[token]
        return f"<{tag}>{_piece(tokens, upright)}</{tag}>"
    if token == "{":
        inner = []
        while tokens and tokens[0] != "}":
            inner.append(_piece(tokens, upright))
        if tokens:
            tokens.pop(0)
        return "".join(inner)
    if token.startswith("\\"):
        name = token[1:]
        if name in UPRIGHT and tokens:
            _skip_space(tokens)
            return _piece(tokens, upright=True) if tokens else ""
        if name in ACCENTS and tokens:
            return _piece(tokens, upright) + ACCENTS[name]
        return escape(SIGNS.get(name, name))
    if token.isspace():
        return " " if upright else ""
    return f"<i>{token}</i>" if token.isalpha() and not upright else escape(token)


def _skip_space(tokens: list[str]) -> None:
    while tokens and tokens[0].isspace():
        tokens.pop(0)
